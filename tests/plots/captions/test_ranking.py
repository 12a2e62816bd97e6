"""Captions about orders: the numbers of hand-made tables stand in the sentences."""

import pandas as pd
import pytest

from cnslib.plots.captions import ranking
from cnslib.stats.accuracy import ALL

AGREEMENT = pd.DataFrame(
    {
        "shift": [ALL, ALL, "snow", "snow"],
        "scale": [0.0, 2.5] * 2,
        "estimate": [1.0, 0.6, 1.0, -0.2],
        "low": [1, 0.4, 1, -0.5],
        "high": [1, 0.8, 1, 0.1],
    }
)
FLIPS = pd.DataFrame(
    {"first": ["a", "a", "b"], "second": ["b", "c", "c"], "scale": 0.0, "other_scale": 2.5, "probability": [0.99, 0.96, 0.5]}
)


def test_ranks_are_told_by_tau_and_by_who_moves():
    assert ranking.titles(AGREEMENT, "snow") == {ALL: f"{ALL}, tau 0.60", "snow": "snow, tau -0.20"}
    caption = ranking.ranks(AGREEMENT, "snow", {ALL: 300, "snow": 70}, note="x")
    assert caption.startswith("The order at scale 2.5 agrees with that at scale 0 by tau 0.60, under snow by -0.20. n = 300 and 70")
    rows = [("a", 0.0, 3.0, 3.0, 3.0), ("a", 2.5, 1.0, 1.0, 2.0), ("b", 0.0, 1.0, 1.0, 1.0), ("b", 2.5, 2.0, 1.0, 4.0)]
    table = pd.DataFrame(rows, columns=["model", "scale", "estimate", "low", "high"]).assign(shift=ALL)
    seen = ranking.ranks_seen(table)
    assert "a from place 3 to 1 gains most and b from place 1 to 2 loses most" in seen and "2 places wide" in seen


def test_pairs_are_counted_as_sure_safe_or_open():
    assert ranking.probability(FLIPS) == (2, 0, 1)
    assert ranking.flips(FLIPS, 300).startswith(
        "2 of 3 pairs change places nearly surely, and 0 keep theirs. n = 300 trajectories; order at scale 0 against scale 2.5"
    )
    seen = ranking.flips_seen(FLIPS)
    assert seen.startswith("1 of 3 pairs stay open") and seen.endswith("Nearly surely a changes places with 2 others, more than the rest.")
    assert "Nearly surely a and b change places with 1 other," in ranking.flips_seen(FLIPS[:1])
    assert ranking.flips_seen(FLIPS[2:]).endswith("No pair surely changes places.")


def test_agreement_is_told_for_all_shifts_and_counted_for_single_ones():
    assert "fades most under snow (-0.20) and least under fog (0.50) (tau)" in ranking.agreement(
        pd.Series({"snow": -0.2, "fog": 0.5}), 23, [300], note="x"
    )
    seen = ranking.agreement_seen(AGREEMENT)
    assert "tau with the order at scale 0 is 0.60 (0.40 to 0.80)" in seen and "Under 0 of 1 shifts" in seen


def test_pairs_that_a_test_tells_apart_are_counted_at_both_ends():
    told = pd.DataFrame({"pairs": [10, 10, 10], "paired": [4, 5, 6], "paired, Holm": [1, 2, 3]}, index=[0.0, 1.0, 2.5])
    seen = ranking.told_seen(told)
    assert "tells 1 of 10 pairs apart at scale 0 and 3 at scale 2.5" in seen


ALONE = pd.Series({"estimate": 0.55, "low": 0.2, "high": 0.7})


@pytest.mark.parametrize(
    ("published", "word"),
    [
        ([0.9, 0.9], "at 2 and below it at none: where it lies above, our order fades faster."),
        ([0.5, 0.1], "at none and below it at 1: where it lies below, our order lasts longer."),
        ([0.5, 0.5], "at none and below it at none: neither order surely fades faster."),
        ([0.9, 0.1], "at 1 and below it at 1: our order fades faster at the first and lasts longer at the second."),
    ],
)
def test_the_published_order_fades_faster_or_slower_where_it_lies_outside_our_interval(published, word):
    text = "Of 2 scales, the published tau lies above our whole interval"
    assert ranking.paper_seen(pd.DataFrame({"low": 0.4, "high": 0.6, "published": published})) == f"{text} {word}"


def test_the_answer_holds_both_targets_and_the_pairs():
    text = ranking.answer(AGREEMENT, {"low": 0.1, "high": 0.9}, ALONE, FLIPS)
    assert text.startswith("**No, it changes: Kendall's tau")
    assert ranking.answer(AGREEMENT.assign(high=1), {"low": 0, "high": 1}, ALONE, FLIPS).startswith("**A change is not certain: Kendall's")
    assert "is 0.60 (0.40 to 0.80; for other classes 0.10 to 0.90), 0.55 (0.20 to 0.70) without the classifiers of" in text
    assert (
        "each pair by itself, 2 of 3 change places in over 95% of the resamples, 0 keep their order as surely, and the other 1 stay open.**"
        in text
    )
    assert ranking.kinds(4)[1] == "without the generator's pool (4)"
    assert ranking.left_out(["web", "clip"]) == "without the generator's pool: web and clip left out"
