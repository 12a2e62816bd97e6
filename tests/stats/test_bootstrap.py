import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import statsmodels.api as sm
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint
from tiny_answers import SETTINGS
from tiny_settings import resampled

from cnslib.core.settings.method import OBJECTS, OTHER, SAME
from cnslib.stats import bootstrap
from cnslib.studies.directions import measures
from cnslib.studies.scenarios import segmentation


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
    endless = np.array([[-np.inf, -1.0], [0.0, 0.0], [1.0, np.inf]])
    assert np.array_equal(bootstrap.percentiles(endless, 0.95), [[np.nan, -1], [1, np.nan]], equal_nan=True)


def test_the_width_of_a_clustered_share_is_that_of_regression_with_cluster_robust_errors():
    rng = np.random.default_rng(6)
    clusters = np.repeat(np.arange(400), rng.integers(1, 9, 400))
    hits = rng.random(len(clusters)) < rng.beta(0.8, 0.4, 400)[clusters]
    rows = pd.DataFrame({"class": "bag", "seed": clusters})
    share = bootstrap.rate(hits, rows, settings=resampled(10_000, seed=3))
    regression = sm.OLS(hits.astype(float), np.ones(len(hits))).fit(cov_type="cluster", cov_kwds={"groups": clusters})
    assert share["estimate"] == pytest.approx(regression.params[0])
    assert (share["high"] - share["low"]) / (2 * scipy.stats.norm.ppf(0.975)) == pytest.approx(regression.bse[0], rel=0.05)


def test_an_independent_mean_has_scipys_t_interval_and_a_single_value_none():
    values = np.array([1.0, 4.0, 2.0, 8.0])
    found = bootstrap.independent_mean(values, confidence=0.9)
    low, high = scipy.stats.t.interval(0.9, 3, loc=values.mean(), scale=scipy.stats.sem(values))
    assert (found["low"], found["high"]) == pytest.approx((low, high)) and (found["n"], found["estimate"]) == (4, 3.75)
    assert np.isnan(bootstrap.independent_mean(values[:1], confidence=0.9)["low"])


def crossed(classes: int = 3, seeds: int = 5) -> pd.DataFrame:
    rows = itertools.product(["fog", "snow"], [f"class {i}" for i in range(classes)], range(seeds))
    return pd.DataFrame(rows, columns=["shift", "class", "seed"])


def test_the_same_classes_are_drawn_with_all_classes_of_a_seed_together():
    rows = crossed()
    weights, units = bootstrap.resampling_weights(rows, settings=SETTINGS)
    assert (weights[0] == 1).all() and weights.shape == (SETTINGS.resamples + 1, 5) and (weights >= 0).all()
    assert weights.sum(1) == pytest.approx(np.full(len(weights), 5), abs=1e-4)
    assert np.array_equal(units, rows["seed"]) and weights[1:].std(0).min() > 0.5
    assert np.array_equal(weights, bootstrap.resampling_weights(rows, settings=SETTINGS)[0])


HAND = pd.DataFrame({"class": ["bag", "bag", "coat", "coat", "coat"], "seed": [1, 2, 2, 3, 3], "shift": ["fog"] * 4 + ["snow"]})


@pytest.mark.parametrize(
    ("target", "units", "strata"),
    [
        (SAME, [0, 1, 1, 2, 2], [0] * 5),  # crossed: seed 2 is one unit with both of its classes
        (OBJECTS, [0, 1, 2, 3, 3], [0, 0, 1, 1, 1]),  # nested: the second bag and the second coat are two units
        (OTHER, [0, 0, 1, 1, 1], [0] * 5),
    ],
)
def test_the_target_and_not_the_numbers_of_the_seeds_says_what_is_drawn_together(target, units, strata):
    assert [found.tolist() for found in bootstrap.units_of(HAND, target)] == [units, strata]
    elsewhere = HAND.assign(seed=[7, 9, 1, 8, 8])  # no number in two classes: crossed seeds stay crossed, nested ones nested
    assert bootstrap.units_of(elsewhere, target)[1].tolist() == strata


