"""Rankings on paired resamples: counts by hand, scipy's Kendall tau, an exact McNemar test."""

import numpy as np
import pytest
import scipy.stats
import statsmodels.api as sm
from test_stats import HAND, SCALES, estimates, predictions, random_predictions, shares

from cnslib.core.settings.method import Bootstrap
from cnslib.stats import accuracy, ranking

MANY = Bootstrap(resamples=8000, confidence=0.95, seed=1)


def test_ranks_of_three_trajectories_by_hand():
    table = ranking.ranks(shares(predictions(HAND)))
    assert estimates(table, shift=accuracy.ALL, model="resnet") == [1.5, 1.0, 1.0]
    assert estimates(table, shift=accuracy.ALL, model="alexnet") == [1.5, 2.0, 2.0]


def test_a_certain_flip_has_probability_one_and_a_tie_counts_one_half():
    words = {"alexnet": ["..x"] * 10, "resnet": [".x."] * 10}
    found = ranking.flips(shares(predictions(words))).set_index(["scale", "other_scale"])
    assert found.loc[(0.5, 1.0), "flipped"] and found.loc[(0.5, 1.0), "probability"] == 1
    assert found.loc[(0.0, 0.5), "probability"] == 0.5


def test_paired_p_values_are_near_an_exact_mcnemar_test():
    table = random_predictions(3, shifts=("heavy snow",), trajectories=200)
    p = ranking.pairs(shares(table)).set_index("scale")["p"]
    wide = table.assign(wrong=table["top1"] != table["class"]).pivot(index=["seed", "scale"], columns="model", values="wrong")
    for scale, part in wide.groupby("scale"):
        only_first = int((part["alexnet"] & ~part["resnet"]).sum())
        only_second = int((~part["alexnet"] & part["resnet"]).sum())
        assert p[scale] == pytest.approx(scipy.stats.binomtest(only_first, only_first + only_second).pvalue, abs=0.12)


def test_the_paired_difference_has_the_width_of_regression_with_cluster_robust_errors():
    table = random_predictions(4, trajectories=300).query("shift == 'heavy snow' or seed > 100")
    row = ranking.pairs(shares(table, MANY)).set_index("scale").loc[1.0]
    wide = (
        table.query("scale == 1")
        .assign(right=lambda t: (t["top1"] == t["class"]) * 1.0)
        .pivot(index=["shift", "seed"], columns="model", values="right")
    )
    gain = wide["alexnet"] - wide["resnet"]
    regression = sm.OLS(gain, np.ones(len(gain))).fit(cov_type="cluster", cov_kwds={"groups": gain.index.get_level_values("seed")})
    assert (row["n"], row["estimate"]) == (len(gain), pytest.approx(regression.params.iloc[0]))
    assert (row["high"] - row["low"]) / (2 * scipy.stats.norm.ppf(0.975)) == pytest.approx(regression.bse.iloc[0], rel=0.05)
    assert scipy.stats.norm.isf(row["p"] / 2) == pytest.approx(abs(regression.tvalues.iloc[0]), rel=0.05)


def test_two_of_very_many_classifiers_are_told_apart():
    words = {f"model {i:02d}": ["..."] * 30 + ["x.."] * (10 + i % 2) + ["..."] * (1 - i % 2) for i in range(23)}
    words["last"] = ["..."] * 6 + ["xxx"] * 35
    told = ranking.pairs(shares(predictions(words))).query("p_holm < 0.05")
    assert set(told["first"]) == {"last"} and set(told["second"]) == set(words) - {"last"}


def test_alike_in_all_is_certainly_no_difference_and_unlike_in_all_certainly_one():
    words = {"alexnet": ["..."] * 10, "resnet": ["..x"] * 10}
    assert ranking.pairs(shares(predictions(words)))["p"].tolist() == [1, 1, 0]


def test_agreement_is_the_kendall_tau_of_scipy():
    rng = np.random.default_rng(2)
    words = {f"model {i}": ["".join(".x"[int(v)] for v in row) for row in rng.random((50, 3)) < rng.random(3)] for i in range(5)}
    errors = shares(predictions(words))
    accuracies = accuracy.accuracy(errors).query("shift == @accuracy.ALL").pivot(index="model", columns="scale", values="estimate")
    expected = [scipy.stats.kendalltau(accuracies[0.0], accuracies[scale]).statistic for scale in SCALES]
    assert estimates(ranking.agreement(errors), shift=accuracy.ALL) == pytest.approx(expected)


def test_one_sigma_intervals_that_overlap_are_a_tie():
    words = {"alexnet": [".x."] * 5 + ["..x"] * 5, "resnet": ["..."] * 10}
    tied = ranking.overlap(shares(predictions(words)))["tied"].tolist()
    assert tied == [True, False, False]  # 10 against 10, then 5 against 10 right of 10
