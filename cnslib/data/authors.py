"""The authors' predictions (results.zip) as our predictions tables and back.

A csv file "<model>__<shift>.csv" has one row per image: an index, pred_class, gt_class, shift, class_str ("022_bald eagle"),
img_name ("seed_0034_scale_1000.jpg"), class_name, seed, scale, and a column named after the model that says whether it is right.
"""

import io
import json
import re
from collections.abc import Collection, Iterable
from pathlib import Path, PurePosixPath

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from cnslib.core import tables
from cnslib.core.names import demand, identifier
from cnslib.data import archives, artifacts
from cnslib.data.official import ANNOTATIONS, IDENTIFIERS, NAME, class_of, folder_of, image_name, shift_of

COLUMNS = ["pred_class", "gt_class", "shift", "class_str", "img_name", "class_name", "seed", "scale"]
VERSION = "benchmark.json"  # beside the csv files: which version of the benchmark was predicted
MARK = "cns"  # around an exported name that other names contain
TRUTH = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}  # in the column of right and wrong


def import_predictions(
    source: Path, *, labels: list[str], classes: list[str], folder: Path, without: Collection[str] = ()
) -> dict[str, Path]:
    """Writes one table of predictions per model from the csv files of a zip or folder; other tables in `folder` are deleted.

    Models in `without` are left out. A class is labels[index]; scale 0 stays under each shift. After an error everything is as it was.
    """
    demand(len(set(labels)) == len(labels), "labels", [n for n in labels if labels.count(n) > 1][:2], "a different label per output")
    with archives.opened(source) as archive, archives.replaced_tables(folder) as staging:
        files = {model: by_shift for model, by_shift in by_model(archive.names, source).items() if model not in without}
        demand(len(set(map(identifier, files))) == len(files), "models", sorted(files), "names that differ in more than blanks")
        shifts = set().union(*files.values())
        for model, by_shift in tqdm(files.items(), desc="predictions", disable=None):
            if missing := sorted(shifts - by_shift.keys()):
                whole = f"predictions under all of the {len(shifts)} shifts, or this classifier left out (cns official --without {model})"
                raise ValueError(f"{source}: no predictions of {model!r} under {', '.join(map(repr, missing))}; accepted: {whole}")
            parts = [read(archive.read(name), name, source, labels=labels, classes=classes) for name in by_shift.values()]
            tables.store(pd.concat(parts, ignore_index=True), staging / f"{identifier(model)}.parquet", tables.imported)
    return {model: folder / f"{identifier(model)}.parquet" for model in files}


def by_model(names: list[str], source: Path) -> dict[str, dict[str, str]]:
    """The csv files of each model by shift; ValueError where there is none, and for two of one model and shift."""
    models: dict[str, dict[str, str]] = {}
    for name in names:
        if name.endswith(".csv"):
            model, shift = split_name(name)
            by_shift = models.setdefault(unmarked(model), {})
            if by_shift.setdefault(shift, name) != name:
                raise ValueError(f"{source}: {by_shift[shift]!r} and {name!r} are of the same model and shift; accepted: one file")
    if not models:
        raise ValueError(f"{source} holds no csv file; accepted: <model>__<shift>.csv")
    return models


def split_name(name: str) -> tuple[str, str]:
    """Model and shift of a csv file's name; ValueError for a name without the two underscores."""
    model, mark, shift = PurePosixPath(name).stem.rpartition("__")
    demand(bool(model and mark and shift) and not model.startswith("."), "file name", name, "<model>__<shift>.csv")
    return model, shift


