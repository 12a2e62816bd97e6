"""Two sliders in one image: one weight at zero is the single slider, all at zero the base model."""

import numpy as np
import pytest
import torch
from golden_units import difference
from tiny_encoders import write_clip, write_timm
from tiny_settings import changed
from tiny_sliders import pipeline, random_sliders

from cnslib.core import recipes, tables
from cnslib.core.names import SHIFTS
from cnslib.core.settings import sections
from cnslib.core.settings.method import Bootstrap, Generation
from cnslib.method import generation, health
from cnslib.method.sliders import slider_path
from cnslib.models import adapters, encoders, text_to_image
from cnslib.studies.directions import composition, texts

CLASSES = ["sneaker", "ankle boot"]
LABELS = [*CLASSES, "bag"]
FIRST, SECOND = "heavy snow", "cartoon style"
WEIGHTS = [0.0, 1.0, 2.0]
SETTINGS = Generation(steps=8, guidance=3.0, guided=[0.0, 1.0], guidances=[3.0], start_fraction=0.75, negative_prompt="", quality=0)
BOOTSTRAP = Bootstrap(resamples=200, confidence=0.95, seed=1, target="same classes")


@pytest.fixture(scope="module")
def sampler(tiny_pipeline_dir, tiny_tokens_dir):
    return generation.Sampler(pipeline(tiny_pipeline_dir, tiny_tokens_dir, CLASSES), settings=SETTINGS)


@pytest.fixture(scope="module")
def sliders(sampler, tmp_path_factory):
    """Their factor alpha / rank is no power of two."""
    return random_sliders(sampler.pipe, tmp_path_factory.mktemp("sliders"), [FIRST, SECOND], CLASSES, rank=3)


@pytest.fixture(scope="module")
def draw(sampler, sliders):
    def call(weights, *, shifts=(FIRST, SECOND)):
        with adapters.loaded(sampler.pipe, *(slider_path(sliders, shift, "sneaker") for shift in shifts)) as names:
            return composition.shifted(sampler, names, "sneaker", 5, weights)

    return call


@pytest.fixture(scope="module")
def study(sampler, sliders, tiny_pipeline_dir, tiny_tokens_dir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    write_clip(folder / "clip")
    write_timm(folder / "dino", outputs=0)
    write_timm(folder / "oracle", outputs=len(LABELS) + len(SHIFTS) + 2)
    origin = text_to_image.origin(tiny_pipeline_dir, tiny_tokens_dir, CLASSES)
    drawn = {"scales": WEIGHTS, "seeds": 1, "origin": origin, "sliders": sliders, "folder": folder / "images"}
    generation.generate(sampler, [FIRST, SECOND], CLASSES, **drawn)
    judge = health.Judge(encoders.Clip(str(folder / "clip")), encoders.ImageEncoder(str(folder / "dino")))
    oracle = encoders.Oracle(str(folder / "oracle"), labels=LABELS)
    return texts.Study(sampler, origin, judge, oracle, folder / "images", sliders, folder / "directions")


@pytest.mark.parametrize(("place", "shift"), enumerate([FIRST, SECOND]))
def test_one_weight_at_zero_is_the_single_slider_bit_for_bit(sampler, sliders, draw, place, shift):
    scales = [0.5, 1.0, 2.5]
    together = draw([np.roll([scale, 0.0], place).tolist() for scale in scales])
    with adapters.loaded(sampler.pipe, slider_path(sliders, shift, "sneaker")):
        assert torch.equal(together, sampler.shifted("sneaker", 5, scales))


def test_both_weights_at_zero_are_the_base_model_bit_for_bit(sampler, draw):
    assert torch.equal(draw([[0.0, 0.0]]), sampler.unshifted("sneaker", 5))
    assert not adapters.layers(sampler.pipe.unet)


def test_two_sliders_differ_from_either_and_their_order_does_not_matter(draw):
    both, first, second = draw([[1.0, 2.0], [1.0, 0.0], [0.0, 2.0]]).int()
    assert (both - first).abs().max() > 10 and (both - second).abs().max() > 10
    exchanged = draw([[2.0, 1.0], [0.0, 1.0], [2.0, 0.0]], shifts=(SECOND, FIRST)).int()
    assert (exchanged[0] - both).abs().max() <= 1  # a sum in another order rounds differently


def test_a_slider_added_to_itself_is_the_slider_at_the_summed_weight(sampler, sliders, draw):
    with adapters.loaded(sampler.pipe, slider_path(sliders, FIRST, "sneaker")):
        expected = sampler.shifted("sneaker", 5, [2.0]).int()
    assert (draw([[0.5, 1.5]], shifts=(FIRST, FIRST)).int() - expected).abs().max() <= 1


def test_every_cell_is_scored_once_and_the_outer_ones_are_the_benchmarks(study):
    scores = composition.score(study, [[FIRST, SECOND]], CLASSES, weights=WEIGHTS, seeds=1)
    wanted = {(FIRST, SECOND, name, 1, one, other) for name in CLASSES for one in WEIGHTS for other in WEIGHTS}
    tables.complete(scores, wanted, composition.KEY, "composition")
    film = composition.films(study, [[FIRST, SECOND]], "sneaker", weights=WEIGHTS, seed=1)[FIRST, SECOND]
    for shift, strip in ((FIRST, film[:, 0]), (SECOND, film[0])):
        own = texts.benchmark(study.images, shift, ["sneaker"], scales=WEIGHTS, seeds=1)["sneaker"]
        assert np.array_equal(strip, tables.pictures(own, shift))
    assert not difference(recipes.COMPOSITION, scores, within=1e-3)
    before = {path: path.stat().st_mtime_ns for path in study.folder.rglob("*.parquet")}
    composition.score(study, [[FIRST, SECOND]], CLASSES, weights=WEIGHTS, seeds=1)
    assert {path: path.stat().st_mtime_ns for path in study.folder.rglob("*.parquet")} == before


def test_a_missing_slider_is_named(study, sliders):
    with (
        pytest.raises(FileNotFoundError, match=r"slider.*heavy_fog.sneaker\.safetensors"),
        adapters.loaded(study.sampler.pipe, slider_path(sliders, "heavy fog", "sneaker")),
    ):
        pass


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pairs": [[FIRST, FIRST]]}, r"directions\.pairs\.0: .*without repetitions"),
        ({"pairs": [[FIRST, "heavy frog"]]}, r"directions\.pairs\.0\.1: 'heavy frog'"),
        ({"pair_weights": [1.0, 2.0]}, "directions.pair_weights"),
        ({"pair_seeds": 0}, "directions.pair_seeds: 0"),
    ],
)
def test_bad_settings_are_named(change, message):
    texts_of = {"shifts": [FIRST], "finer": [0.5], "seeds": 1}
    pairs_of = {"pairs": [[FIRST, SECOND]], "pair_weights": WEIGHTS, "pair_seeds": 1}
    with pytest.raises(ValueError, match=message):
        changed(sections.Directions(bootstrap=BOOTSTRAP, **texts_of, **pairs_of), **change)
