"""Pictures and answers on demand: the benchmark's own bytes at its scales, the same picture whoever asked, answers by hand."""

import dataclasses
import subprocess

import numpy as np
import pytest
import torch
from tiny_artifacts import committed
from tiny_sliders import pipeline, random_sliders

from cnslib.core import paths, tables, units
from cnslib.core.settings import read
from cnslib.core.settings.method import Generation
from cnslib.data import artifacts
from cnslib.method import generation
from cnslib.models import adapters, classifiers, text_to_image
from cnslib.studies.bisection.closeups import Closeup
from cnslib.tools.play import supply
from cnslib.tools.play.state import Look
from cnslib.tools.play.supply import Supply

DRAWING = Generation(steps=4, guidance=3.0, guided=[0.0, 1.0], guidances=[3.0], start_fraction=0.75, negative_prompt="", quality=0)
SHIFTS, CLASSES, SCALES = ["heavy snow"], ["sneaker", "ankle boot"], [0.0, 0.5, 1.0]
KEY = ("heavy snow", "sneaker", 2)


@pytest.fixture(scope="module")
def run(tiny_pipeline_dir, tiny_tokens_dir, tmp_path_factory) -> read.Run:
    """A benchmark of one shift, drawn by the generation step."""
    out = tmp_path_factory.mktemp("run")
    base = dataclasses.replace(
        committed()["base"], out=str(out), pipeline=str(tiny_pipeline_dir), classes=CLASSES, shifts=SHIFTS, scales=SCALES, seeds=2
    )
    found = read.Run("failure", committed() | {"base": base, "generation": DRAWING}, ())
    (out / "artifacts").mkdir()
    (out / "artifacts" / "inversion").symlink_to(tiny_tokens_dir)
    pipe, sliders = pipeline(tiny_pipeline_dir, tiny_tokens_dir, CLASSES), found.layout.artifacts("sliders")
    random_sliders(pipe, sliders, SHIFTS, CLASSES)
    origin = text_to_image.origin(tiny_pipeline_dir, tiny_tokens_dir, CLASSES)
    asked = {"scales": SCALES, "seeds": 2, "settings": DRAWING, "origin": origin, "sliders": sliders}
    generation.generate(pipe, SHIFTS, CLASSES, **asked, folder=found.layout.artifacts("generation"))
    return found


def stored(run: read.Run, scale: float) -> bytes:
    """The bytes of a picture in the benchmark's table."""
    table = artifacts.images(run.layout.artifacts("generation"), "heavy snow" if scale else "unshifted")
    row = table[(table["class"] == KEY[1]) & (table["seed"] == KEY[2]) & (table["scale"] == scale)]
    return row["image"].item()


@pytest.mark.parametrize("scale", SCALES)
def test_at_a_scale_of_the_benchmark_the_picture_is_the_benchmarks_byte_for_byte(run, scale):
    assert tables.encode(Supply(run).picture(Look(*KEY, scale))) == stored(run, scale)


@pytest.mark.parametrize("scale", SCALES)
def test_what_is_drawn_there_on_demand_is_that_picture_too(run, scale):
    """So that the pictures between the benchmark's scales belong to the same trajectory; a batch of another size rounds differently."""
    own = Supply(run)
    with adapters.loaded(own.studio.sampler.pipe, Closeup(own.studio, *KEY).slider):
        (row,) = Closeup(own.studio, *KEY).picture(scale)
    difference = np.abs(tables.decode(row["image"], "drawn").astype(int) - tables.decode(stored(run, scale), "stored"))
    assert difference.max() <= 1


def test_a_picture_does_not_depend_on_what_was_looked_at_before_and_is_drawn_once(run):
    first, second = Supply(run), Supply(run)
    first.picture(Look("heavy snow", "ankle boot", 1, 0.7))
    picture = first.picture(Look(*KEY, 0.3))
    kept = next((run.layout.root / supply.KEPT / "pictures").rglob("sneaker_2.parquet"))
    before = kept.read_bytes()
    assert np.array_equal(second.picture(Look(*KEY, 0.3)), picture) and kept.read_bytes() == before
    kept.unlink()
    alone = Supply(run)
    alone.picture(Look(*KEY, 0.9))
    assert np.array_equal(alone.picture(Look(*KEY, 0.3)), picture)
    assert not np.array_equal(picture, alone.picture(Look(*KEY, 0.9)))


def test_what_is_drawn_is_kept_outside_of_git():
    place = (supply.KEPT / "pictures" / "heavy_snow" / "bag_1.parquet").as_posix()
    assert subprocess.run(["git", "check-ignore", "-q", place], cwd=paths.ROOT, check=False).returncode == 0


def test_pictures_at_hand_are_the_benchmarks_and_then_those_drawn(run):
    own = Supply(run)
    assert sorted(own.at_hand("heavy snow", "ankle boot", 2)) == SCALES
    own.picture(Look("heavy snow", "ankle boot", 2, 0.1))
    assert sorted(own.at_hand("heavy snow", "ankle boot", 2)) == [0.0, 0.1, 0.5, 1.0]


def test_the_nearest_scale_at_hand_and_of_equally_near_ones_the_lower():
    assert [supply.nearest(SCALES, scale) for scale in (0.1, 0.25, 0.3, 2.0)] == [0.0, 0.0, 0.5, 1.0]
    assert supply.nearest([], 0.5) is None


def test_a_look_outside_the_benchmark_draws_nothing(run):
    with pytest.raises(ValueError, match="class: 'hat'"):
        Supply(run).picture(Look("heavy snow", "hat", 1, 0.5))


def judge(name: str, sign: float) -> classifiers.Classifier:
    """Decides by the mean grey level in [0, 1]: log-odds of twice that, or of the contrary."""

    def network(inputs: torch.Tensor) -> torch.Tensor:
        level = sign * inputs.mean((1, 2, 3))
        return torch.stack([level, -level], dim=1)

    def transform(picture) -> torch.Tensor:
        return torch.tensor(np.asarray(picture), dtype=torch.float32) / 255

    return classifiers.Classifier(name, name, CLASSES, network, transform, {"sign": sign}, 1, "cpu")


def test_answers_are_the_softmax_of_each_classifier_by_hand():
    white = np.full((4, 4, 3), 255, np.uint8)
    table = supply.answered([judge("bright", 1.0), judge("dark", -1.0)], white, "sneaker").set_index("model")
    share = 1 / (1 + np.exp(-2))
    assert table.loc["bright"].tolist() == ["sneaker", pytest.approx(share), pytest.approx(share), True]
    assert table.loc["dark"].tolist() == ["ankle boot", pytest.approx(share), pytest.approx(1 - share), False]


def test_the_stamp_of_a_kept_picture_is_that_of_notebook_10(run):
    """Kept pictures are units: another slider or base model outdates them."""
    own = Supply(run)
    own.picture(Look(*KEY, 0.2))
    shot = Closeup(own.studio, *KEY)
    assert units.Unit(shot.picture_path, shot.drawn_from).done