def read(data: bytes, file: str, source: Path, *, labels: list[str], classes: list[str]) -> pd.DataFrame:
    """The predictions of one csv file, whose index is ignored; seed and scale come from the image's name.

    The released code writes a tenth of the scale.
    """
    (model, name), where = split_name(file), f"{source}: {file}"
    try:
        rows = pd.read_csv(io.BytesIO(data), dtype={"class_str": str, "img_name": str, "shift": str})
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError, OverflowError) as error:
        raise ValueError(f"{where} is not a csv file ({error}); accepted: the columns {', '.join([*COLUMNS, model])}") from None
    if missing := [column for column in [*COLUMNS, model] if column not in rows]:
        raise ValueError(f"{where}: no column {missing[0]!r}; accepted: {', '.join([*COLUMNS, model])}")
    parts = rows["img_name"].str.extract(f"^{NAME.pattern}$", flags=re.IGNORECASE).astype(float)
    seed, scale = parts[0], parts[1] / 1000
    right, given = (pd.to_numeric(rows[column], errors="coerce").map(dict(enumerate(labels))) for column in ("gt_class", "pred_class"))
    folders = {folder: class_of(folder, where, labels, classes) for folder in rows["class_str"].dropna().unique()}
    written, number = pd.to_numeric(rows["scale"], errors="coerce"), f"a whole number from 0 to {len(labels) - 1}"
    table = pd.DataFrame({"shift": shift_of(name, source), "class": right, "seed": seed, "scale": scale})
    holds = {
        "no empty field": rows[["shift", "class_str", "img_name"]].notna().all(axis=1),
        f"the shift {name!r} of the file's name": rows["shift"] == name,
        "img_name as seed_0034_scale_1000.jpg": seed.notna(),
        "seed and scale of img_name": (rows["seed"] == seed) & (np.isclose(written, scale / 10) | np.isclose(written, scale)),
        f"gt_class is {number}": right.notna(),
        f"pred_class is {number}": given.notna(),
        "gt_class is the number in class_str": rows["class_str"].map(folders) == right,
        "every image once": ~table.duplicated(tables.KEY),
        f"{model} says whether pred_class is gt_class": rows[model].astype(str).str.lower().map(TRUTH) == (given == right),
    }
    for accepted, good in holds.items():
        if len(wrong := rows.loc[~good, [*COLUMNS, model]]):
            raise ValueError(f"{where}: {len(wrong)} rows are wrong, the first {wrong.iloc[0].to_dict()}; accepted: {accepted}")
    absent = {"probability": np.nan, "margin": np.nan, "preprocessing": "paper"}  # as `classifiers.paper_settings` has it
    return table.astype({"seed": int}).assign(model=unmarked(model), top1=given, top5=[[] for _ in given], **absent)


def export_predictions(
    predictions: pd.DataFrame, kept: pd.DataFrame, target: Path, *, labels: list[str], form: str = "png", version: dict | None = None
) -> Path:
    """Writes predictions of the kept trajectories as the authors' csv files, in a new folder or zip (by the name of `target`).

    `version` names the benchmark, in a file VERSION beside them (`require_same_version`).
    Scale 0 is repeated under every shift; images end in `form`, models are named as in `apart`. ValueError where a prediction is missing.
    """
    chosen = artifacts.of_kept(predictions, kept, "predictions of kept trajectories").sort_values(tables.KEY)
    groups, exported = chosen.groupby(["model", "shift"]), apart(chosen["model"].unique())
    files = [(f"{exported[m]}__{folder_of(shift)}.csv", csv(rows, exported[m], labels, form)) for (m, shift), rows in groups]
    return archives.write(target, files + ([(VERSION, json.dumps(version).encode())] if version else []))


def require_same_version(images: Path, results: Path) -> None:
    """Raises ValueError where pictures and predictions name different versions of the benchmark; the authors' files name none."""
    with archives.opened(images) as archive:
        info = json.loads(archive.read(ANNOTATIONS)).get("info", {}) if ANNOTATIONS in archive.names else {}
    with archives.opened(results) as archive:
        given = json.loads(archive.read(VERSION)) if VERSION in archive.names else {}
    if "digest" in info and given and info["digest"] != given["digest"]:
        wanted = {key: info[key] for key in given}
        raise ValueError(f"{results} holds predictions for the benchmark {given}; accepted: those for {wanted}, the pictures of {images}")


def apart(models: Iterable[str]) -> dict[str, str]:
    """The exported name of each model, of which none contains another: the authors' notebook looks for names anywhere in file names.

    "resnet" beside "resnet_large" becomes "cns.resnet.cns". ValueError where two meet all the same.
    """
    models, shifts = list(models), list(IDENTIFIERS.values())
    exported = {name: f"{MARK}.{name}.{MARK}" if sum(name in file for file in models + shifts) > 1 else name for name in models}
    for name, file in exported.items():
        demand(sum(file in other for other in [*exported.values(), *shifts]) == 1, "classifier", name, "a name that no other one contains")
    return exported


def unmarked(model: str) -> str:
    """The name of an exported model without its mark."""
    return re.sub(rf"^{MARK}\.(.+)\.{MARK}$", r"\1", model)


def csv(rows: pd.DataFrame, model: str, labels: list[str], form: str) -> bytes:
    """One csv file: the columns of the authors' in their order, classes as floats, as they have them."""
    images = [image_name(*key, labels=labels, form=form) for key in rows[tables.KEY].itertuples(index=False, name=None)]
    for name in set(rows["top1"]):
        demand(name in labels, "class", name, f"one of the {len(labels)} labels")
    number = {name: float(place) for place, name in enumerate(labels)}
    table = rows.assign(pred_class=rows["top1"].map(number), gt_class=rows["class"].map(number), class_name=rows["class"])
    table[["shift", "class_str", "img_name"]] = [name.split("/") for name in images]
    table = table.assign(seed=rows["seed"].map("{:04d}".format))[COLUMNS].reset_index(drop=True)
    table[model] = table["pred_class"] == table["gt_class"]
    return table.to_csv(lineterminator="\n").encode()
