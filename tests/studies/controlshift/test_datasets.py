"""Data sets under shifts of latents: which files there are, what an image depends on, and where its pixels come from."""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
from golden_units import difference
from tiny_settings import SHIFTED as SETTINGS

from cnslib.core import recipes, tables, workers
from cnslib.models import text_to_image
from cnslib.studies.controlshift import datasets, latents
from cnslib.studies.controlshift.datasets import Decoder, Piece

CLASSES = ["sneaker", "ankle boot"]
pytestmark = pytest.mark.usefixtures("in_place")


@pytest.fixture(scope="module")
def decoder(tiny_pipeline_dir, tiny_tokens_dir) -> Decoder:
    """The tiny pipeline: its latents have 4 x 16 x 16 numbers."""
    pipe = text_to_image.load_pipeline(tiny_pipeline_dir, "cpu")
    text_to_image.load_tokens(pipe, tiny_tokens_dir, CLASSES)
    return datasets.text_to_image_decoder(pipe, text_to_image.origin(tiny_pipeline_dir, tiny_tokens_dir, CLASSES), CLASSES, SETTINGS)


@pytest.fixture(scope="module")
def folder(decoder, tmp_path_factory):
    """The data sets of the tiny pipeline."""
    place = tmp_path_factory.mktemp("sets")
    datasets.make(decoder, place)
    return place


def alone(function, *given):
    """What a function returns in one thread, as in `datasets.make`."""
    return workers.each(function, [given], device="cpu")[0]


def test_every_set_has_its_images_and_the_second_half_is_no_part_of_the_first(folder):
    """4 training sets of 3, 2 validation sets of 1, and 2 + 2 + 1 test sets of 2 per class; overlap at step 0 is extend's."""
    counts = {path.stem: len(tables.read(path, tables.images)) for path in folder.glob("*.parquet")}
    train = {f"train_{name}": 6 for name in ("truncation", "extend", "more", "full")}
    assert {name: count for name, count in counts.items() if name.startswith("train")} == train
    assert sum(counts.values()) == 4 * 6 + 2 * 2 + 5 * 4 and "test_overlap_0" not in counts
    tested = datasets.evaluation_set(folder, SETTINGS)
    assert tested.groupby(["shift", "scale"]).size().to_dict() == {(kind, float(s)): 4 for kind in latents.KINDS for s in range(2)}
    more = datasets.load(folder, "train_more")
    assert set(more["seed"]) == {4, 5, 6} and not set(more["image"]) & set(datasets.load(folder, "train_extend")["image"])
    assert not difference(recipes.CONTROLSHIFT, tables.read(folder / "test_extend_1.parquet", tables.images))


@pytest.mark.parametrize("kind", datasets.TRAINED)
def test_at_intensity_zero_the_images_are_those_of_the_training_set_bit_for_bit(decoder, folder, kind):
    again = alone(datasets.class_rows, decoder, Piece("again", "train", kind, 0, 1, 3), "sneaker")
    stored = datasets.load(folder, f"train_{kind}").query("`class` == 'sneaker'")
    assert again["image"].tolist() == stored["image"].tolist()


def test_extend_at_a_right_angle_draws_from_z_itself_and_shrinks_by_means(decoder, folder):
    z = latents.start("train sneaker", range(1, 11), decoder.size, seed=1)
    plain = alone(decoder.images, "sneaker", latents.unit(z) * math.sqrt(decoder.size))[:3]
    stored = tables.pictures(datasets.load(folder, "train_full").query("`class` == 'sneaker'"), "full")
    means = plain.reshape(3, 32, plain.shape[1] // 32, 32, -1, 3).astype(float).mean((2, 4))
    assert np.abs(stored - means).max() <= 1  # Pillow rounds rows first, then columns


def test_an_image_does_not_depend_on_its_neighbours_or_its_place_in_a_pass(decoder):
    """But for one grey level: without AVX and with two threads, oneDNN adds up the ends of a batch in another order."""
    z = latents.start("test bag", range(20), decoder.size, seed=1)
    first, mixed = (decoder.images("sneaker", chosen) for chosen in (z[:10], np.concatenate([z[15:], z[:5]])))
    assert np.abs(first[:5].astype(int) - mixed[5:]).max() <= 1
    assert np.abs(first[0].astype(int) - first[1]).max() > 20


def test_a_finished_file_stays_and_a_lost_or_outdated_one_is_drawn_again(decoder, folder, monkeypatch):
    made, original, before = [], datasets.store, (folder / "test_overlap_1.parquet").read_bytes()
    monkeypatch.setattr(datasets, "store", lambda *a: made.append(a[1].name) or original(*a))
    (folder / "test_overlap_1.parquet").unlink()
    (folder / "test_overlap_7.parquet").write_bytes(b"of another run")
    datasets.make(decoder, folder)
    assert made == ["test_overlap_1"] and (folder / "test_overlap_1.parquet").read_bytes() == before
    assert not (folder / "test_overlap_7.parquet").exists()
    other = dataclasses.replace(decoder, settings=dataclasses.replace(SETTINGS, factors=[0.9, 1.2]))
    changed = [piece.name for piece in datasets.plan(SETTINGS) if other.stamp(piece) != decoder.stamp(piece)]
    assert changed == ["test_truncation_1"]


def test_change_is_counted_in_grey_levels_from_the_first_step():
    rows = [
        ("overlap", "bag", seed, step, tables.encode(np.full((4, 4, 3), 10 * seed * step, np.uint8)))
        for seed in (1, 2)
        for step in (0, 1, 2)
    ]
    found = datasets.change(pd.DataFrame(rows, columns=[*tables.KEY, "image"]), settings=SETTINGS.bootstrap)
    assert found["estimate"].tolist() == [0, 15, 30] and set(found["n"]) == {2}
    assert found["low"].tolist() == [0, 10, 20] and found["high"].tolist() == [0, 20, 40]


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"train_full\.parquet does not exist"):
        datasets.load(tmp_path, "train_full")
