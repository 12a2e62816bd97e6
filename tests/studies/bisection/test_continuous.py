"""Statistics of continuous failure points: counts by hand, statsmodels, and simulated failures whose distribution is known."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from statsmodels.duration.survfunc import SurvfuncRight
from statsmodels.stats.proportion import proportion_confint
from tiny_bisection import GRID, SETTINGS, Oracle

from cnslib.core import tables
from cnslib.stats import accuracy, bootstrap, failure
from cnslib.studies.bisection import continuous, search

RESOLUTION = SETTINGS.resolution


def simulated(seed: int, *, trajectories: int = 40, models: int = 4) -> tuple[pd.DataFrame, accuracy.Outcomes, np.ndarray]:
    """Points of models with known thresholds (at scale 0, inside, never), the grid's outcomes, and the thresholds."""
    rng = np.random.default_rng(seed)
    thresholds = rng.uniform(-0.5, 3.5, (trajectories, models))
    names = [f"m{i}" for i in range(models)]
    keys = pd.DataFrame({"shift": "heavy snow", "class": "bag", "seed": np.arange(1, trajectories + 1)})
    parts = []
    for key, row in zip(keys.to_dict("records"), thresholds, strict=True):
        oracle = Oracle(row)
        after, until = oracle.brackets()
        ends = search.halve(after, until, oracle, resolution=RESOLUTION)
        part = {"model": names, "grid_after": after, "grid_until": until, "after": ends[0], "until": ends[1]}
        parts.append(pd.DataFrame(part).assign(**key))
    found = accuracy.Outcomes(keys, names, GRID, np.array(GRID) >= thresholds[..., None])
    return pd.concat(parts, ignore_index=True), found, thresholds


def point(model: str, grid: tuple[float, float], own: tuple[float, float], seed: int = 1) -> dict:
    ends = dict(zip(("grid_after", "grid_until", "after", "until"), (*grid, *own), strict=True))
    return {"model": model, "shift": "heavy snow", "class": "bag", "seed": seed, **ends}


def shares(found: accuracy.Outcomes) -> accuracy.Shares:
    return failure.failure_shares(found, settings=SETTINGS.bootstrap)


def test_the_three_readings_by_hand():
    points = pd.DataFrame(
        [point("a", (1.0, 1.5), (1.25, 1.28125)), point("b", (-np.inf, 0.0), (-np.inf, 0.0)), point("c", (2.5, np.inf), (2.5, np.inf))]
    )
    row = continuous.readings(points).iloc[0]
    assert len(continuous.readings(points)) == 1
    assert row[["delay", "bias", "place"]].tolist() == [1.5 - 1.265625, 1.25 - 1.265625, (1.265625 - 1) / 0.5]


def test_failures_that_lie_evenly_in_their_cells_are_late_by_half_a_cell_and_their_middle_is_not_biased():
    points, _, _ = simulated(1, trajectories=300)
    rows = continuous.readings(points)
    found = {name: bootstrap.mean(rows[name], rows, settings=SETTINGS.bootstrap) for name in ("delay", "bias", "place")}
    for name, truth in {"delay": 0.25, "bias": 0.0, "place": 0.5}.items():
        assert found[name]["low"] < truth < found[name]["high"] and found[name]["n"] == len(rows)


def test_the_refined_survival_curve_is_the_product_limit_estimate_of_the_bisected_points():
    points, found, _ = simulated(2)
    curve = failure.curves(shares(continuous.refined(found, points, resolution=RESOLUTION))).query("shift == @accuracy.ALL")
    for model, part in points.groupby("model"):
        time = part["until"].clip(upper=GRID[-1]) + 1  # statsmodels wants times above zero
        limit = SurvfuncRight(time.to_numpy(), np.isfinite(part["until"]).to_numpy().astype(int))
        ours = curve[curve["model"] == model].set_index("scale")["estimate"]
        assert ours.loc[limit.surv_times - 1].tolist() == pytest.approx(limit.surv_prob)


def test_both_resolutions_agree_at_the_scales_of_the_grid():
    points, found, _ = simulated(3)
    fine = shares(continuous.refined(found, points, resolution=RESOLUTION))
    both = continuous.survival(shares(found), fine).query("scale in @GRID").drop(columns="n")
    grid, own = (both[both["grid"] == flag].set_index(["shift", "model", "scale"])["estimate"] for flag in (True, False))
    pd.testing.assert_series_equal(grid, own)


