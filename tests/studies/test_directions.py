import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch
from golden_units import difference
from tiny_encoders import write_clip, write_timm
from tiny_settings import resampled
from tiny_sliders import random_sliders

from cnslib.core import names, recipes, tables
from cnslib.core.names import SHIFTS
from cnslib.core.settings.method import Generation
from cnslib.method import generation, health
from cnslib.models import encoders, text_to_image
from cnslib.studies.directions import composition, measures, texts

CLASSES = ["sneaker", "ankle boot"]
LABELS = [*CLASSES, "bag"]
FIRST, SECOND = "heavy snow", "cartoon style"
SCALES = [0.0, 1.0, 2.0]
SETTINGS = Generation(4, 3.0, [0.0, 1.0], [3.0], 0.75, "", 0, 0)
BOOTSTRAP = resampled(200)


@pytest.fixture(scope="module")
def study(in_place, pipe, origin, tmp_path_factory):
    """Random models, sliders whose factor alpha / rank is no power of two, and the benchmark's images by them."""
    folder = tmp_path_factory.mktemp("study")
    sampler = generation.Sampler(pipe, settings=SETTINGS)
    sliders = random_sliders(sampler.pipe, folder / "sliders", [FIRST, SECOND], CLASSES, rank=3)
    write_clip(folder / "clip")
    write_timm(folder / "dino", outputs=0)
    write_timm(folder / "oracle", outputs=len(LABELS) + len(SHIFTS) + 2)
    drawn = {"scales": SCALES, "seeds": 1, "origin": origin, "sliders": sliders, "folder": folder / "images"}
    generation.generate(sampler, [FIRST, SECOND], CLASSES, **drawn)
    judge = health.Judge(encoders.Clip(str(folder / "clip")), encoders.ImageEncoder(str(folder / "dino")))
    oracle = encoders.Oracle(str(folder / "oracle"), labels=LABELS)
    return texts.Study(sampler, origin, judge, oracle, folder / "images", sliders, folder / "directions")


def by_text(study, method, weights):
    return texts.shifted(study.sampler, FIRST, "sneaker", 3, method, weights)


@pytest.mark.parametrize("method", [texts.PROMPTS, texts.CLASS])
def test_weight_zero_is_the_unshifted_image_bit_for_bit_and_guidance_acts_where_it_does_for_the_benchmark(study, method):
    drawn = by_text(study, method, [0.0])
    assert torch.equal(drawn, study.sampler.unshifted("sneaker", 3))
    assert not torch.equal(by_text(study, method, [2.0]), drawn)
    late = generation.Sampler(study.sampler.pipe, settings=dataclasses.replace(SETTINGS, guided=[0.6, 1.0]))
    other = texts.shifted(late, FIRST, "sneaker", 3, method, [0.0])
    assert torch.equal(other, late.unshifted("sneaker", 3)) and not torch.equal(other, drawn)


def test_two_prompts_are_the_plain_pipeline_with_the_other_prompt_and_the_whole_text_begins_later(study):
    prompt = f"a picture of a {names.token('sneaker')} in heavy snow"
    expected = text_to_image.sample(study.sampler.pipe, [prompt], [3], steps=SETTINGS.steps, guidance=SETTINGS.guidance)
    assert torch.equal(by_text(study, texts.PROMPTS, [1.0]), expected)
    assert torch.equal(*(texts.contexts(study.sampler, FIRST, "sneaker", method, [1.0]) for method in (texts.PROMPTS, texts.WHOLE)))
    assert not torch.equal(by_text(study, texts.WHOLE, [1.0]), expected)


@pytest.mark.parametrize(("method", "moved"), [(texts.CLASS, [5]), (texts.END, list(range(6, 24)))])
def test_a_direction_moves_its_own_tokens_alone_and_in_proportion(study, method, moved):
    """Of "<start> a picture of a <sneaker*> <end> <pad> ..." the class is token 5 and the first end token 6."""
    prompts = ["a picture of a <sneaker*>", "a picture of a <sneaker*> in heavy snow"]
    ids = [study.sampler.pipe.tokenizer(prompt).input_ids for prompt in prompts]
    *_, plain, one, two = texts.contexts(study.sampler, FIRST, "sneaker", method, [0.0, 1.0, 2.0])
    assert (one - plain).abs().amax(dim=1).nonzero().flatten().tolist() == moved
    assert torch.allclose(two - plain, 2 * (one - plain), atol=1e-5)
    first, other = text_to_image.embed(study.sampler.pipe, prompts)
    place = {texts.CLASS: -2, texts.END: -1}[method]
    expected = other[len(ids[1]) + place] - first[len(ids[0]) + place]
    assert torch.allclose((one - plain)[moved], expected.expand(len(moved), -1), atol=1e-5)


