"""The classification data set whose look IN* imitates: a table (split, class, seed, image), a folder, or ImageNet.

A folder has train/<class>, heldout/<class>; ImageNet's train/<wnid>, val/<wnid>.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageOps

from cnslib.core import pictures, tables, units
from cnslib.data import imagenet

Pictures = UInt8[np.ndarray, "images side side 3"]


def images(path: Path, split: str, name: str, *, count: int, side: int) -> Pictures:
    """The first `count` pictures of a class, cropped to a square and resized; errors as those of `whole`."""
    return by_class(path, split, [name], count=count, side=side)[name]


def by_class(path: Path, split: str, classes: list[str], *, count: int, side: int) -> dict[str, Pictures]:
    """The first `count` pictures of every class, as `images` gives them."""
    return {name: np.stack([square(picture, side) for picture in images]) for name, _, images in whole(path, split, classes, count=count)}


def whole(path: Path, split: str, classes: list[str], *, count: int | None = None) -> Iterator[tuple[str, list[int], list[np.ndarray]]]:
    """The pictures of a split ("train" or "heldout"), all or the first `count`: class, seeds (in a folder: places by name), pictures."""
    table = None if existing(path).is_dir() else tables.read(path, tables.catalog).query("split == @split")
    for name in classes:
        if table is None:
            folder = class_folder(path, split, name)
            files = pictures.readable([file.name for file in folder.iterdir()], folder)[:count]
            seeds, images = list(range(len(files))), [pictures.read(folder / file, str(folder / file)) for file in files]
        else:
            rows = table[table["class"] == name].iloc[:count]
            seeds = rows["seed"].tolist()
            images = [tables.decode(data, f"{path.name} {split} {name} {seed}") for data, seed in zip(rows["image"], seeds, strict=True)]
        if len(images) < (count or 1):
            raise ValueError(f"catalog: {path} has {len(images)} {split} pictures of class {name!r}; accepted: {count or 1} or more")
        yield name, seeds, images


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
