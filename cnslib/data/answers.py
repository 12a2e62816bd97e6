"""The authors' predictions (results.zip) as our predictions tables and back.

A csv file "<model>__<shift>.csv" has one row per image: an index, pred_class, gt_class, shift, class_str ("022_bald eagle"),
img_name ("seed_0034_scale_1000.jpg"), class_name, seed, scale, and a column named after the model that says whether it is right.
"""

import io
import re
import tempfile
from collections.abc import Collection, Iterable
from pathlib import Path, PurePosixPath

import numpy as np
import pandas as pd
import pandera.pandas as pa
from jaxtyping import Int
from tqdm.auto import tqdm

from cnslib.core import tables, units
from cnslib.core.names import UNSHIFTED, demand, identifier
from cnslib.core.tables import kept_schema
from cnslib.data import archives
from cnslib.data.official import IDENTIFIERS, NAME, class_of, image_name, require_official, shift_of

COLUMNS = ("pred_class", "gt_class", "shift", "class_str", "img_name", "class_name", "seed", "scale")
PREPROCESSING = "paper"  # ImageNet statistics for every model, as `classifiers.paper_settings` has it
MARK = "cns"  # around an exported name that other names contain
ABSENT = ("probability", "margin")  # not in their files: not a number here; top5 is an empty list
schema = tables.schema(
    tables.predictions.metadata["key"],
    {name: pa.Column(float, nullable=True) if name in ABSENT else column for name, column in tables.predictions.columns.items()},
)


def import_answers(source: Path, *, labels: list[str], classes: list[str], folder: Path, without: Collection[str] = ()) -> dict[str, Path]:
    """Writes one table of predictions per model from the csv files of a zip or folder; other tables in `folder` are deleted.

    Models in `without` are left out; their files are not opened. A class is labels[index], so no two labels may be equal. What the
    files do not hold is absent: `top5` is empty, `probability` and `margin` are not numbers (`tables.read_answers` reads the rest;
    `schema` checks the whole). Scale 0 stays under each shift, where the authors have an image of its own. Errors are those of
    `read`, and ValueError for a source without csv files, one of a model and shift that is there twice, and a model that lacks a
    shift; after an error everything is as it was.
    """
    demand(len(set(labels)) == len(labels), "labels", [n for n in labels if labels.count(n) > 1][:2], "a different label per output")
    folder.mkdir(parents=True, exist_ok=True)
    staged = {}
    with archives.opened(source) as archive, tempfile.TemporaryDirectory(dir=folder, suffix=".partial") as staging:
        asked = {model: files for model, files in by_model(archive.names, source).items() if model not in without}
        require_shifts(asked, source)
        demand(len(set(map(identifier, asked))) == len(asked), "models", sorted(asked), "names that differ in more than blanks")
        for model, files in tqdm(asked.items(), desc="answers", disable=None):
            parts = [read(archive.read(name), name, source, labels=labels, classes=classes) for name in files]
            table = pd.concat(parts, ignore_index=True)
            staged[model] = Path(staging) / f"{identifier(model)}.parquet"
            tables.store(table, staged[model], schema)
        paths = {model: path.replace(folder / path.name) for model, path in staged.items()}
    for path in paths.values():
        units.record_bytes(path)
    units.prune(folder, {path.name for path in paths.values()}, "*.parquet")
    return paths


def by_model(names: list[str], source: Path) -> dict[str, list[str]]:
    """The csv files of each model; the model is all that comes before the two underscores, so that no name catches another's.

    The mark of an exported name is taken off.
    """
    found: dict[str, dict[str, str]] = {}
    for name in names:
        if name.endswith(".csv"):
            model, shift = split_name(name)
            files = found.setdefault(unmarked(model), {})
            if files.setdefault(shift, name) != name:
                raise ValueError(f"{source}: {files[shift]!r} and {name!r} are of the same model and shift; accepted: one file")
    if not found:
        raise ValueError(f"{source} holds no csv file; accepted: <model>__<shift>.csv")
    return {model: list(files.values()) for model, files in found.items()}


