"""ImageNet's classes agree with another library and the paper; its folders are read lazily, and what is wrong with them is named."""

import numpy as np
import open_clip
import pandas as pd
import pytest
from PIL import Image

from cnslib import imagenet, tables


@pytest.fixture
def tree(tmp_path):
    """val/<wnid>/*.JPEG with three flat pictures of hens and one of lions, grey in one and as large as its number."""
    for wnid, levels in (("n01514859", [10, 20, 30]), ("n02129165", [40])):
        (tmp_path / "val" / wnid).mkdir(parents=True)
        for i, level in enumerate(levels):
            mode = "L" if level == 20 else "RGB"
            Image.new(mode, (32 + i, 24), level if mode == "L" else (level,) * 3).save(
                tmp_path / "val" / wnid / f"ILSVRC2012_val_0000000{i}.JPEG", format="JPEG"
            )
    return tmp_path


def test_there_are_a_thousand_distinct_classes_and_labels():
    assert len(set(imagenet.wnids())) == len(set(imagenet.labels())) == 1000


def test_the_classes_are_in_the_order_that_open_clip_gives_them():
    agree = [name.lower() == label for name, label in zip(open_clip.IMAGENET_CLASSNAMES, imagenet.labels(), strict=True)]
    assert sum(agree) > 500  # the others are cleaned or longer names of the same class
    assert all(agree[i] for i in (1, 8, 71, 107, 291, 309, 954, 980))  # goldfish, hen, ..., volcano


@pytest.mark.parametrize(
    ("index", "wnid", "label"), [(0, "n01440764", "tench"), (8, "n01514859", "hen"), (999, "n15075141", "toilet tissue")]
)
def test_a_class_is_found_by_wnid_and_by_label(index, wnid, label):
    assert imagenet.index(wnid) == imagenet.index(label) == index
    assert (imagenet.wnids()[index], imagenet.labels()[index]) == (wnid, label)


def test_the_two_cranes_keep_their_wnids():
    assert imagenet.index("crane (n02012849)") == 134  # the bird
    assert imagenet.index("crane (n03126707)") == 517  # the machine
    with pytest.raises(ValueError, match="'crane' is not known; accepted: a wnid such as n01514859 or a label such as 'hen'"):
        imagenet.index("crane")


def test_the_papers_hundred_classes_are_classes_of_imagenet():
    table = imagenet.paper_classes()
    assert len(table) == 100
    assert table.loc[table["class"] == "bald eagle", ["index", "wnid"]].to_numpy().tolist() == [[22, "n01614925"]]
    assert set(table["class"]) <= set(imagenet.labels())


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("wnid", "n01614926", "class 22 is n01614926, 'bald eagle'; accepted: n01614925, bald eagle"),
        ("wnid", "eagle", "str_matches"),
        ("class", "kite", "class 22 is n01614925, 'kite'"),
        ("index", 23, "class 23 is n01614925"),
        ("index", 1000, "in_range"),
        ("index", 8, "breaks its schema"),
    ],
)
def test_a_wrong_row_of_the_hundred_classes_is_named(tmp_path, column, value, message):
    table = pd.read_csv(imagenet.paths.PUBLISHED / imagenet.CHOSEN)
    table.loc[table["class"] == "bald eagle", column] = value
    table.to_csv(tmp_path / "classes.csv", index=False)
    with pytest.raises(ValueError, match=message):
        imagenet.paper_classes(tmp_path / "classes.csv")


def test_files_come_class_by_class_in_the_order_asked_for(tree):
    found = [(name, path.name[-6:]) for name, path in imagenet.files(tree, "val", ["lion", "hen"])]
    assert found == [("lion", "0.JPEG"), ("hen", "0.JPEG"), ("hen", "1.JPEG"), ("hen", "2.JPEG")]


def test_pictures_are_read_one_at_a_time_as_rgb(tree):
    (tree / "val" / "n01514859" / "ILSVRC2012_val_00000002.JPEG").write_bytes(b"no picture")
    found = imagenet.pictures(tree, "val", ["hen"])
    first, second = next(found), next(found)
    assert (first[:2], second[:2]) == (("hen", 0), ("hen", 1))
    assert first[2].shape == (24, 32, 3) and second[2].shape == (24, 33, 3)
    assert abs(int(second[2].mean()) - 20) <= 1
    with pytest.raises(ValueError, match=r"00000002\.JPEG is not a picture"):
        next(found)


def test_a_table_holds_the_first_pictures_of_each_class(tree):
    table = imagenet.table(tree, "val", ["hen", "n02129165"], count=2)
    assert table[["split", "class", "seed"]].to_numpy().tolist() == [
        ["heldout", "hen", 0],
        ["heldout", "hen", 1],
        ["heldout", "n02129165", 0],
    ]
    assert abs(np.mean(tables.decode(table["image"].iloc[2], "lion")) - 40) <= 1


def test_missing_and_empty_folders_and_unknown_names_are_named(tree):
    with pytest.raises(ValueError, match="unknown split 'test' of ImageNet; accepted: train, val"):
        imagenet.files(tree, "test", ["hen"])
    with pytest.raises(ValueError, match="ImageNet class 'hens' is not known"):
        imagenet.files(tree, "val", ["hens"])
    with pytest.raises(FileNotFoundError, match=r"n01518878 of class 'ostrich' does not exist$"):
        imagenet.files(tree, "val", ["hen", "ostrich"])
    (tree / "val" / "n01518878").mkdir()
    with pytest.raises(ValueError, match="n01518878 of class 'ostrich' holds no images"):
        list(imagenet.files(tree, "val", ["ostrich"]))


def test_a_flat_validation_folder_is_explained(tree):
    Image.new("RGB", (8, 8)).save(tree / "val" / "ILSVRC2012_val_00000009.JPEG", format="JPEG")
    with pytest.raises(FileNotFoundError, match="side by side: sort them into one folder per class"):
        imagenet.files(tree, "val", ["ostrich"])
