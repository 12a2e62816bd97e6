"""What notebook 23 says: each sentence follows its numbers."""

import pandas as pd
import pytest

from cnslib.studies.validation import findings
from cnslib.studies.validation.screening import ALONE, FILTER, LABELS, NONE, RELEASED


def numbers(rows: list[tuple], *keys: str) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=[*keys, "estimate", "low", "high"])


QUALITY = numbers(
    [
        ("the pair", RELEASED, "tpr", 0.9, 0.8, 1.0),
        ("the pair", RELEASED, "fpr", 0.2, 0.1, 0.3),
        ("the pair", FILTER, "tpr", 0.61, 0.5, 0.7),
        ("the pair", FILTER, "fpr", 0.03, 0.02, 0.04),
        ("the other shifts", RELEASED, "tpr", 0.93, 0.89, 0.98),
        ("the other shifts", RELEASED, "fpr", 0.4, 0.39, 0.42),
        ("the other shifts", ALONE, "tpr", 0.91, 0.8, 1.0),
        ("the other shifts", ALONE, "fpr", 0.33, 0.3, 0.4),
        ("the other shifts", FILTER, "tpr", 0.85, 0.8, 0.88),
        ("the other shifts", FILTER, "fpr", 0.1, 0.08, 0.11),
    ],
    "part",
    "rule",
    "measure",
)
LAST = numbers(
    [(LABELS, 0, 0, 0), (NONE, 0.02, 0.01, 0.03), (RELEASED, -0.11, -0.13, -0.08), (FILTER, -0.05, -0.06, -0.04)], "rule"
).set_index("rule")
PAIR = {"pair": ["snow", "cartoon"]}


GAPS = numbers([("closer than no filter", 0.09, 0.05, 0.12)], "claim").set_index("claim")


def test_the_best_detector_is_named_by_part():
    rows = [("the pair", "a", 0.9, 0.8, 1.0), ("the pair", "b", 0.7, 0.6, 0.8), ("the other shifts", "b", 0.8, 0.7, 0.9)]
    said = findings.areas_told(numbers(rows, "part", "detector"))
    assert said == "Largest area under the curve: on the pair a, 0.90 (0.80 to 1.00); on the other shifts b, 0.80 (0.70 to 0.90)"
    poor = findings.areas_told(numbers([*rows, ("the other shifts", "c", 0.5, 0.4, 0.6)], "part", "detector"))
    assert poor == f"{said}. Not surely better than a coin: c on the other shifts, 0.50 (0.40 to 0.60)"


def test_a_rule_is_told_beside_clip_alone_and_the_answer_asks_the_other_shifts():
    said = findings.rule_told(QUALITY, RELEASED, "the other shifts")
    beside = f"{ALONE} 91% and 33%, {FILTER} 85% and 10%"
    assert said.endswith(f"{RELEASED} drops 93% of the lost pictures and 40% of the good ones, {beside}")
    whole = findings.answer(QUALITY, LAST, GAPS, RELEASED, "labels: oracle", **PAIR)
    assert whole.startswith(
        "No, results lie further from the labels with a filter by the paper's recipe than without one: the accuracy drop"
    )
    assert "by -0.11 (-0.13 to -0.08) with it and +0.02 (+0.01 to +0.03) without. Its thresholds come from the labels of snow and" in whole
    assert "cartoon: it finds 93% (89% to 98%) of the out-of-class pictures of the other shifts and drops 40% (39% to 42%) of the" in whole
    unknown = QUALITY.assign(estimate=QUALITY["estimate"].where(QUALITY["part"] == "the pair"))
    pair = findings.answer(unknown, LAST, GAPS, RELEASED, "labels: oracle", **PAIR)
    assert "finds 90% (80% to 100%) of the out-of-class pictures of the pair" in pair


def test_the_answer_tells_the_papers_recipe_from_the_filter_of_notebook_04():
    said = findings.answer(QUALITY, LAST, GAPS, RELEASED, "labels: oracle", **PAIR)
    other = (
        "It is not the filter of notebook 04, whose thresholds come from the oracle's labels of all shifts; that one finds 85% (80% to 88%)"
    )
    assert other in said and "drops 10% (8% to 11%) of the good ones, and with it the drop differs by -0.05 (-0.06 to -0.04)." in said


