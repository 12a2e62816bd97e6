"""The compendium's tidy tables: columns, keys and dtypes, checked when written and when read; and their pictures and numbers."""

import contextlib
import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pyarrow as arrow
import pyarrow.parquet as parquet
from jaxtyping import Int, UInt8
from PIL import Image

from cnslib.core import pictures as pictures_of
from cnslib.core import units
from cnslib.core.names import UNSHIFTED

KEY = ["shift", "class", "seed", "scale"]
TRAJECTORY = ["shift", "class", "seed"]
IDENTITY = {
    "shift": pa.Column(str),
    "class": pa.Column(str),
    "seed": pa.Column("int64", pa.Check.ge(0)),
    "scale": pa.Column(float),
}


def schema(key: list[str], columns: dict[str, pa.Column]) -> pa.DataFrameSchema:
    """A strict schema: exactly these columns, no missing value in the key, no key twice."""
    return pa.DataFrameSchema(columns, strict=True, unique=key, metadata={"key": key})


COSINE = pa.Check.in_range(-1.0001, 1.0001)
cosines = {name: pa.Column(float, COSINE) for name in ("clip_class", "clip_class_shift", "clip_reference", "image_reference")}
images = schema(KEY, {**IDENTITY, "image": pa.Column(object)})
scores = schema(KEY, {**IDENTITY, **cosines, "oracle_ooc": pa.Column(bool), "keep": pa.Column(bool)})
answer = {"top1": pa.Column(str), "top5": pa.Column(object), "probability": pa.Column(float, pa.Check.in_range(0, 1.0001))}
predictions = schema(
    ["model", *KEY], {"model": pa.Column(str), **IDENTITY, **answer, "margin": pa.Column(float), "preprocessing": pa.Column(str)}
)
absent = dict.fromkeys(("probability", "margin"), pa.Column(float, nullable=True))  # from the authors' files, where top5 is an empty list
imported = schema(["model", *KEY], {**predictions.columns, **absent})
kept_schema = schema(TRAJECTORY, {key: IDENTITY[key] for key in TRAJECTORY})
BATCH = 64  # rows of images in memory where they are read one after the other
TEXTS = ["model", "shift", "class", "top1"]
top1 = pa.DataFrameSchema(
    {**{name: pa.Column("category") for name in TEXTS}, **{name: IDENTITY[name] for name in ("seed", "scale")}}, strict=True
)
split = {"split": pa.Column(str, pa.Check.isin(["train", "heldout"])), "class": pa.Column(str), "seed": pa.Column("int64")}
catalog = schema(["split", "class", "seed"], {**split, "image": pa.Column(object)})


def check(table: pd.DataFrame, kind: pa.DataFrameSchema, name: str) -> pd.DataFrame:
    """Returns the table sorted by its key. ValueError names the table, the column and the rows that break its schema."""
    valid(table.reset_index(drop=True), kind, name)
    return table.sort_values(kind.metadata["key"], kind="stable", ignore_index=True)[list(kind.columns)]


def valid(table: pd.DataFrame, kind: pa.DataFrameSchema, name: str) -> pd.DataFrame:
    """Returns the table as it is. ValueError names the table, the column and the rows that break its schema."""
    try:
        return kind.validate(table, lazy=True)
    except pa.errors.SchemaErrors as error:
        cases = error.failure_cases[["column", "check", "failure_case", "index"]].head(5)
        raise ValueError(f"{name} breaks its schema:\n{cases.to_string(index=False)}") from None


def write(table: pd.DataFrame, path: Path, kind: pa.DataFrameSchema, made_from: str = units.NOTHING) -> None:
    """Checks a table and writes it as parquet, atomically, with a record of its bytes; equal tables give equal bytes."""
    store(table, path, kind)
    units.record_bytes(path, made_from)


def store(table: pd.DataFrame, path: Path, kind: pa.DataFrameSchema) -> None:
    """Checks and writes a table whose record is still to come."""
    checked = check(table, kind, path.name)
    with units.atomic(path) as partial:
        plain = arrow.Table.from_pandas(checked, preserve_index=False).replace_schema_metadata()
        parquet.write_table(plain, partial, compression="zstd")


