"""Simultaneous bands: coverage of the largest of several values, and what has no bounds."""

import warnings

import numpy as np

from cnslib.stats import bands


def test_a_band_covers_the_largest_of_several_values_where_its_own_resamples_do_not():
    """Twenty values whose truth is 0: the largest of the sample is above 0, and so are nearly all of its resamples."""
    rng, place = np.random.default_rng(1), int(np.ceil(0.95 * 200)) - 1
    covered, naive = [], []
    for _ in range(200):
        sample = rng.normal(size=(50, 20))
        weights = rng.multinomial(50, np.full(50, 1 / 50), 200) / 50
        values = np.vstack([sample.mean(0), weights @ sample])[:, :, None, None]
        lows, highs = bands.band(values)
        covered.append(lows[place] <= 0 <= highs[place])
        naive.append(np.quantile(bands.combine(values[1:]), 0.025) <= 0)
    assert np.mean(covered) >= 0.93 and np.mean(naive) < 0.5


def test_a_single_value_has_the_symmetric_interval_of_its_resamples():
    values = np.r_[0.0, np.linspace(-1, 1, 2001)][:, None, None, None]
    assert np.allclose(bands.bounds(values, 0.95), (-0.95, 0.95), atol=2e-3)


def test_a_sample_without_a_number_has_no_bounds_and_a_single_resample_with_one_is_enough():
    unknown, known = np.full((4, 1, 1, 2), 0.5), np.full((4, 1, 1, 2), np.nan)
    unknown[0, 0, 0, 1], known[:2] = np.nan, 0.5
    assert np.isnan(bands.bounds(unknown, 0.95)).all() and bands.bounds(known, 0.95) == (0.5, 0.5)
    with warnings.catch_warnings(action="error"):
        assert np.isnan(bands.bounds(np.insert(np.full((3, 1, 1, 2), np.nan), 0, 0.5, axis=0), 0.95)).all()
    known[2:], known[1] = 0.5, np.nan  # nor does it matter which one it is
    assert bands.bounds(known, 0.95) == (0.5, 0.5)


def test_a_value_that_hardly_any_resample_moves_has_its_own_standard_deviation():
    """One of ten resamples lies elsewhere: the middle two thirds are a point, and the deviation is 0.3 of how far it lies away."""
    values = np.zeros((11, 1, 1, 3))
    values[0], values[4, ..., 0], values[5, ..., 1] = 7, 1, 10
    assert np.allclose(bands.error(values), [[[0.3, 3, 0]]])


def test_a_bound_that_stems_from_a_denominator_near_zero_is_not_reported():
    values = np.concatenate([[0.5], np.linspace(-1, 1, 99) * 10 * bands.HUGE]).reshape(-1, 1, 1, 1)
    assert np.isnan(bands.bounds(values, 0.95)).all()


def test_a_claim_takes_the_largest_of_the_least_of_the_largest():
    """Largest over `any`: 5 and 3, 4 and 9; least over `all`: 3 and 4; largest over `some`: 4. Negated: -1, -2, 0, -1; -2, -1; -1."""
    values = np.array([[[1.0, 5.0], [2.0, 3.0]], [[4.0, 0.0], [9.0, 1.0]]])
    assert bands.combine(values) == 4 and bands.combine(np.stack([values, -values])).tolist() == [4, -1]


def test_a_standard_error_is_half_of_what_two_thirds_of_the_resamples_span():
    """The quantiles 0.1587 and 0.8413 of -3, -1, 1, 3 lie 0.4761 of a step from the ends; the sample itself does not count."""
    values = np.array([9.0, -3, -1, 1, 3])[:, None] * [1.0, 2.0]
    assert np.allclose(bands.error(values[:, None, None]), [[[2.0478, 4.0956]]])


def test_a_band_of_95_in_100_is_the_95th_from_the_narrowest():
    assert bands.placed(-np.arange(1.0, 101), np.arange(1.0, 101), 0.95) == (-95, 95)
