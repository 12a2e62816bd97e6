"""The answer about the base models: what is met is counted, what is missed is named."""

import pandas as pd

from cnslib.plots.captions import world


def test_the_answer_counts_what_is_met_and_names_what_is_missed():
    judged = pd.DataFrame({"quality": ["psnr", "knn", "clip"], "verdict": ["missed", "met", "missed"]})
    assert world.answer(judged) == "**1 of 3 quality bounds are met; missed: psnr, clip.**"
    assert world.answer(judged.iloc[1:2]) == "**1 of 1 quality bounds are met; missed: none.**"
