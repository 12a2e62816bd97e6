"""The paper's profile: its values are the paper's, and a tiny model of Stable Diffusion 2's kind runs its whole chain."""

import shutil
import sys

import nbformat
import pandas as pd
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from matplotlib import pyplot as plt
from paper_files import CLASSES, write_all
from ruamel.yaml import YAML
from safetensors.torch import load_file

from cnslib.core import names, paths, sources, tables
from cnslib.core.settings import read
from cnslib.data import imagenet
from cnslib.method import sliders as training
from cnslib.method.sliders import loss_curve
from cnslib.models import adapters, kohya, registry, text_to_image
from cnslib.tools import gate, runner

PARAMS, PAPER = (paths.resolve(name) for name in ("params.yaml", "paper.yaml"))
# So few pictures leave some legends empty and some numbers undefined.
pytestmark = pytest.mark.filterwarnings("ignore:No artists with labels found", "ignore::RuntimeWarning")
CHAIN = ("inversion", "sliders", "generation", "filtering", "evaluation", "accuracy", "ranking", "axes", "failure", "line")


def execute(step, overlay):
    """Runs a notebook's cells on its two files as `runner.run` does, but in this process: a kernel each would take minutes."""
    notebook = nbformat.read(runner.find(step), as_version=4)
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
    """The folder in which the whole chain has run."""
    with plt.rc_context(), pytest.MonkeyPatch.context() as patch:
        patch.chdir(paths.ROOT)
        for step in CHAIN:
            execute(step, overlay)
    return paths.Layout(sections["base"].out)


def changed(sections, section, **values):
    """The same parameters with other values in one section."""
    return sections | {section: type(sections[section])(**{**vars(sections[section]), **values})}


def test_the_profile_is_the_papers_benchmark():
    found = read.load(PARAMS, PAPER)
    base, training = found["base"], found["sliders"]
    assert base.classes == list(imagenet.paper_classes()["class"]) and base.shifts == list(names.SHIFTS)
    assert (base.scales, base.seeds, found["generation"].steps) == ([0, 0.5, 1, 1.5, 2, 2.5], 50, 100)
    assert (training.rank, training.alpha, training.eta, training.learning_rate) == (4, 1, 4, 2e-4)
    assert (training.iterations, training.batch_size, training.denoising_steps, base.recipe) == (400, 16, 50, "released")
    parsed = {name: registry.parse(source, key=name) for name, source in found["evaluation"].classifiers.items()}
    assert {name: entry.model for name, (entry, _) in parsed.items()} == {name: name for name in registry.entries()}
    assert all(entry.hub or place.local.startswith("weights/") for entry, place in parsed.values())


@pytest.mark.slow
def test_the_chain_draws_judges_and_counts_every_image(layout):
    drawn = pd.concat([tables.read(path, tables.images) for path in layout.artifacts("generation").glob("*.parquet")])
    assert drawn.groupby(["shift", "scale"]).size().to_dict() == {("unshifted", 0): 6, ("heavy snow", 1): 6, ("heavy snow", 2.5): 6}
    answers = pd.read_parquet(layout.artifacts("evaluation") / "alexnet.parquet")
    assert len(answers) == 18 and set(answers["preprocessing"]) == {"paper"}
    right = answers["top1"] == answers["class"]
    assert right.groupby(answers["class"]).mean().to_dict() == {"hen": 1, "ostrich": 0}  # of equal logits the first label wins
    assert {path.stem for path in layout.metrics.glob("*.json")} == {*CHAIN, "gates"}


@pytest.mark.slow
def test_the_sliders_are_made_by_the_released_recipe_and_can_be_given_to_another_user(layout, sections, tmp_path):
    """Exported in the authors' layout and named as `base.recipe`, they come back bit for bit."""
    sliders = layout.artifacts("sliders")
    pipe = text_to_image.load_pipeline(paths.resolve(sections["base"].pipeline), "cpu")
    for name in CLASSES:
        source = sliders / "heavy_snow" / f"{name}.safetensors"
        assert adapters.header(source)["recipe"] == "released"
        stem = f"heavy_snow_class_{imagenet.index(name):03d}_alpha1.0_rank4_noxattn"
        kohya.export_slider(pipe.unet, source, tmp_path / stem / f"{stem}_last.pt")
    tokens = layout.artifacts("inversion")
    given = {"settings": sections["sliders"], "origin": text_to_image.origin(paths.resolve(sections["base"].pipeline), tokens, CLASSES)}
    shared = {"recipe": str(tmp_path), **given, "folder": tmp_path / "back"}
    for name, path in zip(CLASSES, training.make_sliders(pipe, ["heavy snow"], CLASSES, **shared).values(), strict=True):
        ours, back = (kohya.to_released(pipe.unet, file) for file in (sliders / "heavy_snow" / f"{name}.safetensors", path))
        assert ours.keys() == back.keys() and all(torch.equal(ours[key], back[key]) for key in ours)
        assert loss_curve(path)["loss"].isna().all()  # nobody kept it
    torch.save({key: value for key, value in ours.items() if "mid_block" not in key}, tmp_path / stem / f"{stem}_last.pt")
    with pytest.raises(ValueError, match=r"_last\.pt does not fit this UNet: \d+ tensors match, \d+ missing"):
        training.make_sliders(pipe, ["heavy snow"], CLASSES, **shared)
    with pytest.raises(ValueError, match=r"base\.recipe: 'paperr' is not accepted; accepted: paper, released, graded, fast, or a folder"):
        training.make_sliders(pipe, ["heavy snow"], CLASSES, **{**shared, "recipe": "paperr"})