def test_classes_with_a_single_object_are_drawn_together_and_the_others_apart():
    rows = pd.DataFrame({"class": ["ant", "bee", "cow", "cow", "dog"], "seed": [1, 1, 1, 2, 1]})
    units, strata = bootstrap.units_of(rows, OBJECTS)
    assert units.tolist() == [0, 1, 2, 3, 4] and strata.tolist() == [0, 0, 1, 1, 0]
    assert bootstrap.units_of(rows.iloc[:2], OBJECTS)[1].tolist() == [0, 0]


def test_means_over_objects_have_the_width_of_the_stratified_formula():
    rng = np.random.default_rng(8)
    rows = pd.DataFrame({"class": np.repeat([f"class {i}" for i in range(10)], 24), "seed": np.tile(range(24), 10)})
    values = pd.Series(rng.normal(size=240)) + 5 * rows["class"].str[-1].astype(int)
    found = bootstrap.mean(values, rows, settings=resampled(10_000, OBJECTS, seed=2))
    deviation = np.sqrt(values.groupby(rows["class"]).var().sum() / 24) / 10
    assert found["high"] - found["low"] == pytest.approx(2 * scipy.stats.t.ppf(0.975, 230) * deviation, rel=0.06)


def test_a_share_of_few_units_stays_a_share():
    rows = pd.DataFrame({"class": "bag", "seed": [1, 1, 2, 2]})
    hits = np.array([1, 0, 1, 1], bool)
    found = bootstrap.rate(hits, rows, settings=SETTINGS)
    assert (found["estimate"], found["low"], found["high"]) == (0.75, 0.0, 1.0)


def test_objects_of_a_class_each_do_not_count_as_more_units_than_they_are_free():
    """Two of each of three classes are six units and three free ones: the t interval of six, on the wide side."""
    rows = pd.DataFrame({"class": list("aabbcc"), "seed": [1, 2] * 3})
    values = pd.Series([1.0, 2.0, 4.0, 4.5, 7.0, 9.0])
    found = bootstrap.mean(values, rows, settings=SETTINGS.of(OBJECTS))
    assert found == pytest.approx(bootstrap.independent_mean(values.to_numpy(), confidence=0.95))


def test_the_jackknife_leaves_out_units_that_are_not_known_and_says_nothing_of_a_single_one():
    """The mean of 1, 2 and 6 without each is 4, 3.5 and 1.5; its t interval is the jackknife's. The fourth unit is none."""
    values = np.array([[3.0, 3.0], [4.0, np.nan], [3.5, np.nan], [1.5, 2.0], [np.nan, np.nan]])
    low, high = bootstrap.jackknifed(values, 0.95)
    expected = bootstrap.independent_mean(np.array([1.0, 2.0, 6.0]), confidence=0.95)
    assert (low[0], high[0]) == pytest.approx((expected["low"], expected["high"])) and np.isnan([low[1], high[1]]).all()


def test_weights_are_exact_in_binary_so_that_equal_counts_are_equal():
    weights, _ = bootstrap.resampling_weights(crossed(), settings=SETTINGS)
    assert (weights * 2**20 == np.rint(weights * 2**20)).all()


def test_rows_without_a_value_do_not_count_and_one_unit_has_no_interval():
    rows = pd.DataFrame({"class": ["bag", "bag", "coat"], "seed": [1, 1, 2]})
    found = bootstrap.mean(pd.Series([1.0, np.nan, 3.0]), rows.assign(**{"class": "bag"}), settings=SETTINGS)
    assert (found["n"], found["estimate"]) == (2, 2.0) and found["low"] < 2 < found["high"]
    alone = bootstrap.mean(pd.Series([1.0, 2.0, np.nan]), rows, settings=SETTINGS)
    assert (alone["n"], alone["estimate"]) == (2, 1.5) and np.isnan([alone["low"], alone["high"]]).all()
    assert bootstrap.mean(pd.Series([np.nan] * 3), rows, settings=SETTINGS)["n"] == 0
    assert bootstrap.resampling_weights(rows[:0], settings=SETTINGS)[1].size == 0


