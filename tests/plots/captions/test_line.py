"""Captions about lines: the numbers of hand-made tables stand in the sentences, and what is said follows from the intervals."""

import pandas as pd
import pytest

from cnslib.plots.captions import line
from cnslib.stats.accuracy import ALL

SLOPES = pd.DataFrame(
    {
        "shift": [ALL, ALL, "heavy snow", "heavy fog"],
        "scale": [0.0, 2.5, 2.5, 2.5],
        "n": [300, 300, 100, 200],
        "estimate": [0.5, 1.5, 1.2, 0.3],
        "low": [0.1, 1.2, 0.1, -0.2],
        "high": [0.9, 1.8, 1.9, 0.8],
        "models": 12,
        "models_low": [0.0, 0.9, 0.2, -0.5],
        "models_high": [1.0, 2.1, 2.2, 1.1],
        "r": [0.2, 0.9, 0.8, -0.1],
        "r_low": [-0.3, 0.7, 0.5, -0.6],
        "r_high": [0.6, 0.97, 0.95, 0.4],
        "p_holm": [1, 0.001, 0.01, 0.9],
        "free": [0.3, 0.95, 0.9, -0.2],
    }
)
GAINS = pd.DataFrame(
    {
        "model": ["vit", "clip", "vit"],
        "line": [line.LINES[0], line.LINES[0], line.LINES[1]],
        "axes": "linear",
        "n": 300,
        "estimate": [0.1, -0.2, 0.5],
        "low": [0.05, -0.4, 0.4],
        "high": [0.2, 0.1, 0.6],
    }
)


def test_points_are_told_by_r_at_both_ends_and_under_the_shifts_shown():
    points = pd.DataFrame({"model": ["a", "b"], "n": [100, 300]})
    assert line.scatter(SLOPES, points, note="95% intervals").startswith(
        "R of accuracy with and without a shift is 0.20 at scale 0 and 0.90"
    )
    panels = dict.fromkeys([(ALL, 0.0), (ALL, 2.5), ("heavy snow", 2.5), ("heavy fog", 2.5)], "")
    seen = line.scatter_seen(SLOPES, panels)
    assert "no relation is certain at scale 0: R = 0.20 (-0.30 to 0.60" in seen and "the better classifiers stay better: R = 0.90" in seen
    assert seen.endswith("R is largest under heavy snow (0.80) and smallest under heavy fog (-0.10).")


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (1.1, 2, "the shift spreads these classifiers"),
        (0.1, 0.9, "less than their difference without a shift remains"),
        (-2, -0.1, "the shift turns their order round"),
        (-0.1, 0.9, "how much of their difference without a shift remains is not certain"),
        (0.5, 1.5, "how much of their difference without a shift remains is not certain"),
    ],
)
def test_what_a_slope_does_follows_from_its_interval(low, high, said):
    assert line.effect(pd.Series({"low": low, "high": high})) == said


def test_slopes_are_told_on_both_axes():
    assert line.slopes(SLOPES, SLOPES["n"], note="x").startswith(
        "Over all shifts the slope goes from 0.50 at scale 0 to 1.50 at scale 2.5. 12 "
    )
    seen = line.slopes_seen(SLOPES, SLOPES.assign(estimate=1.0))
    assert "1.50 (1.20 to 1.80) for other images, 0.90 to 2.10 for other classifiers" in seen
    assert seen.endswith("from 0.50 to 1.50 on linear axes and from 1.00 to 1.00 on probit axes.")


def test_tests_count_single_shifts_alone():
    assert line.tests(SLOPES, SLOPES["n"], alpha=0.05).startswith("1 of 2 lines of a shift")
    seen = line.tests_seen(SLOPES, alpha=0.05)
    assert seen.startswith("1 lines surely rise, 0 surely fall, and 1 are undecided") and "heavy snow at scale 2.5: 0.80" in seen
    assert seen.endswith("farther from zero by 0.10 on average.")


def test_gains_are_those_over_the_line_of_all():
    assert line.gain(GAINS, note="x").startswith("Farthest above the line of all stands vit (+0.10), farthest below clip (-0.20)")
    seen = line.gain_seen(GAINS, ["clip", "absent"])
    assert seen.startswith("1 of 2 classifiers stand surely above the line of all, 0 surely below")
    assert seen.endswith("Those of the generator's pool: clip -0.20 (-0.40 to +0.10).")