@pytest.mark.slow
def test_the_tokens_are_rows_of_the_published_text_encoder(layout, sections):
    rows = load_file(sections["base"].in_star)["text_model.embeddings.token_embedding.weight"]
    for name in CLASSES:
        (vector,) = load_file(layout.artifacts("inversion") / f"{name}.safetensors").values()
        assert torch.equal(vector, rows[len(rows) - 1000 + imagenet.index(name)])


@pytest.mark.slow
def test_the_gate_asks_the_profiles_classifiers_about_imagenet_under_both_preprocessings(sections, layout):
    """AlexNet names every picture a hen: 4 of 8 right, whatever the preprocessing; the paper's Table 7 leaves it out."""
    counts = gate.measure(changed(sections, "base", out=str(layout.root / "gate")), CLASSES).set_index(["model", "preprocessing"])
    assert counts.loc["alexnet"].to_dict("index") == {how: {"n": 8, "right": 4} for how in ("model", "paper")}
    verdicts = gate.report(counts.reset_index()).set_index("model")
    assert verdicts.loc["alexnet", ["library", "explained_by"]].tolist() == ["compatible", "not published"]


def other(overlay, path, section, **values):
    """The overlay with other values in one section, in a file of its own."""
    table = YAML(typ="safe").load(overlay.read_text())
    YAML().dump(table | {section: table[section] | values}, path)
    return path


def failing(overlay, tmp_path, **base):
    """The one line with which a notebook ends that reads the pipeline, where the shared parameters are these."""
    broken = other(overlay, tmp_path / "broken.yaml", "base", **base)
    with pytest.raises((ValueError, FileNotFoundError)) as raised:
        read.start("sliders", "params.yaml", str(broken), models=["pipeline"])
    return str(raised.value)


def test_a_pipeline_that_is_not_the_one_named_stops_a_notebook_at_its_start(overlay, sections, tmp_path):
    shutil.copytree(sections["base"].pipeline, tmp_path / "pipeline")
    place = {"pipeline": str(tmp_path / "pipeline")}
    assert "v_prediction" in (tmp_path / "pipeline" / sources.SCHEDULER).read_text()
    told = failing(overlay, tmp_path, **place, prediction="epsilon")
    assert "scheduler_config.json says prediction_type v_prediction, timestep_spacing leading; accepted: epsilon (base.prediction)" in told
    weights = tmp_path / "pipeline" / "unet" / "diffusion_pytorch_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"!")
    assert "base.pipeline: " in (told := failing(overlay, tmp_path, **place)) and "; accepted: " in told
    weights.write_text("<!DOCTYPE html><html>Sign in</html>")
    assert "diffusion_pytorch_model.safetensors is a web page, not weights" in failing(overlay, tmp_path, **place)
    told = failing(overlay, tmp_path, pipeline=str(tmp_path / "absent"))
    assert "was withdrawn from the hub by its publisher" in told and "name a directory that holds a copy" in told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("registry:resnet", r"classifier of the paper: 'resnet' is not accepted; accepted: .*resnet"),
        ("registry:mae_vit_base_patch16@{}/absent.pth", r"evaluation\.classifiers\.x: .*absent\.pth does not exist"),
        ("registry:alexnet@{}/alexnet.pth", r"evaluation\.classifiers\.x: .*alexnet\.pth has sha256 \w+; accepted: 7be5be79"),
        ("registry:resnet18.a1_in1k@{}/page.safetensors", r"evaluation\.classifiers\.x: .*page\.safetensors is a web page, not weights"),
    ],
)
def test_a_classifier_without_its_weights_is_named(layout, sections, overlay, tmp_path, source, message):
    (overlay.parent / "page.safetensors").write_text("<html>404</html>")
    classifiers = YAML(typ="safe").load(overlay.read_text())["evaluation"]["classifiers"]
    broken = other(overlay, tmp_path / "broken.yaml", "evaluation", classifiers={"x": source.format(overlay.parent), **classifiers})
    with plt.rc_context(), pytest.raises((ValueError, FileNotFoundError), match=message):
        execute("evaluation", broken)
