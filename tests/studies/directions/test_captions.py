"""What is said of shifts by text: every sentence follows from its verdict and its numbers."""

import numpy as np
import pandas as pd
import pytest

from cnslib.stats import verdicts
from cnslib.studies.directions import captions


def record(estimate, low, high, n=40):
    return {"n": n, "estimate": estimate, "low": low, "high": high}


@pytest.mark.parametrize(
    ("numbers", "opening"),
    [
        ((0.10, 0.04, 0.16), "Not as well: "),
        ((0.03, 0.01, 0.04), "Not as well: "),
        ((-0.10, -0.16, -0.04), "Yes, and better: "),
        ((0.01, -0.02, 0.04), "Yes, within 0.05: "),
        ((0.01, -0.09, 0.11), "Undecided: "),
    ],
)
def test_the_answer_opens_with_what_the_interval_decides(numbers, opening):
    ours = record(*numbers)
    claim = verdicts.statements({"knob": ours}, pd.DataFrame({"id": ["knob"], "quantity": ["q"], "published": ["above 0"]})).iloc[0]
    said = captions.knob(claim, ours)
    assert said.startswith(opening) and f"{numbers[0]:+.2f} ({numbers[1]:+.2f} to {numbers[2]:+.2f}) (n = 40)" in said
    assert ("could have been told" in said) == (numbers[1] < 0 < numbers[2])


def test_nothing_gained_is_nothing_measured():
    assert captions.knob(pd.Series({"verdict": "not measured"}), record(np.nan, np.nan, np.nan, n=0)).startswith("Not measured")


def test_the_sentence_on_equal_gain_takes_its_words_from_the_intervals():
    rows = {"class token": (-0.1, -0.2, -0.05), "end tokens": (0.1, 0.05, 0.2), "whole text": (0.0, -0.1, 0.1)}
    level = pd.DataFrame([{"method": name, "measure": "structure", **record(*row)} for name, row in rows.items()])
    shifts = pd.DataFrame({"estimate": {"heavy fog": -0.03, "heavy snow": 0.04}})
    said = captions.equal_gain_seen(level, shifts)
    assert "less than the class token (-0.10 (-0.20 to -0.05))" in said
    assert ", more than the end tokens (" in said and "and not surely more or less than the whole text (" in said
    assert said.endswith("from -0.03 under heavy fog to +0.04 under heavy snow.")


def test_the_caption_of_the_boxes_tells_their_quartiles():
    rows = [{"column": "2.5", "scale": 2.5, "gain": gain} for gain in (0.0, 0.1, 0.2, 0.3, 0.4)]
    rows += [{"column": "two prompts", "scale": 1.0, "gain": gain} for gain in (0.0, 0.2, 0.4, 0.6, 0.8)]
    rows += [{"column": "1", "scale": 1.0, "gain": 9.0} for _ in range(5)]
    said = captions.spread(pd.DataFrame(rows))
    assert "0.10 to 0.30 by the slider at 2.5" in said and "0.20 to 0.60 by two prompts" in said and "n = 5" in said
