"""Data sets under shifts of latents: which files there are, what an image depends on, and where its pixels come from."""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
from golden_units import difference
from tiny_shifts import SHIFTED as SETTINGS

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


def alone(drawn) -> list:
    """What a generator draws, in one thread as in `datasets.make`."""
    return workers.each(list, [(drawn,)], device="cpu")[0]


def test_every_set_has_the_images_that_were_asked_for(folder):
    """4 training sets of 3, 2 validation sets of 1, and 2 + 2 + 1 test sets of 2 per class; overlap at step 0 is extend's."""
    counts = {path.stem: len(tables.read(path, tables.images)) for path in folder.glob("*.parquet")}
    assert {name: count for name, count in counts.items() if name.startswith("train")} == dict.fromkeys(
        ["train_truncation", "train_extend", "train_more", "train_full"], 6
    )
    assert sum(counts.values()) == 4 * 6 + 2 * 2 + 5 * 4 and "test_overlap_0" not in counts
    tested = datasets.evaluation_set(folder, SETTINGS)
    assert tested.groupby(["shift", "scale"]).size().to_dict() == {(kind, float(s)): 4 for kind in latents.KINDS for s in range(2)}


@pytest.mark.parametrize("kind", datasets.TRAINED)
def test_at_intensity_zero_the_images_are_those_of_the_training_set_bit_for_bit(decoder, folder, kind):
    again = pd.DataFrame(alone(datasets.class_rows(decoder, Piece("again", "train", kind, 0, 1, 3), "sneaker")))
    stored = datasets.load(folder, f"train_{kind}").query("`class` == 'sneaker'")
    assert again["image"].tolist() == stored["image"].tolist()


def test_extend_at_a_right_angle_draws_from_z_itself_and_the_standard_set_is_no_part_of_its_second_half(decoder, folder):
    z = latents.start("train sneaker", range(1, 11), decoder.size, seed=1)
    plain = alone(decoder.draw("sneaker", latents.unit(z) * math.sqrt(decoder.size)) for _ in range(1))[0]
    stored = tables.pictures(datasets.load(folder, "train_full").query("`class` == 'sneaker'"), "full")
    assert np.array_equal(stored, [datasets.reduced(picture, 32) for picture in plain[:3]])
    more = datasets.load(folder, "train_more")
    assert set(more["seed"]) == {4, 5, 6} and not set(more["image"]) & set(datasets.load(folder, "train_extend")["image"])


def test_an_image_does_not_depend_on_its_neighbours_or_its_place_in_a_pass(decoder):
    """But for one grey level: without AVX and with two threads, oneDNN adds up the ends of a batch in another order."""
    z = latents.start("test bag", range(20), decoder.size, seed=1)
    first, mixed = (decoder.draw("sneaker", chosen) for chosen in (z[:10], np.concatenate([z[15:], z[:5]])))
    assert np.abs(first[:5].astype(int) - mixed[5:]).max() <= 1
    assert np.abs(first[0].astype(int) - first[1]).max() > 20


def test_latents_have_the_norm_that_the_decoder_knows(decoder):
    for kind, step in (("extend", 1), ("overlap", 1)):
        z = datasets.shifted(decoder, Piece("one", "test", kind, step, 1, 2), "sneaker", range(1, 3))
        assert np.allclose(np.linalg.norm(z, axis=1), 32)
    small, large = (datasets.shifted(decoder, Piece("one", "test", "truncation", step, 1, 2), "bag", range(1, 3)) for step in (0, 1))
    assert np.allclose(large / small, 1.1 / 0.9)


def test_a_finished_file_stays_and_a_lost_or_outdated_one_is_drawn_anew(decoder, folder, monkeypatch):
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


def test_a_shrunk_picture_has_the_means_of_the_pixels_it_covers():
    picture = np.random.default_rng(1).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    means = picture.reshape(4, 2, 4, 2, 3).astype(float).mean((1, 3))
    assert np.abs(datasets.reduced(picture, 4) - means).max() <= 1  # Pillow rounds rows first, then columns


def test_strength_is_zero_at_the_start_and_half_where_the_whole_sphere_is_reached():
    table = datasets.strength(SETTINGS, 1024).set_index(["shift", "scale"])["exact"]
    assert table[:, 0.0].to_numpy() == pytest.approx(0, abs=1e-6)
    assert table["extend", 1.0] == pytest.approx(0.5) and table["truncation", 1.0] == pytest.approx(1)
    aims = latents.targets(1024, seed=1)
    between = math.degrees(math.acos(latents.unit(aims.first) @ latents.unit(aims.second)))
    assert table["overlap", 1.0] == pytest.approx(between / 180)


def test_change_is_counted_in_grey_levels_from_the_first_step():
    rows = [
        {
            "shift": "overlap",
            "class": "bag",
            "seed": seed,
            "scale": step,
            "image": tables.encode(np.full((4, 4, 3), 10 * seed * step, np.uint8)),
        }
        for seed in (1, 2)
        for step in (0, 1, 2)
    ]
    found = datasets.change(pd.DataFrame(rows), settings=SETTINGS.bootstrap)
    assert found["estimate"].tolist() == [0, 15, 30] and set(found["n"]) == {2}
    assert found["low"].tolist() == [0, 10, 20] and found["high"].tolist() == [0, 20, 40]


def test_what_cannot_be_drawn_is_refused(decoder, tmp_path):
    with pytest.raises(ValueError, match="controlshift: latents: 8 is not accepted; accepted: the 1024 dimensions"):
        decoder.draw("sneaker", np.ones((1, 8)))
    with pytest.raises(ValueError, match="controlshift: class: 'bag' is not accepted; accepted: sneaker, ankle boot"):
        decoder.draw("bag", np.ones((1, 1024)))
    with pytest.raises(FileNotFoundError, match=r"train_full\.parquet does not exist"):
        datasets.load(tmp_path, "train_full")


def test_the_tiny_unit_is_the_golden_one(folder):
    assert not difference(recipes.CONTROLSHIFT, tables.read(folder / "test_extend_1.parquet", tables.images))
