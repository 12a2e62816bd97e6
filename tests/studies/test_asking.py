"""Answers of a classifier without files: kept as long as it answers a sample of the pictures as before, made anew otherwise."""

import numpy as np
import pandas as pd
import pytest
import torch
from golden_units import difference
from torch import nn
from torchvision.transforms import v2

from cnslib.core import recipes, tables
from cnslib.method import evaluation
from cnslib.models import classifiers
from cnslib.studies import asking

LABELS = ["bag", "sneaker", "coat"]
SCALES = [0.0, 1.0, 2.0]
TRANSFORM = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])


class Brightness(nn.Module):
    """Says "bag" to pictures brighter than a threshold, else "sneaker"; counts the pictures that it is shown."""

    def __init__(self, threshold: float):
        super().__init__()
        self.threshold, self.shown = threshold, 0

    def forward(self, pixels):
        self.shown += len(pixels)
        bright = pixels.mean(dim=(1, 2, 3)) - self.threshold
        return torch.stack([bright, -bright, torch.full_like(bright, -1.0)], dim=1)


def write(folder, *, change=0):
    """Tables of two classes under one shift: a bag starts white and a sneaker black, and both turn grey."""
    shards = evaluation.grid(folder, ["heavy snow"], ["sneaker", "bag"], scales=SCALES, seeds=6)
    for path, keys in shards.items():
        grey = {key: {"bag": 250 - 80 * key[3], "sneaker": 20 + 20 * key[3]}[key[1]] + change for key in keys}
        rows = [dict(zip(tables.KEY, key, strict=True), image=tables.encode(np.full((8, 8, 3), grey[key], np.uint8))) for key in keys]
        tables.write(pd.DataFrame(rows), path, tables.images)
    return shards


@pytest.fixture
def ask(tmp_path):
    shards = write(tmp_path / "images")

    def call(module, name="mine"):
        mine = classifiers.own_classifier(module, name=name, labels=LABELS, transform=TRANSFORM, device="cpu")
        return asking.predict(mine, shards, batch_size=4, folder=tmp_path / "answers")

    return call


ASKED, SAMPLE = 12 + 24, 2 * asking.SAMPLED + 1  # pictures of two tables; those of the sample, and the one by which outputs are counted


def test_the_answers_are_those_of_a_classifier_that_is_asked_about_everything(ask, tmp_path):
    found = ask(Brightness(0.5))
    assert len(found) == ASKED
    mine = classifiers.own_classifier(Brightness(0.5), name="mine", labels=LABELS, transform=TRANSFORM, device="cpu")
    expected = evaluation.predict(mine, write(tmp_path / "images"), batch_size=4)
    key = ["model", *tables.KEY]
    pd.testing.assert_frame_equal(found, expected[found.columns].sort_values(key, ignore_index=True))


def test_a_second_look_shows_the_sample_alone_and_gives_the_same(ask):
    first, again = Brightness(0.5), Brightness(0.5)
    pd.testing.assert_frame_equal(ask(first), ask(again))
    assert (first.shown, again.shown) == (ASKED + SAMPLE, SAMPLE)


def test_another_module_of_the_same_name_is_asked_anew(ask, tmp_path):
    ask(Brightness(0.5))
    other = Brightness(0.3)
    found = ask(other)
    assert other.shown == ASKED + SAMPLE
    assert set(found[(found["class"] == "bag") & (found["scale"] == 2)]["top1"]) == {"bag"}  # 90 of 255, and below 0.5 before


def test_new_pictures_are_asked_about_and_the_earlier_name_goes(ask, tmp_path):
    ask(Brightness(0.5))
    write(tmp_path / "images", change=1)
    module = Brightness(0.5)
    ask(module, name="yours")
    assert module.shown == ASKED + SAMPLE
    assert [path.name for path in (tmp_path / "answers").glob("*.parquet")] == ["yours.parquet"]


def test_a_sample_reaches_from_the_first_picture_of_a_table_to_the_last(tmp_path):
    path = list(write(tmp_path))[1]
    found = asking.sample(path)
    bright = [int(picture[0, 0, 0]) for picture in found]
    stored = [int(picture[0, 0, 0]) for picture in tables.pictures(tables.read(path, tables.images), "images")]
    assert len(found) == asking.SAMPLED and [bright[0], bright[-1]] == [stored[0], stored[-1]]


def test_the_tiny_unit_is_the_golden_one(ask):
    assert not difference(recipes.OWN_ANSWERS, ask(Brightness(0.5)))
