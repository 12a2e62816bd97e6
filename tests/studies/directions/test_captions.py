"""What is said of shifts by text: every sentence follows from its verdict and its numbers."""

import numpy as np
import pandas as pd
import pytest

from cnslib.stats import verdicts
from cnslib.studies.directions import captions, findings


def record(estimate, low, high, n=40):
    return {"n": n, "estimate": estimate, "low": low, "high": high}


@pytest.mark.parametrize(
    ("numbers", "opening"),
    [
        ((0.10, 0.04, 0.16), "Not as well: "),
        ((0.03, 0.01, 0.04), "Not as well: "),
        ((-0.10, -0.16, -0.04), "Yes, and better: "),
        ((0.01, -0.02, 0.03), "Yes, to within 0.030, half of what the slider loses: "),
        ((0.01, -0.02, 0.04), "Undecided: "),
        ((0.01, -0.09, 0.11), "Undecided: "),
    ],
)
def test_the_answer_opens_with_what_the_interval_decides(numbers, opening):
    ours = record(*numbers)
    claim = verdicts.statements({"knob": ours}, pd.DataFrame({"id": ["knob"], "quantity": ["q"], "published": ["above 0"]})).iloc[0]
    said = captions.knob(claim, ours, 0.06, 4)
    told = f"{numbers[0]:+.3f} ({numbers[1]:+.3f} to {numbers[2]:+.3f}) on average over 4 shifts, where the slider has lost 0.060 (n = 40)."
    assert said.startswith(opening) and said.endswith(told)


def test_nothing_gained_is_nothing_measured():
    assert captions.knob(pd.Series({"verdict": "not measured"}), record(np.nan, np.nan, np.nan, n=0), np.nan, 4).startswith("Not measured")


def test_single_shifts_are_named_where_their_own_interval_leaves_out_zero():
    shifts = pd.DataFrame({"fog": record(0.01, -0.02, 0.04), "snow": record(-0.04, -0.06, -0.01), "rain": record(0.05, 0.01, 0.09)}).T
    said = captions.one_by_one(shifts)
    assert said == "Shift by shift, the two surely differ under snow, -0.040 (-0.060 to -0.010) and rain, +0.050 (+0.010 to +0.090)."
    assert captions.one_by_one(shifts[:1]).endswith("surely under none.")


def test_the_sentence_on_equal_gain_takes_its_words_from_the_intervals():
    rows = {"class token": (-0.1, -0.2, -0.05), "end tokens": (0.1, 0.05, 0.2), "whole text": (0.0, -0.1, 0.1)}
    level = pd.DataFrame([{"method": name, "measure": "structure", **record(*row)} for name, row in rows.items()])
    shifts = pd.DataFrame({"heavy fog": record(-0.03, -0.05, -0.01), "heavy snow": record(0.04, 0.0, 0.08)}).T
    said = captions.equal_gain_seen(level, shifts)
    assert said.startswith("By the structure left at equal gain the slider keeps less than the class token (-0.100 (-0.200 to -0.050)); it")
    assert "; it keeps more than the end tokens (" in said and "; it cannot be told from the whole text (" in said
    none = captions.equal_gain_seen(level.assign(low=-0.3, high=0.3), shifts)
    assert "slider cannot be told from the class token (" in none and "), the end tokens (" in none and ") and the whole text (" in none
    assert said.endswith("from -0.030 (-0.050 to -0.010) under heavy fog to +0.040 (+0.000 to +0.080) under heavy snow.")


def test_the_caption_of_the_boxes_tells_their_quartiles():
    rows = [{"column": "2.5", "scale": 2.5, "gain": gain} for gain in (0.0, 0.1, 0.2, 0.3, 0.4)]
    rows += [{"column": "two prompts", "scale": 1.0, "gain": gain} for gain in (0.0, 0.2, 0.4, 0.6, 0.8)]
    rows += [{"column": "1", "scale": 1.0, "gain": 9.0} for _ in range(5)]
    said = captions.spread(pd.DataFrame(rows))
    assert "0.10 to 0.30 by the slider at 2.5" in said and "0.20 to 0.60 by two prompts" in said and "n = 5" in said


def test_captions_tell_what_is_gained_beside_what_is_left():
    rows = [("slider", 1.4, 0.67), ("two prompts", 1.3, 0.9), ("whole text", 1.35, 0.88), ("class token", 0.2, 0.95)]
    own = pd.DataFrame(rows, columns=["method", "gain", "structure"]).assign(shift="heavy snow", seed=1, rising=0.2, **{"class": "bag"})
    key = ("heavy snow", "bag", 1)
    said = captions.strip(own, key)
    assert said.startswith("Alignment gained and structure left at the end: slider 1.40 and 0.67, two prompts 1.30 and 0.90, whole text")
    best = captions.fails(own, dict.fromkeys(findings.EXAMPLES, key))
    assert best.startswith("Where it gains most, 0.20, the class token leaves 0.95 of the structure; the least that it leaves is 0.95, and")
    assert "the fewest rises are 20% of the steps. One" in best


def test_a_path_that_has_its_gain_early_pays_for_the_rest_of_the_way():
    paths = {"slider": [(0, 0, 1), (1, 0.5, 0.9), (2, 1.0, 0.8)], "whole text": [(0, 0, 1), (1, 0.95, 0.9), (2, 1.0, 0.7)]}
    names = ["method", "scale", "gain_estimate", "structure_estimate"]
    said = captions.plane_seen(pd.DataFrame([(name, *row) for name, path in paths.items() for row in path], columns=names))
    assert said.startswith(
        "The slider has nine tenths of its gain at 2, with 0.80 of the structure; what follows brings 0.00 and costs 0.00. "
    )
    assert "The whole text has nine tenths of its gain at 1, with 0.90 of the structure; what follows brings 0.05 and costs 0.20." in said


def test_the_answer_on_texts_says_what_a_plain_prompt_lacks():
    claims = pd.DataFrame({"verdict": ["undecided"]}, index=["knob"])
    shifts = pd.DataFrame({"fog": record(0.01, -0.02, 0.04)}).T
    said = captions.answer(claims, {"knob": record(0.01, -0.02, 0.04)}, 0.5, shifts)
    assert said.startswith("Yes, to within 0.050: ") and "under none. A plain" in said
    assert said.endswith("A plain prompt has no knob: it makes the whole way in one step.")
