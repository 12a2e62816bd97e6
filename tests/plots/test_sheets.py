import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from official_files import noise

from cnslib.core import tables
from cnslib.core.names import UNSHIFTED, identifier
from cnslib.plots import sheets

SHIFTS, CLASSES, SEEDS, SCALES = ["heavy snow", "heavy fog"], ["bag", "coat"], [1, 2], [0.0, 1.0, 2.0]
WANTED = pd.DataFrame({"shift": SHIFTS, "class": ["coat", "bag"], "seed": [2, 1]}, index=[7, 3])  # as after a shuffle


def write(folder, *, own: bool) -> None:
    for shift in SHIFTS if own else [UNSHIFTED, *SHIFTS]:
        scales = [0.0] if shift == UNSHIFTED else SCALES if own else SCALES[1:]
        keys = [(shift, *key) for key in itertools.product(CLASSES, SEEDS, scales)]
        table = pd.DataFrame(keys, columns=tables.KEY).assign(image=[tables.encode(noise(*key)) for key in keys])
        tables.write(table, folder / f"{identifier(shift)}.parquet", tables.images)


@pytest.mark.parametrize("own", [False, True])
def test_each_row_shows_its_own_trajectory(tmp_path, own):
    write(tmp_path, own=own)
    grid = sheets.pictures(tmp_path, WANTED, SCALES)
    assert grid.shape == (2, 3, 8, 8, 3)
    for row, (shift, name, seed) in zip(grid, [("heavy snow", "coat", 2), ("heavy fog", "bag", 1)], strict=True):
        start = shift if own else UNSHIFTED
        for shown, scale in zip(row, SCALES, strict=True):
            assert np.array_equal(shown, noise(shift if scale else start, name, seed, scale))


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
