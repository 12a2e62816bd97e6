from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import xarray as xr
from statsmodels.duration.survfunc import SurvfuncRight
from statsmodels.stats.multitest import multipletests
from tiny_answers import SCALES, SETTINGS, errors, estimates, predictions, random_predictions
from tiny_benchmark import benchmark

from cnslib.stats import accuracy, failure
from cnslib.stats.accuracy import wrong_predictions


def failures(table: pd.DataFrame) -> xr.DataArray:
    return accuracy.by_shift(failure.first_failures(wrong_predictions(table)), SETTINGS)


def points_of(table: pd.DataFrame) -> pd.DataFrame:
    return failure.failure_points(wrong_predictions(table))


def test_the_survival_curve_is_the_product_limit_estimate_of_statsmodels():
    table = random_predictions(5, shifts=("heavy snow",), trajectories=60)
    found = failure.curves(failures(table))
    for model, part in points_of(table).groupby("model"):
        time = part["failure_point"].fillna(SCALES[-1]) + 1  # statsmodels wants times above zero
        limit = SurvfuncRight(time.to_numpy(), part["failed"].to_numpy().astype(int))
        ours = dict(zip(SCALES, estimates(found, shift="heavy snow", model=model), strict=True))
        assert [ours[t - 1] for t in limit.surv_times] == pytest.approx(limit.surv_prob)


def test_exactly_half_of_the_garments_is_half_of_them():
    words = {"alexnet": [".xx", ".x.", "..x", "..."], "resnet": ["..x", "..x", "...", "..."]}
    table = failure.median_scale(failures(predictions(words))).set_index(["shift", "model"])["estimate"]
    assert table[accuracy.ALL].to_dict() == {"alexnet": 0.5, "resnet": 1.0}


def test_a_wrong_answer_below_scale_0_moves_no_failure_point_and_no_sum_of_drops_but_the_curve_shows_it():
    sides = predictions({"alexnet": ["x..x", "x.xx", ".x.."], "resnet": ["xx..", "....", "x..x"]}, scales=[-0.5, *SCALES])
    above = predictions({"alexnet": ["..x", ".xx", "x.."], "resnet": ["x..", "...", "..x"]})
    points = points_of(sides)
    pd.testing.assert_frame_equal(points, points_of(above))
    assert points["failure_point"].loc[[0, 1, 2, 5]].tolist() == [1.0, 0.5, 0.0, 1.0]
    pd.testing.assert_frame_equal(*(accuracy.interval(accuracy.drop(errors(table))) for table in (sides, above)))
    both = accuracy.by_shift(wrong_predictions(sides, below=True), SETTINGS)
    curve = accuracy.interval(1 - both).query("shift == 'heavy snow' and model == 'alexnet'").set_index("scale")["estimate"]
    assert curve.to_dict() == pytest.approx({-0.5: 1 / 3, 0.0: 2 / 3, 0.5: 2 / 3, 1.0: 1 / 3})


def textbook(table: pd.DataFrame, first: str, second: str) -> float:
    """Observed less expected failures of the first model, shift by shift and scale by scale."""
    points, excess = points_of(table), 0.0
    points["time"] = points["failure_point"].fillna(np.inf)
    for _, part in points[points["model"].isin([first, second])].groupby("shift"):
        own = part["model"] == first
        for scale in SCALES:
            failed, alive = part["time"] == scale, part["time"] >= scale
            excess += (failed & own).sum() - failed.sum() * (alive & own).sum() / max(alive.sum(), 1)
    return excess


def test_a_median_leaves_out_the_resamples_without_a_trajectory():
    """One trajectory of one shift, of six seeds: a resample without its seed knows nothing of it, and does not say never."""
    both = predictions({"alexnet": ["..x"] * 6}), predictions({"alexnet": ["..x"]}, "heavy fog")
    found = failures(pd.concat(both))
    found[5:, 0], found[1, 0] = np.nan, [[0, 1, 0, 0]]
    row = failure.median_scale(found).set_index("shift").loc["heavy fog"]
    assert (row["estimate"], row["low"], row["high"]) == (1.0, 0.5, 1.0)


