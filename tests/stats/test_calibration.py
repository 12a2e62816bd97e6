"""Severity calibration: maps and their inverse by hand, scikit-learn's isotonic regression, scipy's correlations on repeated rows."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from sklearn.isotonic import IsotonicRegression
from test_stats import SCALES

from cnslib.core.settings.analyses import Calibration
from cnslib.core.settings.method import Bootstrap
from cnslib.stats import accuracy, bootstrap, calibration

SETTINGS = Calibration(bootstrap=Bootstrap(resamples=200, confidence=0.95, seed=1), seed=1, scenes=2, severities=2, steps=5)
SIX = np.arange(6) / 2


def readings(rows: dict[str, list[list[float]]], scales=SCALES, ruler: str = "oracle") -> pd.DataFrame:
    """A table of readings: for each shift one list of numbers per trajectory of class "bag", seeds 1, 2, ..."""
    return pd.DataFrame(
        [
            {"shift": shift, "class": "bag", "seed": seed, "scale": float(scale), ruler: value, "named": shift}
            for shift, own in rows.items()
            for seed, values in enumerate(own, start=1)
            for scale, value in zip(scales, values, strict=True)
        ]
    )


def random_readings(seed: int, *, trajectories: int = 20, scales=SIX) -> pd.DataFrame:
    """Two shifts whose readings rise on the whole, with noise."""
    rng, line = np.random.default_rng(seed), np.asarray(scales) * 0.1
    return readings({shift: (line + rng.normal(0, 0.2, (trajectories, len(line)))).tolist() for shift in ("fog", "snow")}, scales)


def curve(estimate: list[float], scales=SIX) -> pd.DataFrame:
    return pd.DataFrame({"scale": scales, "estimate": estimate}).sample(frac=1, random_state=0)


def mean_of(table: pd.DataFrame, rulers: tuple[str, ...] = ("oracle",)) -> accuracy.Shares:
    return calibration.means(calibration.arrange(table, list(rulers)), settings=SETTINGS.bootstrap)


def map_of(table: pd.DataFrame, rulers: tuple[str, ...] = ("oracle",)) -> accuracy.Shares:
    return calibration.monotone(mean_of(table, rulers))


def steps_of(table: pd.DataFrame, steps: int) -> pd.DataFrame:
    return calibration.equal_steps(map_of(table), calibration.moving(mean_of(table)), steps=steps)


def test_the_inverse_of_a_slider_that_means_what_it_says_is_the_identity():
    wanted = np.linspace(0, 2.5, 11)
    assert calibration.scales_for(curve(SIX), wanted) == pytest.approx(wanted)
    assert calibration.scales_for(curve(SIX / 2.5), wanted / 2.5) == pytest.approx(wanted)


def test_a_plateau_gives_its_smallest_scale_and_the_next_rise_begins_at_its_end():
    flat = curve([0.0, 0.2, 0.2, 0.2, 0.6, 0.6])
    assert calibration.scales_for(flat, [0.2, 0.4, 0.6]) == pytest.approx([0.5, 1.75, 2.0])


def test_a_dead_zone_is_left_at_its_end():
    assert calibration.scales_for(curve([0.1, 0.1, 0.1, 0.1, 0.5, 0.9]), [0.1, 0.3]) == pytest.approx([0.0, 1.75])


def test_a_severity_outside_of_what_the_slider_shows_has_no_scale():
    found = calibration.scales_for(curve([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]), [0.0, 0.1, 0.6, 0.61])
    assert np.isnan(found[[0, 3]]).all() and found[[1, 2]].tolist() == [0.0, 2.5]


def test_means_that_fall_are_pooled_as_by_hand():
    found = map_of(readings({"snow": [[0, 3, 1]], "fog": [[2, 1, 0]]}))
    assert found.groups == ["fog", "snow"]
    assert found.samples[0, :, 0].tolist() == [[1, 1, 1], [0, 2, 2]]


def test_the_sample_row_of_the_maps_is_the_direct_fit_of_scikit_learn():
    table = random_readings(1)
    found = map_of(table)
    for shift, row in zip(found.groups, found.samples[0, :, 0], strict=True):
        means = table[table["shift"] == shift].groupby("scale")["oracle"].mean()
        assert row == pytest.approx(IsotonicRegression().fit_transform(means.index, means))


def test_a_resampled_map_is_the_direct_fit_of_the_repeated_trajectories():
    table = random_readings(2, trajectories=6)
    found, weights = map_of(table), bootstrap.resampling_weights(6, settings=SETTINGS.bootstrap)
    for draw in (1, 17, 200):
        repeated = table.loc[table.index.repeat(weights[draw, table["seed"] - 1].astype(int))]
        means = repeated[repeated["shift"] == "snow"].groupby("scale")["oracle"].mean()
        assert found.samples[draw, 1, 0] == pytest.approx(IsotonicRegression().fit_transform(means.index, means))


def test_equal_steps_of_a_straight_slider_are_equal_and_its_severities_too():
    table = steps_of(readings({"snow": [SIX / 5]}, SIX), 5)
    assert table["estimate"].tolist() == pytest.approx(SIX.tolist())
    assert table["severity"].tolist() == pytest.approx((SIX / 5).tolist())


def test_equal_steps_of_a_bent_slider_by_hand():
    table = steps_of(readings({"snow": [[0, 0, 0, 0.4, 0.8, 0.8]]}, SIX), 4)
    assert table["estimate"].tolist() == pytest.approx([0, 1.25, 1.5, 1.75, 2.0])


def test_a_flat_slider_has_no_steps():
    table = readings({"snow": [[0.3, 0.3, 0.3]] * 3, "fog": [[0.1, 0.2, 0.3]] * 3})
    assert calibration.moving(mean_of(table)).tolist() == [[True], [False]]
    steps = steps_of(table, 2).set_index(["shift", "step"])["estimate"]
    assert steps["snow"].isna().all() and steps["fog"].tolist() == pytest.approx([0.0, 0.5, 1.0])


def test_rising_steps_are_counted_by_hand():
    table = readings({"snow": [[0.1, 0.2, 0.3], [0.1, 0.0, 0.3], [0.2, 0.2, 0.1], [0.0, 0.1, 0.1]]})
    found = calibration.arrange(table, ["oracle"])
    assert calibration.rising(found, settings=SETTINGS.bootstrap).query("shift == 'snow'")["estimate"].tolist() == [4 / 8]
    assert calibration.rising(found, settings=SETTINGS.bootstrap, start=0.5).query("shift == 'snow'")["estimate"].tolist() == [2 / 4]
    one = calibration.rising(found, settings=SETTINGS.bootstrap).iloc[0]
    assert one["n"] == 4 and one["low"] < 0.5 < one["high"]


def test_each_slider_has_its_own_share_of_rising_steps():
    up, down = readings({"snow": [[0, 1, 2]] * 2, "fog": [[2, 1, 0]] * 2}), readings({"snow": [[0, 1, 0]] * 2, "fog": [[0, 1, 2]] * 2})
    found = calibration.arrange(pd.concat([up, down.assign(**{"class": "coat"})]), ["oracle"])
    table = calibration.rising_by_class(found, settings=SETTINGS.bootstrap).set_index(["shift", "class"])
    assert table["estimate"].to_dict() == {("snow", "bag"): 1, ("snow", "coat"): 0.5, ("fog", "bag"): 0, ("fog", "coat"): 1}
    assert set(table["n"]) == {2}


def test_a_trajectory_without_a_scale_is_an_error():
    with pytest.raises(ValueError, match="5 rows, one for each of 2 trajectories and 3 scales"):
        calibration.arrange(readings({"snow": [[0, 1, 2], [0, 1, 2]]}).drop(index=4), ["oracle"])


def test_correlations_are_those_of_scipy_and_their_resamples_those_of_repeated_rows():
    table = random_readings(3, trajectories=8).query("shift == 'snow'")
    found = calibration.correlations(calibration.arrange(table, ["oracle"]), settings=SETTINGS.bootstrap).set_index("measure")
    scipys = {"pearson": scipy.stats.pearsonr, "spearman": scipy.stats.spearmanr}
    drawn = {name: [] for name in scipys}
    for row in bootstrap.resampling_weights(8, settings=SETTINGS.bootstrap)[1:]:
        repeated = table.loc[table.index.repeat(row[table["seed"] - 1].astype(int))]
        for name, function in scipys.items():
            drawn[name].append(function(repeated["scale"], repeated["oracle"]).statistic)
    for name, function in scipys.items():
        low, high = bootstrap.percentiles(np.array(drawn[name]), 0.95)
        expected = [function(table["scale"], table["oracle"]).statistic, float(low), float(high)]
        assert found.loc[name, ["estimate", "low", "high"]].tolist() == pytest.approx(expected)


def test_a_dead_zone_and_saturation_frame_the_steps_that_rise():
    table = readings({"snow": [[0.1, 0.1, 0.3, 0.5, 0.5, 0.5]] * 4, "fog": [[0.2, 0.1, 0.1, 0.3, 0.2, 0.4]] * 4}, SIX)
    found = calibration.summary(mean_of(table), map_of(table)).set_index("shift")
    assert found.loc["snow", ["starts", "ends", "falls", "half_estimate"]].tolist() == pytest.approx([0.5, 1.5, 0, 1.0])
    assert found.loc["fog", ["starts", "ends", "falls"]].tolist() == [1.0, 2.5, 2]
    assert found["estimate"].tolist() == pytest.approx([0.2, 0.4])


def test_the_typical_trajectory_is_nearest_to_the_mean():
    table = readings({"snow": [[0, 0, 0], [0, 1, 2], [0, 3, 6]]})
    found = calibration.typical(table, "oracle")
    assert found["seed"].unique().tolist() == [2] and found["scale"].tolist() == SCALES


def test_the_share_of_the_rise_by_hand_and_without_a_ruler_that_does_not_rise():
    table = readings({"snow": [[0.2, 0.3, 0.6]] * 2, "fog": [[0.2, 0.3, 0.2]] * 2})
    found = calibration.progress(map_of(table), calibration.moving(mean_of(table))).set_index("shift")["estimate"]
    assert found["snow"].tolist() == pytest.approx([0, 0.25, 1]) and found["fog"].isna().all()
