"""The answer about the base models: what is met is counted, what is missed is named."""

import pandas as pd

from cnslib.plots.captions import world


def test_the_answer_counts_what_is_met_and_names_what_is_missed():
    judged = pd.DataFrame({"quality": ["psnr", "knn", "clip"], "verdict": ["missed", "met", "missed"]})
    assert world.answer(judged) == "**1 of 3 quality bounds are met; missed: psnr, clip.**"
    assert world.answer(judged.iloc[1:2]) == "**1 of 1 quality bounds are met; missed: none.**"


def test_the_three_classes_that_are_named_least_are_told_and_those_left_out():
    table = pd.DataFrame({"class": ["bag", "coat", "dress", "shirt"], "estimate": [1.0, 0.7, 0.9, 0.4], "taken for": ["coat"] * 4})
    named = "75% of the garments are named right by their neighbours, fewest of "
    fewest = ", ".join(f"{name} ({share}%, else mostly coat)" for name, share in [("shirt", 40), ("coat", 70), ("dress", 90)])
    assert world.told_apart(table, ["bag", "dress"]) == f"{named}{fewest}. The benchmark leaves out coat and shirt."
    assert world.told_apart(table, list(table["class"])).endswith("The benchmark takes them all.")
