"""The oracle's second opinion: each image once, turned round, kept as long as the image stays."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from golden_units import difference
from tiny_alignment import CHOSEN, GRID, after_changes, picture, random_judges, write_all

from cnslib.core import recipes, tables
from cnslib.core.names import UNSHIFTED
from cnslib.models.encoders import Oracle
from cnslib.studies.labels import mirrors


@pytest.fixture(scope="module")
def oracle(tmp_path_factory) -> Oracle:
    return random_judges(tmp_path_factory.mktemp("judges")).oracle


@pytest.fixture
def images(tmp_path) -> Path:
    return write_all(tmp_path / "images")


@pytest.fixture
def look(images, oracle, tmp_path):
    def call(shifts=CHOSEN):
        return mirrors.look(images, shifts, oracle=oracle, folder=tmp_path / "mirrored")

    return call


def test_every_image_is_judged_once_and_scale_0_unshifted(look):
    expected = [(UNSHIFTED, *pair, 0.0) for pair in GRID] + [
        (shift, *pair, scale) for shift in CHOSEN for pair in GRID for scale in (1.0, 2.0)
    ]
    assert sorted(look()[tables.KEY].itertuples(index=False, name=None)) == sorted(expected)


def test_the_opinion_is_the_oracles_answer_to_the_picture_turned_round(look, oracle):
    table = look().set_index(tables.KEY)["mirrored_probability"]
    for key in ((UNSHIFTED, "bag", 2, 0.0), ("heavy snow", "sneaker", 1, 2.0)):
        turned = oracle.class_probability(picture(*key)[None, :, ::-1].copy())[0, oracle.labels.index(key[1])]
        assert table[key] == pytest.approx(float(turned), abs=1e-6)
        assert table[key] != pytest.approx(float(oracle.class_probability(picture(*key)[None])[0, oracle.labels.index(key[1])]), abs=1e-6)


def test_a_new_shift_leaves_the_others_alone_and_new_images_are_judged(look, images, tmp_path):
    assert after_changes(look, images, tmp_path / "mirrored") == {"left alone": True, "new seen": True, "gone": True}


def test_rows_of_scale_0_find_the_opinion_on_the_unshifted_image():
    keys = [(UNSHIFTED, "bag", 1, 0.0), ("heavy snow", "bag", 1, 1.0), ("heavy fog", "bag", 1, 1.0)]
    seen = pd.DataFrame(keys, columns=tables.KEY).assign(mirrored_probability=[0.1, 0.2, 0.3])
    asked = [("heavy fog", 0.0), ("heavy snow", 1.0), ("heavy snow", 0.0), ("heavy fog", 1.0)]
    rows = pd.DataFrame([(shift, "bag", 1, scale) for shift, scale in asked], columns=tables.KEY)
    assert mirrors.among(seen, rows).tolist() == [0.1, 0.2, 0.1, 0.3]
    with pytest.raises(KeyError):
        mirrors.among(seen, rows.assign(seed=2))


class Left:
    """An oracle that gives the first class the brightness of the left half."""

    labels = ("bag", "coat")

    def class_probability(self, pictures):
        left = torch.from_numpy(np.asarray(pictures)[:, :, :2].mean((1, 2, 3)) / 255).float()
        return torch.stack([left, 1 - left], dim=1)


def test_left_and_right_change_sides_and_each_row_asks_for_its_own_class():
    half = np.zeros((4, 4, 3), np.uint8)
    half[:, 2:] = 255
    rows = pd.DataFrame({"class": ["bag", "coat"], "image": [tables.encode(half)] * 2})
    assert mirrors.probability(rows, Left()).tolist() == [1.0, 0.0]
    assert mirrors.probability(rows[:0], Left()).tolist() == []


def test_the_tiny_unit_is_the_golden_one(look):
    assert not difference(recipes.MIRRORED, look())
