"""Lesson 3 on small arrays and a report of two trajectories counted by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tiny_course import told_mistakes

from cnslib.tools.course import sliders

W, B, A = np.zeros((2, 2)) + 10, np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[1.0, 1.0], [0.0, 1.0]])
LEVELS = np.arange(981, 0, -20)  # as 50 steps of the authors' sampler: 38 of them at 741 and below


def report() -> pd.DataFrame:
    """Two trajectories: up, down, up; and down, down, up. From the last of the first to the first of the second it goes up."""
    alignment = {1: [0.1, 0.3, 0.2, 0.4], 2: [0.9, 0.5, 0.4, 0.45]}
    rows = [("heavy snow", "bag", seed, float(scale), value) for seed, values in alignment.items() for scale, value in enumerate(values)]
    return pd.DataFrame(rows, columns=["shift", "class", "seed", "scale", "alignment"]).sample(frac=1, random_state=0)


@pytest.fixture(scope="module")
def sheet():
    predictions = np.array([[1.0, 2.0], [2.0, 0.0]])
    given = {"predictions": predictions, "layer": (3, 5), "weight": W, "factors": (B, A), "levels": LEVELS, "report": report()}
    return sliders.sheet(name="bag", shift="heavy snow", **given)


def test_the_target_is_four_arrows_from_the_class(sheet):
    assert sheet.check("target", [1 + 4 * 1, 2 + 4 * -2]).right
    assert "one arrow too far" in sheet.check("target", [2 + 4, 0 - 8]).text


def test_an_adapter_of_rank_4_has_four_rows_and_four_columns(sheet):
    assert sheet.check("size", 4 * 3 + 5 * 4).right and "add their sizes" in sheet.check("size", 60).text


def test_the_weights_are_those_computed_by_hand(sheet):
    """B A is [[1, 1], [0, 2]]; times 1.5 / 2."""
    assert sheet.check("weights", [[10.75, 10.75], [10, 11.5]]).right
    assert "alpha / rank" in sheet.check("weights", [[11.5, 11.5], [10, 13]]).text


def test_the_slider_acts_on_38_of_50_steps(sheet):
    assert sheet.check("steps", 38).right and "without" in sheet.check("steps", 12).text
    assert "Count the levels" in sheet.check("steps", 37.5).text  # three quarters of 50, which no count gives


def test_three_of_six_steps_rise(sheet):
    assert sheet.check("rising", [3 / 6, 3 / 6]).right and "Of 6 steps 50% rise here" in sheet.check("rising", [3 / 6, 3 / 6]).text
    assert "across trajectories" in sheet.check("rising", [4 / 7, 4 / 7]).text


def test_the_prompt_names_class_and_shift(sheet):
    assert sheet.check("prompt", "a picture of a bag in heavy snow").right
    assert '"in"' in sheet.check("prompt", "a picture of a bag heavy snow").text


def test_every_known_mistake_is_told(sheet):
    values = {0.0: 0.0, 1.0: 1.0, 2.0: 0.5, 3.0: 0.2}
    third = report().query("seed == 1").assign(seed=3, shift="heavy fog", alignment=lambda table: table["scale"].map(values))
    rising = sliders.rising(pd.concat([report(), third]))
    assert (
        rising.check([4 / 9, 1 / 3]).right
        and "Of 9 steps 44% rise here; fewest under heavy fog (33%, n = 3)." in rising.check([4 / 9, 1 / 3]).text
    )
    assert min(told_mistakes(replace(sheet, exercises={**sheet.exercises, "rising": rising})).values()) >= 3
