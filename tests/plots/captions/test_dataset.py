"""Captions about the data set: counts of hand-made tables stand in the sentences."""

import pandas as pd

from cnslib.plots.captions import dataset

KEPT = pd.DataFrame([[2, 1], [0, 0]], index=["bag", "coat"], columns=["heavy fog", "heavy snow"])


def test_what_the_filter_leaves_is_told_with_the_class_and_the_shift_of_which_least_is_left():
    said = dataset.told(KEPT, KEPT * 0 + 2)
    assert said == "The filter keeps 3 of 8 trajectories, least of 'coat' (0%) and 'heavy snow' (25%); 2 of 4 fields are empty"


def test_the_answer_counts_trajectories_and_different_pictures():
    text = dataset.answer(KEPT, 6, {"n": 1234, "estimate": 0.125, "low": 0.1, "high": 0.25}, "MIT")
    assert text == (
        "**3 trajectories of 6 pictures (1,234 distinct pictures) of 2 classes under 2 shifts, free to use (MIT); "
        "by the oracle's verdict 12.5% (10.0% to 25.0%) of the distinct pictures no longer show their label.**"
    )