def test_units_that_are_all_alike_do_not_tell_models_apart():
    """Two seeds in which one model fails and the other does not: their parts are equal, which says nothing of how they scatter."""
    row = failure.log_rank(wrong_predictions(predictions({"alexnet": [".xx"] * 2, "resnet": ["..."] * 2})), settings=SETTINGS).iloc[0]
    assert (row["n"], row["excess"]) == (2, 1) and np.isnan(row["p"]) and np.isnan(row["p_holm"])
    single = failure.log_rank(wrong_predictions(predictions({"alexnet": [".xx"], "resnet": ["xxx"]})), settings=SETTINGS)
    assert single["excess"].tolist() == [-0.5] and single["p"].isna().all()


def test_the_excess_of_the_log_rank_test_is_observed_less_expected_failures():
    vit = random_predictions(8).query("model == 'resnet'").assign(model="vit")
    table = pd.concat([random_predictions(7), vit])
    tests = failure.log_rank(wrong_predictions(table), settings=SETTINGS)
    assert tests[["first", "second"]].to_numpy().tolist() == [["alexnet", "resnet"], ["alexnet", "vit"], ["resnet", "vit"]]
    assert tests["excess"].tolist() == pytest.approx([textbook(table, row.first, row.second) for row in tests.itertuples()])
    assert tests["p_holm"].tolist() == pytest.approx(multipletests(tests["p"], method="holm")[1].tolist())


def test_with_a_unit_per_trajectory_and_unpaired_models_the_log_rank_test_is_nearly_that_of_scipy():
    """Two models that saw different garments: each unit holds one trajectory of each, drawn apart."""
    table = random_predictions(3, shifts=("heavy snow",), trajectories=400)
    points = points_of(table)
    times = {
        model: scipy.stats.CensoredData.right_censored(part["failure_point"].fillna(SCALES[-1]), ~part["failed"])
        for model, part in points.groupby("model")
    }
    row = failure.log_rank(wrong_predictions(table), settings=SETTINGS).iloc[0]
    assert row["p"] == pytest.approx(scipy.stats.logrank(times["alexnet"], times["resnet"]).pvalue, abs=0.05)
    words = {"alexnet": [*"xxxxx...x."], "resnet": [*"x.x......."]}  # at one scale it is the paired t test
    row = failure.log_rank(wrong_predictions(predictions(words, scales=[0.0])), settings=SETTINGS).iloc[0]
    assert row["p"] == pytest.approx(scipy.stats.ttest_rel(*([(word == "x") * 1.0 for word in own] for own in words.values())).pvalue)


def test_equal_models_are_told_apart_in_no_more_than_one_of_twenty_worlds():
    wrong = 0
    for world in range(60):
        rng = np.random.default_rng([25, world])
        found = benchmark(rng, models=8, seeds=30, start=np.full(8, -1.0), steep=np.ones((14, 8)))
        wrong += failure.log_rank(found, settings=SETTINGS)["p_holm"].min() < 0.05
    assert wrong <= scipy.stats.binom.ppf(0.999, 60, 0.05)


def test_the_median_scale_is_that_of_statsmodels_survival_curve():
    table = random_predictions(11, trajectories=80).query("model == 'resnet'")
    found = failure.median_scale(failures(table)).set_index("shift")["estimate"]
    for shift, part in points_of(table).groupby("shift"):
        limit = SurvfuncRight(part["failure_point"].fillna(SCALES[-1]) + 1, part["failed"].astype(int))
        assert found[shift] == limit.quantile(0.5) - 1


def more_abrupt(table: pd.DataFrame, first: str, second: str) -> dict:
    return failure.more_abrupt(wrong_predictions(table), first, second, settings=SETTINGS)


