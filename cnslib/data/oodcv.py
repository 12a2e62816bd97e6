"""The OOD-CV data set as its authors lay it out for classification (Zhao et al. 2022).

A split is the folder train, iid_test or nuisances/<nuisance>. It holds Images/<class>/<name> and labels.csv, whose columns imgs and labels
say which picture shows what.
"""

import re
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import UInt8

from cnslib.core import pictures
from cnslib.core.names import demand

NUISANCES = ("context", "occlusion", "pose", "shape", "texture", "weather")
WORDS = {"snow": "snow", "snowy": "snow", "fog": "fog", "foggy": "fog", "rain": "rain", "rainy": "rain"}
WORDS |= dict.fromkeys(("desert", "sand", "sandstorm"), "sand")


def read(root: Path, split: str, *, classes: list[str] | None = None) -> tuple[pd.DataFrame, list[UInt8[np.ndarray, "height width 3"]]]:
    """The pictures of some or all classes in a split, each in its own size, and their table: name, class, file, weather (see `crawled`).

    The csv of the released test set lists four pictures twice; such rows count once.
    """
    folder = root / "nuisances" / split if split in NUISANCES else root / split
    for path in (folder / "Images", folder / "labels.csv"):
        if not path.exists():
            wanted = "<root>/nuisances/<nuisance>/Images/<class>, and beside Images a labels.csv with the columns imgs and labels"
            raise FileNotFoundError(f"OOD-CV: {path} does not exist; accepted: {wanted}")
    table = pd.read_csv(folder / "labels.csv", dtype=str)
    demand({"imgs", "labels"} <= {*table}, f"OOD-CV: {folder / 'labels.csv'}", list(table), "a csv with the columns imgs and labels")
    rows = table[["imgs", "labels"]].drop_duplicates(ignore_index=True).set_axis(["name", "class"], axis=1)
    if twice := sorted(rows.loc[rows["name"].duplicated(), "name"]):
        raise ValueError(f"OOD-CV: {folder / 'labels.csv'} gives {len(twice)} pictures two labels, first {twice[0]}")
    classes = sorted(set(rows["class"])) if classes is None else classes
    if absent := sorted(set(classes) - set(rows["class"])):
        raise FileNotFoundError(f"OOD-CV: {split} has no picture of class {absent[0]!r}; it has {', '.join(sorted(set(rows['class'])))}")
    rows = rows[rows["class"].isin(classes)].reset_index(drop=True)
    rows["file"] = [folder / "Images" / label / name for name, label in zip(rows["name"], rows["class"], strict=True)]
    if gone := [file for file in rows["file"] if not file.is_file()]:
        raise FileNotFoundError(f"OOD-CV: {len(gone)} of {len(rows)} rows of labels.csv have no picture, first {gone[0]}")
    return rows.assign(weather=rows["name"].map(crawled)), [pictures.read(file, f"OOD-CV: {file}") for file in rows["file"]]


def crawled(name: str) -> str:
    """snow, fog, rain or sand (the query "desert"), from the search words in a file name; "unknown" for none of them.

    Words are whole: the class train ends in "rain".
    """
    return next((WORDS[word] for word in re.split("[^a-z]+", name.lower()) if word in WORDS), "unknown")