def test_every_method_is_scored_once_from_the_same_unshifted_image_and_finer_steps_are_looked_at_alike(study):
    def score(**more):
        return texts.score(study, [FIRST], CLASSES, scales=SCALES, **{"seeds": 1, **more})

    scores = score()
    assert not difference(recipes.DIRECTIONS, scores, within=1e-3)
    grids = {method: [0.0, *texts.grid(method, SCALES)] for method in texts.METHODS}
    wanted = {(method, FIRST, name, 1, scale) for method, grid in grids.items() for name in CLASSES for scale in grid}
    tables.complete(scores, wanted, ["method", *tables.KEY], "scores")
    start = scores[scores["scale"] == 0]
    assert np.allclose(start["structure"], 1, atol=1e-5) and (start["step"] == 0).all()
    assert (start.groupby("class")[["alignment", "class_probability"]].nunique() == 1).all(axis=None)
    finer = score(finer=SCALES[1:])
    both = finer.merge(scores, on=["method", *tables.KEY], suffixes=("", "_scored"))
    assert set(finer["method"]) == set(texts.FINER) and len(both) == len(finer) == 2 * len(CLASSES) * 2
    assert np.allclose(both["alignment"], both["alignment_scored"], atol=1e-5)


def test_every_cell_is_scored_once_and_the_outer_ones_are_the_benchmarks(study):
    def score():
        return composition.score(study, [[FIRST, SECOND]], CLASSES, weights=SCALES, seeds=1)

    wanted = {(FIRST, SECOND, name, 1, one, other) for name in CLASSES for one in SCALES for other in SCALES}
    tables.complete(score(), wanted, composition.KEY, "composition")
    film = composition.films(study, [[FIRST, SECOND]], "sneaker", weights=SCALES, seed=1)[FIRST, SECOND]
    for shift, strip in ((FIRST, film[:, 0]), (SECOND, film[0])):
        own = texts.benchmark(study.images, shift, ["sneaker"], scales=SCALES, seeds=1)["sneaker"]
        assert np.array_equal(strip, tables.pictures(own, shift))
    assert not difference(recipes.COMPOSITION, score(), within=1e-3)


def path(method, alignment, *, seed=1, structure=1.0, step=0.1, probability=0.9):
    count = len(alignment)
    steps = np.broadcast_to(step, count) * (np.arange(count) > 0)
    key = {"method": method, "shift": FIRST, "class": "bag", "seed": seed, "scale": np.arange(count, dtype=float)}
    return pd.DataFrame({**key, "alignment": alignment, "structure": structure, "step": steps, "class_probability": probability})


def at_equal_gain(*paths, labels=10):
    return measures.equal_gain(pd.concat(paths), labels=labels).set_index("share")


def test_a_trajectory_is_summed_up_as_by_hand():
    slider = path("slider", [0.1, 0.3, 0.2, 0.5], structure=[1, 0.9, 0.8, 0.7], step=[0, 0.1, 0.1, 0.2])
    prompts = path("two prompts", [0.1, 0.6], structure=[1, 0.4], step=[0, 0.7], probability=[0.9, 0.05])
    both = pd.concat([slider, prompts]).sample(frac=1, random_state=0)
    rows = measures.per_trajectory(both, labels=10).set_index("method")[["gain", "structure", "largest", "rising", "class_kept"]]
    assert rows.loc["slider"].tolist() == pytest.approx([0.4, 0.7, 0.5, 2 / 3, 1])
    assert rows.loc["two prompts"].tolist() == pytest.approx([0.5, 0.4, 1.0, 1.0, 0])
    rows = measures.per_trajectory(path("slider", [0.0, 0.1], probability=0.01), labels=10)  # not in its class from the start
    assert measures.summary(rows, ["class_kept"], settings=BOOTSTRAP).loc[0, "n"] == 0


def test_structure_is_compared_at_the_first_scale_that_gains_as_much_as_two_prompts():
    parts = [path("two prompts", [0.0, 0.3], structure=[1, 0.5]), path("slider", [0.1, 0.2, 0.4, 0.9], structure=[1, 0.9, 0.8, 0.1])]
    parts.append(path("class token", [0.0, 0.1, 0.2, 0.29]))
    parts += [path("two prompts", [0.2, 0.1], seed=2), path("slider", [0.0, 0.1, 0.2, 0.3], seed=2)]  # nothing gained: left out
    rows = measures.matched(pd.concat(parts), labels=10).set_index("method")[["scale", "structure", "reached", "class_kept"]]
    assert rows.loc["slider"].tolist() == [2.0, 0.8, 1.0, 1.0] and rows.loc["two prompts"].tolist() == [1.0, 0.5, 1.0, 1.0]
    assert rows.loc["class token", "reached"] == 0 and rows.loc["class token", ["structure", "class_kept"]].isna().all()
    assert len(rows) == 3


