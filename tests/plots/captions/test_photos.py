"""Captions about photographs: the numbers of hand-made tables stand in the sentences."""

import numpy as np
import pandas as pd

from cnslib.plots.captions import photos
from cnslib.stats.accuracy import ALL, NEVER

LAST = pd.DataFrame({"shift": ["fog", "snow"], "n": 88, "estimate": [0.6, 0.1], "low": [0.5, 0.0], "high": [0.7, 0.2]})
FATES = pd.DataFrame(
    [
        (s, "lite0", scale, v)
        for s, row in {"fog": (0.2, 0.1, 0.7), "snow": (0.2, 0.7, 0.1)}.items()
        for scale, v in zip((0.0, 1.0, NEVER), row, strict=True)
    ],
    columns=["shift", "model", "scale", "estimate"],
)


def test_cut_outs_are_counted_by_class():
    places = pd.DataFrame({"class": ["cock", "cock", "lion"]})
    assert photos.samples(places).startswith("3 cut-outs of 2 classes")
    assert photos.samples_seen(places) == "1 of 2 classes have a single cut-out; cock has most, 2."


def test_strips_name_what_is_lost_first_and_what_never():
    rows = pd.DataFrame(
        {"shift": ["fog", "snow", "rain"], "model": "lite2", "failed": [True, True, False], "failure_point": [0.5, 1.0, np.nan]}
    )
    assert photos.strips(rows).startswith("2 of these 3 objects are lost to lite2")
    assert photos.strips_seen(rows).startswith("First lost, at severity 0.5: the objects under fog. Never lost: rain.")
    assert photos.strips_seen(rows[2:]) == "None of the objects shown is lost."


def test_losses_are_those_above_severity_0():
    assert photos.lost(FATES).to_dict() == {"fog": 0.1, "snow": 0.7}
    assert photos.accuracy(FATES, np.array([88]), note="x").startswith(
        "These classifiers lose another 70% of the objects under snow, 10% under fog. n = 88"
    )
    level = FATES.assign(estimate=FATES["estimate"].where(FATES["scale"] != 1.0, 0.7))
    assert photos.accuracy(level, np.array([88]), note="x").startswith(
        "These classifiers lose another 70% of the objects under fog and snow"
    )
    assert photos.accuracy_seen(FATES).startswith("20% of the objects are wrong without any shift")
    assert photos.accuracy_seen(FATES).endswith("takes another 40%, and 1 of 2 shifts take more than half.")


def test_steps_and_hard_shifts_are_counted_by_their_intervals():
    assert (
        photos.falls(pd.DataFrame({"low": [-0.3, -0.1, 0.1], "high": [-0.1, 0.1, 0.2]}))
        == "1 of 3 steps of the mean curve are falls, 1 are rises"
    )
    assert "lowest under snow (10%) and highest under fog (60%). n = 88" in photos.hardness(LAST, note="x")
    assert "lowest under fog and snow (10%) and" in photos.hardness(LAST.assign(estimate=[0.1 + 1e-12, 0.1]), note="x")
    seen = photos.hardness_seen(LAST, 0.8)
    assert (
        seen.startswith("The hardest 2: snow, 10% (0% to 20%) and fog")
        and "1 of 2 shifts surely cost more than half of the accuracy of 80%" in seen
    )


def test_ratios_and_ranks_name_the_classifiers():
    average = pd.DataFrame(
        {"measure": ["CE", "CE", "rCE"], "model": ["lite0", "lite2", "lite2"], "n": 88, "estimate": [1.0, 0.8, 1.1], "high": [1, 0.9, 1.2]}
    )
    assert photos.ratios(average, reference="lite0", note="x").startswith("By CE lite2 (0.80) is best and lite0 (1.00) worst. n = 88")
    assert photos.ratios_seen(average, "lite0") == "Surely better than lite0, by CE: lite2; by rCE: none."
    table = pd.DataFrame({"shift": ALL, "scale": 1.0, "model": ["lite0", "lite2"], "estimate": [2.0, 1.0]})
    assert photos.ranks(table, 1232, note="x").startswith("Ranks at the last severity: lite2 (1) and lite0 (2). n = 1,232")
    assert photos.ranks_seen(pd.DataFrame({"p_holm": [0.01, 0.08]}), 0.95) == (
        "1 of 2 comparisons of two classifiers at one severity are decided (Holm's p below 0.05)."
    )
    assert photos.ranks_seen(pd.DataFrame({"p_holm": [0.01, 0.08]}), 0.9).startswith("2 of 2 comparisons")


def test_the_answer_lists_the_shifts_that_take_half():
    median = pd.DataFrame({"shift": ["fog", "snow"], "estimate": [np.inf, 0.75]})
    top = pd.Series({"estimate": 0.8, "low": 0.7, "high": 0.9}, name="lite2")
    text = photos.answer(top, pd.DataFrame({"scale": [0.0, 0.5], "estimate": [0.8, 0.3]}), median, 3)
    assert text.startswith(
        "**From somewhere between severity 0.5 and 0.75 of snow on lite2 fails on half of the objects.** "
        "lite2 names 80% (70% to 90%) of the unshifted photographs right; the accuracy of 3 classifiers falls from 80% to 30%"
    )
    assert photos.by_snow(median.assign(estimate=np.inf), "lite2", [0.0]).startswith("No severity of snow makes lite2")
    assert photos.by_snow(median.assign(estimate=0.0), "lite2", [0.0, 0.5]).startswith(
        "lite2 fails on half of the objects without any snow"
    )
    assert photos.by_snow(median.iloc[:1], "lite2", [0.0]) == ""
    assert text.endswith("lost to lite2 under 1 of 2 shifts: snow at 0.75.")
