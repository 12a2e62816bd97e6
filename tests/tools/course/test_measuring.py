"""Lesson 5 on eight failure points and two accuracy curves counted by hand."""

import itertools

import numpy as np
import pandas as pd
import pytest
from tiny_course import told_mistakes

from cnslib.stats import bootstrap
from cnslib.tools.course import measuring

SCALES = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]
TRAJECTORY = pd.Series([False, False, True, False, True, True], index=SCALES)
POINTS = [0.5, 1.0, 1.0, 2.0, 2.5, np.nan, np.nan, np.nan, np.nan, np.nan]
CURVES = {"m": [0.9, 0.8, 0.5], "alexnet": [0.8, 0.6, 0.2], "x": [0.7, 0.65, 0.6], "y": [0.5, 0.5, 0.1]}

LUCK = np.random.default_rng(0).normal(0, 0.03, 1001)  # of a draw, which both classifiers share
PAIR = 0.7 + LUCK, 0.69 + LUCK + np.linspace(-0.05, 0.05, 1001)


@pytest.fixture(scope="module")
def sheet():
    keys = list(itertools.product(["heavy fog", "heavy snow"], ["bag"], [1, 2, 3])) + list(
        itertools.product(["heavy fog", "heavy snow"], ["shoe"], [1, 2])
    )
    points = pd.DataFrame(keys, columns=["shift", "class", "seed"]).assign(failure_point=POINTS)
    rows = [
        (shift, model, scale, a)
        for shift in ("heavy fog", "heavy snow")
        for model, row in CURVES.items()
        for scale, a in zip((0.0, 1.0, 2.5), row, strict=True)
    ]
    accuracies = pd.DataFrame(rows, columns=["shift", "model", "scale", "estimate"])
    return measuring.sheet(
        trajectory=TRAJECTORY, points=points, accuracies=accuracies, model="m", reference="alexnet", shift="heavy fog", scale=1.0, pair=PAIR
    )


def test_the_failure_point_is_the_first_error(sheet):
    assert sheet.check("point", 1).right
    assert "recoveries" in sheet.check("point", 2).text and "last scale that is right" in sheet.check("point", 0.5).text


def test_what_never_fails_survives(sheet):
    assert sheet.check("survivors", 7 / 10).right
    assert "You left them out" in sheet.check("survivors", 2 / 5).text and "counted as failures" in sheet.check("survivors", 2 / 10).text


def test_half_have_failed_by_the_last_scale_and_fewer_by_none(sheet):
    assert sheet.check("median", 2.5).right
    assert "must count them" in sheet.check("median", 1.0).text
    fewer = pd.DataFrame({"failure_point": POINTS[1:]})
    assert measuring.median(fewer, SCALES).check(np.inf).right
    assert "beyond" not in measuring.median(fewer, SCALES).check(2.5).text and not measuring.median(fewer, SCALES).check(2.5).right


def test_rce_is_a_ratio_of_summed_drops(sheet):
    assert sheet.check("rce", (0.1 + 0.4) / (0.2 + 0.6)).right
    assert "averaged" in sheet.check("rce", (0.1 / 0.2 + 0.4 / 0.6) / 2).text and "CE" in sheet.check("rce", 0.8 / 1.4).text


def test_units_are_the_three_seeds_or_the_two_classes_by_what_would_be_drawn_anew(sheet):
    """Ten trajectories of five (class, seed): bag has seeds 1 to 3, shoe 1 and 2, each under both shifts."""
    assert sheet.check("clusters", 3).right and sheet.check("classes", 2).right
    assert "the same noise" in sheet.check("clusters", 5).text and "number of trajectories" in sheet.check("clusters", 10).text
    assert "the classes change" in sheet.check("classes", 3).text and "hard for all of its seeds" in sheet.check("classes", 5).text


def test_units_are_those_that_the_bootstrap_draws(sheet):
    points = pd.DataFrame(list(itertools.product("ab", [1, 2, 3])), columns=["class", "seed"]).assign(shift="fog")
    exercises = {"same classes": measuring.clusters(points), "other classes": measuring.classes(points)}
    for target, exercise in exercises.items():
        assert exercise.check(1 + int(bootstrap.units_of(points, target)[0].max())).right


def test_a_paired_difference_is_surer_than_two_intervals(sheet):
    """The difference runs evenly from 0.06 to -0.04; its middle 95 % from 0.0575 to -0.0375."""
    assert sheet.check("difference", [-0.0375, 0.0575]).right and "turned round" in sheet.check("difference", [-0.0575, 0.0375]).text
    one, other = (np.quantile(row[1:], [0.025, 0.975]) for row in PAIR)
    assert "other pictures" in sheet.check("difference", one - other[::-1]).text


def test_one_of_six_pairs_turns_round_twice_over(sheet):
    """At the first scale m > alexnet > x > y, at the last x > m > alexnet > y: two of six pairs change."""
    assert sheet.check("tau", (4 - 2) / 6).right


def test_every_known_mistake_is_told(sheet):
    others = {name: exercise for name, exercise in sheet.exercises.items() if name != "median"}
    longer = measuring.median(pd.DataFrame({"failure_point": [0.5, 0.5, 1.0, np.nan, np.nan, np.nan, np.nan]}), SCALES)
    assert min(told_mistakes(type(sheet)(sheet.lesson, {**others, "median": longer})).values()) >= 3


def test_points_are_those_of_one_classifier_and_counted_with_never():
    table = pd.DataFrame({"model": ["m", "m", "n"], "shift": "fog", "class": "bag", "seed": [1, 2, 1], "failure_point": [0.5, np.nan, 1.0]})
    own = measuring.of_model(table, "m")
    assert own["seed"].tolist() == [1, 2] and measuring.example(own).to_dict() == {"0.5": 1, "never": 1}
