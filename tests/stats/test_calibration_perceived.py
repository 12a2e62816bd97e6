"""Accuracy on perceived axes: by hand, numpy's area under a curve, and nothing changes when scales get other names."""

import numpy as np
import pandas as pd
import pytest
from test_calibration import SETTINGS, map_of, random_readings, readings
from test_stats import SCALES, predictions

from cnslib.stats import accuracy, calibration


def errors_of(table: pd.DataFrame) -> accuracy.Shares:
    return accuracy.error_shares(accuracy.outcomes(table), settings=SETTINGS)


def test_accuracy_at_a_severity_by_hand():
    """Severity 0, 0.1, 0.5 at accuracies 1, 0.5, 0: half of the way is 0.25, at 3/8 of the second step."""
    maps = map_of(readings({"snow": [[0, 0.1, 0.5]] * 2}))
    errors = errors_of(predictions({"vit": ["..x", ".xx"]}, "snow"))
    found = calibration.on_axis(errors, maps, ruler="oracle", points=3)
    assert found["severity"].tolist() == pytest.approx([0, 0.25, 0.5])
    assert found["estimate"].tolist() == pytest.approx([1, 0.5 - 0.5 * 3 / 8, 0])


def test_the_mean_over_an_axis_is_numpys_area_under_the_curve():
    table = random_readings(4, trajectories=10, scales=SCALES)
    words = {"vit": ["..x"] * 5 + [".xx"] * 5, "mixer": ["x.."] * 4 + ["..."] * 6}
    errors, maps = errors_of(pd.concat([predictions(words, shift) for shift in ("fog", "snow")])), map_of(table)
    found = calibration.over_axis(errors, maps)
    x, y = maps.samples[7, 1, 0], 1 - errors.samples[7, 1]
    assert found[7, 1, 0] == pytest.approx(np.trapezoid(y, x) / (x[-1] - x[0]))


def test_relabelling_the_scales_leaves_perceived_axes_unchanged():
    table = random_readings(5, trajectories=12, scales=SCALES)
    words = {"vit": ["..x"] * 6 + [".xx"] * 6, "mixer": ["..."] * 4 + ["..x"] * 8}
    answers = pd.concat([predictions(words, shift) for shift in ("fog", "snow")])
    renamed = {0.0: 0.0, 0.5: 0.7, 1.0: 40.0}
    other = [part.assign(scale=part["scale"].map(renamed)) for part in (table, answers)]
    both = np.array([True, True])
    for function in (
        lambda errors, maps: calibration.on_axis(errors, maps, ruler="oracle").drop(columns="shift").to_numpy(),
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
