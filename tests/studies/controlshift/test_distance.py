"""Distance from the training set and the slope of accuracy on it."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import torch
from golden_units import difference
from matplotlib import pyplot as plt
from tiny_trainings import SETTINGS

from cnslib.core import recipes, tables
from cnslib.stats import accuracy
from cnslib.studies.controlshift import datasets, distance, training

RESAMPLED = dataclasses.replace(SETTINGS.bootstrap, resamples=200)
SCALES = [0.0, 1.0, 2.0, 3.0]


def test_the_nearest_distance_is_that_of_brute_force():
    generator = np.random.default_rng(1)
    training, shifted = generator.normal(size=(40, 5)), generator.normal(size=(30, 5))
    brute = np.linalg.norm(shifted[:, None] - training[None], axis=-1).min(1)
    assert np.allclose(distance.nearest(training, shifted), brute)


def test_a_training_point_is_at_distance_zero():
    points = np.eye(3)
    assert np.allclose(distance.nearest(points, points[:1]), 0)


@pytest.mark.parametrize(
    ("training", "shifted", "message"),
    [((0, 3), (2, 3), "training set is empty"), ((2, 3), (0, 3), "shifted set is empty"), ((2, 3), (2, 4), "of 3 and of 4 numbers")],
)
def test_sets_without_a_distance_are_refused(training, shifted, message):
    with pytest.raises(ValueError, match=message):
        distance.nearest(np.zeros(training), np.zeros(shifted))


def test_the_slope_is_that_of_statsmodels():
    generator = np.random.default_rng(2)
    x, y = generator.normal(size=(6, 9)), generator.normal(size=(6, 9))
    expected = [sm.OLS(b, sm.add_constant(a)).fit().params[1] for a, b in zip(x, y, strict=True)]
    assert np.allclose(distance.slope(x, y), expected)
    assert distance.slope(np.array([0.0, 1.0]), np.array([0.0, -2.0])) == -2


def answers(right):
    """Answers of one model to 20 images of one kind; at scale i the first `right[i]` of them are named right."""
    rows = [
        {"model": "a", "shift": "overlap", "class": "bag", "seed": seed, "scale": scale, "top1": "bag" if seed <= count else "coat"}
        for scale, count in zip(SCALES, right, strict=True)
        for seed in range(1, 21)
    ]
    return pd.DataFrame(rows)


def at(distance):
    """Distances that are the same for all images of a scale."""
    rows = answers([0] * 4)[["shift", "class", "seed", "scale"]]
    return rows.assign(distance=rows["scale"].map(dict(zip(SCALES, distance, strict=True))))


def test_losing_a_tenth_per_unit_of_distance_is_a_slope_of_minus_a_tenth():
    found = accuracy.outcomes(answers([20, 18, 16, 14]))
    row = distance.slopes(found, at([1, 2, 3, 4]), settings=RESAMPLED).query("shift == 'overlap'").iloc[0]
    assert row["estimate"] == pytest.approx(-0.1) and row["n"] == 20 and row["low"] < row["estimate"] < row["high"]
    assert distance.linearity(found, at([1, 2, 3, 4]), settings=RESAMPLED).iloc[0]["estimate"] == pytest.approx(1)


def test_a_robust_model_has_no_slope():
    found = accuracy.outcomes(answers([15] * 4))
    assert distance.slopes(found, at([1, 2, 3, 4]), settings=RESAMPLED)["estimate"].to_numpy() == pytest.approx(0)


def test_a_bend_is_not_explained_by_a_line():
    found = accuracy.outcomes(answers([20, 10, 10, 20]))
    assert distance.linearity(found, at([1, 2, 3, 4]), settings=RESAMPLED).iloc[0]["estimate"] == pytest.approx(0)


def test_thin_lines_go_to_the_panel_of_their_shift():
    figure, panels = plt.subplots(1, 2)
    for axes, shift in zip(panels, ["truncation", "extend"], strict=True):
        axes.set_title(shift)
    rows = [(shift, model, x, -x * slope) for shift, slope in (("extend", 1), ("truncation", 2)) for model in "ab" for x in (0.0, 1.0)]
    table = pd.DataFrame(rows, columns=["shift", "model", "distance", "estimate"])
    distance.thin_lines(panels, table, label="distance")
    assert [[line.get_ydata().tolist() for line in axes.lines] for axes in panels] == [[[0, -2]] * 2, [[0, -1]] * 2]
    plt.close(figure)


def test_a_missing_distance_is_named():
    found = accuracy.outcomes(answers([20, 18, 16, 14]))
    with pytest.raises(ValueError, match=r"1 trajectories lack a distance, first overlap bag 3"):
        distance.slopes(found, at([1, 2, 3, 4]).query("seed != 3"), settings=RESAMPLED)


class Means:
    """An encoder whose only feature is the mean grey."""

    def features(self, pictures):
        return torch.from_numpy(pictures.mean((1, 2, 3)))[:, None]


def test_distances_are_those_of_brute_force_to_the_own_training_set(experiment):
    found = distance.from_training(experiment.sets, SETTINGS, Means(), "truncation", ("truncation",))
    known, _ = training.stock(experiment, ["train_truncation"])
    asked = tables.pictures(datasets.evaluation_set(experiment.sets, SETTINGS, ("truncation",)), "test")
    flat = [pictures.reshape(len(pictures), -1) / 255 for pictures in (known, asked)]
    brute = np.linalg.norm(flat[1][:, None] - flat[0][None], axis=-1).min(1)
    assert np.allclose(found["pixel"], brute, atol=1e-5)  # a^2 - 2ab + b^2 of 3,072 pixels leaves up to 1e-6 where a = b
    means = [pictures.mean((1, 2, 3)) for pictures in (known, asked)]
    assert np.allclose(found["feature"], np.abs(means[1][:, None] - means[0][None]).min(1), atol=1e-5)
    table = distance.means(found)
    assert table["n"].tolist() == [4, 4] and table["pixel"].tolist() == found.groupby("scale")["pixel"].mean().tolist()


def test_the_tiny_unit_is_the_golden_one(experiment):
    assert not difference(recipes.NEIGHBOURS, distance.from_training(experiment.sets, SETTINGS, Means(), "truncation", ("truncation",)))