def write_unit(table: pd.DataFrame, unit: units.Unit, kind: pa.DataFrameSchema) -> None:
    """Writes the table of a unit, and what it was made from."""
    write(table, unit.path, kind, unit.made_from)


def read_units(shelf: units.Shelf, kind: pa.DataFrameSchema) -> pd.DataFrame:
    """The rows of all units, in the order of their keys; errors as those of `read`."""
    return pd.concat([read(path, kind) for path in shelf.paths.values()], ignore_index=True)


def read(path: Path, kind: pa.DataFrameSchema) -> pd.DataFrame:
    """Reads and checks a table. FileNotFoundError or ValueError name a missing, damaged or wrong file."""
    parts = list(batches(path)) if "image" in kind.columns else []  # read at once, pictures would take five times their bytes
    table = pd.concat(parts, ignore_index=True) if parts else load(path).to_pandas()
    return check(table.astype({c: str for c in table.columns if str(table[c].dtype) == "str"}), kind, str(path))


def load(path: Path, **choice: list[str]) -> arrow.Table:
    """A parquet file as it is, or the columns chosen; errors as those of `read`. One with a record has the bytes of its record."""
    units.verified(path, required=False)
    try:
        return parquet.read_table(path, page_checksum_verification=True, **choice)
    except (arrow.ArrowInvalid, OSError) as error:
        raise ValueError(f"table {path} is not a readable parquet file: {error}") from None


@contextlib.contextmanager
def opened(path: Path) -> Iterator[parquet.ParquetFile]:
    """A table that is read in parts; errors as those of `load`."""
    units.verified(path, required=False)
    try:
        with parquet.ParquetFile(path, pre_buffer=False, buffer_size=2**20, page_checksum_verification=True) as file:
            yield file
    except (arrow.ArrowInvalid, OSError) as error:
        raise ValueError(f"table {path} is not a readable parquet file: {error}") from None


def batches(path: Path, size: int = BATCH) -> Iterator[pd.DataFrame]:
    """The rows of a table, some at a time, in the order of the file; errors as those of `load`. A shift of the paper has 2 GB or 20."""
    with opened(path) as file:
        texts = [field.name for field in file.schema_arrow if field.type == arrow.string()]
        for number, batch in enumerate(file.iter_batches(size)):
            rows = batch.to_pandas().astype(dict.fromkeys(texts, str))
            yield rows.set_axis(rows.index + number * size)


def keys(path: Path) -> pd.DataFrame:
    """The keys of a table of images, without the pictures; errors as those of `read`."""
    with opened(path) as file:
        names = file.schema_arrow.names
        table = file.read([name for name in names if name != "image"]).to_pandas()
    return check(table.assign(**{name: b"" for name in names if name == "image"}), images, str(path))[KEY]


def pick(path: Path, wanted: pd.DataFrame, key: list[str]) -> pd.DataFrame:
    """The rows of a table of images whose key is wanted, read some rows at a time. Errors as those of `load`."""
    keys, parts = pd.MultiIndex.from_frame(wanted[key]), []
    with opened(path) as file:
        for batch in file.iter_batches(BATCH):
            batch_keys = pd.MultiIndex.from_frame(batch.select(key).to_pandas())
            parts.append(batch.filter(arrow.array(batch_keys.isin(keys))))
        table = arrow.Table.from_batches(parts, file.schema_arrow).to_pandas()
    return table.astype(dict.fromkeys(("shift", "class"), str))


def read_top1(paths: Iterable[Path]) -> pd.DataFrame:
    """The first choices in some tables of predictions: model, key and `top1`, texts as categoricals. FileNotFoundError without a table."""
    parts = [load(path, columns=["model", *KEY, "top1"], read_dictionary=TEXTS) for path in paths]
    if not parts:
        raise FileNotFoundError("there is no table of predictions; the step evaluation makes them")
    return valid(arrow.concat_tables(parts).unify_dictionaries().to_pandas(), top1, "predictions")


