"""Lesson 6 on small tables counted by hand, and on the papers' printed accuracies."""

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from tiny_course import told_mistakes

from cnslib.core.settings.method import Bootstrap
from cnslib.data import published
from cnslib.models.classifiers import Classifier
from cnslib.stats import accuracy
from cnslib.tools.course import pitfalls

VALIDATION = pd.DataFrame({"model": ["a", "b", "c", "d"], "printed": [71.7, 80.0, 76.0, 88.0], "library": [84.5, 80.1, 76.0, 85.0]})
# Two versions on eight garments: three answers change; one of them from right to wrong, one back.
OWN, OTHER = ["x", "x", "x", "y", "y", "z", "x", "x"], ["x", "x", "y", "x", "y", "w", "x", "x"]
ACCURACIES = pd.DataFrame(
    {"before": [0.9, 0.8, 0.6, 0.5], "fog": [0.9, 0.3, 0.3, 0.2], "snow": [0.5, 0.7, 0.3, 0.1], "rain": [0.6, 0.4, 0.0, 0.0]},
    index=["a", "b", "c", "d"],
)
P = pd.Series([0.001, 0.011, 0.02, 0.04, 0.5])


@pytest.fixture(scope="module")
def sheet():
    parts = [
        pd.DataFrame({"model": name, "class": "x", "seed": range(8), "top1": top, "right": [t == "x" for t in top]})
        for name, top in {"own": OWN, "paper": OTHER}.items()
    ]
    return pitfalls.sheet(validation=VALIDATION, answers=pd.concat(parts), names=("own", "paper"), accuracies=ACCURACIES, model="a", p=P)


def test_differences_of_two_points_either_way_are_suspect(sheet):
    assert sheet.check("suspects", ["a", "d"]).right and "too *high*" in sheet.check("suspects", {"d"}).text


def test_the_papers_two_suspects_are_the_vits_trained_with_another_normalisation():
    printed, library = (published.read(name).set_index("model")["accuracy_percent"] for name in ("cns_table7", "timm_validation"))
    table = pd.DataFrame({"printed": printed, "library": library}).dropna().reset_index()
    assert pitfalls.suspects(table).check({"vit_base_patch16_224.augreg_in1k", "vit_base_patch16_224.augreg_in21k_ft_in1k"}).right


def test_three_answers_change_though_as_many_are_right(sheet):
    assert sheet.check("changed", 3).right and "right answers" in sheet.check("changed", 0).text
    assert "right to wrong" in sheet.check("changed", 1).text


def test_the_closest_means_hide_their_largest_difference(sheet):
    """Means 0.667, 0.467, 0.2, 0.1: c and d lie 0.1 apart; on snow it is 0.2."""
    assert pitfalls.closest(ACCURACIES.drop(columns="before").mean(axis=1)) == ("c", "d")
    assert sheet.check("hidden", 0.2).right and "cancel" in sheet.check("hidden", 0.1).text


def test_the_distance_to_the_line_is_that_of_numpys_fit(sheet):
    after = ACCURACIES.drop(columns="before").mean(axis=1)
    slope, intercept = np.polyfit(ACCURACIES["before"], after, 1)
    assert sheet.check("line", after["a"] - intercept - slope * 0.9).right
    assert "y = x" in sheet.check("line", 2 / 3 - 0.9).text


def test_holm_leaves_two_of_five(sheet):
    """0.001 < 0.05 / 5, 0.011 < 0.05 / 4, 0.02 > 0.05 / 3."""
    assert sheet.check("many", 2).right
    assert "uncorrected" in sheet.check("many", 4).text and "Bonferroni" in sheet.check("many", 1).text


def test_every_known_mistake_is_told(sheet):
    spread = pitfalls.hidden(pd.Series([0.9, 0.2, 0.4]), pd.Series([0.4, 0.5, 0.6]))
    assert min(told_mistakes(type(sheet)(sheet.lesson, {**sheet.exercises, "hidden": spread})).values()) >= 3


def test_versions_between_two_change_the_crop_or_the_normalisation_alone():
    plain = {"input_size": (3, 8, 8), "interpolation": "bicubic", "crop_pct": 1.0, "crop_mode": "center"}
    plain |= {"mean": (0.5,) * 3, "std": (0.5,) * 3}
    other = plain | {"crop_pct": 0.5, "mean": (0.0,) * 3, "std": (1.0,) * 3}
    own, paper = (Classifier(name, "", [], None, None, settings, 0, "cpu") for name, settings in {"own": plain, "paper": other}.items())
    crop, normalisation = pitfalls.between(own, paper)
    picture = np.zeros((8, 8, 3), np.uint8)
    picture[2:6, 2:6] = 255  # what a crop to one half mostly shows: the mean rises from -0.5
    shown = [version.transform(Image.fromarray(picture)) for version in (crop, normalisation)]
    assert [version.name for version in (crop, normalisation)] == ["crop", "normalisation"]
    assert (shown[0].mean().item() > 0, shown[1].min().item(), shown[1].max().item()) == (True, 0.0, 1.0)


def test_the_ends_are_the_mean_of_the_shifts_at_the_start_and_each_at_the_last_scale():
    rows = [("all shifts", "a", 0.0, 0.9), ("all shifts", "a", 2.0, 0.1), ("fog", "a", 0.0, 0.8), ("fog", "a", 2.0, 0.3)]
    rows += [("snow", "a", 0.0, 0.6), ("snow", "a", 2.0, 0.5)]
    found = pitfalls.at_the_end(pd.DataFrame(rows, columns=["shift", "model", "scale", "estimate"]))
    assert found.loc["a"].to_dict() == {"before": pytest.approx(0.7), "fog": 0.3, "snow": 0.5}


def test_the_distance_with_its_interval_is_the_one_that_the_exercise_asks_for(sheet):
    """Two shifts, one of three trajectories and one of six: the mean counts both the same, and so does the line."""
    rows = [(shift, "x", seed) for shift, count in {"fog": 3, "snow": 6}.items() for seed in range(count)]
    keys = pd.DataFrame(rows, columns=["shift", "class", "seed"])
    wrong = np.random.default_rng(0).random((9, 4, 2)) < [[0.1, 0.3], [0.1, 0.6], [0.3, 0.7], [0.4, 0.9]]
    tables = [
        keys.assign(model=model, scale=scale, top1=np.where(wrong[:, m, s], "y", "x"))
        for m, model in enumerate("abcd")
        for s, scale in enumerate((0.0, 2.0))
    ]
    errors = accuracy.error_shares(accuracy.outcomes(pd.concat(tables)), settings=Bootstrap(200, 0.95, 1, "same classes"))
    ends = pitfalls.at_the_end(accuracy.accuracy(errors))
    own = pitfalls.above_the_line(errors, "a")
    assert pitfalls.line(ends["before"], ends.drop(columns="before").mean(axis=1), "a").check(own["estimate"]).right
    assert own["low"] < own["estimate"] < own["high"]


def test_the_side_of_the_line_is_told_as_it_is(sheet):
    x = pd.Series({"a": 0.9, "b": 0.8, "c": 0.6})
    for after, side in ((0.7, "Positive"), (0.1, "Negative")):
        y = pd.Series({"a": after, "b": 0.4, "c": 0.2})
        exercise = pitfalls.line(x, y, "a")
        assert exercise.check(exercise.right).text.startswith(side)
