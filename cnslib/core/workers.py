"""Pieces of work side by side: one process per core and one thread in each, so that the number of cores does not touch the bits.

Where `base.workers` names a cluster, the pieces go to its workers; see `clusters`. Either way each runs the same code alone.
"""

import os
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import joblib
import pandas as pd
import pandera.pandas as pa
import torch
from tqdm.auto import tqdm

from cnslib.core import clusters, tables, units

SHARED = {ValueError, FileNotFoundError, FloatingPointError}  # errors that say what is wrong with an input, and keep saying it


def each(
    function: Callable, pieces: Iterable[tuple], *, device: torch.device | str, desc: str | None = None, threaded: bool = False
) -> list[Any]:
    """The results of `function(*piece)` for every piece, in order; `desc` names a progress bar, which is quiet without a terminal.

    On a CPU the pieces are spread over the cores this process may use (LOKY_MAX_CPU_COUNT lowers that); on any other device, and where
    pieces are `threaded` themselves, they run here in turn. A piece that holds units must make them; its error is raised after the others
    are made. Without units the first error ends the work.
    """
    pieces = list(pieces)
    if clusters.chosen and (len(pieces) > 1 or any(map(clusters.units_of, pieces))):
        ended = clusters.spread(function, pieces, *clusters.chosen, threaded=threaded)
    else:
        ended = here(function, pieces, device=torch.device(device), threaded=threaded)
    found = dict(tqdm(ended, total=len(pieces), desc=desc, unit="unit", disable=None if desc else True))
    report({clusters.name_of(pieces[number], number): one for number, one in found.items() if isinstance(one, Exception)}, len(pieces))
    return [found[number] for number in range(len(pieces))]


def stored(
    stamps: Mapping[Any, str],
    rows: Callable[..., pd.DataFrame],
    kind: pa.DataFrameSchema,
    *,
    folder: Path,
    device: Any,
    common: Callable[[], Iterable] = tuple,
    file: Callable[[Any], str] = units.file_of,
    pattern: str = "*.parquet",
) -> pd.DataFrame:
    """The rows of a table in parts, a `file` with its stamp for each key; `rows(key, *common())` makes those missing or outdated.

    `common` is called once, before the work is spread, and not where nothing is to be made.
    """
    shelf = units.Shelf(folder, {key: (file(key), stamp) for key, stamp in stamps.items()}, pattern)
    if waiting := shelf.waiting():
        given = tuple(common())
        each(write, [(rows, given, kind, key, shelf[key]) for key in waiting], device=device, desc=folder.name)
    return tables.read_units(shelf, kind)


def write(rows: Callable[..., pd.DataFrame], given: tuple, kind: pa.DataFrameSchema, key: Any, unit: units.Unit) -> None:
    """Makes one part."""
    tables.write_unit(rows(key, *given), unit, kind)


def report(errors: dict[str, Exception], count: int) -> None:
    """Raises the one error there is, or one that names all pieces that failed: of the type that they share, if it is a plain one."""
    if not errors:
        return
    first, types = next(iter(errors.values())), {type(error) for error in errors.values()}
    if len(errors) == 1:
        raise first
    told = "; ".join(text if (text := str(error)).startswith(name) else f"{name}: {text}" for name, error in errors.items())
    kind = type(first) if len(types) == 1 and types <= SHARED else RuntimeError
    raise kind(f"{len(errors)} of {count} failed, the others are done: {told}") from first


def here(function: Callable, pieces: list[tuple], *, device: torch.device, threaded: bool) -> Iterator[tuple[int, Any]]:
    """Number, and value or error, of every piece, made on this machine, in order."""
    spread = device.type == "cpu" and not threaded
    count = min(joblib.cpu_count(), len(pieces)) if spread else 1
    run = joblib.Parallel(n_jobs=max(count, 1), return_as="generator")
    yield from enumerate(run(joblib.delayed(beside)(function, piece, os.getpid(), threaded) for piece in pieces))


def beside(function: Callable, piece: tuple, owner: int, threaded: bool) -> Any:
    """The value of a piece in the process `owner`, or in one that ends with it; the error in its place where units are made."""
    if os.getpid() != owner:
        clusters.follow(owner)
    try:
        return attempt(function, piece, threaded=threaded)
    except Exception as error:
        if not clusters.units_of(piece):
            raise
        if os.getpid() != owner:
            error.add_note(traceback.format_exc())  # which is not handed on with it
        return error


def attempt(function: Callable, piece: tuple, *, threaded: bool) -> Any:
    """The value of a piece in this process. RuntimeError names a unit that it should have made and did not."""
    threads = torch.get_num_threads()
    torch.set_num_threads(threads if threaded else 1)
    try:
        value = function(*piece)
    finally:
        torch.set_num_threads(threads)
    for unit in clusters.units_of(piece):
        if not unit.done:
            raise RuntimeError(f"{unit.path} was not made; accepted: a file with the record of what it was to be made from")
    return value
