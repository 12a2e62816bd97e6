"""The published CNS-Bench (Edmond, doi:10.17617/3.MAGNKP): its folders, file names and annotations, into our tables and back.

    painting_style/022_bald eagle/seed_0034_scale_1000.jpg                   the published form, scale in thousandths
    painting_style/022_bald eagle/seed_0034_startnoise_0750_scale_1000m.png  as the released code generates it

The released code calls the first folder id_0000; it is to be renamed to the shift. Both repeat the image of scale 0 under every shift;
our own tables hold it once per (class, seed), under the shift "unshifted".
"""

import heapq
import json
import operator
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pandas as pd
from tqdm.auto import tqdm

from cnslib.core import pictures, tables
from cnslib.core.names import SHIFTS, UNSHIFTED, demand, identifier
from cnslib.data import archives, artifacts
from cnslib.data.archives import Archive

ANNOTATIONS = "annotations_cns.json"
IDENTIFIERS = {shift: identifier(shift) for shift in SHIFTS} | {"design of sculpture": "the_design_of_sculpture"}
LEAST = 8  # pixels of a side
NAME = re.compile(r"seed_(\d{4,18})(?:_startnoise_\d{4})?_scale_(\d{4,9})m?\.(?:jpe?g|png|webp)", re.IGNORECASE)


def import_benchmark(source: Path, *, labels: list[str], classes: list[str], folder: Path, kept: Path) -> dict[str, Path]:
    """Writes one image table per shift into `folder` and the table of its trajectories (shift, class, seed) to `kept`.

    A class is labels[index], by the number of its folder. Image bytes stay as they are. Other tables in `folder` are deleted. After an
    error everything is as it was.
    """
    made = {}
    with archives.opened(source) as archive, archives.replaced_tables(folder) as staging:
        rows = index(archive, labels=labels, classes=classes)
        for shift, part in rows.groupby("shift"):
            images = [archive.read(name) for name in tqdm(part["name"], desc=shift, disable=None)]
            for name, data in zip(part["name"], images, strict=True):
                ending(data, f"{archive.path}: {name}")
            made[shift] = f"{identifier(shift)}.parquet"
            tables.store(part[tables.KEY].assign(image=images), staging / made[shift], tables.images)
        tables.write(rows[tables.TRAJECTORY].drop_duplicates(), kept, tables.kept_schema)
    return {shift: folder / name for shift, name in made.items()}


def index(archive: Archive, *, labels: list[str], classes: list[str]) -> pd.DataFrame:
    """One row per image: shift, class, seed, scale, name in the archive. ValueError names what is not understood, missing or twice."""
    names = pictures.readable(archive.names, archive.path)
    if not names:
        raise ValueError(f"{archive.path} holds no picture; accepted: <shift>/<class>/seed_0034_scale_1000.jpg")
    rows = pd.DataFrame([parsed(name, archive.path, labels, classes) for name in names], columns=tables.KEY).assign(name=names)
    if (twice := rows.duplicated(tables.KEY, keep=False)).any():
        raise ValueError(f"{archive.path}: one image twice, {rows.loc[twice, 'name'].head(2).tolist()}; accepted: every image once")
    require_whole(rows, archive.path)
    return rows.sort_values(tables.KEY, ignore_index=True)


def parsed(name: str, source: Path, labels: list[str], classes: list[str]) -> tuple[str, str, int, float]:
    """Shift, class, seed and scale of an image from the last three parts of its name."""
    parts = PurePosixPath(name).parts[-3:]
    if len(parts) < 3 or not (match := NAME.fullmatch(parts[2])):
        accepted = "<shift>/<class>/seed_0034_scale_1000.jpg or ..._startnoise_0750_scale_1000m.png"
        raise ValueError(f"{source}: the name {name!r} is not understood; accepted: {accepted}")
    seed, thousandths = match.groups()
    return shift_of(parts[0], source), class_of(parts[1], source, labels, classes), int(seed), int(thousandths) / 1000


def shift_of(name: str, source: object) -> str:
    """The shift of a folder's or file's name: blanks for underscores, with or without "the" in front; ValueError for another."""
    shift = name.replace("_", " ").removeprefix("the ")
    if shift not in SHIFTS:
        raise ValueError(f"{source}: unknown shift {name!r}; accepted: {', '.join(sorted(IDENTIFIERS.values()))}")
    return shift


