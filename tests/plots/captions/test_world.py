"""The answer about the base models: what is met is counted, what is missed is named."""

import pandas as pd

from cnslib.plots.captions import world


def test_the_answer_counts_what_is_met_and_names_what_is_missed():
    judged = pd.DataFrame({"quality": ["psnr", "knn", "clip"], "verdict": ["missed", "met", "missed"]})
    text = world.answer(judged, ["bag", "coat"], ["heavy fog"], ["a", "b", "c"])
    assert text.startswith("**2 classes of garments, 1 shifts and 3 small models go into it.** 1 of 3 bounds")
    assert text.endswith("are met; missed: psnr and clip.")
    assert world.answer(judged.iloc[1:2], [], [], []).endswith("1 of 1 bounds on the models' quality are met; missed: none.")


def test_the_three_classes_that_are_named_least_are_told_and_those_left_out():
    table = pd.DataFrame({"class": ["bag", "coat", "dress", "shirt"], "estimate": [1.0, 0.7, 0.9, 0.4], "taken for": ["coat"] * 4})
    named = "75% of the garments are named right by their neighbours, fewest of "
    fewest = ", ".join(f"{name} ({share}%, else mostly coat)" for name, share in [("shirt", 40), ("coat", 70), ("dress", 90)])
    among = pd.DataFrame({"class": ["bag", "dress"], "estimate": [1.0, 0.96], "taken for": ["dress", "bag"]})
    rest = "The benchmark leaves out coat and shirt; among the others 98% are named right, fewest of dress (96%, else mostly bag)."
    assert world.told_apart(table, among) == f"{named}{fewest}. {rest}"
    assert world.told_apart(table, table).endswith("The benchmark takes them all.")


def test_the_shifts_that_change_most_and_least_are_named():
    seen = world.shifts_seen(pd.Series({"heavy fog": 0.31, "heavy rain": 0.12, "heavy snow": 0.2}))
    assert "most under heavy fog (31%) and least under heavy rain (12%)" in seen