@pytest.mark.parametrize(("low", "high", "opening"), [(-0.2, -0.1, "Yes, "), (-0.2, 0.1, "Undecided, "), (0.1, 0.2, "No, ")])
def test_the_answer_opens_with_what_the_distance_from_the_labels_says(low, high, opening):
    gaps = GAPS.assign(low=low, high=high)
    assert findings.answer(QUALITY, LAST, gaps, RELEASED, "labels: oracle", **PAIR).startswith(opening)


def test_accuracy_is_told_beside_a_rule_that_drops_nothing():
    rows = [("the pair", NONE, "accuracy", 0.99, 0.98, 1.0), ("the pair", RELEASED, "accuracy", 0.7, 0.6, 0.8)]
    said = findings.base_rate_told(numbers(rows, "part", "rule", "measure"), RELEASED, "the pair")
    nothing = "a rule that drops nothing gives 99% (98% to 100%) right verdicts, since as many are in class"
    assert said == f"On the pair {nothing}; {RELEASED} gives 70% (60% to 80%)."


def test_a_promise_is_asked_of_whole_intervals_on_shifts_that_had_no_say():
    rows = [("a", 0.8, 0.7, 0.85), ("b", 0.89, 0.8, 0.95), ("c", None, None, None), ("d", 0.99, 0.95, 1.0), ("snow", 0.5, 0.4, 0.6)]
    table = pd.DataFrame(rows, columns=["part", "estimate", "low", "high"]).assign(rule=RELEASED, measure="tpr", thresholds="from the pair")
    own = table.head(2).assign(low=0.91, high=1.0, thresholds="from its own labels")
    every = pd.concat([table, own], ignore_index=True)
    assert findings.promise_told(every, "1 of 4", 0.9, ["snow"]).startswith("Beyond snow no shift has lost pictures")
    said = findings.promise_told(every, RELEASED, 0.9, ["snow"])
    first = f"{RELEASED} surely finds fewer than 90% of the lost pictures with thresholds from the pair on 1 of 3 other shifts (a)"
    assert said == f"{first}, surely more on 1; with thresholds from its own labels on 0 of 2 other shifts, surely more on 2"


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (-0.14, -0.08, "certainly too small, by 0.11 (0.08 to 0.14)"),
        (-0.13, 0.02, "too small, by 0.06 (-0.02 to 0.13)"),
        (0.08, 0.14, "certainly too large, by 0.11 (0.08 to 0.14)"),
    ],
)
def test_a_drop_is_certainly_off_where_its_whole_interval_is(low, high, words):
    last = LAST.copy()
    last.loc[RELEASED] = [(low + high) / 2, low, high]
    said = findings.curves_told(last, RELEASED)
    assert said.startswith(f"Under {RELEASED} the drop is {words}; closest") and said.endswith(f"comes {NONE}, +0.02 (+0.01 to +0.03)")


def test_what_was_set_and_what_hangs_on_how_many_are_lost_is_seen_from_nothing():
    assert findings.seen_from("CLIP", "the pair", "tpr") is None and findings.seen_from("ours", "the other shifts", "accuracy") is None
    others = [("CLIP", "the pair", "fpr"), ("CLIP", "the other shifts", "tpr"), ("ours", "the pair", "tpr")]
    assert [findings.seen_from(*key) for key in others] == [0.5] * 3


def test_the_last_scale_and_the_study_are_told():
    tau = numbers([(RELEASED, 0.5, 0.9, 0.8, 1.0), (RELEASED, 2.5, 0.69, 0.55, 0.86)], "rule", "scale")
    assert findings.order_told(tau, RELEASED).endswith("is 0.90 (0.80 to 1.00) at scale 0.5 and 0.69 (0.55 to 0.86) at scale 2.5")
    shares = numbers([("paper (people)", 0.01, 0.0, 0.03), ("sample (oracle, asked twice)", 0.03, 0.02, 0.06)], "what")
    said = findings.study_told(shares)
    ours, theirs = "3.0% (2.0% to 6.0%) are out of class in the sample (oracle, asked twice)", "1.0% (0.0% to 3.0%) in the paper (people)"
    assert said == f"Of what is left, {ours}, {theirs}"