def test_a_reflected_interval_turns_the_percentiles_round_at_the_sample_and_stays_in_its_range():
    samples = np.r_[0.5, np.linspace(0.2, 0.6, 41)]  # percentiles of 95 %: 0.21 and 0.59
    found = bootstrap.record(samples, 9, 0.95, within=(-1.0, 1.0))
    assert (found["low"], found["high"]) == pytest.approx((1 - 0.59, 1 - 0.21), abs=0.011)
    assert bootstrap.record(samples, 9, 0.95, within=(0.0, 0.7))["high"] == 0.7
    below = bootstrap.record(np.r_[0.9, samples[1:]], 9, 0.95, within=(0.0, 1.0))
    assert (below["low"], below["high"]) == (0.9, 1.0)  # every resample lies below: the sample itself is the bound


def test_a_difference_of_a_single_unit_tells_no_side():
    """One seed of eight differs, in every resample to the same side; with six of them a sign test tells the side."""
    rows = pd.DataFrame({"class": "bag", "seed": range(8)})
    settings = resampled(200)
    one, six = (pd.Series([-0.1] * count + [0.0] * (8 - count)) for count in (1, 6))
    assert bootstrap.mean(one, rows, settings=settings)["high"] < 0 == measures.difference(one, rows, settings=settings)["high"]
    assert measures.difference(-one, rows, settings=settings)["low"] == 0
    assert measures.difference(six, rows, settings=settings) == bootstrap.mean(six, rows, settings=settings)
    both = pd.Series([-0.1, 0.1, *[0.0] * 6])
    assert measures.difference(both, rows, settings=settings) == bootstrap.mean(both, rows, settings=settings)
    assert measures.difference(one * np.nan, rows, settings=settings)["n"] == 0


def test_how_many_units_differ_to_which_side_is_counted_in_each_column():
    """Of eight units differ, column by column: none, one, five and six to one side, one to the other side as well, and all eight."""
    sums = np.zeros((8, 6))
    sums[0, 1] = sums[:5, 2] = sums[:6, 3] = sums[:2, 4] = sums[:, 5] = -1.0
    sums[1, 4], sums[7, :] = 1.0, sums[7, :] + 1e-15  # what rounding leaves is no difference
    three = np.where(np.arange(8) < 3, -1.0, np.nan)
    assert not bootstrap.too_few(three, 0.95) and bootstrap.too_few(np.r_[three, 0.0], 0.95)  # all of three differ, and three of four
    assert bootstrap.too_few(sums, 0.95).tolist() == [True, True, True, False, False, False]
    assert bootstrap.too_few(sums, 0.9375).tolist() == [True, True, False, False, False, False]


def test_a_rate_of_cases_that_are_all_alike_has_wilsons_interval():
    rows = pd.DataFrame({"class": "bag", "seed": [1, 1, 2, 2, 3, 3]})
    settings = resampled(200)
    none = bootstrap.rate(pd.Series(np.zeros(6)), rows, settings=settings)
    assert none == bootstrap.counted(0, 3, confidence=0.95) | {"n": 6}
    assert (none["low"], none["high"]) == pytest.approx(proportion_confint(0, 3, method="wilson"))
    assert bootstrap.rate(pd.Series([np.nan] * 6), rows, settings=settings)["n"] == bootstrap.counted(0, 0, confidence=0.95)["n"] == 0
    table = rows.assign(one=1.0)
    assert bootstrap.means(table, ["one"], ["class"], settings=settings, statistic=bootstrap.rate)["low"].iloc[0] < 1


def test_a_joined_interval_reaches_as_far_as_the_plain_and_the_mirrored_one():
    samples = np.r_[0.5, np.linspace(0.0, 0.6, 200)]
    plain, mirrored = (bootstrap.record(samples, 9, 0.95, within=within) for within in (None, bootstrap.CORRELATION))
    found = bootstrap.joined(samples, 9, 0.95, within=bootstrap.CORRELATION)
    assert plain["low"] < mirrored["low"] and plain["high"] < mirrored["high"]
    assert (found["low"], found["high"]) == (plain["low"], mirrored["high"])


