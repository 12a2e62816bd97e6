import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from cnslib.core import tables
from cnslib.core.names import UNSHIFTED, identifier
from cnslib.plots import sheets

SHIFTS, CLASSES, SEEDS, SCALES = ["heavy snow", "heavy fog"], ["bag", "coat"], [1, 2], [0.0, 1.0, 2.0]
WANTED = pd.DataFrame({"shift": SHIFTS, "class": ["coat", "bag"], "seed": [2, 1]}, index=[7, 3])  # as after a shuffle


def picture(*key) -> np.ndarray:
    return np.random.default_rng(list("".join(map(str, key)).encode())).integers(0, 256, (8, 8, 3), dtype=np.uint8)


def write(folder, *, own: bool) -> None:
    for shift in SHIFTS if own else [UNSHIFTED, *SHIFTS]:
        scales = [0.0] if shift == UNSHIFTED else SCALES if own else SCALES[1:]
        keys = [(shift, *key) for key in itertools.product(CLASSES, SEEDS, scales)]
        table = pd.DataFrame(keys, columns=tables.KEY).assign(image=[tables.encode(picture(*key)) for key in keys])
        tables.write(table, folder / f"{identifier(shift)}.parquet", tables.images)


@pytest.mark.parametrize("own", [False, True])
def test_each_row_shows_its_own_trajectory(tmp_path, own):
    write(tmp_path, own=own)
    grid = sheets.pictures(tmp_path, WANTED, SCALES)
    assert grid.shape == (2, 3, 8, 8, 3)
    for row, (shift, name, seed) in zip(grid, [("heavy snow", "coat", 2), ("heavy fog", "bag", 1)], strict=True):
        start = shift if own else UNSHIFTED
        for shown, scale in zip(row, SCALES, strict=True):
            assert np.array_equal(shown, picture(shift if scale else start, name, seed, scale))


@pytest.mark.parametrize("across", [1, 2])
def test_below_each_image_stands_its_prediction_and_the_frame_says_whether_it_is_right(tmp_path, across):
    write(tmp_path, own=False)
    said = {("heavy snow", "coat", 2): ["coat", "coat", "bag"], ("heavy fog", "bag", 1): ["dress", "bag", "bag"]}
    keys = [(UNSHIFTED if scale == 0 else shift, name, seed, scale) for shift, name, seed in said for scale in SCALES]
    table = pd.DataFrame(keys, columns=tables.KEY).assign(model="vit", top1=[word for words in said.values() for word in words])
    figure = sheets.classified(sheets.pictures(tmp_path, WANTED, SCALES), WANTED.assign(model="vit"), table, SCALES, across=across)
    assert [text.get_text() for axes in figure.axes for text in axes.texts] == ["coat", "coat", "bag", "dress", "bag", "bag"]
    red = [patch.get_edgecolor()[0] > 0.5 for axes in figure.axes for patch in axes.patches]
    assert red == [False, False, True, True, False, False] and len(figure.axes) == across
    plt.close(figure)


def test_a_close_up_has_the_values_of_each_model_in_the_order_of_the_scale():
    rows = pd.DataFrame([("vit", 1.0, 0.2), ("vit", 0.0, 0.9), ("vit", 0.5, 0.7)], columns=["model", "scale", "probability"])
    _, axes = sheets.close_up(np.zeros((1, 3, 4, 4, 3), np.uint8), rows, value="probability", label="probability", marked={"vit": 0.5})
    assert axes.lines[0].get_ydata().tolist() == [0.9, 0.7, 0.2] and axes.lines[1].get_xdata() == [1, 1]
    figure, without = sheets.close_up(None, rows, value="probability", label="probability", marked={"vit": float("inf")})
    assert len(without.lines) == 1
    assert [text.get_text() for text in figure.axes[0].texts] == [sheets.ABSENT]
    plt.close("all")


def test_a_contact_sheet_puts_every_picture_in_its_place():
    pictures = np.arange(6, dtype=np.uint8).reshape(2, 3, 1, 1, 1).repeat(4, 2).repeat(4, 3).repeat(3, 4)
    _, axes = plt.subplots()
    sheets.contact_sheet(axes, pictures, rows=["a", "b"], columns=["0", "1", "2"])
    sheet = axes.images[0].get_array()
    assert sheet.shape == (12, 18, 3) and sheet[0, 0, 0] == 255
    assert [[sheet[6 * r + 3, 6 * c + 3, 0] for c in range(3)] for r in range(2)] == [[0, 1, 2], [3, 4, 5]]


def test_under_every_picture_stand_its_class_and_its_probability():
    pictures = np.arange(4, dtype=np.uint8).reshape(2, 2, 1, 1, 1).repeat(10, 2).repeat(10, 3).repeat(3, 4)
    rows = pd.DataFrame({"class": ["bag", "dress", "bag"], "class_probability": [0.987, 0.5, 0.1]})
    _, axes = plt.subplots()
    sheets.judged_sheet(axes, pictures, {"kept": rows, "lost": rows[:1]})
    assert [text.get_text() for text in axes.texts] == ["bag\n0.99", "dress\n0.50", "bag\n0.99"]
    assert [text.get_position() for text in axes.texts] == [(6, 13.5), (18, 13.5), (6, 28.5)]
    sheet = axes.images[0].get_array()
    assert sheet.shape == (30, 24, 3) and [sheet[row, 6, 0] for row in (5, 13, 20, 28)] == [0, 255, 2, 255]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["kept", "lost"] and list(axes.get_yticks()) == [6, 21]
    plt.close("all")
