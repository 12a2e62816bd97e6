import dataclasses

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import torch
from golden_units import difference
from tiny_encoders import write_clip, write_timm
from tiny_sliders import CLASSES, SETTINGS, SHIFTS, random_sliders

from cnslib.core import recipes, tables
from cnslib.method import generation, health, sliders
from cnslib.method.sliders import slider_path
from cnslib.models import adapters, encoders

SCALES = [0.0, 0.5, 1.0]


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    folder = tmp_path_factory.mktemp("judge")
    write_clip(folder / "clip")
    write_timm(folder / "dino", outputs=0)
    return health.Judge(encoders.Clip(str(folder / "clip")), encoders.ImageEncoder(str(folder / "dino")))


@pytest.fixture(scope="module")
def sampler(pipe):
    return generation.Sampler(pipe, settings=health.drawing_settings(SETTINGS, 0.75))


@pytest.fixture(scope="module")
def paths(pipe, origin, tmp_path_factory):
    given = {"settings": dataclasses.replace(SETTINGS, iterations=2), "origin": origin, "folder": tmp_path_factory.mktemp("sliders")}
    return sliders.make_sliders(pipe, ["heavy snow"], CLASSES, recipe="paper", **given)


def trajectory(alignments, *, name="sneaker", seed=1, structure=1.0):
    scales = [i / 2 for i in range(len(alignments))]
    rows = {"shift": "heavy snow", "class": name, "seed": seed, "scale": scales, "alignment": alignments, "structure": structure}
    return pd.DataFrame(rows)


def test_the_report_has_every_scale_starts_at_perfect_structure_and_is_measured_once(sampler, paths, origin, judge):
    def report():
        table = health.report(sampler, paths, scales=SCALES, seeds=2, origin=origin, judge=judge)
        return table, [path.with_suffix(".parquet").stat().st_mtime_ns for path in paths.values()]

    table, before = report()
    assert not difference(recipes.HEALTH, table, within=1e-3)
    expected = {("heavy snow", name, seed, scale) for name in CLASSES for seed in (1, 2) for scale in SCALES}
    tables.complete(table, expected, tables.KEY, "health")
    assert np.allclose(table.loc[table["scale"] == 0, "structure"], 1, atol=1e-5)
    second, after = report()
    assert after == before and second.equals(table)


def test_on_both_sides_of_0_structure_is_measured_from_scale_0_and_gain_from_there_up(pipe, sampler, judge, tmp_path):
    key = (SHIFTS[0], CLASSES[0])
    own = {key: slider_path(random_sliders(pipe, tmp_path, SHIFTS[:1], CLASSES[:1]), *key)}
    table = health.measure(sampler, own, key, scales=[-1.0, 0.0, 1.0], seeds=1, judge=judge).set_index("scale")
    assert table.loc[0.0, "structure"] == pytest.approx(1, abs=1e-5) and table.loc[[-1.0, 1.0], "structure"].max() < 1 - 1e-5
    gain = table.loc[1.0, "alignment"] - table.loc[0.0, "alignment"]
    assert health.per_slider(table.reset_index())["gain"].item() == pytest.approx(gain)


def test_alignment_is_what_the_shift_adds_to_the_caption(judge):
    pictures = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3), dtype=np.uint8)
    texts = ["a picture of a bag in cartoon style", "a picture of a bag"]
    shifted, plain = (judge.clip.image_features(pictures) @ judge.clip.text_features(texts).T).T
    assert torch.allclose(judge.alignment(pictures, "cartoon style", "bag"), shifted - plain, atol=1e-6)


def test_rising_steps_are_counted_within_trajectories_and_gain_and_structure_are_those_of_the_largest_scale():
    first, second = trajectory([0.0, 0.2, 0.1, 0.3], structure=0.8), trajectory([0.5, 0.5, 0.6, 0.7], seed=2, structure=0.6)
    summary = health.per_slider(pd.concat([first, second])).iloc[0]
    assert summary[["rising", "gain", "structure"]].tolist() == pytest.approx([4 / 6, (0.3 + 0.2) / 2, 0.7])


