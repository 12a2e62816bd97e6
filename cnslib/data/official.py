"""The published CNS-Bench (Edmond, doi:10.17617/3.MAGNKP): its folders, file names and annotations, into our tables and back.

    painting_style/022_bald eagle/seed_0034_scale_1000.jpg                   the published form, scale in thousandths
    painting_style/022_bald eagle/seed_0034_startnoise_0750_scale_1000m.png  as the released code generates it

The released code calls the first folder id_0000; it is to be renamed to the shift. Both repeat the image of scale 0 under every shift;
our tables hold it once per (class, seed), under the shift "unshifted".
"""

import io
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd
from PIL import Image, UnidentifiedImageError
from tqdm.auto import tqdm

from cnslib.core import pictures, tables, units
from cnslib.core.names import SHIFTS, UNSHIFTED, demand, identifier
from cnslib.core.tables import kept_schema
from cnslib.data import archives, artifacts
from cnslib.data.archives import Archive

ANNOTATIONS = "annotations_cns.json"
IDENTIFIERS = {shift: identifier(shift) for shift in SHIFTS} | {"design of sculpture": "the_design_of_sculpture"}
ENDINGS = {"PNG": "png", "JPEG": "jpg"}
NAME = re.compile(r"seed_(\d{4,18})(?:_startnoise_\d{4})?_scale_(\d{4,9})m?\.(?:jpe?g|png)", re.IGNORECASE)
ENTRY: dict[str, Any] = {"image": str, "seed": int, "scale": (int, float), "shift": str, "class": int}
INFO = ("description", "url", "version", "year", "license", "contributor", "date_created")


def import_benchmark(
    source: Path,
    *,
    labels: list[str],
    classes: list[str],
    folder: Path,
    kept: Path,
    annotations: Path | None = None,
    repeated: str = "equal",
) -> dict[str, Path]:
    """Writes one image table per shift into `folder` and the table of its trajectories (shift, class, seed) to `kept`.

    `source` is the benchmark's zip or folder; a class is labels[index], as the authors' loader takes the number of the class
    folder alone. Image bytes stay as they are; one shift is in memory at a time. `repeated` says what becomes of scale 0:
    "equal" keeps it once and demands that all shifts repeat the same bytes, "any" keeps each shift's own under that shift.
    Other tables in `folder` are deleted. Errors are those of `index`, and ValueError for bytes that are no JPEG or PNG picture;
    after an error everything is as it was.
    """
    demand(repeated in ("equal", "any"), "repeated", repeated, "equal, any")
    folder.mkdir(parents=True, exist_ok=True)
    with archives.opened(source) as archive, tempfile.TemporaryDirectory(dir=folder, suffix=".partial") as staging:
        rows = index(archive, labels=labels, classes=classes, annotations=annotations)
        names = {}
        for shift, table in shards(archive, rows, repeated):
            names[shift] = f"{identifier(shift)}.parquet"
            tables.write(table, Path(staging) / names[shift], tables.images)
        kept.parent.mkdir(parents=True, exist_ok=True)
        with units.atomic(kept) as partial:  # in its place once all tables are
            tables.store(rows[tables.TRAJECTORY].drop_duplicates(), partial, kept_schema)
            for name in names.values():
                (Path(staging) / name).replace(folder / name)
                units.record_bytes(folder / name)
        units.record_bytes(kept)
    units.prune(folder, set(names.values()), "*.parquet")
    return {shift: folder / name for shift, name in names.items()}