def require_shifts(files: dict[str, list[str]], source: Path) -> None:
    """Raises ValueError, naming model and shift, unless every model answered under every shift that another one answered under."""
    shifts = {model: {split_name(name)[1] for name in own} for model, own in files.items()}
    known = set().union(*shifts.values())
    for model, own in shifts.items():
        if missing := sorted(known - own):
            whole = f"answers under all of the {len(known)} shifts, or this classifier left out (cns official --without {model})"
            raise ValueError(f"{source}: no answers of {model!r} under {', '.join(map(repr, missing))}; accepted: {whole}")


def split_name(name: str) -> tuple[str, str]:
    """Model and shift of a csv file's name; ValueError for a name without the two underscores."""
    model, mark, shift = PurePosixPath(name).stem.rpartition("__")
    demand(bool(model and mark and shift) and not model.startswith("."), "file name", name, "<model>__<shift>.csv")
    return model, shift


def of(folder: Path, names: Collection[str]) -> pd.DataFrame:
    """All columns of the answers of some classifiers, made here or imported: what the authors' files do not hold is absent."""
    return pd.concat([tables.read(folder / f"{identifier(name)}.parquet", schema) for name in names], ignore_index=True)


def read(data: bytes, file: str, source: Path, *, labels: list[str], classes: list[str]) -> pd.DataFrame:
    """The predictions of one csv file, whose index and column of right and wrong are ignored: both follow from the rest.

    Seed and scale come from the image's name (the released code writes a tenth of the scale for the published names). ValueError
    names a missing column, a class number that is not whole or has no label, a row that contradicts its file's or folder's
    name, and an image that is there twice.
    """
    (model, name), where = split_name(file), f"{source}: {file}"
    rows = plain(data, (*COLUMNS, model), where)
    require_rows(rows, rows[["shift", "class_str", "img_name"]].notna().all(axis=1), where, "no empty field")
    require_rows(rows, rows["shift"] == name, where, f"the shift {name!r} of the file's name")
    seed, scale = numbers(rows, where)
    right, given = (whole(rows, column, where, len(labels)) for column in ("gt_class", "pred_class"))
    folders = {folder: class_of(folder, Path(where), labels, classes) for folder in rows["class_str"].unique()}
    truth = np.array(labels, object)[right]
    require_rows(rows, rows["class_str"].map(folders) == truth, where, "gt_class is the number in class_str")
    table = pd.DataFrame({"shift": shift_of(name, source), "class": truth, "seed": seed, "scale": scale})
    require_rows(rows, ~table.duplicated(tables.KEY), where, "every image once")
    return table.assign(
        model=unmarked(model),
        top1=np.array(labels, object)[given],
        top5=[[] for _ in range(len(table))],
        probability=np.nan,
        margin=np.nan,
        preprocessing=PREPROCESSING,
    )


def plain(data: bytes, columns: tuple[str, ...], where: str) -> pd.DataFrame:
    """The rows of a csv file; ValueError for what is no csv file and for a missing column."""
    try:
        rows = pd.read_csv(io.BytesIO(data), dtype={"class_str": str, "img_name": str, "shift": str})
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError, OverflowError) as error:
        raise ValueError(f"{where} is not a csv file ({error}); accepted: the columns {', '.join(columns)}") from None
    if missing := [column for column in columns if column not in rows]:
        raise ValueError(f"{where}: no column {missing[0]!r}; accepted: {', '.join(columns)}")
    return rows


def require_rows(rows: pd.DataFrame, holds: pd.Series | list[bool], where: str, accepted: str) -> None:
    """Raises ValueError naming the first row for which a condition does not hold."""
    broken = rows[~np.asarray(holds, bool)]
    if len(broken):
        first = broken.iloc[0][["shift", "class_str", "img_name", "pred_class", "gt_class", "seed", "scale"]].to_dict()
        raise ValueError(f"{where}: {len(broken)} rows are wrong, the first {first}; accepted: {accepted}")


def numbers(rows: pd.DataFrame, where: str) -> tuple[Int[np.ndarray, "rows"], np.ndarray]:
    """Seed and scale of every row, from its image's name; the columns must agree, but for the tenth of the scale."""
    parts = rows["img_name"].str.extract(f"^{NAME.pattern}$", flags=re.IGNORECASE)
    require_rows(rows, parts.notna().all(axis=1), where, "img_name as seed_0034_scale_1000.jpg")
    seed, scale = parts[0].astype(int).to_numpy(), parts[1].astype(int).to_numpy() / 1000
    said = pd.to_numeric(rows["scale"], errors="coerce")
    tenth = np.isclose(said, scale / 10) | np.isclose(said, scale)
    require_rows(rows, (rows["seed"] == seed) & tenth, where, "seed and scale of img_name")
    return seed, scale


