"""Severities and scales of equal accuracy: curves whose answer is known by hand, and intervals that hold simulated truth."""

import numpy as np
import pytest

from cnslib.core.settings.method import Bootstrap
from cnslib.stats import calibration
from cnslib.stats.accuracy import Shares

SETTINGS = Bootstrap(resamples=50, confidence=0.95, seed=3)


def shares(errors: list[float], bins: list[float], *, n: int = 100, noise: float = 0.0, seed: int = 0) -> Shares:
    """One shift (and the pooled group) with these error rates; the resamples scatter around them."""
    sample = np.array(errors)[None, None, None].repeat(2, axis=1)
    rng = np.random.default_rng(seed)
    samples = np.concatenate([sample, (sample + noise * rng.normal(size=(50, *sample.shape[1:]))).clip(0, 1)])
    return Shares(samples, ["heavy fog", "all shifts"], np.array([n, n]), ["resnet"], bins, 0.95)


LADDER = shares([0.1, 0.3, 0.7], [0.0, 0.5, 1.0])


def test_an_error_between_two_rungs_lies_between_their_severities():
    found = calibration.severities(shares([0.1, 0.2, 0.3, 0.5, 0.7], [0, 1, 2, 3, 4]), LADDER)
    assert found["estimate"].tolist() == pytest.approx([0.0, 0.25, 0.5, 0.75, 1.0])
    assert (found["beyond"] == "").all() and (found["low"] == found["high"]).all()


def test_what_lies_beyond_the_ladder_is_set_to_its_end_and_marked():
    found = calibration.severities(shares([0.05, 0.9], [0, 1]), LADDER)
    assert found["estimate"].tolist() == [0.0, 1.0] and found["beyond"].tolist() == ["below", "above"]


def test_a_curve_matched_with_itself_is_the_identity():
    found = calibration.severities(LADDER, LADDER)
    assert found["estimate"].tolist() == pytest.approx(LADDER.bins)
    again = calibration.scales(LADDER, shares([0.3], [0.0]))
    assert again["estimate"].tolist() == pytest.approx([0.5])


def test_a_ladder_that_falls_back_is_made_monotone_first():
    """Pooled neighbours, as isotonic regression pools them: 0.4 and 0.2 become 0.3 twice, and 0.3 is first reached at severity 0.5."""
    found = calibration.severities(shares([0.3], [0.0]), shares([0.1, 0.4, 0.2, 0.8], [0.0, 0.5, 0.75, 1.0]))
    assert found["estimate"].tolist() == pytest.approx([0.5])


def test_relative_losses_do_not_depend_on_where_a_curve_starts():
    """From 0.8 to 0.4 and from 0.5 to 0.25 both lose half."""
    strong, weak = (calibration.relative(shares(errors, [0, 1])).samples[0, 0, 0] for errors in ([0.2, 0.6], [0.5, 0.75]))
    assert strong.tolist() == pytest.approx([0, 0.5]) and weak.tolist() == pytest.approx([0, 0.5])


def test_the_mean_over_classifiers_is_one_more_of_them():
    two = calibration.with_mean(LADDER)
    assert two.models == ["resnet", calibration.MEAN] and np.array_equal(two.samples[..., 0, :], two.samples[..., 1, :])


def test_noise_on_either_side_widens_the_interval():
    drawn, quiet = shares([0.3], [0.0]), calibration.severities(shares([0.3], [0.0]), LADDER)
    loud = calibration.severities(shares([0.3], [0.0], noise=0.05), LADDER)
    shaken = calibration.severities(drawn, shares([0.1, 0.3, 0.7], [0.0, 0.5, 1.0], noise=0.05, seed=1))
    width = [float((table["high"] - table["low"]).iloc[0]) for table in (quiet, loud, shaken)]
    assert width[0] == 0 and min(width[1:]) > 0.1


def test_easier_images_are_above_zero_and_independent_samples_have_other_resamples():
    table = calibration.differences(shares([0.1, 0.5], [0, 1]), shares([0.4], [0.0]))
    assert table.loc[table["shift"] == "heavy fog", "estimate"].tolist() == pytest.approx([0.3, -0.1])
    assert len({calibration.independent(SETTINGS, number).seed for number in range(3)}) == 3