def test_the_mean_failure_scale_is_the_area_under_the_survival_curve():
    points, found, thresholds = simulated(4)
    fine = shares(continuous.refined(found, points, resolution=RESOLUTION))
    expected = thresholds.clip(0, GRID[-1]).mean(0)
    assert continuous.mean_scale(fine, centred=True)[0] == pytest.approx(expected, abs=RESOLUTION / 2)
    survivors = 1 - shares(found).samples[0, -1, :, :-1].cumsum(-1)
    assert continuous.mean_scale(shares(found), centred=False)[0] == pytest.approx(survivors[:, :-1].sum(1) * 0.5)
    assert continuous.mean_scale(shares(found), centred=True)[0] == pytest.approx(np.trapezoid(survivors, GRID, axis=1))


def test_medians_by_hand():
    assert continuous.half_way(np.array([0.2, 0.4, 0.6]), np.array([0.0, 0.5, 1.0])) == 0.75
    assert continuous.half_way(np.array([0.5, 0.5, 0.6]), np.array([0.0, 0.5, 1.0])) == 0.0
    assert continuous.half_way(np.array([0.2, 0.4, 0.5]), np.array([0.0, 0.5, 1.0])) == 1.0
    assert continuous.half_way(np.array([0.2, 0.4, 0.4]), np.array([0.0, 0.5, 1.0])) == np.inf
    points, found, thresholds = simulated(5, trajectories=301, models=1)
    fine = shares(continuous.refined(found, points, resolution=RESOLUTION))
    median = continuous.median_interpolated(fine).query("shift == @accuracy.ALL")["estimate"].item()
    assert median == pytest.approx(np.median(thresholds), abs=RESOLUTION)


def test_ties_are_pairs_in_one_cell_of_one_trajectory():
    cell, other = (1.0, 1.5), (0.5, 1.0)
    rows = [
        point("a", cell, (1.0, 1.125)),
        point("b", cell, (1.25, 1.375)),
        point("c", cell, (1.0, 1.125)),
        point("d", other, (0.5, 0.625)),
    ]
    rows += [point("a", cell, (1.0, 1.125), seed=2), point("b", (-np.inf, 0.0), (-np.inf, 0.0), seed=2)]
    tied = continuous.tied(pd.DataFrame(rows))
    found = tied.set_index(["model_first", "model_second"])[["separated", "apart"]].T.to_dict("list")
    assert found == {("a", "b"): [True, 0.25], ("a", "c"): [False, 0.0], ("b", "c"): [True, 0.25]}


def test_a_straight_margin_crosses_zero_where_its_line_does():
    points = pd.DataFrame([point("a", (1.0, 1.5), (1.34375, 1.375)), point("a", (0.0, 0.5), (0.0, 0.03125), seed=2)])
    slope = {1: 1.359375, 2: 0.015625}  # where each margin is zero
    rows = [("a", "heavy snow", "bag", seed, scale, zero - scale) for seed, zero in slope.items() for scale in GRID]
    answers = pd.DataFrame(rows, columns=["model", *tables.KEY, "margin"])
    found = continuous.crossings(points, answers)
    assert found["crossing"].tolist() == pytest.approx(list(slope.values()))
    assert found["crossing_error"].tolist() == pytest.approx([0, 0]) and found["middle_error"].tolist() == [0.109375, 0.234375]


def scan_of(words: dict[str, str], step: float = 0.25) -> pd.DataFrame:
    """Answers along one trajectory, x where a model is wrong; the first letter is scale 0."""
    rows = [
        (m, "heavy snow", "bag", 1, i * step, "coat" if x == "x" else "bag", 0.0) for m, word in words.items() for i, x in enumerate(word)
    ]
    return pd.DataFrame(rows, columns=["model", *tables.KEY, "top1", "margin"])


