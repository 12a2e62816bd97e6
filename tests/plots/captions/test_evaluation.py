"""Captions about answers: the numbers of hand-made tables stand in the sentences."""

import pandas as pd

from cnslib.plots.captions import evaluation


def test_the_two_exams_are_compared():
    known = pd.DataFrame(
        {"exam": ["held out", "held out", "generated"], "model": ["a", "b", "a"], "n": [640, 640, 80], "estimate": [0.9, 0.7, 0.5]}
    )
    said = evaluation.catalog(known, confidence=0.9)
    assert "90% Wilson intervals" in said
    assert said.startswith("Mean accuracy: 80% (held out) and 50% (generated). n = 640 (held out) and 80 (generated);")
    cost = pd.DataFrame({"cost": [0.3, -0.1], "low": [0.2, -0.3], "high": [0.4, 0.1]}, index=["vit", "mae"])
    seen = evaluation.catalog_seen(cost)
    assert "-0.30 (-0.40 to -0.20) for *vit* to +0.10 (-0.10 to +0.30) for *mae*." in seen
    assert seen.endswith("The whole interval is above zero for 0 of 2 classifiers, and below it for 1.")


def test_one_trajectory_is_told_by_who_names_it():
    said = pd.DataFrame({"model": ["a", "a", "b", "b"], "wrong": [False, False, True, True], "top1": ["bag", "bag", "coat", "coat"]})
    assert evaluation.example(said).startswith("50% of the 4 answers to this trajectory are wrong")
    assert evaluation.example_seen(said).startswith(
        "Right at every scale: 1 of 2 classifiers; at none: 1. The commonest wrong answer is coat (2 of 2)"
    )


def test_margins_are_told_at_the_last_scale_and_by_their_fall():
    rows = [("fog", 0.0, 3.0), ("fog", 1.0, 2.0), ("snow", 0.0, 3.0), ("snow", 1.0, -1.0)]
    table = pd.DataFrame(rows, columns=["shift", "scale", "estimate"]).assign(model="a")
    assert evaluation.margin(table, 80).startswith("At the last scale 1 of 2 medians of a classifier and a shift are still above 0. n = 80")
    assert "most under snow (4.0) and least under fog (1.0); at the first step it falls by 2.5" in evaluation.margin_seen(
        table, pd.Series(dtype=float)
    )


def test_what_is_left_before_an_answer_flips_is_told():
    said = "Of 2 answers that turn wrong after the first step, 50% had lost margin before: at the scale before, the median share left"
    assert evaluation.fading(pd.Series([0.5, 1.25])) == f"{said} of the margin at scale 0 was 88%."
    assert evaluation.fading(pd.Series(dtype=float)) == "No answer flips after the first step."


def test_wrong_answers_name_the_label_that_attracts():
    answers = pd.DataFrame({"bag": [0.7, 0.4], "coat": [0.3, 0.6]}, index=pd.Index(["fog", "snow"], name="shift"))
    assert "each label 12.5%." in evaluation.mistakes_seen(answers.assign(**dict.fromkeys("cdefgh", 0.0)))
    assert evaluation.mistakes(answers, 1234, 23, 2.5).startswith(
        "Under fog, 70% of the wrong answers are bag. n = 1,234 wrong answers of 23"
    )
    assert evaluation.mistakes_seen(answers).endswith(
        "bag attracts most wrong answers, 55%; an even row would give each label 50.0%. It leads under 1 of 2 shifts."
    )


def test_the_answer_holds_three_accuracies():
    text = evaluation.answer(pd.Series([0.8, 0.9]), pd.Series([0.6, 0.7]), 0.3, 2.5)
    assert text.startswith(
        "**On average 2 classifiers name 85% of the catalog's held-out garments, 65% of generated ones, and 30% at scale 2.5"
    )
