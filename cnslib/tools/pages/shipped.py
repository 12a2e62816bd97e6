"""The base models' notebooks, run with the models that ship: training these takes hours, looking at them minutes.

A cell that trains is run as the line that loads what it wrote; its own code is shown. What a notebook writes goes to copies.
"""

import os
import shutil
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell

from cnslib.core import paths
from cnslib.tools import kernels

FEW = """from dataclasses import replace
run = start("redrawing", params, overlay)
base, settings = run.base, replace(run.settings, per_caption=2)
run"""
ONE = """pipe = text_to_image.load_pipeline(paths.MODELS / "mini-sd", base.device)
pools = {"web": scenes.garments(paths.GARMENTS, "web", base.classes)}
files = {"web": redrawing.place(run, "web")}"""
# By notebook and cell, what is run in place of a training.
LOADED = {
    "10_autoencoder": {
        "train": 'from diffusers import AutoencoderKL\nvae = AutoencoderKL.from_pretrained(paths.MODELS / "mini-sd" / "vae").float()',
    },
    "20_diffusion": {"draw-training": "vae = vae.float()"},
    "25_redrawing": {"redraw03": FEW, "redraw05": ONE},
    "30_contrastive": {"contrast-train": ""},
    "40_selfsupervised": {
        "views-training": 'from cnslib.models import encoders\nbackbone = encoders.ImageEncoder(str(paths.MODELS / "mini-dino")).model',
    },
    "50_oracle": {
        "train": 'from cnslib.models import encoders\noracle = encoders.Oracle(str(paths.MODELS / "oracle"), labels=base.classes).model',
    },
}
SAID = "*Run with the models that ship: {left}. `make world` runs all of it.*"
TRAINED = "in place of training, it loads what it once wrote"
KEPT = "the classifiers are there and are not trained again"
LEFT = {
    "25_redrawing": "two scenes of each caption are drawn again, of the web pool; judges learn from more",
    "55_fidelity": "what it measures is written to a copy",
    **dict.fromkeys(("60_zoo", "65_augmentation", "70_pretraining"), KEPT),
}
# As `make world` runs them: bfloat16, in which scenes are drawn again, is many times slower where AVX2 has to stand in for it.
UNBOUND = {"MKL_CBWR": "AUTO", "ONEDNN_MAX_CPU_ISA": "DEFAULT"}


def run(path: Path) -> nbformat.NotebookNode:
    """A base model's notebook with its outputs, and a line under the title that says what was left out.

    Raises nbclient's CellExecutionError where a cell fails.
    """
    book = nbformat.read(path, as_version=4)
    sources = {cell.id: cell.source for cell in book.cells}
    for name, source in LOADED.get(path.stem, {}).items():
        cell_of(book, name).source = source
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(paths.MODELS, Path(folder) / "models")
        book.cells.insert(0, new_code_cell(elsewhere(Path(folder)), id="elsewhere"))
        place = {"metadata": {"path": str(paths.ROOT)}}
        NotebookClient(book, timeout=None, resources=place, kernel_manager_class=kernels.Patient).execute(env=os.environ | UNBOUND)
    del book.cells[0]
    for cell in book.cells:
        cell.source = sources[cell.id]
    book.cells.insert(1, new_markdown_cell(SAID.format(left=LEFT.get(path.stem, TRAINED)), id="shipped"))
    return book


def cell_of(book: nbformat.NotebookNode, name: str) -> nbformat.NotebookNode:
    """The cell of that name; KeyError where a notebook has none."""
    return {cell.id: cell for cell in book.cells}[name]


def elsewhere(folder: Path) -> str:
    """What lets a notebook read and write copies of the models."""
    places = {"MODELS": folder / "models", "CHECKPOINTS": folder / "checkpoints"}
    moved = [f"paths.{name} = Path({str(place)!r})" for name, place in places.items()]
    return "\n".join(["from pathlib import Path", "from cnslib.core import paths", *moved])
