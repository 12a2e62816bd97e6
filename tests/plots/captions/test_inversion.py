"""Captions about learned words: the numbers of hand-made tables stand in the sentences."""

import pandas as pd
import pytest

from cnslib.plots.captions import inversion

RECORD = {"n": 80, "estimate": 0.5, "low": 0.4, "high": 0.6}


def test_losses_are_told_by_their_change():
    smooth = pd.DataFrame({"step": [0, 1] * 2, "class": ["bag", "bag", "coat", "coat"], "loss": [0.4, 0.2, 0.1, 0.16]})
    early = pd.DataFrame({"step": [-1, -1], "class": ["bag", "coat"], "loss": [float("nan")] * 2})  # before the first whole tenth
    smooth = pd.concat([early, smooth], ignore_index=True)
    assert inversion.loss(smooth).startswith("The loss of 1 of 2 words is lower in the last tenth of the steps than in the first. 3 steps")
    assert inversion.loss_seen(smooth).endswith("changes by -50% (bag) to +60% (coat), on average by +5%.")
    assert inversion.loss(smooth.head(0)) == inversion.loss_seen(smooth.head(0)) == inversion.NO_LOSSES


def test_distances_name_the_classes_and_the_floor():
    rows = [("all", "difference", -0.9), ("bag", "difference", -0.2), ("coat", "difference", 0.1), ("bag", "in_star", 0.3)]
    table = pd.DataFrame([*rows, ("coat", "in_star", 0.5)], columns=["class", "prompt", "estimate"]).assign(n=20)
    table = table.assign(low=table["estimate"] - 0.15, high=table["estimate"] + 0.15)
    said = inversion.frechet(table, {"estimate": 0.5, "n": 2}, confidence=0.9)
    assert said.startswith("By token 1 of 2 classes come closer to the catalog than by name. n = 20") and "90% jackknife" in said
    seen = inversion.frechet_seen(table, pd.DataFrame({"class": ["bag", "coat"], "estimate": [0.1, 0.1]}))
    assert "changes by -0.200 (bag) to +0.100 (coat); the whole interval is below zero for 1 of 2 classes and above it for 0." in seen
    assert seen.endswith("On average the tokens' images are 0.300 above the floor of real scenes.")


def test_sheets_are_told_by_the_judge_and_the_nearest_pair():
    assert inversion.samples(10, 4).startswith("4 held-out scenes of each of 10 classes")
    assert "50% (40% to 60%) of those asked for by name and 50%" in inversion.samples_seen({"text": RECORD, "in_star": RECORD})
    near = pd.DataFrame(
        {
            "prompt": ["in_star", "in_star", "text"],
            "class": ["bag", "coat", "bag"],
            "learned": [0.2, 0.1, 0.0],
            "heldout": [0.12, 0.15, 0.0],
        }
    )
    said = inversion.nearest(near, RECORD)
    assert said.startswith("The learned scene is nearer than a held-out one for 50% (40% to 60%)")
    assert said.endswith("n = 80 images; distance: median 0.150")  # of the images by token alone
    seen = inversion.nearest_seen(near)
    assert seen.startswith("Of the images by token one of the class coat is the nearest to a learned scene, at distance 0.100; its")
    assert seen.endswith("lies at 0.150.")


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [(-0.3, -0.1, "Over all classes they come closer"), (-0.1, 0.1, "It is open"), (0.1, 0.3, "Over all classes they move away")],
)
def test_only_a_whole_interval_says_that_images_come_closer(low, high, word):
    record = {"estimate": (low + high) / 2, "low": low, "high": high}
    change = pd.DataFrame({"low": [-0.2, -0.3, 0.1, -0.1], "high": [-0.1, -0.1, 0.2, 0.1]})
    text = inversion.answer(RECORD, record, change)
    assert text.startswith(f"**{word}: with a learned word")
    assert "Of 4 classes 2 surely come closer and 1 surely move away. A catalog classifier names more of them" in text
    assert inversion.OPEN in inversion.answer(record | {"low": -0.1, "high": 0.1}, record, change)