def complete(table: pd.DataFrame, expected: Iterable[tuple], key: list[str], name: str) -> pd.DataFrame:
    """Returns the table if its keys are exactly the expected ones; ValueError counts and shows missing and foreign ones."""
    present, wanted = set(table[key].itertuples(index=False, name=None)), set(expected)
    if present != wanted:
        missing, foreign = sorted(wanted - present), sorted(present - wanted)
        raise ValueError(f"{name}: {len(missing)} rows missing {missing[:2]}, {len(foreign)} foreign {foreign[:2]}")
    return table


def trajectories(table: pd.DataFrame, shifts: list[str]) -> pd.DataFrame:
    """Repeats the unshifted row (scale 0) of each class and seed under every shift, so that each trajectory has all scales."""
    plain, shifted = table[table["shift"] == UNSHIFTED], table[table["shift"].isin(shifts)]
    repeated = (plain.assign(shift=shift).astype({"shift": table["shift"].dtype}) for shift in shifts)
    return pd.concat([shifted, *repeated], ignore_index=True)


def select(table: pd.DataFrame, wanted: pd.DataFrame, key: list[str], name: str) -> pd.DataFrame:
    """The rows whose key is wanted; ValueError counts and shows wanted keys without a row."""
    number, keys = numbered(table, key)
    chosen = pd.MultiIndex.from_frame(keys).isin(pd.MultiIndex.from_frame(wanted[key]))
    complete(keys[chosen], wanted[key].itertuples(index=False, name=None), key, name)
    return table[chosen[number]]


def numbered(table: pd.DataFrame, key: list[str]) -> tuple[Int[np.ndarray, "rows"], pd.DataFrame]:
    """For each row the number of its key among the distinct ones, and these in order; millions of rows are not sorted for it."""
    groups = table.groupby(key, observed=True, sort=False)
    first = groups.size().reset_index()[key]
    distinct = pd.DataFrame({column: np.asarray(first[column]) for column in key}).sort_values(key)
    return np.argsort(distinct.index)[groups.ngroup().to_numpy()], distinct.reset_index(drop=True)


def encode(picture: UInt8[np.ndarray, "height width 3"], *, quality: int = 0) -> bytes:
    """A picture as PNG bytes, or as those of a JPEG of that quality (1 to 100) whose colours are as fine as its brightness."""
    jpeg: dict[str, Any] = {"format": "JPEG", "quality": quality, "subsampling": "4:4:4", "optimize": True}
    Image.fromarray(picture).save(buffer := io.BytesIO(), **(jpeg if quality else {"format": "PNG", "compress_level": 9}))
    return buffer.getvalue()


def decode(data: bytes, name: str) -> UInt8[np.ndarray, "height width 3"]:
    """The picture in the bytes of a row; ValueError names the row whose bytes are no picture."""
    return pictures_of.read(data, f"{name}: its image")


def pictures(table: pd.DataFrame, name: str) -> UInt8[np.ndarray, "rows height width 3"]:
    """All pictures of a table of images, in row order."""
    rows = table.drop(columns="image").itertuples(index=False, name=None)
    return np.stack([decode(data, f"{name} {row}") for data, row in zip(table["image"], rows, strict=True)])


def write_metrics(path: Path, values: dict) -> None:
    """Writes a metrics file: every number a record {"n", "estimate", "low", "high"}, nested keys allowed, six digits."""
    units.write_bytes(path, (json.dumps(rounded(values, path.name), indent=2, sort_keys=True) + "\n").encode())


def rounded(values: dict, name: str) -> dict:
    """Checks and rounds a tree of metric records, null for what is not finite; ValueError names the key that is no record."""
    if not isinstance(values, dict) or ("estimate" in values and set(values) != {"n", "estimate", "low", "high"}):
        raise ValueError(f"{name}: {values!r} is not a record of n, estimate, low, high")
    if "estimate" not in values:
        return {str(key): rounded(value, f"{name}.{key}") for key, value in values.items()}
    ends = {key: values[key] for key in ("estimate", "low", "high")}
    finite = {key: value is not None and bool(np.isfinite(value)) for key, value in ends.items()}
    return {"n": int(values["n"])} | {key: round(float(value), 6) if finite[key] else None for key, value in ends.items()}
