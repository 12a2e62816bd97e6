"""The classification data set whose look IN* imitates: a table of pictures, a folder of them, or ImageNet as its makers lay it out."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import UInt8
from PIL import Image, ImageOps

from cnslib.core import tables, units
from cnslib.data import imagenet
from cnslib.data.imagenet import SUFFIXES, open_picture

SPLITS = ("train", "heldout")


def images(path: Path, split: str, name: str, *, count: int, side: int) -> UInt8[np.ndarray, "images side side 3"]:
    """The first `count` pictures of a class in one split ("train" or "heldout"), cropped to a square and resized.

    `path` is a parquet table (split, class, seed, image), a folder train/<class>, heldout/<class>, or ImageNet's train/<wnid>,
    val/<wnid>. Raises FileNotFoundError for a missing path or class folder, ValueError for an unknown split, a class with fewer
    pictures, and what is no picture.
    """
    _, found = reader(path, split)(name, count)
    if len(found) < count:
        raise ValueError(f"catalog: {path} has {len(found)} {split} pictures of class {name!r}, {count} are asked for")
    return np.stack([square(picture, side) for picture in found])


def by_class(path: Path, split: str, classes: list[str], *, count: int, side: int) -> dict[str, UInt8[np.ndarray, "images side side 3"]]:
    """The first `count` pictures of every class, as `images` gives them."""
    return {name: images(path, split, name, count=count, side=side) for name in classes}


def whole(path: Path, split: str, classes: list[str]) -> Iterator[tuple[str, list[int], list[np.ndarray]]]:
    """All pictures of one split, class by class and uncropped: class, seeds (in a folder: places by name, from 0), pictures.

    Errors are those of `images`; ValueError also for a class without pictures.
    """
    read = reader(path, split)
    for name in classes:
        seeds, found = read(name, None)
        if not found:
            raise ValueError(f"catalog: {path} has no {split} pictures of class {name!r}")
        yield name, seeds, found


def digest(path: Path, split: str, classes: list[str]) -> str:
    """What the pictures of some classes in one split are made from: the table, or the files of their folders."""
    if path.is_dir():
        return units.digest([[name, units.directory_digest(class_folder(path, split, name))] for name in classes])
    return units.digest(units.verified(existing(path), required=False), classes)


def existing(path: Path) -> Path:
    """The path, if there is something."""
    if not path.exists():
        raise FileNotFoundError(f"catalog: {path} does not exist; accepted: a table (split, class, seed, image), an image folder, ImageNet")
    return path


def reader(path: Path, split: str) -> Callable[[str, int | None], tuple[list[int], list[np.ndarray]]]:
    """What reads a class, or its first pictures, from one split: a function of (class, count or None). A table is read once."""
    if split not in SPLITS:
        raise ValueError(f"unknown split {split!r} of the catalog; accepted: {', '.join(SPLITS)}")
    if existing(path).is_dir():
        return partial(from_folder, path, split)
    table = tables.read(path, tables.catalog)
    return partial(from_table, table[table["split"] == split], f"{path.name} {split}")


def from_table(table: pd.DataFrame, where: str, name: str, count: int | None) -> tuple[list[int], list[np.ndarray]]:
    """Seeds and pictures of a class: the rows with the lowest seeds."""
    rows = table[table["class"] == name].iloc[:count]
    seeds = rows["seed"].tolist()
    return seeds, [tables.decode(data, f"{where} {name} {seed}") for data, seed in zip(rows["image"], seeds, strict=True)]


def from_folder(path: Path, split: str, name: str, count: int | None) -> tuple[list[int], list[np.ndarray]]:
    """Places and pictures of a class: the files that come first by name."""
    files = sorted(file for file in class_folder(path, split, name).iterdir() if file.suffix.lower() in SUFFIXES)[:count]
    return list(range(len(files))), [open_picture(file) for file in files]


def class_folder(path: Path, split: str, name: str) -> Path:
    """Where a folder keeps the pictures of a class; one that has a folder val is ImageNet's, whose classes go by wnid."""
    if (path / "val").is_dir():
        return imagenet.class_folder(path / {"heldout": "val"}.get(split, split), name)
    folder = path / split / name
    if not folder.is_dir():
        raise FileNotFoundError(f"catalog: folder {folder} of class {name!r} does not exist")
    return folder


def square(picture: UInt8[np.ndarray, "height width 3"], side: int) -> UInt8[np.ndarray, "side side 3"]:
    """The centred square of a picture, resized (bicubic); one that has the wanted size already keeps its pixels."""
    return np.asarray(ImageOps.fit(Image.fromarray(picture), (side, side), Image.Resampling.BICUBIC))