def class_of(name: str, source: object, labels: list[str], classes: list[str]) -> str:
    """The class of a folder's name, by the number in front of it. ValueError for another, and where the name behind it is another's."""
    number, _, text = name.partition("_")
    numbered = labels[int(number)] if number.isdecimal() and int(number) < len(labels) else None
    if numbered not in classes:
        raise ValueError(f"{source}: unknown class {name!r} ({numbered}); accepted: numbers of {len(classes)} classes, {classes[:3]} ...")
    other = {label.casefold(): place for place, label in enumerate(labels)}.get(text.replace("_", " ").casefold(), int(number))
    if other != int(number):
        fault = f"class {int(number)} is {numbered!r}, and {text!r} is class {other}"
        raise ValueError(f"{source}: the name {name!r} contradicts itself: {fault}; accepted: a class by its number, counted from 0")
    return numbered


def require_whole(rows: pd.DataFrame, source: Path) -> None:
    """Raises ValueError unless every trajectory has all scales, 0 among them, as the authors keep nothing else."""
    scales = {0.0, *rows["scale"]}
    for (shift, name, seed), present in rows.groupby(tables.TRAJECTORY)["scale"]:
        if missing := sorted(scales - set(present)):
            key = (shift, name, int(seed))
            raise ValueError(f"{source}: an image is missing, {key} at scale {missing[0]:g}; accepted: all of {sorted(scales)}")


def ending(data: bytes, name: str) -> str:
    """The file ending that belongs to a picture's bytes; ValueError names what is none, and a placeholder of a few pixels."""
    with pictures.opened(data, name) as opened:
        size, form = opened.size, str(opened.format)
    demand(min(size) >= LEAST, f"{name}, width and height", size, f"{LEAST} pixels or more")
    return pictures.ENDINGS[form]


def folder_of(shift: str) -> str:
    """The name of a shift in the authors' layout; ValueError for a shift that has none there."""
    demand(shift in IDENTIFIERS, "base.shifts", shift, f"for an export {', '.join(IDENTIFIERS)}")
    return IDENTIFIERS[shift]


def image_name(shift: str, name: str, seed: int, scale: float, *, labels: list[str], form: str) -> str:
    """Where the published benchmark keeps an image; `form` is the file ending. ValueError for what has no name there."""
    demand(name in labels, "class", name, f"one of the {len(labels)} labels")
    thousandths = round(scale * 1000)
    demand(abs(thousandths / 1000 - scale) < 1e-9, "scale", scale, "whole thousandths")
    return f"{folder_of(shift)}/{labels.index(name):03d}_{name}/seed_{seed:04d}_scale_{thousandths:04d}.{form}"


def exported(images: Path, kept: pd.DataFrame, labels: list[str], info: dict) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of every file of the kept trajectories as the authors' loader reads them, the annotations, opened by `info`, last."""
    listed = []
    for shift, part in kept.groupby("shift"):
        for _, name, seed, scale, data in stored(images, shift, part):
            path = image_name(shift, name, seed, scale, labels=labels, form=ending(data, f"image {(shift, name, seed, scale)}"))
            listed.append({"image": path, "seed": seed, "scale": scale, "shift": IDENTIFIERS[shift], "class": labels.index(name)})
            yield path, data
    listed.sort(key=lambda entry: entry["image"])
    distinct = {f"{key}s" if key != "class" else "classes": sorted({entry[key] for entry in listed}) for key in ("scale", "class", "shift")}
    yield ANNOTATIONS, json.dumps({"info": info, **distinct, "images": listed}).encode()


def stored(images: Path, shift: str, kept: pd.DataFrame) -> Iterator[tuple]:
    """Key and bytes of the images of one shift's kept trajectories in order, scale 0 included, wherever that is stored."""
    names, rows = [shift], artifacts.keys(images, shift)
    if not (rows["scale"] == 0).any():
        names, rows = [UNSHIFTED, shift], pd.concat([rows, artifacts.keys(images, UNSHIFTED)], ignore_index=True)
    require_whole(artifacts.of_kept(rows, kept, f"images under {shift!r}"), images)
    pairs = set(kept[["class", "seed"]].itertuples(index=False, name=None))

    def chosen(name: str) -> Iterator[tuple]:
        for part in artifacts.batches(images, name):
            yield from (row for row in part.itertuples(index=False, name=None) if row[1:3] in pairs)

    return heapq.merge(*map(chosen, names), key=operator.itemgetter(1, 2, 3))
