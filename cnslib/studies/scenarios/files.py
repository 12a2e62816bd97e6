"""XIMAGENET-12 on disk: the published tree of scenarios, and images with masks of a user's own.

<root>/image/<wnid>/<name>.JPEG     originals            <root>/masks/<wnid>/<name>.png    white where the object is
<root>/<scenario>/<wnid>/<file>     one folder per scenario, named as in FOLDERS; each may repeat its name once (as unzipped)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float
from PIL import Image as Pictures
from PIL import UnidentifiedImageError

from cnslib.core.names import UNSHIFTED
from cnslib.data import imagenet
from cnslib.data.imagenet import SUFFIXES
from cnslib.models.classifiers import Classifier
from cnslib.studies.scenarios.scenarios import FOLDERS, Image, Mask
from cnslib.studies.scenarios.subjects import rounded

WHITE = {"1": 1.0, "L": 255.0, "LA": 255.0, "RGB": 255.0, "RGBA": 255.0, "I;16": 65535.0, "I": 65535.0}  # by Pillow's mode
CHUNK = 64  # pictures in one batch


@dataclass(frozen=True)
class Pair:
    """An image, the mask of its object, and where they come from; `label` is the folder of the image, "" for none."""

    label: str
    name: str
    image: Image
    mask: Mask


def pair(image: Path, mask: Path, *, label: str = "") -> Pair:
    """One image in [0, 1] with its mask, 1 on the object.

    Grey images get three equal channels and an image's alpha is left out; a mask's alpha, where it has one, is the mask, else the
    brightest channel. Raises FileNotFoundError or ValueError, naming the file: not there, no picture, another kind of picture, a
    mask of another size, a mask without an object.
    """
    picture, cover = opened(image), opened(mask)
    if picture.shape[:2] != cover.shape[:2]:
        sizes = " against ".join(f"{one.shape[1]} x {one.shape[0]}" for one in (cover, picture))
        raise ValueError(f"mask {mask} and image {image} differ in size, {sizes}; accepted: a mask of the image's width and height")
    area = cover[..., -1] if cover.shape[2] in (2, 4) else cover.max(-1)
    if not area.any():
        raise ValueError(f"mask {mask} is empty; accepted: at least one pixel of the object above 0")
    return Pair(label, image.stem, coloured(picture), area)


def opened(path: Path) -> Float[np.ndarray, "height width channels"]:
    """A picture file of any accepted kind in [0, 1], its channels kept."""
    try:
        picture = Pictures.open(path)
        picture.load()
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist; accepted: a picture file") from None
    except (UnidentifiedImageError, OSError, SyntaxError) as error:
        raise ValueError(f"{path} is not a readable picture ({type(error).__name__}); accepted: PNG or JPEG") from None
    if picture.mode not in WHITE:
        raise ValueError(f"{path} has mode {picture.mode}; accepted: 8 or 16 bit grey, RGB or RGBA")
    return np.atleast_3d(np.asarray(picture, float) / WHITE[picture.mode])


def coloured(picture: Float[np.ndarray, "height width channels"]) -> Image:
    """Three channels without alpha: grey is repeated."""
    return picture[..., :3] if picture.shape[2] >= 3 else np.repeat(picture[..., :1], 3, axis=-1)


def pairs(images: Path, masks: Path) -> Iterator[Pair]:
    """All images of a folder, or of its class folders, each with the mask of the same name (PNG) at the same place.

    Raises FileNotFoundError for a folder that is missing or has no image and for an image without a mask; errors as `pair`.
    """
    files = [file for file in sorted(directory(images).rglob("*")) if file.suffix.lower() in SUFFIXES]
    if not files:
        raise FileNotFoundError(f"{images} holds no image; accepted: files that end in {', '.join(SUFFIXES)}")
    for file in files:
        place = file.relative_to(directory(images))
        yield pair(file, directory(masks) / place.with_suffix(".png"), label=place.parent.as_posix().strip("."))


def published(root: Path) -> Iterator[Pair]:
    """The originals of the published tree with their masks."""
    yield from pairs(root / FOLDERS[UNSHIFTED], root / "masks")


def directory(path: Path) -> Path:
    """A folder that exists; where it holds nothing but a folder of its own name, that one."""
    if not path.is_dir():
        raise FileNotFoundError(f"folder {path} does not exist; accepted: a folder of pictures")
    return path / path.name if (path / path.name).is_dir() else path


def contents(root: Path) -> pd.DataFrame:
    """The pictures of the published tree, one row each (shift, class, seed, file); seeds count the files of a class by name, from 0.

    Raises FileNotFoundError where there is no scenario at all, ValueError for a class folder that is no wnid of ImageNet.
    """
    there = {name: directory(root / folder) for name, folder in FOLDERS.items() if (root / folder).is_dir()}
    if not there:
        raise FileNotFoundError(f"{root} has no folder of a scenario; accepted: {', '.join(FOLDERS.values())}")
    rows = [
        (name, imagenet.labels()[imagenet.index(place.name)], seed, file)
        for name, folder in there.items()
        for place in sorted(own for own in folder.iterdir() if own.is_dir())
        for seed, file in enumerate(sorted(file for file in place.iterdir() if file.suffix.lower() in SUFFIXES))
    ]
    return pd.DataFrame(rows, columns=["shift", "class", "seed", "file"])


def predictions(judges: list[Classifier], table: pd.DataFrame) -> pd.DataFrame:
    """The predictions of ImageNet classifiers for the pictures of `contents`, in the form of EX1's: scale 1, originals 0."""
    parts = []
    for start in range(0, len(table), CHUNK):
        rows = table[start : start + CHUNK]
        pictures = [rounded(coloured(opened(file))) for file in rows["file"]]
        keys = rows.drop(columns="file").assign(scale=(rows["shift"] != UNSHIFTED).astype(float))
        for judge in judges:
            best = judge.logits(pictures).argmax(1).tolist()
            parts.append(keys.assign(model=judge.name, top1=[judge.labels[place] for place in best]))
    return pd.concat(parts, ignore_index=True)