def test_at_equal_gain_paths_are_read_between_their_pictures():
    """Both reach 0.4. At a quarter, 0.1, the slider is halfway to its first picture, and the text a quarter of the way to its own."""
    slider, text = path("slider", [0.0, 0.2, 0.4], structure=[1, 0.9, 0.8]), path("whole text", [0.0, 0.4, 0.6], structure=[1, 0.6, 0.1])
    rows = at_equal_gain(slider, text)
    assert rows["gain"].to_dict() == pytest.approx({0.25: 0.1, 0.5: 0.2, 0.75: 0.3})
    assert rows["structure"].to_dict() == pytest.approx({0.25: 0.95 - 0.9, 0.5: 0.9 - 0.8, 0.75: 0.85 - 0.7})
    assert rows["lost"].to_dict() == pytest.approx({0.25: 0.05, 0.5: 0.1, 0.75: 0.15}) and (rows["class_kept"] == 0).all()
    falling = path("slider", [0.1, 0.2, 0.4, 0.6, 0.5], structure=[1, 0.9, 0.7, 0.6, 0.2])
    same = at_equal_gain(falling, falling.assign(method="whole text"))
    assert len(same) == 3 and np.allclose(same[["structure", "class_kept"]], 0)
    assert at_equal_gain(path("slider", [0.0, -0.1]), path("whole text", [0.0, 0.3]), path("two prompts", [0.0, 0.3])).empty


def test_differences_are_paired_on_the_trajectory_and_those_of_shares_stay_within_what_is_possible():
    """Of two trajectories an interval would reach from -6.9 to 5.9 by Student's t with one degree of freedom."""
    ends = {"slider": 0.5, "end tokens": 0.2}
    parts = [path(method, [0, end + seed], seed=seed) for method, end in ends.items() for seed in (1, 2, 3)]
    row = measures.against_slider(measures.per_trajectory(pd.concat(parts), labels=10), ["gain"], settings=BOOTSTRAP).iloc[0]
    assert row["method"] == "end tokens" and row["n"] == 3
    assert row[["estimate", "low", "high"]].tolist() == pytest.approx([0.3, 0.3, 0.3])
    table = pd.DataFrame({"method": "two prompts", "class": "bag", "seed": [1, 2], "class_kept": [-1.0, 0.0], "structure": [-1.0, 0.0]})
    found = measures.differences(table, ["class_kept", "structure"], settings=BOOTSTRAP).set_index("measure")
    assert found.loc["class_kept", ["low", "high"]].tolist() == [-1, 1]
    assert found.loc["structure", "low"] < -1 and found.loc["structure", "high"] > 1


def known(first, second):
    cells = pd.DataFrame(list(first), columns=composition.WEIGHTS)
    shown = {"alignment_first": list(first.values()), "alignment_second": [second[cell] for cell in first]}
    return cells.assign(**shown, first=FIRST, second=SECOND, **{"class": "bag"}, seed=1, structure=1.0, class_probability=1.0)


def test_gains_together_alone_and_lent_are_those_counted_by_hand():
    first, second = {(0, 0): 0.1, (1, 0): 0.5, (0, 1): 0.2, (1, 1): 0.4}, {(0, 0): -0.2, (1, 0): -0.3, (0, 1): 0.3, (1, 1): 0.0}
    found = measures.effects(known(first, second).sample(frac=1, random_state=0)).set_index("shift")[measures.EFFECTS]
    assert found.loc[FIRST].tolist() == pytest.approx([0.4, 0.1, 0.3, 0.2, -0.2])
    assert found.loc[SECOND].tolist() == pytest.approx([0.5, -0.1, 0.2, 0.3, -0.2])


@pytest.mark.parametrize(
    ("lent", "together", "expected"), [(0.3, 0.4, [0, 1, 1]), (0.1, 0.4, [1, 1, 0]), (0.4, 0.3, [0, 0, 1])], ids=["much", "little", "all"]
)
def test_what_the_other_slider_lends_does_not_count(lent, together, expected):
    first = {(0, 0): 0.0, (1, 0): 0.4, (0, 1): 0.0, (1, 1): 0.4}
    found = measures.effects(known(first, {(0, 0): 0.0, (1, 0): lent, (0, 1): 0.4, (1, 1): together}))
    assert measures.both_show(found).iloc[0][measures.SHOWN].tolist() == expected