def test_what_a_scan_says_about_bisected_points_by_hand():
    answers = scan_of(
        {"clean": "......xxxxx", "island": ".x....xxxxx", "inside": "....x.x.xxx", "hidden": "...x.......", "lost": "x.........."}
    )
    points = [point("clean", (1.0, 1.5), (1.25, 1.5)), point("island", (1.0, 1.5), (1.25, 1.5)), point("inside", (0.5, 1.0), (0.75, 1.0))]
    points += [point("hidden", (2.5, np.inf), (2.5, np.inf)), point("lost", (-np.inf, 0.0), (-np.inf, 0.0))]
    scan = continuous.scan_lines(answers, [("heavy snow", "bag", 1)], scales=GRID, step=0.25)
    found = continuous.verdicts(scan, pd.DataFrame(points)).set_index("model")
    assert found["turns"].to_dict() == {"clean": 1, "island": 3, "inside": 5, "hidden": 2, "lost": 1}
    assert found.loc[["clean", "island", "inside"], "first"].tolist() == [True, False, True]
    assert found["hidden"].to_dict() == {"clean": False, "island": False, "inside": False, "hidden": True, "lost": False}
    assert found.loc[["clean", "island"], "early"].tolist() == [0.0, 1.25]


def test_a_shift_of_four_seeds_has_no_band_and_one_of_five_has():
    shifts = ["heavy fog"] * 4 + ["heavy snow"] * 5
    rows = pd.DataFrame({"shift": shifts, "class": "bag", "seed": [1, 2, 3, 4, 1, 2, 3, 4, 5]})
    table = pd.DataFrame({"shift": ["heavy fog", "heavy snow", accuracy.ALL], "estimate": 0.5, "low": 0.4, "high": 0.6})
    kept = continuous.without_few(table, rows, settings=SETTINGS.bootstrap)
    assert kept["low"].isna().tolist() == kept["high"].isna().tolist() == [True, False, False] and kept["estimate"].eq(0.5).all()


def test_delays_of_a_shift_of_few_seeds_have_no_interval():
    rows = [point("a", (1.0, 1.5), (1.25, 1.28125), seed=seed) | {"shift": "heavy fog"} for seed in range(1, 5)]
    rows += [point("a", (1.0, 1.5), (1.0, 1.03125), seed=seed) for seed in range(1, 9)]
    rows += [point("b", (2.5, np.inf), (2.5, np.inf), seed=seed) | {"shift": "heavy fog"} for seed in range(5, 9)]  # not bracketed
    for table in continuous.delays(pd.DataFrame(rows).iloc[::-1], settings=SETTINGS.bootstrap).values():
        assert table["low"].isna().to_dict() == {"heavy fog": True, "heavy snow": False, accuracy.ALL: False}
        assert table["estimate"].notna().all()


def test_a_cautious_share_counts_trajectories_and_not_rows():
    rows = pd.DataFrame({"shift": "heavy snow", "class": "bag", "seed": [1, 1, 2, 2, 3, 3, 4, 4]})
    record = continuous.cautious_share(pd.Series([True] * 8), rows, settings=SETTINGS.bootstrap)  # resampling would claim certainty
    low, high = proportion_confint(4, 4, method="wilson")
    assert record == {"n": 8, "estimate": 1.0, "low": pytest.approx(low), "high": pytest.approx(high)}
    assert continuous.cautious_share(pd.Series(dtype=bool), rows[:0], settings=SETTINGS.bootstrap)["n"] == 0


def test_a_cautious_share_counts_trajectories_of_one_seed_that_say_the_same_as_one():
    """400 trajectories, of 400 seeds or of 100: the interval is Wilson's of so many cases, up to the noise of the resamples."""
    settings = dataclasses.replace(SETTINGS.bootstrap, resamples=4000)
    for seeds in (400, 100):
        number = np.arange(400) % seeds
        rows = pd.DataFrame({"shift": np.arange(400).astype(str), "class": "bag", "seed": number})
        record = continuous.cautious_share(pd.Series(number % 4 > 0), rows, settings=settings)
        low, high = proportion_confint(0.75 * seeds, seeds, method="wilson")
        assert (record["low"], record["high"]) == (pytest.approx(low, abs=0.01), pytest.approx(high, abs=0.01))


def test_the_share_of_a_uniform_grid_by_hand():
    points = pd.DataFrame([point("a", (1.0, 1.5), (1.0, 1.125)), point("a", (2.5, np.inf), (2.5, np.inf), seed=2)])
    settings = dataclasses.replace(SETTINGS, resolution=1 / 8)
    record = continuous.image_ratio(points, scales=GRID, settings=settings)
    assert record["n"] == 2 and record["estimate"] == 2 / (2 * 15)


def test_equal_orders_have_tau_one_and_clear_differences_are_told_apart():
    means = np.random.default_rng(6).normal(0, 0.01, (101, 3)) + np.array([1.0, 2.0, 2.0])
    assert continuous.tau(means, means + 1, n=5, confidence=0.95) == {"n": 5, "estimate": 1.0, "low": 1.0, "high": 1.0}
    assert continuous.told_apart(means, confidence=0.95) == (2, 3)


