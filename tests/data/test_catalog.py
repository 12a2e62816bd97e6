"""Reading the classification data set: the same pictures from a table and from a folder, and errors that name the class."""

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from cnslib.core import tables
from cnslib.data import catalog


def pictures(count, side=64, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, side, side, 3), dtype=np.uint8)


@pytest.fixture
def table(tmp_path):
    rows = [
        {"split": split, "class": name, "seed": seed, "image": tables.encode(picture)}
        for number, (split, name) in enumerate([("train", "bag"), ("train", "coat"), ("heldout", "bag")])
        for seed, picture in enumerate(pictures(3, seed=number))
    ]
    tables.write(pd.DataFrame(rows[::-1]), tmp_path / "catalog.parquet", tables.catalog)
    return tmp_path / "catalog.parquet"


@pytest.fixture
def folder(tmp_path):
    for number, (split, name) in enumerate([("train", "bag"), ("train", "coat"), ("heldout", "bag")]):
        (tmp_path / "images" / split / name).mkdir(parents=True)
        for seed, picture in enumerate(pictures(3, seed=number)):
            Image.fromarray(picture).save(tmp_path / "images" / split / name / f"{seed}.png")
    return tmp_path / "images"


def test_table_and_folder_give_the_same_pictures(table, folder):
    for path in (table, folder):
        assert np.array_equal(catalog.images(path, "train", "coat", count=2, side=64), pictures(3, seed=1)[:2])
        assert np.array_equal(catalog.images(path, "heldout", "bag", count=3, side=64), pictures(3, seed=2))


def test_a_picture_is_cropped_to_its_centre_before_it_is_resized():
    wide = np.zeros((10, 30, 3), np.uint8)
    wide[:, 10:20] = 200
    assert np.array_equal(catalog.square(wide, 10), np.full((10, 10, 3), 200))
    assert catalog.square(wide, 5).shape == (5, 5, 3)


def test_unknown_split_is_named(table):
    with pytest.raises(ValueError, match=r"'test'.*train, heldout"):
        catalog.images(table, "test", "bag", count=1, side=64)


def test_too_few_pictures_are_counted(table, folder):
    for path in (table, folder):
        with pytest.raises(ValueError, match="3 train pictures of class 'bag', 4 are asked for"):
            catalog.images(path, "train", "bag", count=4, side=64)


def test_missing_catalog_and_class_folder_are_named(tmp_path, folder):
    with pytest.raises(FileNotFoundError, match=r"catalog: .*none\.parquet"):
        catalog.images(tmp_path / "none.parquet", "train", "bag", count=1, side=64)
    with pytest.raises(FileNotFoundError, match="dress"):
        catalog.images(folder, "train", "dress", count=1, side=64)


def test_a_file_that_is_no_picture_is_named(folder):
    (folder / "train" / "bag" / "0.png").write_bytes(b"not a picture")
    with pytest.raises(ValueError, match=r"bag/0\.png is not a picture"):
        catalog.images(folder, "train", "bag", count=1, side=64)


def test_the_whole_split_comes_class_by_class_with_its_seeds(table, folder):
    for path in (table, folder):
        (first, seeds, found), (second, *_) = catalog.whole(path, "train", ["coat", "bag"])
        assert (first, second, seeds) == ("coat", "bag", [0, 1, 2])
        assert np.array_equal(np.stack(found), pictures(3, seed=1))


def test_the_digest_knows_the_pictures_of_the_asked_classes(folder):
    before = catalog.digest(folder, "train", ["bag"])
    (folder / "train" / "coat" / "0.png").unlink()
    assert catalog.digest(folder, "train", ["bag"]) == before != catalog.digest(folder, "heldout", ["bag"])
    (folder / "train" / "bag" / "0.png").unlink()
    assert catalog.digest(folder, "train", ["bag"]) != before


def test_pictures_by_class_are_those_of_each_class(table):
    found = catalog.by_class(table, "train", ["coat", "bag"], count=2, side=64)
    assert list(found) == ["coat", "bag"]
    assert all((own == catalog.images(table, "train", name, count=2, side=64)).all() for name, own in found.items())
