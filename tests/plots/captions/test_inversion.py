"""Captions about learned words: the numbers of hand-made tables stand in the sentences."""

import pandas as pd
import pytest

from cnslib.plots.captions import inversion

RECORD = {"n": 80, "estimate": 0.5, "low": 0.4, "high": 0.6}


def test_losses_are_told_by_their_change():
    smooth = pd.DataFrame({"step": [0, 1] * 2, "class": ["bag", "bag", "coat", "coat"], "loss": [0.4, 0.2, 0.1, 0.15]})
    assert inversion.loss(smooth).startswith(
        "The loss of 1 of 2 words is lower at the end than at the start, on average by 0.0750. 2 steps"
    )
    assert inversion.loss_seen(smooth).endswith("changes by -50% (bag) to +50% (coat).")
    assert inversion.loss(smooth.head(0)) == inversion.loss_seen(smooth.head(0)) == inversion.NO_LOSSES


def test_distances_name_the_classes_and_the_floor():
    rows = [("bag", "text", 0.5), ("bag", "in_star", 0.3), ("coat", "text", 0.4), ("coat", "in_star", 0.5)]
    shown = pd.DataFrame(rows, columns=["class", "prompt", "estimate"]).assign(n=20)
    assert inversion.frechet(shown, {"estimate": 0.5, "n": 2}).startswith(
        "By token 50% of 2 classes come closer to the catalog than by name. n = 20"
    )
    seen = inversion.frechet_seen(shown, pd.DataFrame({"class": ["bag", "coat"], "estimate": [0.1, 0.1]}))
    assert "bag comes closer most (+0.200), coat least (-0.100). On average the tokens' images are still 0.300 above" in seen


def test_sheets_are_told_by_the_judge_and_the_nearest_pair():
    assert inversion.samples(10, 4).startswith("4 held-out scenes of each of 10 classes")
    assert "50% (40% to 60%) of those asked for by name and 50%" in inversion.samples_seen({"text": RECORD, "in_star": RECORD})
    near = pd.DataFrame(
        {"prompt": ["in_star", "in_star", "text"], "class": ["bag", "coat", "bag"], "learned": [0.2, 0.1, 0.0], "heldout": [0.3, 0.15, 0.0]}
    )
    assert inversion.nearest(near, RECORD).startswith("The learned scene is nearer than a held-out one for 50% (40% to 60%)")
    assert "is a coat at distance 0.100" in inversion.nearest_seen(near) and "lies at 0.150" in inversion.nearest_seen(near)


@pytest.mark.parametrize(("distance", "verb"), [(-0.1, "brings"), (0.1, "does not bring")])
def test_both_must_move_the_right_way(distance, verb):
    text = inversion.answer(RECORD, {"estimate": distance, "low": -0.2, "high": 0.2}, {"estimate": 0.9, "n": 10})
    assert (
        text.startswith(f"**A learned word {verb} the garments closer")
        and "90% of 10 classes come closer (n = 80 images per prompt)" in text
    )
