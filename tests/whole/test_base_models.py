import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from cnslib.core import paths
from cnslib.core.settings import read
from cnslib.models import classifiers, encoders, text_to_image

OVERLAY = paths.ROOT / "tests" / "tiny" / "world.yaml"
MAKEFILE = paths.resolve("Makefile").read_text()
STEPS = re.search(r"run --params world\.yaml (.*)$", MAKEFILE, re.MULTILINE)[1].split()
CHOSEN = dict(re.findall(r"^world: export (\w+) := (\w+)$", MAKEFILE, re.MULTILINE))  # instructions, which halve the time
pytestmark = pytest.mark.skipif(not paths.GARMENTS.exists(), reason="run `dvc pull` first")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    house = tmp_path_factory.mktemp("world")
    shutil.copytree(paths.ROOT / "cnslib", house / "cnslib", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(paths.NOTEBOOKS / "world", house / "notebooks" / "world")
    for name in ("world.yaml", "params.yaml"):  # the chapter of the diffusion classifier lends its timesteps
        shutil.copy(paths.ROOT / name, house)
    (house / "data").mkdir()
    (house / "data" / "fashion-mnist").symlink_to(paths.GARMENTS)
    asked = ["--params", "world.yaml", "--overlay", str(OVERLAY), *STEPS]
    one = {"LOKY_MAX_CPU_COUNT": "1"}  # a second process would take longer to start than all there is to do
    surroundings = os.environ | CHOSEN | one | {"PYTHONPATH": str(house), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-m", "cnslib.tools.cli", "run", *asked], cwd=house, env=surroundings, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return house


def test_every_notebook_of_the_base_models_is_a_step_of_make_world():
    assert [path.stem.split("_", 1)[1] for path in sorted((paths.NOTEBOOKS / "world").glob("*.ipynb"))] == STEPS


@pytest.mark.slow
def test_every_model_is_in_the_manifest_with_its_quality(built):
    entries = json.loads((built / "data" / "models" / "manifest.json").read_text())
    sections = read.load(paths.ROOT / "world.yaml", OVERLAY)
    zoo = [*sections["zoo"].classifiers, *sections["augmentation"].classifiers, *sections["pretraining"].classifiers]
    others = {"mini-sd/vae", "mini-sd", "mini-clip", "mini-dino", "mini-dit", "oracle"}
    assert set(entries) == {*others, *(f"classifiers/{name}" for name in zoo)}
    assert all(entry["quality"] for entry in entries.values())
    assert set(entries["mini-sd"]["quality"]) == {"frechet_heldout", "frechet_floor", "copied"}


@pytest.mark.slow
def test_the_benchmark_can_load_what_was_built(built):
    models, labels = built / "data" / "models", encoders.read_labels(str(built / "data" / "models" / "labels.json"))
    assert labels == ["trouser", "bag"]
    encoders.Oracle(str(models / "oracle"), labels=labels)
    encoders.ImageEncoder(str(models / "mini-dino"))
    assert encoders.Clip(str(models / "mini-clip")).text_features(["a picture of a bag"]).shape == (1, 16)
    for name in ("alexnet", "deit", "mae", "clip_probe", "clip_zero_shot"):
        assert classifiers.load(name, str(models / "classifiers" / name), labels).labels == labels
    assert text_to_image.load_pipeline(models / "mini-sd", "cpu").scheduler.config.prediction_type == "v_prediction"
