"""The four alignments of an image: cosines with two prompts and with its own unshifted image, computed once per shift."""

import numpy as np
import pandas as pd
import pytest
from golden_units import agrees
from tiny_encoders import write_clip, write_timm

from cnslib.core import kinds, tables
from cnslib.core.names import SHIFTS
from cnslib.method import filtering
from cnslib.models import encoders

LABELS = ["sneaker", "bag", "coat"]
CHOSEN = ["heavy snow", "cartoon style"]
GRID = [(name, seed) for name in ("sneaker", "bag") for seed in (1, 2)]


def picture(*key):
    return np.random.default_rng([sum(map(ord, str(part))) for part in key]).integers(0, 256, (32, 32, 3), dtype=np.uint8)


def write_images(folder, shift, scales, skip=()):
    rows = [
        {"shift": shift, "class": name, "seed": seed, "scale": scale, "image": tables.encode(picture(shift, name, seed, scale))}
        for name, seed in GRID
        for scale in scales
        if (name, seed) not in skip
    ]
    tables.write(pd.DataFrame(rows), folder / f"{shift.replace(' ', '_')}.parquet", tables.images)


@pytest.fixture(scope="module")
def judges(tmp_path_factory):
    folder = tmp_path_factory.mktemp("judges")
    write_clip(folder / "clip")
    write_timm(folder / "dino", outputs=0)
    write_timm(folder / "oracle", outputs=len(LABELS) + len(SHIFTS) + 2, seed=1)
    clip, dino = encoders.Clip(str(folder / "clip")), encoders.ImageEncoder(str(folder / "dino"))
    return filtering.Judges(clip, dino, encoders.Oracle(str(folder / "oracle"), labels=LABELS))


@pytest.fixture
def images(tmp_path):
    write_images(tmp_path / "images", "unshifted", [0.0])
    for shift in CHOSEN:
        write_images(tmp_path / "images", shift, [1.0, 2.0])
    return tmp_path / "images"


@pytest.fixture
def align(images, judges, tmp_path):
    def call(shifts=CHOSEN):
        return filtering.align(images, shifts, judges=judges, folder=tmp_path / "alignment")

    return call


def test_every_trajectory_has_all_scales(align):
    table = align()
    expected = [(shift, *pair, scale) for shift in CHOSEN for pair in GRID for scale in (0.0, 1.0, 2.0)]
    assert sorted(table[tables.KEY].itertuples(index=False, name=None)) == sorted(expected)


def test_an_unshifted_image_equals_its_reference(align):
    zero = align().query("scale == 0")
    assert np.allclose(zero[["clip_reference", "image_reference"]], 1, atol=1e-5)


def test_cosines_are_those_of_single_images_and_prompts(align, judges):
    row = align().set_index(tables.KEY).loc[("heavy snow", "bag", 2, 1.0)]
    pair = np.stack([picture("heavy snow", "bag", 2, 1.0), picture("unshifted", "bag", 2, 0.0)])
    clip, dino = judges.clip.image_features(pair), judges.image_encoder.features(pair)
    plain, shifted = judges.clip.text_features(["a picture of a bag", "a picture of a bag in heavy snow"])
    expected = [clip[0] @ plain, clip[0] @ shifted, clip[0] @ clip[1], dino[0] @ dino[1]]
    assert row[list(filtering.DETECTORS)].tolist() == pytest.approx([float(value) for value in expected], abs=1e-5)
    assert row["class_probability"] == pytest.approx(float(judges.oracle.class_probability(pair)[0, 1]), abs=1e-5)


def test_a_new_shift_leaves_the_others_alone(align, images, tmp_path):
    align(["heavy snow"])
    stamp = (tmp_path / "alignment" / "heavy_snow.parquet").stat().st_mtime_ns
    align()
    assert (tmp_path / "alignment" / "heavy_snow.parquet").stat().st_mtime_ns == stamp
    write_images(images, "heavy snow", [1.0, 2.0, 2.5])
    assert 2.5 in set(align()["scale"])
    align(["cartoon style"])
    assert not (tmp_path / "alignment" / "heavy_snow.parquet").exists()


def test_a_missing_shard_is_named(align, images):
    (images / "cartoon_style.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=r"cartoon_style\.parquet"):
        align()


def test_a_missing_unshifted_image_is_named(align, images):
    write_images(images, "unshifted", [0.0], skip=[("bag", 2)])
    with pytest.raises(ValueError, match=r"no unshifted image.*\('bag', 2\)"):
        align()


def test_bytes_that_are_no_picture_are_named_and_nothing_is_written(align, images, tmp_path):
    path = images / "heavy_snow.parquet"
    table = tables.read(path, tables.images)
    table.at[3, "image"] = b"not a picture"
    tables.write(table, path, tables.images)
    with pytest.raises(ValueError, match=r"heavy_snow.*not a picture"):
        align()
    assert not list((tmp_path / "alignment").glob("*"))


def test_a_class_that_the_oracle_does_not_know_is_named(align, images):
    for shift in ("unshifted", *CHOSEN):
        path = images / f"{shift.replace(' ', '_')}.parquet"
        table = tables.read(path, tables.images)
        tables.write(table.assign(**{"class": table["class"].replace("bag", "barrow")}), path, tables.images)
    with pytest.raises(ValueError, match="labels: the oracle knows no class 'barrow'"):
        align()


def test_a_gallery_shows_the_rows_pictures_and_white_elsewhere(align, images):
    table = align()
    one = table.query("shift == 'heavy snow' and `class` == 'bag' and seed == 1")
    sheet = filtering.gallery(images, {"all": one, "none": one.head(0), "last": one.tail(1)}, columns=4)
    assert sheet.shape == (3, 4, 32, 32, 3)
    expected = [picture("unshifted", "bag", 1, 0.0), picture("heavy snow", "bag", 1, 1.0), picture("heavy snow", "bag", 1, 2.0)]
    assert np.array_equal(sheet[0, :3], expected)
    assert np.array_equal(sheet[2, 0], expected[2])
    assert (sheet[0, 3] == 255).all() and (sheet[1] == 255).all() and (sheet[2, 1:] == 255).all()


def test_the_tiny_unit_is_the_golden_one(align):
    agrees(kinds.ALIGNMENT, align())
