"""Figures of continuous failure points: what is drawn are the numbers."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.patches import Rectangle

from cnslib.studies.bisection import zoom

PICTURE = np.zeros((4, 4, 3), np.uint8)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_a_box_spans_what_the_grid_leaves_open():
    table = pd.DataFrame({"scale": [0.0, 0.5, 0.0, 0.25, 0.5], "estimate": [0.9, 0.6, 0.9, 0.7, 0.6], "grid": [True] * 2 + [False] * 3})
    _, axes = plt.subplots()
    zoom.survival_boxes(axes, table.assign(low=0.0, high=1.0))
    (box,) = (patch for patch in axes.patches if isinstance(patch, Rectangle))
    assert (*box.get_xy(), box.get_width(), box.get_height()) == pytest.approx((0.0, 0.6, 0.5, 0.3))


def test_failure_points_are_framed_and_the_frames_of_one_picture_lie_inside_each_other():
    _, axes = plt.subplots()
    zoom.mark_pictures(axes, [1.0, 1.25, 1.5], {"a": 1.25, "b": 1.25, "c": 1.5, "d": np.inf})
    frames = [(patch.get_x() + patch.get_width() / 2, patch.get_width()) for patch in axes.patches]
    assert [centre for centre, _ in frames] == pytest.approx([1, 1, 2])
    assert frames[1][1] < frames[0][1] == frames[2][1]


def test_a_closeup_shows_every_picture_and_a_map_every_margin():
    scales = [0.0, 0.5, 1.0]
    lines = pd.DataFrame({"model": ["a"] * 3, "scale": [0.5, 0.75, 1.0], "margin": [1.0, 0.2, -0.5], "round": [0, 1, 0]})
    figure = zoom.closeup(dict.fromkeys(scales, PICTURE), dict.fromkeys([0.5, 0.75, 1.0], PICTURE), lines, {"a": 1.0})
    assert [len(axes.images) for axes in figure.axes] == [3, 3, 0]
    key = {"shift": "heavy snow", "class": "bag", "seed": 1}
    scan = pd.DataFrame({"model": ["a", "a", "b", "b"], **key, "scale": [0.0, 1.0] * 2, "margin": [1.0, -1.0, 2.0, 3.0]})
    figure = zoom.scan_maps(scan, pd.DataFrame({"model": ["a", "b"], **key, "until": [0.5, np.inf]}), grid=scales, limit=2.0)
    axes = figure.axes[0]
    assert axes.collections[0].get_array().ravel().tolist() == [1, -1, 2, 3]
    assert [line.get_xdata()[0] for line in axes.lines] == [0.5]
    assert axes.get_ylim() == (2, 0) and [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]


def test_a_map_of_one_classifier_has_one_line():
    key = {"shift": "heavy snow", "class": "bag", "seed": 1}
    scan = pd.DataFrame({"model": ["a", "a"], **key, "scale": [0.0, 1.0], "margin": [1.0, -1.0]})
    figure = zoom.scan_maps(scan, pd.DataFrame({"model": ["a"], **key, "until": [0.5]}), grid=[0.0, 1.0], limit=2.0)
    assert [line.get_xdata()[0] for line in figure.axes[0].lines] == [0.5]
