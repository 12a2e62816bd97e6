"""Severity calibration: maps and their inverse by hand, scikit-learn's isotonic regression, scipy's correlations on repeated rows."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from sklearn.isotonic import IsotonicRegression
from tiny_answers import SCALES, predictions

from cnslib.core.settings.analyses import Calibration
from cnslib.core.settings.method import Bootstrap
from cnslib.stats import accuracy, bootstrap, calibration
from cnslib.stats.accuracy import Shares

SETTINGS = Calibration(
    bootstrap=Bootstrap(resamples=200, confidence=0.95, seed=1, target="same classes"), seed=1, scenes=2, severities=2, steps=5
)
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


def test_a_resampled_map_is_the_direct_fit_of_the_weighted_trajectories():
    table = random_readings(2, trajectories=6)
    found, (weights, units) = map_of(table), bootstrap.resampling_weights(table, settings=SETTINGS.bootstrap)
    for draw in (1, 17, 200):
        snow = table.assign(weight=weights[draw, units]).query("shift == 'snow'")
        means = snow.groupby("scale").apply(lambda part: np.average(part["oracle"], weights=part["weight"]), include_groups=False)
        assert found.samples[draw, 1, 0] == pytest.approx(IsotonicRegression().fit_transform(means.index, means))


def test_equal_steps_of_a_straight_slider_are_equal_and_its_severities_too():
    table = steps_of(readings({"snow": [SIX / 5] * 2}, SIX), 5)
    assert table["estimate"].tolist() == pytest.approx(SIX.tolist())
    assert table["severity"].tolist() == pytest.approx((SIX / 5).tolist())


def test_equal_steps_of_a_bent_slider_by_hand():
    table = steps_of(readings({"snow": [[0, 0, 0, 0.4, 0.8, 0.8]] * 2}, SIX), 4)
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


def test_correlations_are_those_of_scipy_and_their_resamples_those_of_weighted_rows():
    table = random_readings(3, trajectories=8).query("shift == 'snow'").reset_index(drop=True)
    found = calibration.correlations(calibration.arrange(table, ["oracle"]), settings=SETTINGS.bootstrap).set_index("measure")
    scipys = {"pearson": scipy.stats.pearsonr, "spearman": scipy.stats.spearmanr}
    weights, units = bootstrap.resampling_weights(table, settings=SETTINGS.bootstrap)
    drawn = {name: [] for name in scipys}
    for row in np.rint(weights[1:, units] * 100).astype(int):  # a weighted row as so many rows
        repeated = table.loc[table.index.repeat(row)]
        for name, function in scipys.items():
            drawn[name].append(function(repeated["scale"], repeated["oracle"]).statistic)
    for name, function in scipys.items():
        own = function(table["scale"], table["oracle"]).statistic
        low, high = map(float, bootstrap.percentiles(np.array(drawn[name]), 0.95))
        joined = [own, min(low, 2 * own - high), max(high, min(2 * own - low, 1))]  # percentiles, and their reflection at the estimate
        assert found.loc[name, ["estimate", "low", "high"]].tolist() == pytest.approx(joined, abs=0.01)


def test_a_dead_zone_and_saturation_frame_the_steps_that_rise():
    table = readings({"snow": [[0.1, 0.1, 0.3, 0.5, 0.5, 0.5]] * 4, "fog": [[0.2, 0.1, 0.1, 0.3, 0.2, 0.4]] * 4}, SIX)
    found = calibration.summary(mean_of(table), map_of(table)).set_index("shift")
    assert found.loc["snow", ["starts", "ends", "falls", "half_estimate"]].tolist() == pytest.approx([0.5, 1.5, 0, 1.0])
    assert found.loc["fog", ["starts", "ends", "falls"]].tolist() == [1.0, 2.5, 2]
    assert found["estimate"].tolist() == pytest.approx([0.2, 0.4])


def test_a_shift_without_a_certain_rise_and_a_resample_without_any_have_no_axis():
    """Snow rises, but in the first resample it does not; fog rises a little, which is not certain."""
    snow, fog, flat = [0.0, 0.6, 1.0], [0.0, 0.1, 0.2], [0.3] * 3
    samples = np.array([[fog, snow], [fog, flat], [fog, snow]])[:, :, None]
    maps = Shares(samples, ["fog", "snow"], np.array([4, 4]), ["oracle"], SCALES, 0.95)
    moving = np.array([[False], [True]])
    steps = calibration.equal_steps(maps, moving, steps=2).set_index("shift")
    done = calibration.progress(maps, moving).set_index("shift")
    half = 0.5 * 0.5 / 0.6  # where it reads 0.5 between 0 and 0.6, on a scale from 0 to 0.5
    for column in ("estimate", "low", "high"):
        assert steps.loc["snow", column].tolist() == pytest.approx([0, half, 1.0])
        assert done.loc["snow", column].tolist() == pytest.approx([0, 0.6, 1.0])
        assert steps.loc["fog", column].isna().all() and done.loc["fog", column].isna().all()


def test_the_typical_trajectory_is_nearest_to_the_mean():
    table = readings({"snow": [[0, 0, 0], [0, 1, 2], [0, 3, 6]]})
    found = calibration.typical(table, "oracle")
    assert found["seed"].unique().tolist() == [2] and found["scale"].tolist() == SCALES


def test_the_share_of_the_rise_by_hand_and_without_a_ruler_that_does_not_rise():
    table = readings({"snow": [[0.2, 0.3, 0.6]] * 2, "fog": [[0.2, 0.3, 0.2]] * 2})
    found = calibration.progress(map_of(table), calibration.moving(mean_of(table))).set_index("shift")["estimate"]
    assert found["snow"].tolist() == pytest.approx([0, 0.25, 1]) and found["fog"].isna().all()


MATCHED = Bootstrap(resamples=50, confidence=0.95, seed=3, target="same classes")


def rungs(errors: list[float], bins: list[float], *, n: int = 100, noise: float = 0.0, seed: int = 0) -> Shares:
    """One shift (and the pooled group) with these error rates; the resamples scatter around them."""
    sample = np.array(errors)[None, None, None].repeat(2, axis=1)
    rng = np.random.default_rng(seed)
    samples = np.concatenate([sample, (sample + noise * rng.normal(size=(50, *sample.shape[1:]))).clip(0, 1)])
    return Shares(samples, ["heavy fog", "all shifts"], np.array([n, n]), ["resnet"], bins, 0.95)


LADDER = rungs([0.1, 0.3, 0.7], [0.0, 0.5, 1.0])


def test_an_error_between_two_rungs_lies_between_their_severities():
    found = calibration.severities(rungs([0.1, 0.2, 0.3, 0.5, 0.7], [0, 1, 2, 3, 4]), LADDER)
    assert found["estimate"].tolist() == pytest.approx([0.0, 0.25, 0.5, 0.75, 1.0])
    assert (found["beyond"] == "").all() and (found["low"] == found["high"]).all()


def test_what_lies_beyond_the_ladder_is_set_to_its_end_and_marked():
    found = calibration.severities(rungs([0.05, 0.9], [0, 1]), LADDER)
    assert found["estimate"].tolist() == [0.0, 1.0] and found["beyond"].tolist() == ["below", "above"]


def test_a_curve_matched_with_itself_is_the_identity():
    found = calibration.severities(LADDER, LADDER)
    assert found["estimate"].tolist() == pytest.approx(LADDER.bins)
    again = calibration.scales(LADDER, rungs([0.3], [0.0]))
    assert again["estimate"].tolist() == pytest.approx([0.5])


def test_a_ladder_that_falls_back_is_made_monotone_first():
    """Pooled neighbours, as isotonic regression pools them: 0.4 and 0.2 become 0.3 twice, and 0.3 is first reached at severity 0.5."""
    found = calibration.severities(rungs([0.3], [0.0]), rungs([0.1, 0.4, 0.2, 0.8], [0.0, 0.5, 0.75, 1.0]))
    assert found["estimate"].tolist() == pytest.approx([0.5])


def test_relative_losses_do_not_depend_on_where_a_curve_starts():
    """From 0.8 to 0.4 and from 0.5 to 0.25 both lose half."""
    strong, weak = (calibration.relative(rungs(errors, [0, 1])).samples[0, 0, 0] for errors in ([0.2, 0.6], [0.5, 0.75]))
    assert strong.tolist() == pytest.approx([0, 0.5]) and weak.tolist() == pytest.approx([0, 0.5])


def test_the_mean_over_classifiers_is_one_more_of_them():
    two = calibration.with_mean(LADDER)
    assert two.models == ["resnet", calibration.MEAN] and np.array_equal(two.samples[..., 0, :], two.samples[..., 1, :])


def test_noise_on_either_side_widens_the_interval():
    drawn, quiet = rungs([0.3], [0.0]), calibration.severities(rungs([0.3], [0.0]), LADDER)
    loud = calibration.severities(rungs([0.3], [0.0], noise=0.05), LADDER)
    shaken = calibration.severities(drawn, rungs([0.1, 0.3, 0.7], [0.0, 0.5, 1.0], noise=0.05, seed=1))
    width = [float((table["high"] - table["low"]).iloc[0]) for table in (quiet, loud, shaken)]
    assert width[0] == 0 and min(width[1:]) > 0.1


def test_easier_images_are_above_zero_and_independent_samples_have_other_resamples():
    table = calibration.differences(rungs([0.1, 0.5], [0, 1]), rungs([0.4], [0.0]))
    assert table.loc[table["shift"] == "heavy fog", "estimate"].tolist() == pytest.approx([0.3, -0.1])
    assert len({MATCHED.apart(number).seed for number in range(3)}) == 3
    first = Bootstrap(resamples=2, confidence=0.95, seed=0, target="same classes")
    assert first.apart(1).seed > 0  # a generator takes no seed below 0


def errors_of(table: pd.DataFrame) -> accuracy.Shares:
    return accuracy.error_shares(accuracy.outcomes(table), settings=SETTINGS.bootstrap)


def test_readings_are_arranged_by_trajectory_and_naming_another_shift_is_wrong():
    table = readings({"snow": [[0, 1, 2]], "fog": [[3, 4, 5], [6, 7, 8]]})
    table.loc[(table["shift"] == "snow") & (table["scale"] == 1), "named"] = "rain"
    found = calibration.arrange(table.sample(frac=1, random_state=0), ["oracle"])
    assert found.readings[:, 0].tolist() == [[3, 4, 5], [6, 7, 8], [0, 1, 2]]
    assert found.naming.wrong[:, 0].tolist() == [[False] * 3, [False] * 3, [False, False, True]]
    assert found.naming.trajectories.index.tolist() == [0, 1, 2]


def test_accuracies_stand_at_the_severities_that_were_measured_and_nowhere_else():
    maps = map_of(readings({"snow": [[0, 0.1, 0.5]] * 2}))
    errors = errors_of(predictions({"vit": ["..x", ".xx"]}, "snow"))
    found = calibration.curves(errors, maps, np.array([[True]]))
    assert found["severity"].tolist() == pytest.approx([0, 0.1, 0.5])
    assert found["scale"].tolist() == SCALES and found["estimate"].tolist() == [1, 0.5, 0]
    both = calibration.curves(errors, map_of(readings({"snow": [[0, 0.1, 0.5]] * 2}), ("scale", "oracle")), np.ones((1, 2), bool))
    assert both.index.tolist() == list(range(6))


def test_the_mean_over_an_axis_is_numpys_area_under_the_curve():
    table = random_readings(4, trajectories=10, scales=SCALES)
    words = {"vit": ["..x"] * 5 + [".xx"] * 5, "mixer": ["x.."] * 4 + ["..."] * 6}
    errors, maps = errors_of(pd.concat([predictions(words, shift) for shift in ("fog", "snow")])), map_of(table)
    found = calibration.over_axis(errors, maps)
    draw = int(np.argmax(np.ptp(maps.samples[:, 1, 0], axis=-1)))
    x, y = maps.samples[draw, 1, 0], 1 - errors.samples[draw, 1]
    assert found[draw, 1, 0] == pytest.approx(np.trapezoid(y, x) / (x[-1] - x[0]))


def test_relabelling_the_scales_leaves_perceived_axes_unchanged():
    table = random_readings(5, trajectories=12, scales=SCALES)
    words = {"vit": ["..x"] * 6 + [".xx"] * 6, "mixer": ["..."] * 4 + ["..x"] * 8}
    answers = pd.concat([predictions(words, shift) for shift in ("fog", "snow")])
    renamed = {0.0: 0.0, 0.5: 0.7, 1.0: 40.0}
    other = [part.assign(scale=part["scale"].map(renamed)) for part in (table, answers)]
    both = np.array([True, True])
    for function in (
        lambda errors, maps: calibration.curves(errors, maps, np.ones((2, 1), bool)).drop(columns=["ruler", "shift", "scale"]).to_numpy(),
        lambda errors, maps: calibration.over_axis(errors, maps),
        lambda errors, maps: calibration.hardness(errors, maps, ruler="oracle", shifts=both),
    ):
        assert np.array_equal(function(errors_of(answers), map_of(table)), function(errors_of(other[1]), map_of(other[0])), equal_nan=True)


def test_a_shift_that_costs_less_at_equal_scales_may_cost_more_at_equal_severities():
    """Fog costs 0.4 on its way to severity 1, snow 0.3 on its way to 0.5, both evenly."""
    answers = {"fog": ["..."] * 6 + [".xx"] * 2 + ["..x"] * 2, "snow": ["..."] * 14 + [".xx"] * 3 + ["..x"] * 3}
    parts = [predictions({"vit": own * (20 // len(own))}, shift) for shift, own in answers.items()]
    values = {"fog": [[0, 0.5, 1.0]] * 20, "snow": [[0, 0.25, 0.5]] * 20}
    table = readings(values)
    errors = errors_of(pd.concat(parts))
    maps = map_of(table, ("scale", "oracle"))
    both = np.array([True, True])
    assert calibration.hardness(errors, maps, ruler="scale", shifts=both)[0] == pytest.approx([0.05, -0.05])
    assert calibration.hardness(errors, maps, ruler="oracle", shifts=both)[0] == pytest.approx([-0.05, 0.05], abs=2e-3)  # on a grid
    tau = calibration.orders(errors, maps, np.ones((2, 2), bool)).set_index(["ruler", "order"])["estimate"]
    assert tau["oracle", "shifts"] == -1 and tau["scale", "shifts"] == 1
    standings = calibration.standings(errors, maps, np.ones((2, 2), bool))
    shown = standings.set_index(["order", "ruler", "name"])[["n", "estimate"]].sort_index()
    assert shown.loc[("shifts", "scale")].to_numpy().tolist() == [[20, pytest.approx(0.05)], [20, pytest.approx(-0.05)]]
    assert shown.loc[("shifts", "oracle"), "estimate"].to_dict() == pytest.approx({"fog": -0.05, "snow": 0.05}, abs=2e-3)
    assert shown.loc[("classifiers", "scale", "vit")].tolist() == pytest.approx([40, (0.8 + 0.85) / 2])  # fog falls to 0.6, snow to 0.7
    assert standings.index.tolist() == list(range(6))


def test_a_ruler_without_a_rising_shift_orders_nothing():
    table = readings({"fog": [[0, 1, 2]] * 4, "snow": [[0, 1, 2]] * 4})
    errors = errors_of(pd.concat([predictions({"vit": ["..x"] * 4, "mixer": ["..."] * 4}, shift) for shift in ("fog", "snow")]))
    moving = np.array([[True, True], [True, False]])
    table = table.assign(distance=table["oracle"])
    maps = map_of(table, ("scale", "distance"))
    found = calibration.orders(errors, maps, moving)
    assert found[["ruler", "order"]].to_numpy().tolist() == [["scale", "classifiers"], ["distance", "classifiers"], ["scale", "shifts"]]
    empty = calibration.curves(errors, maps, moving).set_index(["ruler", "shift"])["estimate"].isna().groupby(level=[0, 1]).all()
    assert empty.to_dict() == {("scale", "fog"): False, ("scale", "snow"): False, ("distance", "fog"): False, ("distance", "snow"): True}


def test_a_shift_that_shares_no_severity_with_another_is_left_out_of_the_order():
    """Rain runs from 5 to 6, where no other shift is; the two others are ordered as without it."""
    values = {"fog": [[0, 0.5, 1.0]] * 20, "rain": [[5, 5.5, 6.0]] * 20, "snow": [[0, 0.25, 0.5]] * 20}
    words = {"fog": ["..."] * 12 + [".xx"] * 4 + ["..x"] * 4, "rain": ["..."] * 20, "snow": ["..."] * 14 + [".xx"] * 3 + ["..x"] * 3}
    table, answers = readings(values), pd.concat([predictions({"vit": own, "mixer": own}, shift) for shift, own in words.items()])
    found = [
        calibration.orders(errors_of(t), map_of(r, ("scale", "oracle")), np.ones((s, 2), bool))
        for t, r, s in ((answers, table, 3), (answers[answers["shift"] != "rain"], table[table["shift"] != "rain"], 2))
    ]
    rows = [t.set_index(["ruler", "order"]).loc[("oracle", "shifts"), ["items", "shifts", "n", "estimate"]].tolist() for t in found]
    assert rows[0] == rows[1] == [2, 2, 40, -1.0]


def test_a_flat_map_has_no_axis_to_average_over():
    maps = map_of(readings({"snow": [[0.3, 0.3, 0.3]] * 3, "fog": [[0.1, 0.2, 0.3]] * 3}))
    errors = errors_of(pd.concat([predictions({"vit": ["..x"] * 3}, shift) for shift in ("fog", "snow")]))
    found = calibration.over_axis(errors, maps)
    assert np.isnan(found[:, 1]).all() and found[:, 0] == pytest.approx(0.75)
