"""Heat maps: rows and columns in their order, the numbers of the table in the fields, bold where they are certain."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from cnslib.plots import figures, maps


@pytest.fixture(autouse=True)
def fixed():
    figures.use_style(shifts=["snow", "fog"])
    yield
    figures.use_style()
    plt.close("all")


def test_drops_stand_by_axis_and_its_order_and_certain_ones_are_bold():
    rows = [
        {"axis": axis, "model": model, "shift": shift, "n": n, "estimate": drop, "low": drop - 0.2, "high": drop + 0.2}
        for axis, model in (("size", "b"), ("size", "a"), ("kind", "a"))
        for shift, n, drop in (("fog", 7, 0.1), ("snow", 60, 0.5))
    ]
    figure = maps.drop_map(pd.DataFrame(rows), {"size": ["b", "a"], "kind": ["a"]})
    size, kind, _ = figure.axes
    assert [label.get_text() for label in size.get_yticklabels()] == ["b", "a"] and kind.get_title(loc="left") == "kind"
    assert [label.get_text() for label in kind.get_xticklabels()] == ["snow (60)", "fog (7)"]
    assert [(text.get_text(), text.get_weight()) for text in kind.texts] == [("0.50", "bold"), ("0.10", "normal")]


def test_the_map_of_lines_marks_small_p_values_and_leaves_out_what_is_not_known():
    columns = {"r": [0.5, np.nan], "free": [0.6, np.nan], "p_holm": [0.0001, 0.2]}
    figure = maps.line_map(pd.DataFrame({"shift": ["fog", "snow"], "scale": 1.0, **columns}), alpha=0.05)
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["snow", "fog"]
    assert [(text.get_text(), text.get_weight()) for text in axes.texts] == [("0.50", "bold"), ("0.60", "normal")]


def test_a_falling_line_does_not_look_like_none():
    table = pd.DataFrame({"shift": ["snow", "fog"], "scale": 1.0, "r": [-0.6, 0.0], "free": np.nan, "p_holm": 0.1})
    figure = maps.line_map(table, alpha=0.05)
    figure.draw_without_rendering()
    falling, level = figure.axes[0].collections[0].get_facecolors()
    assert falling.tolist() != level.tolist()


def test_a_change_of_places_has_a_field_per_pair():
    table = pd.DataFrame({"first": ["a", "a", "b"], "second": ["b", "c", "c"], "probability": [0.2, 0.4, 0.9]})
    field = maps.flip_map(table).axes[0].collections[0].get_array()
    assert field.shape == (2, 2) and sorted(field.compressed()) == [0.2, 0.4, 0.9]


def test_answers_stand_below_the_pictures_they_are_about():
    rows = [("vit", 0.0, "bag", 0.9), ("vit", 1.0, "coat", 0.2), ("mae", 0.0, "bag", 0.8), ("mae", 1.0, "bag", 0.6)]
    said = pd.DataFrame(rows, columns=["model", "scale", "top1", "probability"])
    figure = maps.answer_sheet(np.zeros((1, 2, 4, 4, 3), np.uint8), said, title="bag, fog", scales=[0.0, 1.0])
    above, below = figure.axes
    assert [label.get_text() for label in above.get_yticklabels()] == ["bag, fog"]
    assert [text.get_text() for text in below.texts] == ["bag", "bag", "bag", "coat"]


def test_shares_stand_in_their_fields():
    table = pd.DataFrame({"bag": [0.25], "coat": [0.75]}, index=["fog"])
    axes = maps.share_map(table, label="wrong answer").axes[0]
    assert [text.get_text() for text in axes.texts] == ["0.25", "0.75"] and axes.get_xlabel() == "wrong answer"
