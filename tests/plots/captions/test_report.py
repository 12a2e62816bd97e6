"""Captions about one classifier: the numbers of hand-made tables stand in the sentences."""

import pandas as pd

from cnslib.plots.captions import report

LOST = pd.DataFrame({"shift": ["fog", "rain"], "scale": 2.5, "n": 60, "estimate": [0.1, -0.2], "low": [0.05, -0.3], "high": [0.2, -0.1]})


def test_the_places_and_the_worst_shift_are_named():
    summary = pd.DataFrame({"quantity": ["CE", "pictures"], "place": [5.0, None], "of": [24.0, None]})
    seen = report.overview_seen(summary, LOST.assign(model="mine"), "mine")
    assert seen.startswith("Its places (equal values share the better one): 5 of 24 by CE. By the last scale fog")
    assert seen.endswith("costs mine most accuracy, 0.10 (0.05 to 0.20).")
    said = "It answers all 1,200 pictures; those of the 1,060 kept trajectories count. 2 others: vit, mae"
    assert report.asked(1200, 1060, ["vit", "mae"]) == said


def test_shifts_are_counted_and_named_by_their_intervals():
    assert report.shifts(LOST, note="x").startswith("The blur surely protects against 1 of 2 shifts and surely hurts under 1. n = 60")
    seen = report.shifts_seen(LOST, confidence=0.95)
    assert seen.startswith("It surely protects against: rain; it surely makes worse: fog.") and "under rain, -0.20 (-0.30 to -0.10)" in seen
    assert "about 0.1 of 2 such intervals of 95%" in seen
    assert "about 0.4 of 2 such intervals of 80%" in report.shifts_seen(LOST, confidence=0.8)


def test_the_answer_compares_with_the_plain_rival():
    gain = pd.DataFrame({"estimate": [0.0, -0.1], "low": [-0.1, -0.2], "high": [0.1, -0.02], "p_holm": [1.0, 0.012]}, index=[0.0, 2.5])
    rows = {"quantity": ["accuracy at scale 2.5"], "estimate": 0.57, "low": 0.54, "high": 0.6, "place": [3], "of": [24]}
    given = {"summary": pd.DataFrame(rows), "name": "blurred", "plain": "resnet", "confidence": 0.95}
    text = report.answer(gain, **given)
    assert text.startswith("**At scale 2.5 blurred names 57% (54% to 60%) of the images right, place 3 of 24; it is less accurate")
    assert text.endswith("Holm's p 0.012).** At no other scale is it surely more or less accurate than resnet.")
    assert "(-0.100, -0.200 to -0.020, Holm's p 0.012)" in text
    undecided = report.answer(gain.assign(p_holm=0.32), **given)  # although the interval leaves out zero
    assert "whether it is more accurate than resnet is undecided (-0.100, -0.200 to -0.020, Holm's p 0.32)" in undecided
    assert "whether it is more accurate" in report.answer(gain, **given | {"confidence": 0.99})  # 0.012 is below 5 %, not below 1 %


def test_scales_on_the_way_are_told_where_holm_is_sure_of_them():
    values = {"estimate": [-0.01, 0.02, -0.03, -0.04, -0.5], "p_holm": [0.5, 0.01, 0.02, 0.0, 0.06]}
    gain = pd.DataFrame(values, index=[0.0, 0.5, 1.0, 1.5, 2.0])
    said = report.elsewhere(gain, "resnet", alpha=0.05)
    less = "it is surely less accurate than resnet at scale 1 (-0.030) and 1.5 (-0.040)."
    assert said == f"It is surely more accurate than resnet at scale 0.5 (+0.020); {less}"
    assert report.elsewhere(gain.iloc[:1], "resnet", alpha=0.05).startswith("At no other scale is it surely")
