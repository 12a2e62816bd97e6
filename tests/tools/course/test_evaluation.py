"""Lesson 1 on eight answers counted by hand."""

import numpy as np
import pandas as pd
import pytest
import torch
from tiny_course import told_mistakes

from cnslib.core import paths
from cnslib.tools.course import evaluation
from cnslib.world import scenes

BEFORE = {"a": [1, 1, 1, 0], "b": [1, 0, 1, 1], "bag": [1, 1, 0, 1], "shoe": [0, 0, 0, 0]}
AFTER = {"a": [1, 1, 0, 1], "b": [0, 0, 1, 1], "bag": [0, 0, 1, 0], "shoe": [0, 0, 0, 0]}


@pytest.fixture(scope="module")
def sheet():
    parts = []
    for shift, right in {"unshifted": BEFORE, "heavy snow": AFTER}.items():
        rows = [("m", shift, name, seed, bool(value)) for name, values in right.items() for seed, value in enumerate(values)]
        parts += rows + [("other", *row[1:4], True) for row in rows]
    return evaluation.sheet(pd.DataFrame(parts, columns=["model", "shift", "class", "seed", "right"]), "m", "heavy snow")


def test_accuracy_and_drop_are_those_counted_by_hand(sheet):
    assert sheet.check("accuracy", 9 / 16).right and sheet.check("drop", 9 / 16 - 6 / 16).right


def test_the_interval_is_wilsons_formula(sheet):
    n, p, z = 16, 9 / 16, 1.959964
    centre, half = (p + z**2 / (2 * n)) / (1 + z**2 / n), z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    assert sheet.check("interval", [centre - half, centre + half]).right
    normal = sheet.check("interval", [p - z * np.sqrt(p * (1 - p) / n), p + z * np.sqrt(p * (1 - p) / n)])
    assert not normal.right and "by default" in normal.text


def test_five_garments_are_lost_though_only_three_fewer_are_right(sheet):
    assert sheet.check("lost", 5).right and "hides both" in sheet.check("lost", 3).text


def test_the_bag_loses_most_though_the_shoe_is_never_named(sheet):
    drops = pd.Series({"shoe": 0, "bag": 0.5, "b": 0.25, "a": 0})
    assert sheet.check("hardest", drops).right and "largest for bag." in sheet.check("hardest", drops).text
    under = pd.Series({"a": 0.75, "b": 0.5, "bag": 0.25, "shoe": 0})
    assert "before" in sheet.check("hardest", under).text and not sheet.check("hardest", "bag").right


def test_every_known_mistake_is_told(sheet):
    assert min(told_mistakes(sheet).values()) >= 2


def test_a_garment_has_one_scene_under_all_shifts_and_none_without():
    pool = scenes.garments(paths.GARMENTS, "heldout")
    chosen = evaluation.garments(pool, ["sneaker", "bag"], 2)
    assert chosen[0].to_numpy().tolist() == [["sneaker", 0], ["sneaker", 1], ["bag", 0], ["bag", 1]]
    plain, snow = evaluation.pictures(chosen, "unshifted", 0.0), evaluation.pictures(chosen, "heavy snow", 0.5)
    assert (plain == evaluation.pictures(chosen, "heavy snow", 0.0)).all() and (plain != snow).any()


def test_answers_have_a_row_per_model_shift_and_garment():
    class Reads:
        name, labels = "always bag", ["sneaker", "bag"]

        def logits(self, pictures):
            return torch.tensor([[0.0, 1.0]]).expand(len(pictures), -1)

    pool = scenes.garments(paths.GARMENTS, "heldout")
    table = evaluation.answers([Reads()], evaluation.garments(pool, ["sneaker", "bag"], 3), ["heavy fog"], 0.5)
    assert len(table) == 12 and table.groupby(["shift", "class"])["right"].sum().tolist() == [3, 0, 3, 0]
