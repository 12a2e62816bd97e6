"""Subsets of the classes: numbers of a subset are those of its classes alone, and spreads are counted by hand."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from tiny_answers import random_outcomes, wrong_array

from cnslib.core import tables
from cnslib.core.settings.method import Bootstrap
from cnslib.stats import accuracy
from cnslib.studies.ablation import subsets

BOOTSTRAP = Bootstrap(resamples=200, confidence=0.95, seed=1, target="same classes")


def outcomes(wrong: dict[str, dict[str, list[list[int]]]]) -> xr.DataArray:
    """Known answers by class and model, a list of trajectories each, 1 where wrong; one shift."""
    names = sorted(next(iter(wrong.values())))
    rows = [("heavy snow", name, seed) for name, own in wrong.items() for seed in range(1, len(own[names[0]]) + 1)]
    values = [[own[model][seed] for model in names] for own in wrong.values() for seed in range(len(own[names[0]]))]
    scales = [float(i) for i in range(len(values[0][0]))]
    return wrong_array(pd.DataFrame(rows, columns=tables.TRAJECTORY), names, scales, np.array(values, bool))


def test_numbers_of_a_subset_are_those_of_its_classes_alone():
    found = random_outcomes(seeds=25)  # fifty trajectories of two classes, the fewest that give a quotient
    table = subsets.measures(found, [2, 4], reference="m0").set_index(["subset", "measure"])["value"]
    alone = found[found["class"].isin(["class 1", "class 3"])]
    part = alone.to_numpy()
    assert table["class 1 + class 3", "accuracy at scale 0"] == pytest.approx(1 - part[..., 0].mean())
    assert table["class 1 + class 3", "accuracy drop"] == pytest.approx(part[..., -1].mean() - part[..., 0].mean())
    ratio = accuracy.relative_corruption_error(accuracy.by_shift(alone, BOOTSTRAP), reference="m0")
    expected = ratio[(ratio["shift"] == accuracy.MEAN) & (ratio["model"] != "m0")]
    assert expected["defined"].all() and table["class 1 + class 3", "rCE"] == pytest.approx(expected["estimate"].mean())


def test_a_size_that_no_subset_has_is_named():
    with pytest.raises(ValueError, match=r"ablation.counts: 5 is not accepted; accepted: 1 to the 4 classes"):
        subsets.measures(random_outcomes(), [5], reference="m0")


def test_subsets_too_many_to_list_are_drawn_with_equal_chances():
    few, many = subsets.members(10, 5), subsets.members(100, 30)
    assert len(few) == math.comb(10, 5) == len(np.unique(few, axis=0))
    assert len(many) == 1000 and (many.sum(1) == 30).all()
    assert abs(many.mean(0) - 0.3).max() < 4.5 * np.sqrt(0.3 * 0.7 / 1000)
    assert np.array_equal(many, subsets.members(100, 30))


def test_a_shift_that_costs_the_reference_nothing_does_not_count():
    found = outcomes({"bag": {"a": [[0, 0]], "b": [[0, 1]]}, "coat": {"a": [[0, 1]], "b": [[0, 1]]}})
    table = subsets.measures(found, [1, 2], reference="a").set_index(["subset", "measure"])["value"]
    assert np.isnan(table["bag", "rCE"]) and table["coat", "rCE"] == 1 and table["bag + coat", "rCE"] == 2


def test_the_drop_is_steadier_where_classes_differ_only_in_their_start():
    """Classes that are right 1/5 to 4/5 of the time at scale 0 and lose the same: all the spread is in the start."""
    rows = {f"c{i}": {"m": [[int(seed >= i), int(seed >= i - 1)] for seed in range(5)]} for i in (2, 3, 4, 5)}
    steady = subsets.steadier(outcomes(rows), 2, settings=BOOTSTRAP)
    spread = np.std([1 - np.mean(pair) for pair in itertools.combinations([3 / 5, 2 / 5, 1 / 5, 0], 2)])
    assert steady["estimate"] == pytest.approx(spread) and steady["n"] == 20
