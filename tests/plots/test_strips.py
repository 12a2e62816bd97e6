"""Strips over answers: marks and curves are where the table says; without pictures a sentence stands there."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from cnslib.plots import strips
from cnslib.plots.sheets import ABSENT

SCALES = [0.0, 0.5, 1.0]
GRID = np.arange(3, dtype=np.uint8)[None, :, None, None, None].repeat(4, 2).repeat(4, 3).repeat(3, 4)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def table() -> pd.DataFrame:
    """One that never fails, and one that fails at 0.5 and recovers."""
    rows = [("vit", scale, True, np.nan) for scale in SCALES] + [("alexnet", scale, scale != 0.5, 0.5) for scale in SCALES]
    return pd.DataFrame(rows, columns=["model", "scale", "right", "failure_point"])


def marks(figure) -> dict[str, set[tuple]]:
    return {drawn.get_label(): set(map(tuple, drawn.get_offsets().tolist())) for drawn in figure.axes[1].collections}


def test_each_answer_has_its_mark_under_its_picture_and_each_failure_point_a_ring():
    figure = strips.answered(GRID, table())
    assert marks(figure) == {"right": {(0, 0), (2, 0), (0, 1), (1, 1), (2, 1)}, "wrong": {(1, 0)}, "failure point": {(1, 0)}}
    assert [label.get_text() for label in figure.axes[1].get_yticklabels()] == ["alexnet", "vit"]  # who fails first is on top
    images = {round(np.mean(image.get_extent()[:2])): image.get_array()[0, 0, 0] for image in figure.axes[0].images}
    assert images == {0: 0, 1: 1, 2: 2} and figure.axes[0].get_xlim() == figure.axes[1].get_xlim()


def test_the_curves_are_the_probabilities_in_the_order_of_the_scale():
    rows = [("vit", 1.0, 0.2), ("vit", 0.0, 0.9), ("vit", 0.5, 0.7)]
    figure = strips.sure(GRID, pd.DataFrame(rows, columns=["model", "scale", "probability"]))
    (line,) = figure.axes[1].lines
    assert line.get_xdata().tolist() == [0, 1, 2] and line.get_ydata().tolist() == [0.9, 0.7, 0.2]


def test_without_pictures_a_sentence_stands_in_their_place():
    figure = strips.answered(None, table())
    assert [text.get_text() for text in figure.axes[0].texts] == [ABSENT] and not figure.axes[0].images