def whole(rows: pd.DataFrame, column: str, where: str, count: int) -> Int[np.ndarray, "rows"]:
    """A column of class numbers, written as 2 or 2.0."""
    values = pd.to_numeric(rows[column], errors="coerce")
    require_rows(rows, (values % 1 == 0) & values.between(0, count - 1), where, f"{column} is a whole number from 0 to {count - 1}")
    return values.to_numpy(int)


def export_answers(
    predictions: pd.DataFrame, kept: pd.DataFrame, target: Path, *, labels: list[str], form: str = "jpg", startnoise: int | None = None
) -> Path:
    """Writes predictions of the kept trajectories as the authors' csv files, in a new folder or zip (by the name of `target`).

    Scale 0 is repeated under every shift. Image names are those of `official.export_benchmark`, whose files end in `form`.
    A name that another model's contains is marked, see `apart`.
    Lost are probability, margin, all but the first answer, and the preprocessing. Raises ValueError where a kept trajectory
    has no prediction and for a class or answer that is no label, FileExistsError where `target` exists.
    """
    kept = tables.check(kept, kept_schema, "kept")
    shifts = sorted(set(kept["shift"]))
    require_official(shifts)
    shifted = predictions[predictions["scale"] > 0]  # scale 0 counts under every shift, also of those that were not asked about
    tables.select(shifted, kept, tables.TRAJECTORY, "predictions of kept trajectories")
    if (predictions["shift"] == UNSHIFTED).any():
        predictions = tables.trajectories(predictions, shifts)
    chosen = tables.select(predictions, kept, tables.TRAJECTORY, "predictions of kept trajectories")
    named = {"number": {name: labels.index(name) for name in labels}, "form": form, "startnoise": startnoise}
    groups, told = chosen.sort_values(tables.KEY).groupby(["model", "shift"]), apart(chosen["model"].unique())
    files = [(f"{told[model]}__{IDENTIFIERS[shift]}.csv", csv(rows, told[model], named)) for (model, shift), rows in groups]
    return archives.write(target, files)


def apart(models: Iterable[str]) -> dict[str, str]:
    """The exported name of each model, of which none contains another: the authors' notebook looks for names anywhere in file names.

    "resnet" beside "resnet_large" becomes "cns.resnet.cns"; a name that no other contains stays. ValueError where two meet all the same.
    """
    models, shifts = list(models), list(IDENTIFIERS.values())
    told = {name: f"{MARK}.{name}.{MARK}" if sum(name in file for file in models + shifts) > 1 else name for name in models}
    for name, file in told.items():
        demand(sum(file in other for other in [*told.values(), *shifts]) == 1, "classifier", name, "a name that no other one contains")
    return told


def unmarked(model: str) -> str:
    """The name of an exported model without its mark."""
    return re.sub(rf"^{MARK}\.(.+)\.{MARK}$", r"\1", model)


def csv(rows: pd.DataFrame, model: str, named: dict) -> bytes:
    """One csv file: the columns of the authors' in their order, classes as floats, as they have them."""
    number = named["number"]
    for name in {*rows["class"], *rows["top1"]}:
        demand(name in number, "class", name, f"one of the {len(number)} labels")
    images = [image_name(*key, **{**named, "number": number[key[1]]}) for key in rows[tables.KEY].itertuples(index=False, name=None)]
    parts = pd.DataFrame([name.split("/") for name in images], columns=["shift", "class_str", "img_name"])
    given, right = (rows[column].map(number).to_numpy(float) for column in ("top1", "class"))
    table = pd.DataFrame({"pred_class": given, "gt_class": right}).join(parts)
    table = table.assign(
        class_name=rows["class"].to_numpy(), seed=rows["seed"].map("{:04d}".format).to_numpy(), scale=rows["scale"].to_numpy()
    )
    table[model] = given == right
    return table.to_csv(lineterminator="\n").encode()
