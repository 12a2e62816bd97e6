"""Composition: one weight at zero is the single slider, all at zero the base model, and gains are counted as by hand."""

import numpy as np
import pandas as pd
import pytest
import torch
from golden_units import difference
from tiny_encoders import write_clip, write_timm
from tiny_settings import changed
from tiny_sliders import pipeline, random_sliders

from cnslib.core import paths, recipes, tables
from cnslib.core.names import SHIFTS
from cnslib.core.settings import studies
from cnslib.core.settings.method import Bootstrap, Generation
from cnslib.method import generation, health
from cnslib.method.sliders import slider_path
from cnslib.models import adapters, encoders, text_to_image
from cnslib.stats import bootstrap, verdicts
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
        with composition.loaded(sampler.pipe, [slider_path(sliders, shift, "sneaker") for shift in shifts]) as names:
            return composition.shifted(sampler, names, "sneaker", 5, weights)

    return call


@pytest.fixture(scope="module")
def study(sampler, sliders, tiny_pipeline_dir, tiny_tokens_dir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    write_clip(folder / "clip")
    write_timm(folder / "dino", outputs=0)
    write_timm(folder / "oracle", outputs=len(LABELS) + len(SHIFTS) + 2)
    origin = text_to_image.origin(tiny_pipeline_dir, tiny_tokens_dir, CLASSES)
    drawn = {"scales": WEIGHTS, "seeds": 1, "settings": SETTINGS, "origin": origin, "sliders": sliders, "folder": folder / "images"}
    generation.generate(sampler.pipe, [FIRST, SECOND], CLASSES, **drawn)
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


def test_every_cell_is_scored_once_and_the_outer_ones_are_the_benchmarks(study, sliders):
    scores = composition.score(study, [[FIRST, SECOND]], CLASSES, weights=WEIGHTS, seeds=1)
    wanted = {(FIRST, SECOND, name, 1, one, other) for name in CLASSES for one in WEIGHTS for other in WEIGHTS}
    tables.complete(scores, wanted, composition.KEY, "composition")
    film = composition.films(study, [[FIRST, SECOND]], "sneaker", weights=WEIGHTS, seed=1)[FIRST, SECOND]
    for shift, strip in ((FIRST, film[:, 0]), (SECOND, film[0])):
        own = texts.own_rows(texts.benchmark(study.images, shift), "sneaker", scales=WEIGHTS, seeds=1)
        assert np.array_equal(strip, tables.pictures(own, shift))
    before = {path: path.stat().st_mtime_ns for path in study.folder.rglob("*.parquet")}
    composition.score(study, [[FIRST, SECOND]], CLASSES, weights=WEIGHTS, seeds=1)
    assert {path: path.stat().st_mtime_ns for path in study.folder.rglob("*.parquet")} == before


def test_a_missing_slider_is_named(study, sliders):
    with (
        pytest.raises(FileNotFoundError, match=r"slider .*heavy_fog.sneaker\.safetensors"),
        composition.loaded(study.sampler.pipe, [slider_path(sliders, "heavy fog", "sneaker")]),
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
        changed(studies.Directions(BOOTSTRAP, **texts_of, **pairs_of), **change)


def known(first: dict[tuple[float, float], float], second: dict[tuple[float, float], float], *, seed: int = 1) -> pd.DataFrame:
    """Scores of one garment with known alignments at each two weights."""
    cells = pd.DataFrame(list(first), columns=composition.WEIGHTS)
    shown = {"alignment_first": list(first.values()), "alignment_second": [second[cell] for cell in first]}
    rest = {"first": FIRST, "second": SECOND, "class": "bag", "seed": seed, "structure": 1.0, "class_probability": 1.0}
    return cells.assign(**shown, **rest)


def test_gains_together_alone_and_lent_are_those_counted_by_hand():
    first = {(0, 0): 0.1, (1, 0): 0.5, (0, 1): 0.2, (1, 1): 0.4}
    second = {(0, 0): -0.2, (1, 0): -0.3, (0, 1): 0.3, (1, 1): 0.0}
    found = composition.effects(known(first, second).sample(frac=1, random_state=0)).set_index("shift")
    columns = ["alone", "together", "lent", "added", "interaction"]
    assert found.loc[FIRST, columns].tolist() == pytest.approx([0.4, 0.3, 0.1, 0.2, -0.2])
    assert found.loc[SECOND, columns].tolist() == pytest.approx([0.5, 0.2, -0.1, 0.3, -0.2])


def shown(first: dict[tuple[float, float], float], second: dict[tuple[float, float], float]) -> dict[str, float]:
    return composition.both_show(composition.effects(known(first, second))).iloc[0][list(composition.SHOWN)].to_dict()


def test_what_the_other_slider_lends_does_not_count():
    """Alone each gains 0.4. In the picture of both the second has all of its 0.4, but the first slider alone brings 0.3 of them."""
    first = {(0, 0): 0.0, (1, 0): 0.4, (0, 1): 0.0, (1, 1): 0.4}
    assert shown(first, {(0, 0): 0.0, (1, 0): 0.3, (0, 1): 0.4, (1, 1): 0.4}) == {"shows": 0, "adds": 1, "without": 1}
    assert shown(first, {(0, 0): 0.0, (1, 0): 0.1, (0, 1): 0.4, (1, 1): 0.4}) == {"shows": 1, "adds": 1, "without": 0}
    assert shown(first, {(0, 0): 0.0, (1, 0): 0.4, (0, 1): 0.4, (1, 1): 0.3}) == {"shows": 0, "adds": 0, "without": 1}


def test_a_slider_that_works_backwards_alone_must_still_add_something():
    first = {(0, 0): 0.0, (1, 0): -0.4, (0, 1): 0.0, (1, 1): -0.1}
    second = {(0, 0): 0.0, (1, 0): 0.0, (0, 1): 0.4, (1, 1): 0.4}
    assert shown(first, second) == {"shows": 0, "adds": 0, "without": 0}


def lending(lent: float) -> pd.DataFrame:
    """Three garments at weights up to 2, on which the first slider lends `lent` of what the second gains, and nothing is lost."""
    first = {(one, other): 0.3 * one for one in (0, 1, 2) for other in (0, 1, 2)}
    second = {(one, other): max(0.2 * other, lent * one) for one, other in first}
    return pd.concat([known(first, second, seed=seed) for seed in (1, 2, 3)])


@pytest.mark.parametrize(("lent", "share"), [(0.2, "0% (0% to 56%)"), (0.0, "100% (44% to 100%)")])
def test_the_answer_is_told_pair_by_pair(lent, share):
    found = composition.effects(lending(lent))
    table = composition.shares(composition.both_show(found), settings=BOOTSTRAP)
    ours = composition.claimed(found, [[FIRST, SECOND]], settings=BOOTSTRAP)
    said = pd.read_csv(paths.PUBLISHED / "directions.csv").query("id in @ours")
    claims = verdicts.statements(ours, said).set_index(said["id"])
    text = composition.answer(table, claims.loc["interaction"], 2.0)
    assert f"half of what they gain alone in {share} of 3 pictures of {FIRST} + {SECOND} (undecided)" in text  # three that are alike
    assert ("do not add up" in text) == (lent > 0) and ours["second"]["estimate"] == pytest.approx(0.4 - 2 * lent)
    assert composition.metrics(table, "shows")[f"{FIRST} + {SECOND}"]["2, 2"]["estimate"] == float(lent == 0)


def test_gains_are_told_beside_their_sum_on_the_side_where_they_lie():
    less = pd.Series({"verdict": "opposite direction", "ours": -0.5, "low": -0.7, "high": -0.4})
    assert composition.summed(less) == "The gains do not add up: together they fall 0.50 (0.40 to 0.70) short of the sum"
    more = pd.Series({"verdict": "undecided", "ours": 0.1, "low": -0.1, "high": 0.3})
    assert composition.summed(more) == "Whether the gains add up is undecided: together they are 0.10 (-0.10 to 0.30) more than the sum"


def test_verdicts_become_adverbs():
    assert [composition.often(word) for word in ("same direction", "opposite direction", "undecided")] == ["mostly", "seldom", "undecided"]


def test_captions_name_what_is_lent_and_how_many_interactions_are_sure():
    found = composition.effects(lending(0.2))
    summary = composition.summary(found, settings=BOOTSTRAP)
    assert composition.most_lent(summary) == (f"{FIRST} alone lends {SECOND} 0.40, where its own slider gains 0.40 alone and adds 0.00")
    rows = composition.labelled(summary)
    assert len(rows) == 8 and rows["row"].is_unique
    assert "Of 8 interactions 4 are surely below zero and 0 above. n = 3" in composition.interaction_caption(rows, note="x")
    assert composition.gain_caption(summary, rows["n"], note="x").startswith("At the last weights heavy snow alone lends")
    assert f"{FIRST} +0.60 and {SECOND} +0.00. bag, seed 2" in composition.grid_caption(found, "bag", 2)
    kept = composition.kept(lending(0.2).assign(class_probability=[0.9, 0.1] * 13 + [0.9]), labels=2)
    assert kept["class_kept"].sum() == 14
    table = bootstrap.means(kept, ["structure", "class_kept"], composition.WEIGHTS, settings=BOOTSTRAP)
    assert composition.kept_seen(table).startswith("With both sliders at the last weight 1.00 (1.00 to 1.00) of the structure is left")
    assert composition.cells(table, composition.WEIGHTS, ["structure"]).shape == (9, 1)


def test_gains_that_add_up_do_not_interact():
    first = {(one, other): 0.3 * one + 0.1 * other for one in (0, 1, 2) for other in (0, 1, 2)}
    second = {(one, other): 0.2 * other for one, other in first}
    found = composition.effects(pd.concat([known(first, second, seed=seed) for seed in (1, 2)]))
    assert len(found) == 2 * 4 * 2 and np.allclose(found["interaction"], 0)
    assert composition.both_show(found)["shows"].tolist() == [1.0] * 8
    table = composition.summary(found, settings=BOOTSTRAP).query("measure == 'alone' and shift == @FIRST and weight == 2")
    assert table["n"].tolist() == [2, 2] and np.allclose(table[["estimate", "low", "high"]], 0.6)


def test_the_tiny_unit_is_the_golden_one(study, sliders):
    assert not difference(recipes.COMPOSITION, composition.score(study, [[FIRST, SECOND]], CLASSES, weights=WEIGHTS, seeds=1), within=1e-3)
