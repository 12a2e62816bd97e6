"""Captions about rulers: the numbers of hand-made tables stand in the sentences."""

import numpy as np
import pandas as pd

from cnslib.plots.captions import calibration
from cnslib.stats.accuracy import ALL

NUMBERS = {"n": 8, "low": 0.0, "high": 1.0}


def table(rows: list[tuple], columns: list[str]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=columns).assign(**{name: value for name, value in NUMBERS.items() if name not in columns})


def test_rulers_are_compared_by_their_median_over_the_shifts():
    rho = table(
        [("oracle", "fog", 0.8), ("oracle", "snow", 1.0), ("distance", "fog", 0.5), ("distance", "snow", 0.1)],
        ["ruler", "shift", "estimate"],
    )
    assert calibration.correlation(rho, 4, note="x").startswith("Of the rulers oracle puts rendered garments best in the order of their")
    assert "0.90 and 0.30). n = 8 garments per shift, 5 severities" in calibration.correlation(rho, 4, note="x")
    assert "oracle 0.90 (least under fog, 0.80) and distance 0.30 (least under snow, 0.10)" in calibration.correlation_seen(rho)


def test_rulers_that_hardly_differ_are_named_together():
    rho = table([("oracle", "fog", 0.954), ("asked", "fog", 0.957), ("distance", "fog", 0.5)], ["ruler", "shift", "estimate"])
    said = calibration.correlation(rho, 4, note="x")
    assert said.startswith("Of the rulers asked and oracle put rendered garments best in the order of their severity, distance worst (")
    assert "median Spearman's rho 0.95 to 0.96 and 0.50)" in said
    alike = calibration.correlation(rho[:2], 4, note="x")
    assert alike.startswith("No ruler puts rendered garments better in the order of their severity than another (median")
    unknown = pd.concat([rho, rho[:1].assign(ruler="alignment", estimate=np.nan)])
    assert calibration.correlation(unknown, 4, note="x") == said


def test_the_oracle_is_held_against_the_truth():
    rows = [("oracle", "fog", 0.0, 0.1), ("oracle", "fog", 1.0, 0.6), ("oracle", "snow", 0.0, 0.1), ("oracle", "snow", 1.0, 0.8)]
    read = table(rows, ["ruler", "shift", "scale", "estimate"])
    assert "the oracle reads 0.60 (fog) to 0.80 (snow). n = 8 rendered" in calibration.bias(read, note="x")
    seen = calibration.bias_seen(read)
    assert "+0.10 off the truth at severity 0 and -0.30 at 1" in seen and seen.endswith(
        "In the mean of all severities it plays down (-0.10)."
    )
    picture = pd.DataFrame({"scale": [0.0, 2.5], "oracle": [0.2, 0.9]})
    assert calibration.at_zero(picture, picture.assign(oracle=0.5)).startswith(
        "The oracle's severity at 0: 0.20 in rendered garments, 0.50"
    )


def test_sliders_that_surely_rise_are_counted_by_ruler():
    cells = table(
        [("asked", "fog", "bag", 0.9, 0.6, 1.0), ("asked", "fog", "coat", 0.3, 0.1, 0.4), ("oracle", "fog", "bag", 0.6, 0.5, 0.8)],
        ["ruler", "shift", "class", "estimate", "low", "high"],
    )
    assert "half of their steps: 1 of 2 by asked and 0 of 1 by oracle. n = 8" in calibration.rising(cells, 5)
    assert calibration.rising_seen(cells).endswith(
        "fog of coat: 30% of its steps rise. 1 of 2 sliders surely fall more often than they rise."
    )


def test_maps_that_do_not_rise_are_counted_and_left_out():
    rows = [("oracle", 0.0, 0.0), ("oracle", 1.0, 0.8), ("oracle", 2.0, 1.0), ("asked", 1.0, np.nan), ("asked", 2.0, np.nan)]
    progress = table(rows, ["ruler", "scale", "estimate"])
    assert calibration.severity(progress, pd.Series([8]), note="x").startswith("1 of 2 maps rise with certainty")
    assert calibration.severity_seen(progress) == (
        "At scale 1 of 2 the share of the rise that is done, in the median over the shifts, is 80% by oracle; even sliders would have 50%."
    )


SUMMARY = pd.DataFrame(
    {
        "shift": ["fog", "snow", "rain"],
        "ruler": "asked",
        "estimate": [0.5, 0.6, 0.1],
        "low": [0.4, 0.5, -0.1],
        "half_estimate": [0.5, 1.2, np.nan],
        "half_low": [0.3, 0.8, np.nan],
        "half_high": [0.7, 1.4, np.nan],
        "ends": [1.5, 2.0, np.nan],
    }
)


