"""What is shown of images: the rule that chooses a guidance, the change of all pictures, and the recipe beside the paper's, by hand."""

import numpy as np
import pandas as pd
import pytest
from tiny_settings import changed

from cnslib.core import paths, tables
from cnslib.core.settings import read
from cnslib.method import generation_views


def test_of_the_guidances_that_are_surely_as_accurate_as_heldout_pictures_the_nearest_to_the_catalog_is_best():
    table = {"accuracy": [0.86, 0.92, 0.95], "low": [0.82, 0.9, 0.93], "frechet": [1.0, 2.0, 3.0]}
    choice = pd.DataFrame(table, index=[1.5, 3.0, 7.5])
    assert generation_views.best(choice, 0.88) == 3.0
    assert generation_views.best(choice, 0.91) == 7.5
    assert generation_views.best(choice, 0.8) == 1.5
    assert generation_views.best(choice, 0.94) == 7.5  # none is sure: the most accurate


def flat(shift, name, seed, scale, value):
    picture = np.full((4, 4, 3), value, np.uint8)
    return {"shift": shift, "class": name, "seed": seed, "scale": scale, "image": tables.encode(picture)}


def test_every_picture_of_every_shard_is_compared_with_the_start_of_its_class(tmp_path):
    unshifted = pd.DataFrame([flat("unshifted", "coat", 1, 0.0, 10), flat("unshifted", "bag", 1, 0.0, 100)])
    values = {"heavy fog": (30, 150), "heavy snow": (11, 100)}
    shards = {shift: tmp_path / f"{shift}.parquet" for shift in values}
    for shift, (coat, bag) in values.items():
        table = pd.DataFrame([flat(shift, "coat", 1, 1.0, coat), flat(shift, "bag", 1, 1.0, bag)])
        tables.write(table, shards[shift], tables.images)
    found = generation_views.changes(shards, unshifted)
    assert found["change"].tolist() == [50.0, 20.0, 0.0, 1.0] and found.index.tolist() == [0, 1, 2, 3]
    assert found[["shift", "class"]].iloc[0].tolist() == ["heavy fog", "bag"]


def test_the_recipe_stands_beside_the_papers():
    sections = read.load(paths.resolve("params.yaml"))
    base = changed(sections["base"], shifts=["heavy snow", "heavy fog"], classes=["bag", "dress"], seeds=5, scales=[0.0, 1.0, 2.5])
    table = generation_views.against_paper(base, changed(sections["generation"], steps=20, start_fraction=0.75))
    ours = [3, 2.5, 20, sections["generation"].guidance, 0.75, 2, 2, 5, 60]  # 5 of 20 steps without the slider
    assert table["ours"].tolist() == ours and table.index.tolist() == list(generation_views.PAPER)
    assert table.loc["seeds"].tolist() == [5, 50, -45]
    assert table.loc[generation_views.IMAGES, "difference"] == pytest.approx(60 - 14 * 100 * 50 * 6)