def test_the_spread_is_the_standard_deviation_of_the_failure_points_and_one_failure_has_none():
    counts = np.array([[4, 0], [2, 2], [1, 1], [0, 1]])
    expected = [0.0, np.std([0.5, 0.5, 1.0, 1.0], ddof=1), np.std([0.5, 1.0], ddof=1), np.nan]
    assert failure.deviation(counts, SCALES[1:]).tolist() == pytest.approx(expected, nan_ok=True)


def test_a_step_under_one_shift_is_more_abrupt_than_spread_failures_under_another():
    step, even = predictions({"alexnet": [".xx"] * 6}), predictions({"alexnet": [".xx", "..x"] * 3}, "heavy fog")
    found = more_abrupt(pd.concat([step, even]), "heavy snow", "heavy fog")
    assert found["n"] == 12 and found["estimate"] == pytest.approx(np.std([0.5, 1.0] * 3, ddof=1))
    assert found["low"] <= found["estimate"] <= found["high"]
    turned = more_abrupt(pd.concat([step, even]), "heavy fog", "heavy snow")
    assert turned["estimate"] == -found["estimate"] and turned["low"] == pytest.approx(-found["high"])


def jackknife(points: list[float], statistic: Callable[[list[float]], float]) -> tuple[float, float]:
    """The textbook's interval of a statistic of points that are a unit each."""
    others = np.array([statistic(points[:i] + points[i + 1 :]) for i in range(len(points))])
    half = scipy.stats.t.ppf(0.975, len(points) - 1) * np.sqrt((len(points) - 1) * others.var())
    return statistic(points) - half, statistic(points) + half


def test_the_interval_of_a_difference_of_spreads_is_the_jackknifes_of_the_difference():
    points = [0.5] * 4 + [1.0] * 2
    step, even = predictions({"alexnet": [".xx"] * 6}), predictions({"alexnet": [".xx"] * 4 + ["..x"] * 2}, "heavy fog")
    found = more_abrupt(pd.concat([step, even]), "heavy snow", "heavy fog")
    assert (found["low"], found["high"]) == pytest.approx(jackknife(points, lambda own: np.std(own, ddof=1)))
    four = predictions({"alexnet": [".xx", "..x"] * 2}), predictions({"alexnet": [".xx", "..x"] * 2}, "heavy fog")
    assert np.isnan(more_abrupt(pd.concat(four), "heavy snow", "heavy fog")["low"])


def divided(*words: str) -> int:
    rows = {model: [word.split()[place] for word in words] for place, model in enumerate(("alexnet", "resnet", "vit"))}
    return failure.most_divided(wrong_predictions(predictions(rows)))["seed"].item()


@pytest.mark.parametrize(
    ("words", "seed"),
    [
        (("x.. ..x ...", "..x ..x ..x", ".xx ..x ...", ".xx .xx ..."), 4),  # places 1, 1 and 3 spread more than 1, 2 and 3
        (("xxx xxx ...", "x.. ..x ..."), 2),  # where every trajectory is misclassified at scale 0, the least misclassified one
        ((".x. ... ...", ".xx ... ..."), 1),  # the first of equals
    ],
)
def test_the_most_divided_trajectory_is_right_at_scale_0_and_spreads_most(words, seed):
    assert divided(*words) == seed


def test_on_fewer_scales_a_first_failure_counts_at_the_next_of_them():
    words = {"alexnet": ["..x"] * 4, "resnet": ["..x", ".xx", "x..", "..."]}  # its first failures at scales 1.0, 0.5, 0.0 and never
    found = failure.coarser(failures(predictions(words)), [0.0, SCALES[-1]])
    assert found["scale"].to_numpy().tolist() == [0.0, SCALES[-1], accuracy.NEVER]
    assert found[0, 0, 1].to_numpy().tolist() == [0.25, 0.5, 0.25]
