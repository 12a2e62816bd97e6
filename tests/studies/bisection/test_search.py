"""Bisection: thresholds known without the code are found, requests are shared, and no answer of the grid is contradicted."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from tiny_bisection import GRID, RESOLUTION, SETTINGS, Oracle
from tiny_settings import changed

from cnslib.core import paths
from cnslib.core.settings import read
from cnslib.studies.bisection import search

NEVER, FROM_THE_START = np.inf, -np.inf


def table(rows: list[tuple], **columns) -> pd.DataFrame:
    """Intervals or points of rows (model, shift, class, seed, after, until)."""
    return pd.DataFrame(rows, columns=["model", "shift", "class", "seed", "after", "until"]).assign(**columns)


def test_a_thousand_random_thresholds_are_found_within_the_resolution():
    rng = np.random.default_rng(1)
    for threshold in rng.uniform(0, 2.5, 1000):
        oracle = Oracle([threshold])
        after, until = search.halve(*oracle.brackets(), oracle, resolution=RESOLUTION)
        assert until[0] - after[0] == RESOLUTION and after[0] < threshold <= until[0]
        assert len(oracle.asked) == 4 and not set(oracle.asked) & set(GRID)  # log2(0.5 * 32)


def test_models_that_fail_at_scale_zero_or_never_stay_as_they_are_and_cost_nothing():
    oracle = Oracle([FROM_THE_START, NEVER])
    before = oracle.brackets()
    assert np.array_equal(search.halve(*before, oracle, resolution=RESOLUTION), before)
    assert before[1].tolist() == [0.0, np.inf] and oracle.asked == []


def test_models_that_ask_for_the_same_scales_share_them():
    both, alone = Oracle([1.2, 1.2, NEVER]), Oracle([1.2])
    for oracle in (both, alone):
        search.halve(*oracle.brackets(), oracle, resolution=RESOLUTION)
    assert both.asked == alone.asked == [1.25, 1.125, 1.1875, 1.21875]


def test_a_model_finds_the_same_point_whoever_is_asked_beside_it():
    rng = np.random.default_rng(2)
    thresholds = rng.uniform(0, 3, 20)
    together = Oracle(thresholds)
    found = np.array(search.halve(*together.brackets(), together, resolution=RESOLUTION))
    for number, threshold in enumerate(thresholds):
        alone = Oracle([threshold])
        own = np.array(search.halve(*alone.brackets(), alone, resolution=RESOLUTION))
        assert np.array_equal(own[:, 0], found[:, number])


def test_answers_that_flip_at_random_never_contradict_the_grid():
    rng = np.random.default_rng(3)
    answers: dict[tuple[float, int], bool] = {}

    def erratic(scales):
        return np.array([[answers.setdefault((scale, model), bool(rng.random() < 0.5)) for model in range(200)] for scale in scales])

    after, until = np.repeat(1.0, 200), np.repeat(1.5, 200)
    left, right = search.halve(after, until, erratic, resolution=RESOLUTION)
    assert (left >= 1.0).all() and (right <= 1.5).all() and (right - left == RESOLUTION).all()
    assert not any(answers.get((scale, model), False) for model, scale in enumerate(left))
    assert all(answers.get((scale, model), True) for model, scale in enumerate(right))


def test_the_images_of_a_cell_by_hand():
    assert search.cell_images(0.5, 1, RESOLUTION) == (4, 4, 4)
    assert search.cell_images(0.5, 2, 1 / 8) == (2, 1 + 2 * (1 - 0.5**2), 3)
    assert search.cell_images(0.5, 1000, 1 / 8) == (2, pytest.approx(3), 3)


def test_the_expected_number_of_images_is_that_of_random_thresholds():
    rng, counts = np.random.default_rng(4), []
    for _ in range(400):
        oracle = Oracle(rng.uniform(1.0, 1.5, 5))
        search.halve(np.repeat(1.0, 5), np.repeat(1.5, 5), oracle, resolution=RESOLUTION)
        counts.append(len(oracle.asked))
    least, expected, most = search.cell_images(0.5, 5, RESOLUTION)
    assert least <= min(counts) and max(counts) <= most
    assert np.mean(counts) == pytest.approx(expected, abs=4 * np.std(counts) / 20)


def test_requests_are_what_was_asked_and_cost_counts_them():
    oracle = Oracle([1.2, 1.3, 0.6, FROM_THE_START, NEVER])
    grid_after, grid_until = oracle.brackets()
    after, until = search.halve(grid_after, grid_until, oracle, resolution=RESOLUTION)
    rows = [(f"m{i}", "heavy snow", "bag", 1, a, u) for i, (a, u) in enumerate(zip(after, until, strict=True))]
    points = table(rows, grid_after=grid_after, grid_until=grid_until)
    asked = search.requests(points, resolution=RESOLUTION)
    assert set(asked["scale"]) == set(oracle.asked) and len(oracle.asked) == asked["scale"].nunique() == 11  # m0 and m1 share 1.25
    assert asked.groupby("model")["round"].apply(list).to_dict() == {f"m{i}": [1, 2, 3, 4] for i in range(3)}
    cost = search.cost(points, scales=GRID, settings=SETTINGS).set_index(["method", "resolution"])["images"]
    assert cost["shared", 1 / 4] == 2 and cost["shared", RESOLUTION] == 11 and cost["each model alone", RESOLUTION] == 12
    assert cost["uniform", 1 / 4] == 5 and cost["uniform", RESOLUTION] == 75


def test_the_plan_counts_trajectories_brackets_and_images():
    cell = (1.0, 1.5)
    intervals = table(
        [
            ("alexnet", "heavy snow", "bag", 1, *cell),
            ("resnet", "heavy snow", "bag", 1, *cell),
            ("alexnet", "heavy snow", "coat", 1, -np.inf, 0.0),
            ("resnet", "heavy snow", "coat", 1, 2.5, np.inf),
        ]
    )
    plan = search.plan(intervals, scales=GRID, settings=dataclasses.replace(SETTINGS, resolution=1 / 8))
    assert plan.loc["heavy snow"].to_dict() == {
        "trajectories": 2, "pairs": 4, "to bisect": 2, "least": 2, "expected": 2, "most": 3, "scan": 35
    }  # fmt: skip
    assert plan.loc["heavy fog"].sum() == 0 and plan.loc["total", "scan"] == 35


def test_the_first_kept_seeds_are_chosen_whatever_was_answered():
    kept = pd.DataFrame([(s, c, n) for s in ("heavy snow", "heavy rain") for c in ("bag", "coat", "shirt") for n in (9, 4, 7)])
    kept.columns = ["shift", "class", "seed"]
    chosen = search.choose(kept, settings=SETTINGS)
    assert search.keys_of(chosen) == [("heavy snow", c, n) for c in ("bag", "coat") for n in (4, 7)]
    with pytest.raises(ValueError, match="none of 9 kept trajectories"):
        search.choose(kept[kept["shift"] == "heavy rain"], settings=SETTINGS)


def test_scans_are_drawn_by_lot_among_trajectories_with_a_bracket():
    inside = [("alexnet", shift, "bag", n, 1.0, 1.5) for shift in SETTINGS.shifts for n in range(1, 6)]
    intervals = table([*inside, ("alexnet", "heavy snow", "coat", 1, 2.5, np.inf)])
    places = {seed: search.scanned(intervals, settings=dataclasses.replace(SETTINGS, seed=seed)) for seed in range(20)}
    assert all([shift for shift, _, _ in keys] == ["heavy fog", "heavy snow"] for keys in places.values())
    assert len({keys[1] for keys in places.values()}) > 2 and not any("coat" in key for keys in places.values() for key in keys)


@pytest.mark.parametrize("overlay", [None, "smoke.yaml"])
def test_what_is_bisected_is_part_of_the_benchmark(overlay):
    sections = read.load(paths.resolve("params.yaml"), paths.resolve(overlay) if overlay else None)
    chosen, base = sections["bisection"], sections["base"]
    assert set(chosen.classifiers) <= set(sections["evaluation"].classifiers)
    assert set(chosen.shifts) <= set(base.shifts) and set(chosen.classes) <= set(base.classes)


@pytest.mark.parametrize(("key", "value"), [("resolution", 0.3), ("scan_step", 0.5), ("shifts", ["heavy frog"]), ("classifiers", [])])
def test_a_wrong_setting_is_named(key, value):
    with pytest.raises(ValueError, match=f"bisection.{key}"):
        changed(SETTINGS, **{key: value})
