"""ImageNet-1k: index, wnid and name of its 1,000 classes (timm carries them), the paper's 100 classes, and a folder tree of its images."""

from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
from timm.data import ImageNetInfo

from cnslib import paths, tables
from cnslib.catalog import SUFFIXES, open_picture

SPLITS = ("train", "val")
CHOSEN = "classes100.csv"
chosen = tables.schema(
    ["index"],
    {
        "index": pa.Column("int64", pa.Check.in_range(0, 999)),
        "wnid": pa.Column(str, pa.Check.str_matches(r"^n\d{8}$"), unique=True),
        "class": pa.Column(str, unique=True),
        "dataset_interfaces_name": pa.Column(str, unique=True),
        "source": pa.Column(str),
    },
)


@cache
def wnids() -> tuple[str, ...]:
    """The WordNet id of each class, in the order of the classifiers' outputs."""
    return tuple(ImageNetInfo().label_names())


@cache
def labels() -> tuple[str, ...]:
    """A distinct name for each class: the first word of its synset in lower case, as the paper writes it.

    Where two classes share it (crane, maillot, cardigan) the wnid follows in brackets.
    """
    first = [text.split(",")[0].lower() for text in ImageNetInfo().label_descriptions()]
    count = Counter(first)
    return tuple(name if count[name] == 1 else f"{name} ({wnid})" for name, wnid in zip(first, wnids(), strict=True))


def index(name: str) -> int:
    """The output of a classifier for a class given by wnid or label. ValueError names an unknown one."""
    known = wnids() if name in wnids() else labels()
    if name not in known:
        raise ValueError(f"ImageNet class {name!r} is not known; accepted: a wnid such as {wnids()[8]} or a label such as {labels()[8]!r}")
    return known.index(name)


def paper_classes(path: Path = paths.PUBLISHED / CHOSEN) -> pd.DataFrame:
    """The paper's 100 classes (section A.1): index, wnid, the paper's name and that of dataset-interfaces.

    Raises ValueError where the file breaks its schema, or a row's index, wnid and name are not one class of ImageNet.
    """
    table = tables.check(pd.read_csv(path, dtype={"index": "int64"}).astype({"wnid": str, "class": str}), chosen, str(path))
    for row in table.to_dict("records"):
        expected = (wnids()[row["index"]], labels()[row["index"]])
        if (row["wnid"], row["class"]) != expected:
            raise ValueError(f"{path}: class {row['index']} is {row['wnid']}, {row['class']!r}; accepted: {', '.join(expected)}")
    return table


def files(root: Path, split: str, names: list[str]) -> Iterator[tuple[str, Path]]:
    """The image files of some classes in <root>/<split>/<wnid>/, class by class and by name, one at a time: (name as given, path).

    A class is given by wnid or label. Raises ValueError for an unknown split or class and for a class folder without images,
    FileNotFoundError for a missing folder; all classes are looked up before the first file is given.
    """
    if split not in SPLITS:
        raise ValueError(f"unknown split {split!r} of ImageNet; accepted: {', '.join(SPLITS)}")
    folders = {name: class_folder(root / split, name) for name in names}
    return ((name, path) for name, folder in folders.items() for path in class_files(folder, name))


def class_folder(split: Path, name: str) -> Path:
    """The folder of one class."""
    folder = split / wnids()[index(name)]
    if folder.is_dir():
        return folder
    flat = split.is_dir() and any(path.suffix in SUFFIXES for path in split.iterdir())
    hint = f"; {split} holds the images side by side: sort them into one folder per class first" if flat else ""
    raise FileNotFoundError(f"ImageNet: folder {folder} of class {name!r} does not exist{hint}")


def class_files(folder: Path, name: str) -> list[Path]:
    """The image files of one class, by name."""
    found = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES)
    if not found:
        raise ValueError(f"ImageNet: folder {folder} of class {name!r} holds no images; accepted: {', '.join(SUFFIXES)}")
    return found


def pictures(root: Path, split: str, names: list[str], *, count: int | None = None) -> Iterator[tuple[str, int, np.ndarray]]:
    """The first `count` pictures of each class, or all, read one at a time: (name, place by file name from 0, uint8 RGB).

    Errors are those of `files`; ValueError also for a file that is no picture.
    """
    places: Counter = Counter()
    for name, path in files(root, split, names):
        place = places[name]
        places[name] += 1
        if count is None or place < count:
            yield name, place, open_picture(path)


def table(root: Path, split: str, names: list[str], *, count: int | None = None) -> pd.DataFrame:
    """The pictures as a table of the catalog: split ("heldout" stands for "val"), class, seed (the place) and PNG bytes."""
    kind = {"train": "train", "val": "heldout"}
    rows = [
        {"split": kind[split], "class": name, "seed": place, "image": tables.encode(picture)}
        for name, place, picture in pictures(root, split, names, count=count)
    ]
    return tables.check(pd.DataFrame(rows), tables.catalog, f"ImageNet {split}")