def test_the_showcase_is_a_tie_of_the_grid_that_bisection_sets_apart():
    cell = (1.0, 1.5)
    rows = [point("a", cell, (1.0, 1.03125)), point("b", cell, (1.25, 1.28125)), point("c", cell, (1.4375, 1.46875))]
    zero = {"a": 1.02, "b": 1.26, "c": 1.46}
    margins = [(m, "heavy snow", "bag", 1, scale, zero[m] - scale) for m in zero for scale in (*GRID, 1.25, 1.03125)]
    answers = pd.DataFrame(margins, columns=["model", *tables.KEY, "margin"])
    shown = continuous.showcase(pd.DataFrame(rows), answers, scales=GRID)
    assert shown["model"].tolist() == ["a", "c"] and shown[["left", "right"]].iloc[0].tolist() == [1.0, 1.5]
    lines = continuous.cell_lines(shown, answers, resolution=RESOLUTION)
    assert lines.query("model == 'a'").set_index("scale")["round"].to_dict() == {1.0: 0, 1.03125: 4, 1.25: 1, 1.5: 0}


@pytest.mark.parametrize(("ends", "cell"), [((-np.inf, 0.0), [0.0, 0.5]), ((2.5, np.inf), [2.0, 2.5])])
def test_without_a_bracket_the_showcase_is_a_cell_of_the_grid(ends, cell):
    shown = continuous.showcase(pd.DataFrame([point("a", ends, ends)]), pd.DataFrame(), scales=GRID)
    assert shown[["left", "right"]].iloc[0].tolist() == cell


def test_the_mean_of_one_garment_has_no_interval():
    rows = pd.DataFrame({"shift": ["heavy snow", "heavy fog"], "class": "bag", "seed": 1})
    record = bootstrap.mean(pd.Series([1.0, 2.0]), rows, settings=SETTINGS.bootstrap)
    assert record["n"] == 2 and record["estimate"] == 1.5 and np.isnan(record["low"]) and np.isnan(record["high"])


def test_the_tables_of_the_notebook_are_their_parts_by_name():
    points, found, _ = simulated(4)
    grid, fine = shares(found), shares(continuous.refined(found, points, resolution=RESOLUTION))
    delays = continuous.delays(points, settings=SETTINGS.bootstrap)
    assert delays["delay"].loc[accuracy.ALL, "estimate"] == pytest.approx(continuous.readings(points)["delay"].mean())
    means = continuous.mean_scales(grid, fine)
    assert np.allclose(means["grid minus bisected"], means["grid"] - means["bisected"]) and (means["grid"] >= means["middle"]).all()
    medians = continuous.medians(grid, fine)
    assert list(medians) == ["grid", "interpolated", "bisected"] and (medians["interpolated"] <= medians["grid"] + 1e-9).all()
    sides = {"grid": found}
    assert continuous.more_abrupt(sides, "cartoon style", "heavy snow", settings=SETTINGS.bootstrap).empty
    assert continuous.more_abrupt(sides, "heavy snow", "heavy snow", settings=SETTINGS.bootstrap)["estimate"].tolist() == pytest.approx([0])


def test_shares_of_the_scan_count_their_own_cases():
    rows = [point("a", (1.0, 1.5), (1.25, 1.28125)), point("b", (-np.inf, 0.0), (-np.inf, 0.0)), point("c", (2.5, np.inf), (2.5, np.inf))]
    traced = pd.DataFrame(rows).assign(first=[True, False, False], monotone=[False, False, True], hidden=[False, False, False])
    found = continuous.scan_shares(traced, settings=SETTINGS.bootstrap)
    assert [(record["n"], record["estimate"]) for record in found.values()] == [(1, 1.0), (2, 0.5), (1, 0.0)]


def test_guesses_are_told_by_their_mean_errors():
    points = pd.DataFrame([point("a", (1.0, 1.5), (1.25, 1.28125))])
    margins = pd.DataFrame({"model": "a", "shift": "heavy snow", "class": "bag", "seed": 1, "scale": [1.0, 1.5], "margin": [1.0, -1.0]})
    found = continuous.guess_errors(points, margins, settings=SETTINGS.bootstrap)
    assert [record["estimate"] for record in found.values()] == pytest.approx([0.015625, 0.015625, 0])  # both guess 1.25