def test_a_rank_correlation_of_independent_cases_has_fishers_interval_by_hand():
    """Two swaps in five: rho = 1 - 6 * 4 / 120 = 0.8; 1.960 * sqrt((1 + 0.32) / 2) = 1.5923 around atanh(0.8) = 1.0986."""
    found = bootstrap.independent_rank_correlation(np.arange(5.0), np.array([1.0, 0, 3, 2, 4]), confidence=0.95)
    assert found["n"] == 5 and found["estimate"] == pytest.approx(0.8)
    assert (found["low"], found["high"]) == pytest.approx((np.tanh(1.0986 - 1.5923), np.tanh(1.0986 + 1.5923)), abs=1e-4)
    few = bootstrap.independent_rank_correlation(np.arange(3.0), np.array([1.0, 0, 2]), confidence=0.95)
    assert list(few) == ["n", "estimate", "low", "high"] and few["n"] == 3 and np.isnan([few["low"], few["high"]]).all()


def both(luck: float, spread: float) -> list[np.ndarray]:
    """Three trainings of a network 2 above another's, each of whose means has the variance luck^2; two resamples off by the spread."""
    runs, change = np.array([-1.0, 0.0, 1.0]) * luck * 3**0.5, np.array([[0.0], [1.0], [-1.0]]) * spread
    return [2 + runs + change, np.tile(runs, (3, 1))]


def test_degrees_of_freedom_are_units_less_strata():
    rows = pd.DataFrame({"class": list("aaabbbcccc"), "seed": [0, 1, 2, 0, 1, 2, 0, 1, 2, 3]})
    found = {target: segmentation.freedom_of(rows, settings=resampled(9, target)) for target in (SAME, OBJECTS, OTHER)}
    assert found == {SAME: 4 - 1, OBJECTS: 10 - 3, OTHER: 3 - 1}


def test_without_luck_of_trainings_a_difference_has_the_t_interval_of_its_units():
    record = segmentation.over_trainings(*both(0.0, 0.5 * bootstrap.widening(10, 0.9)), 11, 10, 0.9)
    half = scipy.stats.t.ppf(0.95, 10) * 0.5
    assert record == pytest.approx({"n": 11, "estimate": 2.0, "low": 2 - half, "high": 2 + half})


def test_without_a_spread_of_units_a_difference_has_welchs_interval():
    rng = np.random.default_rng(6)
    first, second = rng.normal(1, 0.2, 4), rng.normal(0, 0.7, 3)
    record = segmentation.over_trainings(np.tile(first, (5, 1)), np.tile(second, (5, 1)), 9, 8, 0.95)
    expected = scipy.stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    assert (record["low"], record["high"]) == pytest.approx((expected.low, expected.high))


def test_of_fewer_units_than_resampling_needs_a_difference_of_networks_has_no_interval():
    """With 3 units of one network's kind it held the truth 88 times in 100, with 2 units 65 times."""
    record = segmentation.over_trainings(*both(1.0, 1.0), 4, 3, 0.95)
    assert record["estimate"] == 2 and np.isnan([record["low"], record["high"]]).all()


def test_a_class_with_a_single_object_joins_the_smallest_other_one_and_then_varies():
    """One hit of class a against ten misses of class b: alone, a would count 1 of 11 in every resample."""
    rows = pd.DataFrame({"class": ["a", *"b" * 10, *"c" * 12], "seed": range(23)})
    _, strata = bootstrap.units_of(rows, OBJECTS)
    assert len(set(strata[:11])) == 1 and len(set(strata)) == 2
    found = bootstrap.rate(pd.Series([1.0] + [0.0] * 10), rows[:11], settings=SETTINGS.of(OBJECTS))
    assert found["estimate"] == pytest.approx(1 / 11) and found["low"] < 0.05 and found["high"] > 0.15


def test_holms_correction_is_statsmodels_and_leaves_out_what_is_no_number():
    rng = np.random.default_rng(3)
    for count in (1, 2, 7, 60):
        p = pd.Series(rng.uniform(size=count).round(2) ** 3)  # some are equal
        assert bootstrap.holm(p).tolist() == multipletests(p, method="holm")[1].tolist()
    assert bootstrap.holm(pd.Series([0.04, np.nan, 0.01, 0.03])) == pytest.approx([0.06, np.nan, 0.03, 0.06], nan_ok=True)
    assert np.isnan(bootstrap.holm(pd.Series([np.nan, np.nan]))).all() and bootstrap.holm(pd.Series([], dtype=float)).tolist() == []


