"""ImageNet's other test sets as their authors lay them out: what each picture shows, and the classes among which an answer counts.

ImageNet-R and -A are scored over their own 200 classes, V2 and Sketch over all 1,000, ObjectNet over the 113 that it shares with ImageNet,
each by the largest of its outputs. ReaL (Beyer et al. 2020) is ImageNet's validation set with one label or several for each picture.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float, UInt8
from timm.data import ImageNetInfo

from cnslib.core.names import demand
from cnslib.core.pictures import read, readable
from cnslib.core.sources import document
from cnslib.data import imagenet

LISTED = {"imagenet-r": "imagenet_r_synsets.txt", "imagenet-a": "imagenet_a_synsets.txt"}  # as timm carries them
OBJECTNET = "objectnet"
REAL, VALIDATED = "imagenet-real", 50_000  # pictures
KINDS = (*LISTED, "imagenetv2", "imagenet-sketch", OBJECTNET, REAL)
BORDER = 2  # px of ObjectNet's red frame, which compression has smeared over a second one
MAPPINGS = ("folder_to_objectnet_label.json", "objectnet_to_imagenet_1k.json")


@dataclass(frozen=True)
class TestSet:
    """The pictures of a set (class, seed, file), and for each class among which it is scored the outputs that speak for it."""

    kind: str
    table: pd.DataFrame
    outputs: dict[str, list[int]]

    def pictures(self) -> Iterator[UInt8[np.ndarray, "height width 3"]]:
        """The pictures, each in its own size, without ObjectNet's frame."""
        cut = slice(BORDER, -BORDER) if self.kind == OBJECTNET else slice(None)
        for file in self.table["file"]:
            yield read(file, f"{self.kind}: {file}")[cut, cut]

    def predictions(self, logits: Float[np.ndarray, "rows 1000"]) -> list[str]:
        """The class with the largest output, among those of the set."""
        scores = np.stack([logits[:, columns].max(axis=1) for columns in self.outputs.values()], axis=1)
        return [list(self.outputs)[place] for place in scores.argmax(axis=1)]


@dataclass(frozen=True)
class Reassessed(TestSet):
    """Validation pictures with the numbers of their labels, of which the `class` in the table is one."""

    right: list[list[int]]

    def predictions(self, logits: Float[np.ndarray, "rows 1000"]) -> list[str]:
        """The picture's class where the largest output is any of its labels, else that output's own class."""
        labels, best = imagenet.labels(), logits.argmax(axis=1).tolist()
        return [
            name if place in indices else labels[place] for name, indices, place in zip(self.table["class"], self.right, best, strict=True)
        ]


def reassessed(file: Path, pictures: Path, classes: list[str]) -> Reassessed:
    """ImageNet's validation pictures in the folders of some classes that ReaL's real.json gives a label, with all of their labels.

    ValueError names a file that is no list of 50,000 lists, and a picture whose name does not tell its number.
    """
    listed = document(file, key=f"synthetic.tests, {REAL}")
    whole = isinstance(listed, list) and len(listed) == VALIDATED and all(isinstance(labels, list) for labels in listed)
    demand(whole, f"{REAL}: {file}, entries", len(listed), f"{VALIDATED:,} lists of labels, in the order of the validation pictures")
    rows, right = list[tuple[str, int, Path]](), []
    for name in classes:
        folder = imagenet.class_folder(pictures / "val", name)
        for path in map(folder.joinpath, readable([file.name for file in folder.iterdir()], folder)):
            numbered_name = re.fullmatch(r"ILSVRC2012_val_(\d{8})", path.stem)
            number = int(numbered_name[1]) if numbered_name else 0
            demand(1 <= number <= VALIDATED, f"{REAL}: picture in {folder}", path.name, "ILSVRC2012_val_00000001.JPEG and so on")
            if indices := listed[number - 1]:
                rows.append((name if imagenet.index(name) in indices else imagenet.labels()[indices[0]], number, path))
                right.append(indices)
    return Reassessed(REAL, pd.DataFrame(rows, columns=["class", "seed", "file"]), {}, right)


def load(kind: str, root: Path, classes: list[str] | None = None) -> TestSet:
    """A test set of `KINDS` below its root; of `classes` alone, labels of ImageNet, where they are given."""
    top = root / "images" if kind == OBJECTNET else root
    if not top.is_dir():
        raise FileNotFoundError(f"{kind}: folder {top} does not exist; accepted: a folder for each class in it")
    folders = objectnet(root) if kind == OBJECTNET else numbered(kind)
    rows: list[tuple[str, int, Path]] = []
    for folder in sorted(path for path in top.iterdir() if path.is_dir()):
        expected = folder.name in folders or kind == OBJECTNET  # 200 of its folders show what ImageNet lacks
        demand(expected, f"{kind}: class folder in {top}", folder.name, f"folders such as {next(iter(folders))}")
        name, outputs = folders.get(folder.name, ("", []))
        if outputs and (classes is None or {imagenet.labels()[place] for place in outputs} & {*classes}):
            files = readable([file.name for file in folder.iterdir()], folder)
            rows += [(name, number, folder / file) for number, file in enumerate(files)]
    demand(len(rows) > 0, f"{kind}: pictures in {top}", 0, f"some of {', '.join((classes or ['its classes'])[:3])}")
    return TestSet(kind, pd.DataFrame(rows, columns=["class", "seed", "file"]), dict(folders.values()))


def numbered(kind: str) -> dict[str, tuple[str, list[int]]]:
    """For each folder (a wnid, in V2 the number of the output) the label and its output."""
    wnids, labels = imagenet.wnids(), imagenet.labels()
    listed = resources.files("timm.data").joinpath("_info", LISTED[kind]).read_text().split() if kind in LISTED else wnids
    places = [wnids.index(wnid) for wnid in listed]
    return {str(place) if kind == "imagenetv2" else wnids[place]: (labels[place], [place]) for place in places}


def objectnet(root: Path) -> dict[str, tuple[str, list[int]]]:
    """For each folder that shows a class of ImageNet its name, and the outputs of that class or those classes."""
    for name in MAPPINGS:
        if not (root / "mappings" / name).is_file():
            raise FileNotFoundError(f"{OBJECTNET}: {root / 'mappings' / name} does not exist; accepted: the archive's own folders")
    folders, shared = (document(root / "mappings" / name, key=OBJECTNET) for name in MAPPINGS)
    texts = [text.casefold() for text in ImageNetInfo().label_descriptions()]
    places = {text.split(",")[0]: place for place, text in reversed(list(enumerate(texts)))} | {t: place for place, t in enumerate(texts)}
    classes = {}
    for folder, label in folders.items():
        parts = [part.strip().casefold() for part in shared.get(label, "").split(";") if part.strip()]
        for part in parts:
            demand(part in places, f"{OBJECTNET}: {MAPPINGS[1]}, class of {label!r}", part, "names of ImageNet's classes")
        if parts:
            classes[folder] = (label, [places[part] for part in parts])
    return classes
