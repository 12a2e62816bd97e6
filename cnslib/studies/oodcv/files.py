"""The OOD-CV data set as its authors lay it out for classification (Zhao et al. 2022), read.

A split is the folder train, iid_test or nuisances/<nuisance>. It holds Images/<class>/<name> and labels.csv, whose columns imgs and
labels say which picture shows what; further columns (azimuth, for pose estimation) are passed over.
"""

import re
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import UInt8

from cnslib.core.names import demand
from cnslib.data import imagenet

NUISANCES = ("context", "occlusion", "pose", "shape", "texture", "weather")
SPLITS = ("train", "iid_test", *NUISANCES)
COLUMNS = ["imgs", "labels"]
WORDS = {"snow": "snow", "snowy": "snow", "fog": "fog", "foggy": "fog", "rain": "rain", "rainy": "rain"}
NO_WORD = "unknown"


def listing(root: Path, split: str) -> pd.DataFrame:
    """The pictures of a split: name, class, file, and the weather that its file name was crawled for (see `crawled`).

    The csv of the released test set lists four pictures twice; such rows count once. FileNotFoundError for a missing folder, csv or
    picture, ValueError for an unknown split, missing columns and a picture with two labels.
    """
    demand(split in SPLITS, "OOD-CV split", split, ", ".join(SPLITS))
    folder = root / "nuisances" / split if split in NUISANCES else root / split
    if not (folder / "Images").is_dir():
        raise FileNotFoundError(f"OOD-CV: folder {folder / 'Images'} does not exist; accepted: <root>/nuisances/<nuisance>/Images/<class>")
    if not (folder / "labels.csv").exists():
        raise FileNotFoundError(f"OOD-CV: {folder / 'labels.csv'} does not exist; accepted: a csv with the columns {', '.join(COLUMNS)}")
    table = pd.read_csv(folder / "labels.csv", dtype=dict.fromkeys(COLUMNS, str))
    if missing := sorted(set(COLUMNS) - set(table.columns)):
        raise ValueError(f"OOD-CV: {folder / 'labels.csv'} lacks the columns {', '.join(missing)}; it has {', '.join(table.columns)}")
    rows = table[COLUMNS].drop_duplicates(ignore_index=True).set_axis(["name", "class"], axis=1)
    if twice := sorted(rows.loc[rows["name"].duplicated(), "name"]):
        raise ValueError(f"OOD-CV: {folder / 'labels.csv'} gives {len(twice)} pictures two labels, first {twice[0]}")
    files = [folder / "Images" / label / name for name, label in zip(rows["name"], rows["class"], strict=True)]
    if absent := [file for file in files if not file.is_file()]:
        raise FileNotFoundError(f"OOD-CV: {len(absent)} of {len(files)} rows of labels.csv have no picture, first {absent[0]}")
    return rows.assign(file=files, weather=[crawled(name) for name in rows["name"]])


def crawled(name: str) -> str:
    """snow, fog or rain, from the search words in a file name; "unknown" for none of them, as for OOD-CV's fourth query, desert.

    Words are whole: the class train ends in "rain".
    """
    found = [WORDS[word] for word in re.split("[^a-z]+", name.lower()) if word in WORDS]
    return found[0] if found else NO_WORD


def read(root: Path, split: str, *, classes: list[str]) -> tuple[pd.DataFrame, list[UInt8[np.ndarray, "height width 3"]]]:
    """The listing of some classes in a split and their pictures, each in its own size.

    ValueError for a file that is no picture, FileNotFoundError where a class has none.
    """
    table = listing(root, split)
    if absent := sorted(set(classes) - set(table["class"])):
        raise FileNotFoundError(f"OOD-CV: {split} has no picture of class {absent[0]!r}; it has {', '.join(sorted(set(table['class'])))}")
    chosen = table[table["class"].isin(classes)].reset_index(drop=True)
    return chosen, [imagenet.open_picture(file) for file in chosen["file"]]
