"""ImageNet's classes agree with another library and the paper; the catalog reads its folders, and names what is wrong with them."""

import json

import open_clip
import pandas as pd
import pytest
from PIL import Image

from cnslib.core import paths
from cnslib.data import catalog, imagenet


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
    table = pd.read_csv(paths.PUBLISHED / imagenet.CHOSEN)
    table.loc[table["class"] == "bald eagle", column] = value
    table.to_csv(tmp_path / "classes.csv", index=False)
    with pytest.raises(ValueError, match=message):
        imagenet.paper_classes(tmp_path / "classes.csv")


def test_the_catalog_reads_imagenet_by_name_and_by_wnid(tree):
    """Three hens by file name and one lion; each is a flat grey."""
    found = {name: (seeds, [round(picture.mean()) for picture in pictures]) for name, seeds, pictures in whole(tree, "hen", "n02129165")}
    assert found == {"hen": ([0, 1, 2], [10, 20, 30]), "n02129165": ([0], [40])}
    assert catalog.images(tree, "heldout", "hen", count=2, side=8).shape == (2, 8, 8, 3)
    before = catalog.digest(tree, "heldout", ["hen"])
    (tree / "val" / "n01514859" / "ILSVRC2012_val_00000002.JPEG").unlink()
    assert catalog.digest(tree, "heldout", ["hen"]) != before


def whole(tree, *names):
    return catalog.whole(tree, "heldout", list(names))


def test_missing_and_empty_folders_and_unknown_names_are_named(tree):
    with pytest.raises(ValueError, match="ImageNet class 'hens' is not known"):
        list(whole(tree, "hens"))
    with pytest.raises(FileNotFoundError, match=r"n01518878 of class 'ostrich' does not exist$"):
        list(whole(tree, "ostrich"))
    (tree / "val" / "n01518878").mkdir()
    with pytest.raises(ValueError, match="no heldout pictures of class 'ostrich'"):
        list(whole(tree, "ostrich"))
    (tree / "val" / "n01514859" / "ILSVRC2012_val_00000002.JPEG").write_bytes(b"no picture")
    with pytest.raises(ValueError, match=r"00000002\.JPEG is not a picture"):
        list(whole(tree, "hen"))


def test_a_flat_validation_folder_is_explained(tree):
    Image.new("RGB", (8, 8)).save(tree / "val" / "ILSVRC2012_val_00000009.JPEG", format="JPEG")
    with pytest.raises(FileNotFoundError, match="side by side: sort them into one folder per class"):
        list(whole(tree, "ostrich"))


def test_the_file_of_labels_is_what_the_registry_answers_with():
    assert json.loads((paths.PUBLISHED / "imagenet1000.json").read_text()) == list(imagenet.labels())