def shards(archive: Archive, rows: pd.DataFrame, repeated: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """The image table of each shift, then that of the unshifted images; ValueError names one whose bytes differ between shifts."""
    plain: dict[tuple[str, int], bytes] = {}
    for shift, part in rows.groupby("shift"):
        table = part[tables.KEY].assign(image=[picture(archive, name) for name in tqdm(part["name"], desc=shift, disable=None)])
        if repeated == "equal":
            start = table["scale"] == 0
            for name, seed, data in table.loc[start, ["class", "seed", "image"]].itertuples(index=False, name=None):
                if plain.setdefault((name, seed), data) != data:
                    place = f"class {name!r}, seed {seed} at scale 0 under {shift!r}"
                    accepted = "equal bytes, or repeated='any'"
                    raise ValueError(f"{archive.path}: {place} is not the image of the other shifts; accepted: {accepted}")
            table = table[~start]
        yield shift, table
    if repeated == "equal":
        unshifted = [(UNSHIFTED, name, seed, 0.0, data) for (name, seed), data in plain.items()]
        yield UNSHIFTED, pd.DataFrame(unshifted, columns=[*tables.KEY, "image"])


def index(archive: Archive, *, labels: list[str], classes: list[str], annotations: Path | None = None) -> pd.DataFrame:
    """One row per image: shift, class, seed, scale, and its name in the archive; no picture is read.

    Annotations are those given, else the archive's own `annotations_cns.json` if it has one. ValueError names a name that is
    none of the two forms, an unknown shift or class, an image that is there twice, a trajectory that lacks one of the scales,
    and an annotation that has no image, contradicts its image's name, is there twice or is missing.
    """
    names = [name for name in archive.names if name.lower().endswith((".jpg", ".jpeg", ".png"))]
    if not names:
        raise ValueError(f"{archive.path} holds no picture; accepted: <shift>/<class>/seed_0034_scale_1000.jpg")
    keys = [parsed(name, archive.path, labels, classes) for name in names]
    rows = pd.DataFrame(keys, columns=tables.KEY).assign(name=names)
    if (twice := rows.duplicated(tables.KEY, keep=False)).any():
        raise ValueError(f"{archive.path}: one image twice, {rows.loc[twice, 'name'].head(2).tolist()}")
    if (text := annotation_text(archive, annotations)) is not None:
        require_annotated(rows, entries(*text), labels, classes, text[1])
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


def shift_of(name: str, source: Path) -> str:
    """The shift of a folder's or file's name: blanks for underscores, with or without "the" in front; ValueError for another."""
    shift = name.replace("_", " ").removeprefix("the ")
    if shift not in SHIFTS:
        raise ValueError(f"{source}: unknown shift {name!r}; accepted: {', '.join(sorted(IDENTIFIERS.values()))}")
    return shift


def class_of(name: str, source: Path, labels: list[str], classes: list[str]) -> str:
    """The class of a folder's name, by the number in front of it, as in the authors' loader; ValueError for another."""
    number = re.match(r"\d+", name)
    found = labels[int(number[0])] if number and int(number[0]) < len(labels) else None
    if found not in classes:
        raise ValueError(f"{source}: unknown class {name!r} ({found}); accepted: numbers of {len(classes)} classes, {classes[:3]} ...")
    return found


def require_whole(rows: pd.DataFrame, source: Path) -> None:
    """Raises ValueError unless every trajectory has all scales, 0 among them, as the authors keep nothing else."""
    scales = {0.0, *rows["scale"]}
    for (shift, name, seed), found in rows.groupby(tables.TRAJECTORY)["scale"]:
        if missing := sorted(scales - set(found)):
            raise ValueError(
                f"{source}: an image is missing, {(shift, name, int(seed))} at scale {missing[0]:g}; accepted: all of {sorted(scales)}"
            )


def annotation_text(archive: Archive, annotations: Path | None) -> tuple[bytes, str] | None:
    """The bytes of the annotations and where they are; None where none are given and the archive has none."""
    if annotations is not None:
        return annotations.read_bytes(), str(annotations)
    inside = [name for name in archive.names if PurePosixPath(name).name == ANNOTATIONS]
    return (archive.read(inside[0]), f"{archive.path}: {inside[0]}") if inside else None


def entries(text: bytes, where: str) -> list[dict]:
    """The images of an annotation file; ValueError for what is no such file, and for an entry without its fields."""
    try:
        found = list(json.loads(text)["images"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{where} holds no annotations ({error!r}); accepted: json with a list 'images'") from None
    for entry in found:
        if not isinstance(entry, dict) or not all(isinstance(entry.get(key), kind) for key, kind in ENTRY.items()):
            raise ValueError(f"{where}: the entry {entry!r} is not understood; accepted: {', '.join(ENTRY)}")
    return found


def require_annotated(rows: pd.DataFrame, found: list[dict], labels: list[str], classes: list[str], where: str) -> None:
    """Raises ValueError unless there is exactly one annotation per image, and it says what the image's name says."""
    images = {PurePosixPath(name).parts[-3:]: key for *key, name in rows.itertuples(index=False, name=None)}
    seen = set()
    for entry in found:
        parts = PurePosixPath(entry["image"]).parts[-3:]
        if archives.unsafe(entry["image"]) or parts not in images:
            raise ValueError(f"{where}: {entry['image']!r} is annotated, but there is no such image")
        if parts in seen:
            raise ValueError(f"{where}: {entry['image']!r} is annotated twice")
        seen.add(parts)
        said = [shift_of(entry["shift"], Path(where)), class_of(str(entry["class"]), Path(where), labels, classes)]
        if [*said, entry["seed"], entry["scale"]] != images[parts]:
            raise ValueError(f"{where}: the entry {entry} contradicts its image's name; accepted: {images[parts]}")
    if bare := sorted("/".join(parts) for parts in images.keys() - seen):
        raise ValueError(f"{where}: {len(bare)} images have no annotation, for example {bare[0]!r}")


def picture(archive: Archive, name: str) -> bytes:
    """The bytes of an image; ValueError names one that is no picture, such as a web page saved in its place."""
    ending(data := archive.read(name), f"{archive.path}: {name}")
    return data


def ending(data: bytes, name: str) -> str:
    """The file ending that belongs to a picture's bytes."""
    try:
        with Image.open(io.BytesIO(data), formats=list(ENDINGS)) as opened:
            return ENDINGS[str(opened.format)]
    except (UnidentifiedImageError, *pictures.BOMBS):
        raise ValueError(f"{name} is not a picture (it begins with {data[:16]!r}); accepted: JPEG and PNG") from None


def require_official(shifts: list[str]) -> None:
    """Raises ValueError for the first shift that the authors' layout has no name for."""
    for shift in shifts:
        demand(shift in IDENTIFIERS, "base.shifts", shift, f"for an export {', '.join(IDENTIFIERS)}")


def image_name(shift: str, name: str, seed: int, scale: float, *, number: int, form: str, startnoise: int | None = None) -> str:
    """Where the benchmark keeps an image: the published form, or with a start noise that of the released code's generator.

    `number` is the class index, `form` the file ending. ValueError for a scale that thousandths cannot hold.
    """
    thousandths = round(scale * 1000)
    demand(abs(thousandths / 1000 - scale) < 1e-9, "scale", scale, "whole thousandths")
    middle, end = ("", "") if startnoise is None else (f"_startnoise_{startnoise:04d}", "m")
    return f"{IDENTIFIERS[shift]}/{number:03d}_{name}/seed_{seed:04d}{middle}_scale_{thousandths:04d}{end}.{form}"


def export_benchmark(
    images: Path, kept: pd.DataFrame, target: Path, *, labels: list[str], info: dict, startnoise: int | None = None
) -> Path:
    """Writes the kept trajectories as a folder or zip (by the name of `target`) that the authors' loader reads, with annotations.

    `images` is the folder of image tables. Bytes stay as they are, so a PNG is named .png. `info` has the seven keys of the
    published annotations. Raises ValueError for other keys, for a kept trajectory without images and for a class that is no
    label, FileNotFoundError for a missing table, FileExistsError where `target` exists.
    """
    demand(set(info) == set(INFO), "info", sorted(info), ", ".join(INFO))
    require_official(sorted(set(kept["shift"])))
    kept = tables.check(kept, kept_schema, "kept")
    return archives.write(target, exported(images, kept, labels, info, startnoise))


def exported(images: Path, kept: pd.DataFrame, labels: list[str], info: dict, startnoise: int | None) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of every file of the benchmark, the annotations last."""
    listed = []
    for shift, part in kept.groupby("shift"):
        for _, name, seed, scale, data in stored(images, shift, part).itertuples(index=False, name=None):
            demand(name in labels, "class", name, f"one of the {len(labels)} labels")
            number, form = labels.index(name), ending(data, f"image {(shift, name, seed, scale)}")
            path = image_name(shift, name, seed, scale, number=number, form=form, startnoise=startnoise)
            listed.append({"image": path, "seed": seed, "scale": scale, "shift": IDENTIFIERS[shift], "class": number})
            yield path, data
    listed.sort(key=lambda entry: entry["image"])
    distinct = {f"{key}s" if key != "class" else "classes": sorted({entry[key] for entry in listed}) for key in ("scale", "class", "shift")}
    yield ANNOTATIONS, json.dumps({"info": info, **distinct, "images": listed}).encode()


def stored(images: Path, shift: str, kept: pd.DataFrame) -> pd.DataFrame:
    """The images of one shift's kept trajectories, scale 0 included, wherever that is stored, in the order of their key."""
    table = artifacts.images(images, shift)
    if not (table["scale"] == 0).any():
        plain = artifacts.images(images, UNSHIFTED)
        table = pd.concat([table, plain.assign(shift=shift)], ignore_index=True)
    chosen = tables.select(table, kept, tables.TRAJECTORY, f"images under {shift!r}")
    require_whole(chosen, images)
    return chosen.sort_values(tables.KEY, ignore_index=True)
