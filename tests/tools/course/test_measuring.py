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
CURVES = {"m": [0.9, 0.75, 0.5], "alexnet": [0.8, 0.6, 0.2], "x": [0.7, 0.65, 0.6], "y": [0.5, 0.5, 0.1]}

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
    names = {"model": "m", "reference": "alexnet", "shift": "heavy fog", "rarely": "heavy snow"}
    draws = np.array(list(itertools.product([1, 2, 3], repeat=3)))
    return measuring.sheet(trajectory=TRAJECTORY, points=points, accuracies=accuracies, **names, scale=1.0, pair=PAIR, draws=draws)


def test_the_failure_point_is_the_first_error(sheet):
    assert sheet.check("point", 1).right
    assert "recoveries" in sheet.check("point", 2).text and "last scale that is right" in sheet.check("point", 0.5).text


def test_what_never_fails_survives(sheet):
    assert sheet.check("survivors", 7 / 10).right
    assert "You left them out" in sheet.check("survivors", 2 / 5).text and "counted as failures" in sheet.check("survivors", 2 / 10).text


def test_under_the_shift_of_the_median_three_of_five_never_fail(sheet):
    """Failure points 2, 2.5 and three times none: without these the median would be 2, and clipped to the last scale 2.5."""
    assert sheet.check("median", np.inf).right
    assert "must count them" in sheet.check("median", 2.0).text and "the last scale" in sheet.check("median", 2.5).text


def test_half_have_failed_by_the_last_scale_and_fewer_by_none():
    assert measuring.median(pd.DataFrame({"failure_point": POINTS}), SCALES).check(2.5).right
    fewer = pd.DataFrame({"failure_point": POINTS[1:]})
    assert measuring.median(fewer, SCALES).check(np.inf).right
    assert "beyond" not in measuring.median(fewer, SCALES).check(2.5).text and not measuring.median(fewer, SCALES).check(2.5).right


def test_rce_is_a_ratio_of_summed_drops(sheet):
    assert sheet.check("rce", (0.15 + 0.4) / (0.2 + 0.6)).right
    assert "averaged" in sheet.check("rce", (0.15 / 0.2 + 0.4 / 0.6) / 2).text and "CE" in sheet.check("rce", 0.85 / 1.4).text
    assert "lesson 2" in sheet.check("rce", 0.75 / 1.2).text


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
    assert "It holds 0" in sheet.check("difference", [-0.0375, 0.0575]).text
    apart = measuring.difference(PAIR[0], PAIR[1] - 0.1)
    assert "leaves 0 out" in apart.check(apart.right).text


def test_seeds_that_are_drawn_twice_count_twice(sheet):
    """Of seed 1 three of four trajectories survive scale 1, of seed 2 three of four, of seed 3 one of two: all 27 draws of three seeds."""
    alive, kept = {1: 3, 2: 3, 3: 1}, {1: 4, 2: 4, 3: 2}
    shares = [sum(alive[s] for s in draw) / sum(kept[s] for s in draw) for draw in itertools.product([1, 2, 3], repeat=3)]
    assert sheet.check("bootstrap", np.quantile(shares, [0.025, 0.975])).right
    assert "single seeds" in sheet.check("bootstrap", np.quantile([0.75, 0.75, 0.5], [0.025, 0.975])).text


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
