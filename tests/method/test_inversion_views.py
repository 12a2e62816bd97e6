"""What is shown of tokens: sheets hold the pictures they name, floors are Frechet distances, and Table 2a stands beside ours."""

import json

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file

from cnslib.method import inversion, inversion_views

DRAWN = pd.DataFrame({"prompt": ["text", "text", "in_star", "in_star"] * 2, "class": ["bag"] * 4 + ["coat"] * 4, "seed": [1, 2] * 4})
PICTURES = np.arange(8, dtype=np.uint8)[:, None, None, None] * np.ones((1, 2, 2, 3), np.uint8)
SCENES = {"bag": PICTURES[:2] + 100, "coat": PICTURES[:2] + 200}


def test_a_row_shows_scenes_then_pictures_by_name_then_by_token():
    sheet = inversion_views.side_by_side(SCENES, DRAWN, PICTURES, 1)
    assert sheet[:, :, 0, 0, 0].tolist() == [[100, 0, 2], [200, 4, 6]]


def test_pairs_are_pictures_by_token_with_their_nearest_learned_scene():
    near = DRAWN.assign(learned_place=[0, 1] * 4)
    sheet = inversion_views.pairs(near, SCENES, PICTURES, 2)
    assert sheet[:, :, 0, 0, 0].tolist() == [[2, 100, 3, 101], [6, 200, 7, 201]]


def test_the_floor_is_the_distance_between_real_scenes():
    rng = np.random.default_rng(1)
    one, other = rng.normal(size=(20, 3)), rng.normal(size=(30, 3)) + 1
    table = inversion_views.floors({"bag": one}, {"bag": other})
    assert table["estimate"].tolist() == [inversion.frechet_distance(one, other)] and table["n"].tolist() == [20]


def test_losses_are_running_means_over_a_tenth(tmp_path):
    path = tmp_path / "bag.safetensors"
    save_file({"token": np.zeros(1, np.float32)}, path, {"losses": json.dumps([4.0, 2.0, 0.0])})
    table = inversion_views.smoothed({"bag": path}, 20)
    assert table["loss"].tolist() == pytest.approx([np.nan, 3.0, 1.0], nan_ok=True) and table["step"].tolist() == [0, 1, 2]


def test_the_papers_table_stands_beside_ours():
    record = {"estimate": 0.5, "low": 0.4, "high": 0.6}
    found = {
        "accuracy": dict.fromkeys(("text", "in_star", "difference"), record),
        "frechet": {"ratio": {"estimate": 0.25, "low": 0.2, "high": 0.3}},
    }
    published = pd.DataFrame({"fid": [40.0, 30.0], "accuracy": [0.6, 0.7]}, index=["SD", "IN*"])
    table = inversion_views.against_paper(found, published)
    assert table["ours"].tolist() == [0.5, 0.5, 0.5, 0.25] and table["published"].tolist() == pytest.approx([0.6, 0.7, 0.1, 0.75])
    assert table[["low", "high"]].iloc[-1].tolist() == [0.2, 0.3] and len(inversion_views.NULLS) == len(table)
