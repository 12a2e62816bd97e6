"""The paper's profile: its values are the paper's, and all of its steps run on a foreign tree in the public formats.

There a tiny model of Stable Diffusion 2's kind draws, and pictures are of unequal sizes.
"""

import functools
import re
import sys
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from IPython.core.interactiveshell import InteractiveShell
from matplotlib import pyplot as plt
from paper_files import CLASSES, registered, write_all

from cnslib.core import names, paths, tables
from cnslib.core.settings import read
from cnslib.data import imagenet
from cnslib.models import registry
from cnslib.plots import figures
from cnslib.tools import gate, runner

PARAMS, PAPER = (paths.resolve(name) for name in ("params.yaml", "paper.yaml"))
SHIFTED = [(shift, scale) for shift in ("heavy snow", "cartoon style") for scale in (1, 2.5)]
# So few pictures leave some legends empty and some numbers undefined.
pytestmark = pytest.mark.filterwarnings("ignore:No artists with labels found", "ignore::RuntimeWarning")
LISTS = dict(re.findall(r"^(MINI|STEPS) := (.*)$", paths.resolve("Makefile").read_text(), re.MULTILINE))
CHAIN = [step for step in LISTS["STEPS"].split() if step not in LISTS["MINI"].split()]


def execute(step, overlay):
    """Runs a notebook's cells on its two files as `runner.run` does, but in this process: a kernel each would take minutes."""
    notebook = nbformat.read(runner.notebooks()[step], as_version=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "__main__", sys.modules["__main__"])  # where the shell puts its own, from which no process can start
        shell = InteractiveShell.instance()
        sys.modules["__main__"] = shell.user_module
        shell.reset(new_session=False)
        shell.push({"params": "params.yaml", "overlay": str(overlay)})
        for cell in notebook.cells:
            if cell.cell_type == "code" and "parameters" not in cell.metadata.get("tags", []):
                shell.run_cell(cell.source).raise_error()
    plt.close("all")


@pytest.fixture(scope="module")
def overlay(tmp_path_factory):
    return write_all(tmp_path_factory.mktemp("paper"))


@pytest.fixture(scope="module")
def sections(overlay):
    return read.load(PARAMS, overlay)


@pytest.fixture(scope="module")
def layout(sections, overlay):
    with plt.rc_context(), pytest.MonkeyPatch.context() as patch:
        patch.chdir(paths.ROOT)
        patch.setattr(figures, "WITHOUT_DATE", {"png": {}})  # no pages: their fonts take as long as all that is drawn
        patch.setattr(read, "read", functools.cache(read.read))  # two files, which each step would parse again
        for step in CHAIN:
            execute(step, overlay)
    return paths.Layout(sections["base"].out)


def changed(sections, section, **values):
    return sections | {section: type(sections[section])(**{**vars(sections[section]), **values})}


def test_the_profile_is_the_papers_benchmark():
    found = read.load(PARAMS, PAPER)
    base, training = found["base"], found["sliders"]
    assert base.classes == list(imagenet.paper_classes()["class"]) and base.shifts == list(names.SHIFTS)
    assert (base.scales, base.seeds, found["generation"].steps) == ([0, 0.5, 1, 1.5, 2, 2.5], 50, 100)
    assert (training.rank, training.alpha, training.eta, training.learning_rate) == (4, 1, 4, 2e-4)
    assert (training.iterations, training.batch_size, training.denoising_steps, base.recipe) == (400, 16, 50, "released")
    parsed = {name: registry.parse(source, key=name) for name, source in found["evaluation"].classifiers.items()}
    assert {name: entry.model for name, entry in parsed.items()} == {name: name for name in registry.entries()}
    assert all(entry.hub or entry.local.startswith("weights/") for entry in parsed.values())


@pytest.mark.slow
def test_the_chain_draws_judges_and_counts_every_image(layout):
    drawn = pd.concat([tables.read(path, tables.images) for path in layout.artifacts("generation").glob("*.parquet")])
    assert drawn.groupby(["shift", "scale"]).size().to_dict() == {("unshifted", 0): 4, **dict.fromkeys(SHIFTED, 4)}
    answers = pd.read_parquet(layout.artifacts("evaluation") / "alexnet.parquet")
    assert len(answers) == 20 and set(answers["preprocessing"]) == {"paper"}
    right = answers["top1"] == answers["class"]
    assert right.groupby(answers["class"]).mean().to_dict() == {"hen": 1, "ostrich": 0}  # of equal logits the first label wins
    assert {path.stem for path in layout.metrics.glob("*.json")} == {*CHAIN, "gates", "benchmark"}


@pytest.mark.slow
def test_the_gate_finds_all_that_the_chain_reads(overlay):
    assert gate.main(["--overlay", str(overlay), "--ready"]) == 0


@pytest.mark.parametrize(
    ("section", "values", "message"),
    [
        ("base", {"classes": ["hen", "goose"]}, r"folder .*n01855672 of class 'goose' does not exist"),
        ("base", {"labels": "data/models/labels.json"}, r"base\.classes: 'hen' is not accepted; accepted: one of the 8 labels"),
        ("base", {"oracle": "registry:alexnet"}, r"base\.oracle: 'registry:alexnet' is not accepted; accepted: a model that evaluation"),
        ("inversion", {"images_per_class": 5}, r"has 4 train pictures of class 'hen'; accepted: 5 or more"),
        ("labels", {"expert": "dinov3"}, r"labels\.expert: 'dinov3' is not accepted; accepted: the keys of evaluation\.classifiers"),
        ("evaluation", {"classifiers": {"alexnet": "registry:alexnet@weights/none.pth"}}, r"weights/none\.pth does not exist"),
    ],
)
def test_the_gate_names_what_is_missing_before_anything_is_made(sections, section, values, message):
    if section == "evaluation":
        sections = changed(sections, "labels", expert="alexnet", peers=["alexnet"])
    if "oracle" in values:
        known = sections["evaluation"].classifiers | {"alexnet": registered(Path(sections["base"].out).parent)}
        sections = changed(sections, "evaluation", classifiers=known)
    with pytest.raises((ValueError, FileNotFoundError), match=message) as raised:
        gate.ready(changed(sections, section, **values))
    assert "\n" not in str(raised.value)


@pytest.mark.slow
def test_the_gate_asks_the_profiles_classifiers_about_imagenet_under_both_preprocessings(sections, layout):
    asked = changed(sections, "evaluation", classifiers={"alexnet": registered(layout.root.parent)})
    counts = gate.measure(changed(asked, "base", out=str(layout.root / "gate")), CLASSES).set_index(["model", "preprocessing"])
    assert counts.loc["alexnet"].to_dict("index") == {how: {"n": 8, "right": 4} for how in ("model", "paper")}
    verdicts = gate.report(counts.reset_index())
    assert set(verdicts["library"]) == {"compatible"} and set(verdicts["table7"]) == {"not published"}