def test_flat_sliders_are_named_and_the_others_are_not():
    summary = health.per_slider(pd.concat([trajectory([0.0, 0.1]), trajectory([0.2, 0.1], name="bag")]))
    with pytest.raises(ValueError, match=r"least_gain = 0.0: bag in heavy snow \(-0.1000\)"):
        health.require_gain(summary, least=0.0)
    health.require_gain(summary, least=-0.2)


def test_over_all_shifts_each_shift_counts_once():
    """Ten sliders that are alike within a shift say no more than one: the interval is scipy's of the shifts' means."""
    means = np.array([0.9, 0.7, 0.8, 0.6])
    summary = pd.DataFrame({"shift": np.repeat(list("abcd"), 10), "rising": np.repeat(means, 10)})
    found = health.over_shifts(summary, "rising", confidence=0.95)
    low, high = scipy.stats.t.interval(0.95, 3, loc=means.mean(), scale=scipy.stats.sem(means))
    assert (found["n"], found["estimate"]) == (40, pytest.approx(0.75)) and (found["low"], found["high"]) == pytest.approx((low, high))
    assert np.isnan(health.over_shifts(summary[:10], "rising", confidence=0.95)["low"])


def test_curves_average_seeds_before_sliders():
    parts = [trajectory([0.0, 0.4]), trajectory([0.0, 0.6], seed=2), trajectory([0.0, 0.1], name="bag")]
    curve = health.curves(pd.concat(parts), "alignment", confidence=0.95).set_index("scale")
    assert curve.loc[0.5, "n"] == 2 and curve.loc[0.5, "estimate"] == pytest.approx((0.5 + 0.1) / 2)
    low, high = scipy.stats.t.interval(0.95, 1, loc=0.3, scale=abs(0.5 - 0.1) / 2)  # of two sliders
    assert curve.loc[0.5, ["low", "high"]].tolist() == pytest.approx([low, high])


NAME = CLASSES[0]


def test_strips_begin_with_the_unshifted_picture_and_are_drawn_again_where_a_slider_changes(pipe, sampler, origin, tmp_path):
    own = {shift: slider_path(random_sliders(pipe, tmp_path, SHIFTS, [NAME]), shift, NAME) for shift in SHIFTS}

    def strips():
        place = {"seed": 3, "origin": origin, "path": tmp_path / "strips.parquet"}
        return health.stored_strips(sampler, own, NAME, scales=[0.0, 1.0, 2.0], **place)

    first = strips()
    assert first.shape == (2, 3, 64, 64, 3) and (first[0, 1:] != first[1, 1:]).any()
    assert np.array_equal(first[0, 0], sampler.unshifted(NAME, 3)[0].numpy()) and not adapters.layers(pipe.unet)
    assert not difference(recipes.SLIDER_STRIPS, first[0])
    random_sliders(pipe, tmp_path, SHIFTS[1:], [NAME])  # another one than before, as the first of its call
    second = strips()
    assert np.array_equal(second[0], first[0]) and (second[1] != first[1]).any()


WORDS = {"a picture of a bag": [1.0, 0.0], "a picture of a bag in heavy snow": [0.6, 0.8], "a picture of a sneaker": [-1.0, 0.0]}


class Reader:
    """A text-image encoder of two features, class and shift, that sees them without error; a picture's first values are its features."""

    def text_features(self, words):
        return torch.tensor([WORDS.get(text, [-0.6, 0.8]) for text in words])

    def image_features(self, pictures):
        return torch.from_numpy(pictures[:, 0, 0, :2].astype(np.float32) / 100 - 1)


def test_a_picture_names_no_shift_where_its_plain_caption_is_the_closest_of_its_class():
    pictures = np.zeros((3, 2, 2, 3), np.uint8)
    pictures[:, 0, 0, :2] = [[200, 100], [160, 180], [40, 180]]  # a plain bag, a bag in snow, a sneaker in snow
    found = health.names_no_shift(Reader(), ["bag", "bag", "sneaker"], pictures, shifts=["heavy snow"])
    assert found.tolist() == [True, False, False]