def test_a_map_of_gains_counts_what_chance_would_give():
    table = GAINS.assign(shift=["heavy snow", "heavy snow", "heavy fog"], scale=2.5).assign(estimate=[0.1, -0.2, -0.5])
    assert "vit under heavy snow (+0.10), the farthest below vit under heavy fog (-0.50)" in line.gain_map(table, [300], note="x")
    seen = line.gain_map_seen(table, confidence=0.5)
    assert seen.startswith("2 of 3 fields of single shifts have a number; chance alone would give about 2") and "0 of 2 classifiers" in seen
    sure = line.gain_map_seen(table.assign(low=[0.05, -0.4, -0.6], high=[0.2, 0.1, -0.4]), confidence=0.5)
    assert sure.endswith("1 of 2 classifiers have a number above zero under one shift and one below zero under another.")


def test_the_family_whose_absence_moves_the_slope_most():
    changes = {"change_estimate": [0.0, -0.4, 0.1], "change_low": [0, -0.6, 0], "change_high": [0, -0.2, 0.2]}
    table = pd.DataFrame({"left_out": [line.NONE, "vit", "resnet"], "n": 300, "estimate": [1, 0.6, 1.1], **changes})
    assert line.left_out(table, 12, note="x").startswith("Without vit the slope changes most, by -0.40. 12 classifiers")
    assert line.left_out_seen(table).endswith("The largest change is that without vit: -0.40 (-0.60 to -0.20).")


def test_size_says_what_is_certain_and_that_its_intervals_are_too_short():
    table = pd.DataFrame({"shift": ALL, "family": "vit", "scale": [0.5, 2.5], "n": 300, "estimate": [0.1, 0.4]})
    assert "correlate by 0.40 (vit) at the last scale. n = 300" in line.size(table.assign(low=-0.1, high=0.5), note="x")
    assert line.size(table.assign(low=-0.1, high=0.5), note="x").endswith("; bars: x; with the noise of ID accuracy, so too short")
    none = "No bar leaves out zero: no effect of size is certain here."
    assert line.size_seen(table.assign(low=-0.1, high=0.5)) == line.size_seen(table.head(0).assign(low=0.0, high=0.0)) == none
    assert line.size_seen(table.assign(low=[-0.1, 0.1], high=0.5)) == (
        "Bars above zero: 1 of 2; below zero: 0; with zero inside: 1. "
        "All have the noise of ID accuracy in them, and such intervals hold the truth too rarely."
    )
    assert line.size(table.head(0), note="x") == "No family has enough sizes"


def test_families_with_a_certain_partial_correlation_are_named():
    table = pd.DataFrame({"family": ["vit", "resnet"], "low": [0.1, -1.0], "high": [0.9, 0.5]})
    assert line.partial_seen(table).endswith("surely above zero in vit and surely below zero in none of the families.")
    assert line.partial_seen(table.assign(low=-1.0)).startswith("Without noise no family")


def test_the_answer_holds_r_tests_and_size():
    rest = pd.DataFrame({"family": ["vit"], "estimate": [0.01], "low": [-0.005], "high": [0.02]})
    text = line.answer(SLOPES.iloc[1], 0.25, (3, 84), (rest, rest), GAINS)
    assert text.startswith(
        "**Yes: by accuracy under the shifts 1 of 2 classifiers stand surely above the line and 0 surely below it.** At "
    )
    assert line.off_the_line(GAINS.assign(low=-1.0, high=1.0)).startswith("Not for certain: by")
    assert "follows accuracy without one: R = 0.90 (0.70 to 0.97" in text and "0.25 without" in text and "3 of 84 lines" in text
    above = "Measured from the line of the supervised classifiers, twice the weights change accuracy under the shifts by +0.010"
    assert text.endswith(f"{above} (-0.005 to +0.020) in vit{line.NOISE}. {line.partial_seen(rest)}")
    none = line.answer(SLOPES.iloc[0], 0.25, (3, 84), (rest.head(0), rest.head(0)), GAINS)
    assert "cannot be said" in none and "weights" not in none
    assert line.classifiers(["vit"], {"vit": ["vit", "vit_l"]}) == "1 classifiers; in the families but not evaluated: vit_l"
