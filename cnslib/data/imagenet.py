"""ImageNet-1k: index, wnid and name of its 1,000 classes (timm carries them), the paper's 100 classes, and where its images lie."""

from collections import Counter
from functools import cache
from pathlib import Path

import pandas as pd
from timm.data import ImageNetInfo

from cnslib.core import paths, pictures


@cache
def wnids() -> tuple[str, ...]:
    """The WordNet id of each class, in the order of the classifiers' outputs."""
    return tuple(ImageNetInfo().label_names())


@cache
def labels() -> tuple[str, ...]:
    """A distinct name for each class: the first word of its synset in lower case, with the wnid in brackets where two classes share it."""
    first = [text.split(",")[0].lower() for text in ImageNetInfo().label_descriptions()]
    count = Counter(first)
    return tuple(name if count[name] == 1 else f"{name} ({wnid})" for name, wnid in zip(first, wnids(), strict=True))


def index(name: str) -> int:
    """The output of a classifier for a class given by wnid or label. ValueError names an unknown one."""
    accepted = wnids() if name in wnids() else labels()
    if name not in accepted:
        raise ValueError(f"ImageNet class {name!r} is not known; accepted: a wnid such as {wnids()[8]} or a label such as {labels()[8]!r}")
    return accepted.index(name)


def paper_classes() -> pd.DataFrame:
    """The paper's 100 classes (section A.1): index, wnid, the paper's name and that of dataset-interfaces."""
    return pd.read_csv(paths.PUBLISHED / "classes100.csv")


def class_folder(split: Path, name: str) -> Path:
    """The folder of a class, given by wnid or label, in a split (train or val); FileNotFoundError for a missing one."""
    folder = split / wnids()[index(name)]
    if folder.is_dir():
        return folder
    flat = split.is_dir() and any(path.suffix.lower() in pictures.SUFFIXES for path in split.iterdir())
    hint = f"; {split} holds the images side by side: sort them into one folder per class first" if flat else ""
    raise FileNotFoundError(f"ImageNet: folder {folder} of class {name!r} does not exist{hint}")
