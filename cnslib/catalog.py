"""The classification data set whose look IN* imitates (ImageNet in the paper): a table of pictures, or a folder of them."""

from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageOps, UnidentifiedImageError

from cnslib import tables

SPLITS = ("train", "heldout")
SUFFIXES = (".png", ".jpg", ".jpeg", ".JPEG")


def images(path: Path, split: str, name: str, *, count: int, side: int) -> UInt8[np.ndarray, "images side side 3"]:
    """The first `count` pictures of a class in one split ("train" or "heldout"), cropped to a square and resized.

    `path` is a parquet table (split, class, seed, image) or a folder train/<class>, heldout/<class>. Raises FileNotFoundError
    for a missing path or class folder, ValueError for an unknown split, a class with fewer pictures, and what is no picture.
    """
    if split not in SPLITS:
        raise ValueError(f"unknown split {split!r} of the catalog; accepted: {', '.join(SPLITS)}")
    if not path.exists():
        raise FileNotFoundError(f"catalog: {path} does not exist; accepted: a table (split, class, seed, image) or an image folder")
    read = from_folder if path.is_dir() else from_table
    found = read(path, split, name, count)
    if len(found) < count:
        raise ValueError(f"catalog: {path} has {len(found)} {split} pictures of class {name!r}, {count} are asked for")
    return np.stack([square(picture, side) for picture in found])


def from_table(path: Path, split: str, name: str, count: int) -> list[np.ndarray]:
    """Pictures of the rows with the lowest seeds."""
    table = tables.read(path, tables.catalog)
    rows = table[(table["split"] == split) & (table["class"] == name)].head(count)
    return [tables.decode(data, f"{path.name} {split} {name} {seed}") for data, seed in zip(rows["image"], rows["seed"], strict=True)]


def from_folder(path: Path, split: str, name: str, count: int) -> list[np.ndarray]:
    """Pictures of the files that come first by name."""
    folder = path / split / name
    if not folder.is_dir():
        raise FileNotFoundError(f"catalog: folder {folder} of class {name!r} does not exist")
    files = sorted(file for file in folder.iterdir() if file.suffix in SUFFIXES)[:count]
    return [open_picture(file) for file in files]


def open_picture(file: Path) -> UInt8[np.ndarray, "height width 3"]:
    """One picture file; ValueError names a file that is none."""
    try:
        return np.asarray(Image.open(file).convert("RGB"))
    except (UnidentifiedImageError, OSError, SyntaxError) as error:
        raise ValueError(f"catalog: {file} is not a picture ({type(error).__name__})") from None


def square(picture: UInt8[np.ndarray, "height width 3"], side: int) -> UInt8[np.ndarray, "side side 3"]:
    """The centred square of a picture, resized (bicubic); one that has the wanted size already keeps its pixels."""
    return np.asarray(ImageOps.fit(Image.fromarray(picture), (side, side), Image.Resampling.BICUBIC))
