"""Notebooks of base models with the models that ship: nothing is trained, nothing that ships is changed, and the page says so."""

import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from cnslib.core import paths
from cnslib.tools import runner
from cnslib.tools.pages import shipped

WORLD = sorted((paths.NOTEBOOKS / "world").glob("*.ipynb"))
TRAINS = re.compile(r"\b\w+\.train(?:_oracle)?\(|\bredrawing\.make\(")  # zoo's members are left alone where they are done


@pytest.mark.parametrize("path", WORLD, ids=lambda path: path.stem)
def test_whatever_trains_is_run_as_something_else(path):
    sources = {cell.id: cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"}
    loaded = shipped.LOADED.get(path.stem, {})
    assert loaded.keys() <= sources.keys() and not any(TRAINS.search(source) for source in loaded.values())
    trains = [name for name, source in sources.items() if TRAINS.search(source) and name not in loaded]
    assert bool(loaded) == (shipped.LEFT.get(path.stem, shipped.TRAINED) == shipped.TRAINED) or path.stem == "25_redrawing"
    assert trains == (["redraw-make"] if path.stem == "25_redrawing" else [])  # which draws, and of few scenes


def test_a_cell_that_no_notebook_has_is_an_error():
    with pytest.raises(KeyError, match="absent"):
        shipped.cell_of(new_notebook(cells=[new_code_cell("1", id="there")]), "absent")


@pytest.mark.slow
def test_a_notebook_shows_its_own_code_and_what_ships_stays_as_it_is(tmp_path, monkeypatch):
    models = tmp_path / "models"
    models.mkdir()
    (models / "weights").write_text("shipped")
    cells = [new_markdown_cell("# Does it learn?"), new_code_cell("raise ValueError('hours')", id="train")]
    cells += [
        new_code_cell(
            "from cnslib.core import paths\n(paths.MODELS / 'weights').write_text('new')\nprint(found, os.environ['ONEDNN_MAX_CPU_ISA'])",
            id="shows",
        )
    ]
    python = {"kernelspec": runner.KERNELSPEC, "language_info": {"name": "python"}}
    nbformat.write(new_notebook(metadata=python, cells=cells), tmp_path / "10_tiny.ipynb")
    monkeypatch.setattr(paths, "MODELS", models)
    monkeypatch.setitem(shipped.LOADED, "10_tiny", {"train": "import os\nfound = (paths.MODELS / 'weights').read_text()"})
    made = shipped.run(tmp_path / "10_tiny.ipynb")
    assert [cell.source for cell in made.cells if cell.cell_type == "code"] == [cell.source for cell in cells[1:]]
    assert made.cells[1].source.startswith("*Run with the models that ship") and made.cells[-1].outputs[0].text == "shipped DEFAULT\n"
    assert (models / "weights").read_text() == "shipped"


def test_a_chapter_runs_under_the_instructions_of_make_world():
    exported = dict(re.findall(r"^world: export (\w+) := (\w+)$", (paths.ROOT / "Makefile").read_text(), re.MULTILINE))
    assert exported == shipped.UNBOUND