@pytest.mark.parametrize("units", [2, 4])
def test_a_mean_of_fewer_units_than_resampling_needs_has_the_t_interval_itself(units):
    values = np.random.default_rng(units).normal(size=units)
    rows = pd.DataFrame({"class": "bag", "seed": range(units)})
    assert bootstrap.mean(pd.Series(values), rows, settings=SETTINGS) == pytest.approx(bootstrap.independent_mean(values, confidence=0.95))


def test_a_band_covers_the_largest_of_several_values_where_its_own_resamples_do_not():
    """Twenty values whose truth is 0: the largest of the sample is above 0, and so are nearly all of its resamples."""
    rng, place = np.random.default_rng(1), int(np.ceil(0.95 * 200)) - 1
    covered, naive = [], []
    for _ in range(200):
        sample = rng.normal(size=(50, 20))
        weights = rng.multinomial(50, np.full(50, 1 / 50), 200) / 50
        values = np.vstack([sample.mean(0), weights @ sample])[:, :, None, None]
        lows, highs = bootstrap.band(values)
        covered.append(lows[place] <= 0 <= highs[place])
        naive.append(np.quantile(bootstrap.combine(values[1:]), 0.025) <= 0)
    assert np.mean(covered) >= 0.93 and np.mean(naive) < 0.5


def test_a_sample_without_a_number_has_no_bounds_and_a_single_resample_with_one_is_enough():
    unknown, known = np.full((4, 1, 1, 2), 0.5), np.full((4, 1, 1, 2), np.nan)
    unknown[0, 0, 0, 1], known[:2] = np.nan, 0.5
    assert np.isnan(bootstrap.joint_bounds(unknown, 0.95)).all() and bootstrap.joint_bounds(known, 0.95) == (0.5, 0.5)
    with warnings.catch_warnings(action="error"):
        assert np.isnan(bootstrap.joint_bounds(np.insert(np.full((3, 1, 1, 2), np.nan), 0, 0.5, axis=0), 0.95)).all()
    known[2:], known[1] = 0.5, np.nan  # nor does it matter which one it is
    assert bootstrap.joint_bounds(known, 0.95) == (0.5, 0.5)


def test_a_value_that_hardly_any_resample_moves_has_its_own_standard_deviation():
    """One of ten resamples lies elsewhere: the middle two thirds are a point, and the deviation is 0.3 of how far it lies away."""
    values = np.zeros((11, 1, 1, 3))
    values[0], values[4, ..., 0], values[5, ..., 1] = 7, 1, 10
    assert np.allclose(bootstrap.standard_error(values), [[[0.3, 3, 0]]])


def test_a_bound_that_stems_from_a_denominator_near_zero_is_not_reported():
    values = np.concatenate([[0.5], np.linspace(-1, 1, 99) * 10 * bootstrap.HUGE]).reshape(-1, 1, 1, 1)
    assert np.isnan(bootstrap.joint_bounds(values, 0.95)).all()


def test_a_claim_takes_the_largest_of_the_least_of_the_largest():
    """Largest over `any`: 5 and 3, 4 and 9; least over `all`: 3 and 4; largest over `some`: 4. Negated: -1, -2, 0, -1; -2, -1; -1."""
    values = np.array([[[1.0, 5.0], [2.0, 3.0]], [[4.0, 0.0], [9.0, 1.0]]])
    assert bootstrap.combine(values) == 4 and bootstrap.combine(np.stack([values, -values])).tolist() == [4, -1]


def test_a_standard_error_is_half_of_what_two_thirds_of_the_resamples_span():
    """The quantiles 0.1587 and 0.8413 of -3, -1, 1, 3 lie 0.4761 of a step from the ends; the sample itself does not count."""
    values = np.array([9.0, -3, -1, 1, 3])[:, None] * [1.0, 2.0]
    assert np.allclose(bootstrap.standard_error(values[:, None, None]), [[[2.0478, 4.0956]]])


def test_a_band_of_95_in_100_is_the_95th_from_the_narrowest():
    assert bootstrap.placed(-np.arange(1.0, 101), np.arange(1.0, 101), 0.95) == (-95, 95)
