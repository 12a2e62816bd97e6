"""Captions about bisected failures: the numbers of hand-made tables stand in the sentences."""

import numpy as np
import pandas as pd
import pytest

from cnslib.plots.captions import bisection

RECORD = {"n": 20, "estimate": 0.5, "low": 0.25, "high": 0.75}
COST = pd.DataFrame({"resolution": [0.25, 0.25, 0.125, 0.125], "method": ["shared", "uniform"] * 2, "images": [100, 150, 110, 330]})


def test_two_failures_in_one_cell():
    shown = pd.DataFrame(
        {"model": ["vit", "resnet"], "until": [1.1, 1.4], "left": 1.0, "right": 1.5, "shift": "fog", "class": "bag", "seed": 3}
    )
    assert bisection.closeup(shown).startswith(
        "The grid sees one failure between scale 1 and 1.5; bisected, vit at 1.1 and resnet at 1.4. fog: bag, seed 3"
    )
    assert "0.30 of the slider's unit apart, 60% of the cell" in bisection.closeup_seen(shown)
    assert bisection.closeup_seen(shown[:1]).startswith("No two classifiers")


def test_survival_names_the_ends_and_the_tallest_box():
    rows = [("fog", 0.0, True, 0.9), ("fog", 1.0, True, 0.4), ("snow", 0.0, True, 0.8), ("snow", 1.0, True, 0.7)]
    table = pd.DataFrame(rows, columns=["shift", "scale", "grid", "estimate"]).assign(low=[np.nan] * 2 + [0.1] * 2)
    caption = bisection.survival(table, "shift", pd.Series([8]), of="mean over 2 classifiers", note="x")
    assert caption.startswith(
        "At the last scale snow (70%) has the most trajectories without failure, fog (40%) the fewest (mean over 2 classifiers). n = 8"
    )
    assert "band: x, none under fog, of too few seeds; grey" in caption
    assert "band: x; grey" in bisection.survival(table.assign(low=0.1), "shift", pd.Series([8]), of="mean", note="x")
    seen = bisection.survival_seen(table, "shift")
    assert "ends at scale 1 of fog: 50% of the trajectories fail inside" in seen and seen.endswith("a box holds 30.0% of the trajectories.")


def test_means_are_written_with_their_intervals():
    table = pd.DataFrame([{"model": "vit", "reading": "grid", **RECORD}])
    assert bisection.wide(table, ["grid"]).loc["vit", "grid"] == "0.500 (0.250 to 0.750)"


def test_scans_are_told_by_their_shares():
    share = {bisection.FIRST: RECORD, bisection.MONOTONE: RECORD, bisection.HIDDEN: {**RECORD, "n": 4}}
    assert bisection.scans(share, 3, 1 / 16).startswith("50% of 20 bisected points are the first failure. 3 trajectories at every 0.0625")
    seen = bisection.scans_seen(share)
    assert seen == (
        "50% (25% to 75%) of 20 rows that are right at scale 0 flip at most once. "
        "50% (25% to 75%) of the 4 that never fail on the grid fail between its scales."
    )
    assert bisection.scans_seen(share | {bisection.HIDDEN: {**RECORD, "n": 0}}).endswith("once. All fail on the grid.")


def test_cost_is_told_at_the_finest_resolution():
    assert bisection.cost(COST, trajectories=5, classifiers=2, brackets=7).startswith(
        "At the finest resolution bisection needs 110 pictures and a uniform grid 330. n = 5 trajectories"
    )
    assert "1.5 times at resolution 0.25 and 3.0 times at resolution 0.125" in bisection.cost_seen(COST)


def test_the_answer_holds_pictures_delay_order_and_first_failures():
    text = bisection.answer(pd.Series(RECORD), RECORD, {"estimate": 0.9, "low": 0.6, "high": 1.0}, COST, 1 / 8)
    assert text.startswith(
        "**On average a classifier fails 0.50 (0.25 to 0.75) of the slider's unit below the scale that the grid reports;"
    )
    assert "to 1/8 with 110 pictures, an even grid of that step with 330." in text
    assert "Kendall's tau 0.90 (0.60 to 1.00)" in text and "50% (25% to 75%) of 20 bisected points" in text


def test_a_number_without_an_interval_says_why():
    bare = {"n": 9, "estimate": 0.86, "low": np.nan, "high": np.nan}
    text = bisection.answer(pd.Series(bare), bare, bare, COST, 1 / 8)
    assert "Kendall's tau 0.86 (too few seeds for an interval);" in text and "nan" not in text


def test_pairs_told_apart_are_counted_for_every_reading():
    said = bisection.told_seen({"grid": (6, 28), "middle": (5, 28), "bisected": (7, 28)})
    assert said == (
        "Of 28 pairs of classifiers, each by itself, 6 (grid), 5 (middle) and 7 (bisected) are told apart. "
        "The bisected reading leaves 21 open; a finer scale told 1 more apart."
    )
    for finest in (5, 6):
        assert bisection.told_seen({"grid": (6, 28), "bisected": (finest, 28)}).endswith("open; a finer scale did not help.")


@pytest.mark.parametrize(("low", "high", "said"), [(0.1, 0.3, "Yes"), (-0.3, -0.1, "No"), (-0.1, 0.3, "Undecided")])
def test_a_guess_is_nearer_only_where_the_interval_says_so(low, high, said):
    assert bisection.guess_seen({"difference": {"estimate": 0.0, "low": low, "high": high}}).startswith(f"{said}: ")
