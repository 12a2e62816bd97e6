import json

import numpy as np
import open_clip
import pandas as pd
import pytest
from PIL import Image

from cnslib.core import paths, tables
from cnslib.data import catalog, imagenet

SPLITS = [("train", "bag"), ("train", "coat"), ("heldout", "bag")]


def pictures(count, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, 64, 64, 3), dtype=np.uint8)


def whole(path, *names, split="heldout"):
    return list(catalog.whole(path, split, list(names)))


@pytest.fixture
def table(tmp_path):
    rows = [
        {"split": split, "class": name, "seed": seed, "image": tables.encode(picture)}
        for number, (split, name) in enumerate(SPLITS)
        for seed, picture in enumerate(pictures(3, number))
    ]
    tables.write(pd.DataFrame(rows[::-1]), tmp_path / "catalog.parquet", tables.catalog)
    return tmp_path / "catalog.parquet"


@pytest.fixture
def folder(tmp_path):
    for number, (split, name) in enumerate(SPLITS):
        (tmp_path / "images" / split / name).mkdir(parents=True)
        for seed, picture in enumerate(pictures(3, number)):
            Image.fromarray(picture).save(tmp_path / "images" / split / name / f"{seed}.png")
    return tmp_path / "images"


@pytest.fixture
def tree(tmp_path):
    for wnid, levels in (("n01514859", [10, 20, 30]), ("n02129165", [40])):
        (tmp_path / "val" / wnid).mkdir(parents=True)
        for i, level in enumerate(levels):
            picture = Image.new("L", (32 + i, 24), level) if level == 20 else Image.new("RGB", (32 + i, 24), (level,) * 3)
            picture.save(tmp_path / "val" / wnid / f"ILSVRC2012_val_0000000{i}.JPEG", format="JPEG")
    return tmp_path


def test_table_and_folder_give_the_same_pictures(table, folder):
    for path in (table, folder):
        assert np.array_equal(catalog.images(path, "train", "coat", count=2, side=64), pictures(3, 1)[:2])
        found = catalog.by_class(path, "heldout", ["bag"], count=3, side=64)
        assert list(found) == ["bag"] and np.array_equal(found["bag"], pictures(3, 2))
        (first, seeds, coats), (second, *_) = whole(path, "coat", "bag", split="train")
        assert (first, second, seeds) == ("coat", "bag", [0, 1, 2]) and np.array_equal(np.stack(coats), pictures(3, 1))


def test_a_picture_is_cropped_to_its_centre_before_it_is_resized():
    wide = np.zeros((10, 30, 3), np.uint8)
    wide[:, 10:20] = 200
    assert np.array_equal(catalog.square(wide, 10), np.full((10, 10, 3), 200))
    assert catalog.square(wide, 5).shape == (5, 5, 3)


def test_the_digest_knows_the_pictures_of_the_asked_classes(folder):
    before = catalog.digest(folder, "train", ["bag"])
    (folder / "train" / "coat" / "0.png").unlink()
    assert catalog.digest(folder, "train", ["bag"]) == before != catalog.digest(folder, "heldout", ["bag"])
    (folder / "train" / "bag" / "0.png").unlink()
    assert catalog.digest(folder, "train", ["bag"]) != before


def test_the_catalog_reads_imagenet_by_name_and_by_wnid(tree):
    found = {name: (seeds, [round(picture.mean()) for picture in of]) for name, seeds, of in whole(tree, "hen", "n02129165")}
    assert found == {"hen": ([0, 1, 2], [10, 20, 30]), "n02129165": ([0], [40])}
    assert catalog.images(tree, "heldout", "hen", count=2, side=8).shape == (2, 8, 8, 3)
    before = catalog.digest(tree, "heldout", ["hen"])
    (tree / "val" / "n01514859" / "ILSVRC2012_val_00000002.JPEG").unlink()
    assert catalog.digest(tree, "heldout", ["hen"]) != before


def test_imagenets_classes_are_distinct_and_in_the_order_that_open_clip_gives_them():
    assert len(set(imagenet.wnids())) == len(set(imagenet.labels())) == 1000
    agree = [name.lower() == label for name, label in zip(open_clip.IMAGENET_CLASSNAMES, imagenet.labels(), strict=True)]
    assert sum(agree) > 500  # the others are cleaned or longer names of the same class
    assert all(agree[i] for i in (1, 8, 71, 107, 291, 309, 954, 980))  # goldfish, hen, ..., volcano
    assert json.loads((paths.PUBLISHED / "imagenet1000.json").read_text()) == list(imagenet.labels())


def test_a_class_is_found_by_wnid_and_by_label_and_the_two_cranes_keep_their_wnids():
    for index, wnid, label in ((0, "n01440764", "tench"), (8, "n01514859", "hen"), (999, "n15075141", "toilet tissue")):
        assert imagenet.index(wnid) == imagenet.index(label) == index
    assert imagenet.index("crane (n02012849)") == 134  # the bird
    assert imagenet.index("crane (n03126707)") == 517  # the machine
    with pytest.raises(ValueError, match="'crane' is not known; accepted: a wnid such as n01514859 or a label such as 'hen'"):
        imagenet.index("crane")
