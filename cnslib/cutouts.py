"""The photo set's cut-outs: photographs of ImageNet classes with exact alpha masks, listed in data/photos/photos.csv."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pandera.pandas as pa
from PIL import Image, UnidentifiedImageError

from cnslib import imagenet, tables

LIST = "photos.csv"
COLUMNS = {
    "file": pa.Column(str, unique=True),
    "index": pa.Column("int64", pa.Check.in_range(0, 999)),
    "wnid": pa.Column(str, pa.Check.str_matches(r"^n\d{8}$")),
    "class": pa.Column(str),
    "seed": pa.Column("int64", pa.Check.ge(1)),
    "source": pa.Column(str, unique=True),
    "licence": pa.Column(str),
}
listed = tables.schema(["index", "seed"], COLUMNS)


@dataclass(frozen=True)
class CutOut:
    """One photograph without its background: ImageNet label, number among the cut-outs of its class, RGBA picture."""

    label: str
    seed: int
    picture: Image.Image


def contents(folder: Path) -> pd.DataFrame:
    """The list of the cut-outs in the order of ImageNet's classes.

    Raises FileNotFoundError where the list is missing, ValueError where it breaks its schema or a row's index, wnid and class
    are not one class of ImageNet.
    """
    path = folder / LIST
    if not path.exists():
        raise FileNotFoundError(f"photos: {path} does not exist; `dvc pull` restores it, `python -m cnslib.stamps` makes it")
    return require_classes(tables.check(pd.read_csv(path, dtype={"index": "int64", "seed": "int64"}), listed, str(path)), str(path))


def require_classes(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """The table, if index, wnid and class of every row are those of one class of ImageNet."""
    for row in table.to_dict("records"):
        expected = (imagenet.wnids()[row["index"]], imagenet.labels()[row["index"]])
        if (row["wnid"], row["class"]) != expected:
            raise ValueError(f"{name}: class {row['index']} is {row['wnid']}, {row['class']!r}; accepted: {', '.join(expected)}")
    return table


def read(folder: Path, *, count: int | None = None) -> list[CutOut]:
    """The first `count` cut-outs, or all. FileNotFoundError or ValueError name a picture that is missing, damaged or has no mask."""
    rows = contents(folder).head(count).to_dict("records")
    return [CutOut(row["class"], row["seed"], opened(folder / row["file"])) for row in rows]


def opened(path: Path) -> Image.Image:
    """One picture with its mask."""
    try:
        picture = Image.open(path)
        picture.load()
    except FileNotFoundError:
        raise FileNotFoundError(f"photos: {path} does not exist; `dvc pull` restores it") from None
    except (UnidentifiedImageError, OSError) as error:
        raise ValueError(f"photos: {path} is not a readable picture ({type(error).__name__}); accepted: RGBA in WebP or PNG") from None
    if picture.mode != "RGBA":
        raise ValueError(f"photos: {path} is {picture.mode}; accepted: RGBA, the mask as alpha")
    return picture
