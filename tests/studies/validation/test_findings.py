"""What notebook 23 says: each sentence follows its numbers."""

import pandas as pd
import pytest

from cnslib.studies.validation import findings
from cnslib.studies.validation.screening import ALONE, LABELS, NONE, RELEASED


def numbers(rows: list[tuple], *keys: str) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=[*keys, "estimate", "low", "high"])


QUALITY = numbers(
    [
        ("the pair", RELEASED, "tpr", 0.9, 0.8, 1.0),
        ("the pair", RELEASED, "fpr", 0.2, 0.1, 0.3),
        ("the other shifts", RELEASED, "tpr", 0.93, 0.89, 0.98),
        ("the other shifts", RELEASED, "fpr", 0.4, 0.39, 0.42),
        ("the other shifts", ALONE, "tpr", 0.91, 0.8, 1.0),
        ("the other shifts", ALONE, "fpr", 0.33, 0.3, 0.4),
    ],
    "part",
    "rule",
    "measure",
)
LAST = numbers([(LABELS, 0, 0, 0), (NONE, 0.02, 0.01, 0.03), (RELEASED, -0.11, -0.13, -0.08)], "rule").set_index("rule")


def test_the_best_detector_is_named_by_part():
    rows = [("the pair", "a", 0.9, 0.8, 1.0), ("the pair", "b", 0.7, 0.6, 0.8), ("the other shifts", "b", 0.8, 0.7, 0.9)]
    said = findings.areas_told(numbers(rows, "part", "detector"))
    assert said == "Largest area under the curve: on the pair a, 0.90 (0.80 to 1.00); on the other shifts b, 0.80 (0.70 to 0.90)"


def test_a_rule_is_told_beside_clip_alone_and_the_answer_asks_the_other_shifts():
    said = findings.rule_told(QUALITY, RELEASED, "the other shifts")
    assert said.endswith(f"{RELEASED} drops 93% of the lost pictures and 40% of the good ones, {ALONE} 91% and 33%")
    whole = findings.answer(QUALITY, LAST, RELEASED, ["heavy snow", "cartoon style"], "labels: oracle")
    assert "finds 93% (89% to 98%) of the out-of-class pictures of the other shifts and drops 40% (39% to 42%)" in whole
    assert f"comes {NONE} (labels: oracle)." in whole
    unknown = QUALITY.assign(estimate=QUALITY["estimate"].where(QUALITY["part"] == "the pair"))
    pair = findings.answer(unknown, LAST, RELEASED, ["heavy snow"], "labels: oracle")
    assert "finds 90% (80% to 100%) of the out-of-class pictures of the pair" in pair


def test_a_promise_is_kept_where_the_share_reaches_the_recall():
    rows = [("a", 0.9, "from the pair"), ("b", 0.89, "from the pair"), ("c", None, "from the pair"), ("a", 1.0, "from its own labels")]
    table = pd.DataFrame(rows, columns=["part", "estimate", "thresholds"]).assign(rule=RELEASED, measure="tpr")
    said = findings.promise_told(table, RELEASED, 0.9)
    ways = "1 of 2 shifts with thresholds from the pair and on 1 of 1 shifts with thresholds from its own labels"
    assert said == f"{RELEASED} finds 90% of the lost pictures on {ways}"


@pytest.mark.parametrize(
    ("low", "high", "words"), [(-0.13, -0.08, "certainly too small"), (-0.13, 0.02, "too small"), (0.08, 0.13, "certainly too large")]
)
def test_a_drop_is_certainly_off_where_its_whole_interval_is(low, high, words):
    last = LAST.copy()
    last.loc[RELEASED] = [(low + high) / 2, low, high]
    said = findings.curves_told(last, RELEASED)
    assert said.startswith(f"Under {RELEASED} the drop is {words}, by ") and said.endswith(f"comes {NONE} (+0.02)")


def test_the_last_scale_and_the_study_are_told():
    tau = numbers([(RELEASED, 0.5, 0.9, 0.8, 1.0), (RELEASED, 2.5, 0.69, 0.55, 0.86)], "rule", "scale")
    assert findings.order_told(tau, RELEASED).endswith("is 0.69 (0.55 to 0.86)")
    shares = numbers([("paper (people)", 0.01, 0.0, 0.03), ("sample (oracle, asked twice)", 0.03, 0.02, 0.06)], "what")
    said = findings.study_told(shares)
    assert (
        said == "Of what is left, 3% (2% to 6%) are out of class in the sample (oracle, asked twice), 1% (0% to 3%) in the paper (people)"
    )