def test_a_map_is_bent_where_half_of_its_rise_surely_lies_elsewhere():
    assert calibration.bent(SUMMARY, 2.0)["shift"].tolist() == ["fog"] and len(calibration.moved(SUMMARY)) == 2
    assert calibration.steps(SUMMARY, 2.0, pd.Series([8]), 4, note="x").startswith("In 1 of 2 maps half of the rise")
    seen = calibration.steps_seen(SUMMARY, 2.0)
    assert "by scale 0.50 (0.30 to 0.70) under fog and by 1.20 (0.80 to 1.40) under snow; even sliders would have 1." in seen
    assert calibration.fates(SUMMARY, 2.0) == "No certain rise: rain by asked. Saturated before scale 2: fog by asked."
    assert calibration.wide(SUMMARY, ["asked"]).loc["snow", ("half", "asked")] == 1.2


def test_strips_are_told_by_their_scales_and_steps():
    shown = pd.DataFrame({"strip": ["scales"] * 3, "scale": [0, 1, 2.0], "asked": [0.1, 0.2, 0.9], "shift": "fog", "class": "bag"})
    shown = pd.concat([shown, shown.assign(strip="severity", scale=[0, 0.5, 2], asked=[0.1, 0.5, 0.9])])
    caption = calibration.strips(shown)
    assert caption == "At 1 of 3 steps the two strips show different scales. fog, bag; scales shown, scales: 0, 1, 2; severity: 0, 0.5, 2"
    seen = calibration.strips_seen(shown)
    assert seen.endswith("go from +0.10 to +0.70 in the strip of scales and from +0.40 to +0.40 in the strip of severity.")


def test_accuracy_is_told_by_the_fall_over_the_slider_and_the_severity_reached():
    rows = [
        ("scale", "fog", 0.0, 0.9, 0.0),
        ("scale", "fog", 2.0, 0.3, 2.0),
        ("scale", "snow", 0.0, 0.9, 0.0),
        ("scale", "snow", 2.0, 0.8, 2.0),
    ]
    rows += [("asked", "fog", 2.0, 0.3, 0.7), ("asked", "snow", 2.0, np.nan, 0.2)]
    drawn = table(rows, ["ruler", "shift", "scale", "estimate", "severity"])
    caption = calibration.accuracy(drawn, ["fog", "snow"], 12, pd.Series([8, 9]))
    assert caption.startswith("Over its own slider fog costs 0.60 of accuracy and snow 0.10. Mean of 12 classifiers; n = 8 to 9 kept")
    seen = calibration.accuracy_seen(drawn, ["fog", "snow"])
    assert "is 0.70 under fog and 0.20 under snow. 1 of 2 shifts have no curve" in seen


def test_hardness_names_the_hardest_and_counts_changes_of_side():
    hard = table(
        [("scale", "fog", 0.2), ("scale", "snow", -0.2), ("asked", "fog", -0.1), ("asked", "snow", -0.3)], ["ruler", "name", "estimate"]
    )
    assert calibration.hardness(hard, pd.Series([8]), note="x").startswith(
        "Highest estimate of hardness: fog by scale and fog by asked. n = 8 kept"
    )
    seen = calibration.hardness_seen(hard)
    assert seen.startswith("By their estimates") and seen.endswith("the other way round: 1 of 2 by asked.")


def test_the_answer_holds_steps_maps_and_orders():
    rising = table(
        [(ALL, "alignment", 0.7), (ALL, "asked", 0.8), (ALL, "oracle", 0.9), ("fog", "asked", 0.1)], ["shift", "ruler", "estimate"]
    )
    orders = pd.DataFrame({"order": ["shifts", "shifts"], "estimate": [0.5, 0.7]})
    text = calibration.answer(rising, SUMMARY, orders, 2.0)
    both = "in 70.0% (0.0% to 100.0%) of all cases by CLIP and in 80.0% (0.0% to 100.0%) by the severity of the asked shift"
    assert f"{both}, but equal steps are not equal readings: in 1 of 2 maps" in text
    straight = calibration.answer(rising, SUMMARY.assign(half_low=0.1, half_high=1.9), orders, 2.0)
    assert "and no map is known to be bent: in 0 of 2 maps" in straight
    assert text.endswith("that on a ruler is, by ruler, 0.50 to 0.70 for the shifts.")
