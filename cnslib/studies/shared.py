"""What the studies share: tables that are made in parts, the choice of trajectories, and classifiers by name."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pandera.pandas as pa

from cnslib.core import tables, units, workers
from cnslib.core.names import demand, identifier
from cnslib.models import classifiers


def file_of(key: Any) -> str:
    """The file of a key: its words and numbers."""
    return "_".join(identifier(str(part)) for part in (key if isinstance(key, tuple) else (key,))) + ".parquet"


def file_below(key: tuple) -> str:
    """The same in a folder for the first part, the shift."""
    return f"{identifier(key[0])}/{file_of(key[1:])}"


def stored(
    stamps: Mapping[Any, str],
    rows: Callable[..., pd.DataFrame],
    kind: pa.DataFrameSchema,
    *,
    folder: Path,
    device: Any,
    common: Callable[[], Iterable] = tuple,
    file: Callable[[Any], str] = file_of,
    pattern: str = "*.parquet",
) -> pd.DataFrame:
    """The rows of a table in parts, a `file` with its stamp for each key; `rows(key, *common())` makes those missing or outdated.

    `common` is called once, before the work is spread, and not at all where nothing is to be made.
    """
    shelf = units.Shelf(folder, {key: (file(key), stamp) for key, stamp in stamps.items()}, pattern)
    if waiting := shelf.waiting():
        given = tuple(common())
        workers.each(write, [(rows, given, kind, key, shelf[key]) for key in waiting], device=device, desc=folder.name)
    return tables.read_units(shelf, kind)


def write(rows: Callable[..., pd.DataFrame], given: tuple, kind: pa.DataFrameSchema, key: Any, unit: units.Unit) -> None:
    """Makes one part."""
    tables.write_unit(rows(key, *given), unit, kind)


def checkpoint(folder: Path, key: Any, stamp: str) -> Path:
    """Where a training in the making is kept."""
    return folder / f"{Path(file_of(key)).stem}-{stamp[:12]}.pt"


def choose(kept: pd.DataFrame, settings: Any, classes: list[str]) -> pd.DataFrame:
    """The first `seeds` kept trajectories of each chosen shift and class: no prediction has a say. ValueError where none is left."""
    wanted = kept[kept["shift"].isin(settings.shifts) & kept["class"].isin(classes)]
    demand(len(wanted) > 0, f"{type(settings).__name__.lower()}.shifts", settings.shifts, f"shifts of the {len(kept)} kept trajectories")
    chosen = wanted.sort_values(tables.TRAJECTORY).groupby(["shift", "class"]).head(settings.seeds)
    return chosen[tables.TRAJECTORY].reset_index(drop=True)


def judges(sources: Mapping[str, str], labels: list[str], device: str) -> list[classifiers.Classifier]:
    """The classifiers of a section of the parameters."""
    return [classifiers.own_classifier(source, name=name, labels=labels, device=device) for name, source in sources.items()]


def digests(sources: Mapping[str, str]) -> dict[str, list[str]]:
    """Where each classifier comes from, with the digest of its weights."""
    return {name: [source, classifiers.digest(source)] for name, source in sources.items()}
