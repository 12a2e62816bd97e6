"""Resamples, intervals and verdicts: scipy, numpy and statsmodels on the same numbers."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import statsmodels.api as sm
from tiny_answers import SETTINGS, random_predictions, shares

from cnslib.core.settings.method import Bootstrap
from cnslib.stats import accuracy, bootstrap


def test_a_clustered_share_is_the_accuracy_of_the_same_clusters():
    table = random_predictions(9)
    ours = accuracy.accuracy(shares(table)).query("shift == @accuracy.ALL and model == 'resnet' and scale == 1").iloc[0]
    own = table.query("model == 'resnet' and scale == 1")
    share = bootstrap.clustered_share(own.eval("top1 == `class`").to_numpy(), own["seed"].to_numpy(), settings=SETTINGS)
    assert share == pytest.approx({key: ours[key] for key in ("n", "estimate", "low", "high")})


def test_independent_shares_have_scipys_wilson_interval():
    share = bootstrap.independent_share(np.arange(40) < 7, confidence=0.9)
    interval = scipy.stats.binomtest(7, 40).proportion_ci(0.9, "wilson")
    assert (share["n"], share["estimate"]) == (40, 7 / 40)
    assert (share["low"], share["high"]) == pytest.approx((interval.low, interval.high))


def test_bounds_are_the_order_statistics_of_numpy_without_the_missing_resamples():
    rng = np.random.default_rng(4)
    resamples = rng.normal(size=(1000, 3, 40)).round(2)
    resamples[rng.random(resamples.shape) < 0.1] = np.nan
    for confidence in (0.9, 0.95, 0.6827):
        tail = (1 - confidence) / 2
        expected = np.nanquantile(resamples, [tail, 1 - tail], axis=0, method="inverted_cdf")
        assert np.array_equal(bootstrap.percentiles(resamples, confidence), expected)
    assert np.isnan(bootstrap.percentiles(np.full((9, 2), np.nan), 0.95)).all()


def test_the_width_of_a_clustered_share_is_that_of_regression_with_cluster_robust_errors():
    rng = np.random.default_rng(6)
    clusters = np.repeat(np.arange(400), rng.integers(1, 9, 400))
    hits = rng.random(len(clusters)) < rng.beta(0.8, 0.4, 400)[clusters]
    share = bootstrap.clustered_share(hits, clusters, settings=Bootstrap(resamples=10_000, confidence=0.95, seed=3))
    regression = sm.OLS(hits.astype(float), np.ones(len(hits))).fit(cov_type="cluster", cov_kwds={"groups": clusters})
    assert share["estimate"] == pytest.approx(regression.params[0])
    assert (share["high"] - share["low"]) / (2 * scipy.stats.norm.ppf(0.975)) == pytest.approx(regression.bse[0], rel=0.05)


def test_an_independent_mean_has_scipys_t_interval_and_a_single_value_none():
    values = np.array([1.0, 4.0, 2.0, 8.0])
    found = bootstrap.independent_mean(values, confidence=0.9)
    low, high = scipy.stats.t.interval(0.9, 3, loc=values.mean(), scale=scipy.stats.sem(values))
    assert (found["low"], found["high"]) == pytest.approx((low, high)) and (found["n"], found["estimate"]) == (4, 3.75)
    assert np.isnan(bootstrap.independent_mean(values[:1], confidence=0.9)["low"])


def test_resamples_repeat_each_cluster_as_often_as_it_was_drawn():
    weights = bootstrap.resampling_weights(7, settings=SETTINGS)
    assert (weights[0] == 1).all() and (weights.sum(1) == 7).all() and len(weights) == SETTINGS.resamples + 1
    assert np.array_equal(weights, bootstrap.resampling_weights(7, settings=SETTINGS))


def test_rows_without_a_value_do_not_count_and_one_cluster_has_no_interval():
    rows = pd.DataFrame({"class": ["bag", "bag", "coat"], "seed": [1, 1, 2]})
    found = bootstrap.mean(pd.Series([1.0, np.nan, 3.0]), rows, settings=SETTINGS)
    assert (found["n"], found["estimate"], found["low"], found["high"]) == (2, 2.0, 1.0, 3.0)
    alone = bootstrap.mean(pd.Series([1.0, 2.0, np.nan]), rows, settings=SETTINGS)
    assert (alone["n"], alone["estimate"]) == (2, 1.5) and np.isnan([alone["low"], alone["high"]]).all()
    assert bootstrap.mean(pd.Series([np.nan] * 3), rows, settings=SETTINGS)["n"] == 0
