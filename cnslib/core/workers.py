"""Jobs side by side: one process per core and one thread in each, so that the number of cores does not touch the bits.

Where `base.workers` names a cluster, the jobs go to its workers; see `clusters`. Either way each runs the same code alone.
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
    function: Callable, jobs: Iterable[tuple], *, device: torch.device | str, desc: str | None = None, threaded: bool = False
) -> list[Any]:
    """The results of `function(*job)` for every job, in order; `desc` names a progress bar, which is quiet without a terminal.

    On a CPU the jobs are spread over the cores this process may use (LOKY_MAX_CPU_COUNT lowers that); on any other device, and where
    jobs are `threaded` themselves, they run here in turn. A job that holds units must make them; its error is raised after the others
    are made. Without units the first error ends the work.
    """
    jobs = list(jobs)
    if clusters.chosen and (len(jobs) > 1 or any(map(clusters.units_of, jobs))):
        ended = clusters.spread(function, jobs, *clusters.chosen, threaded=threaded)
    else:
        ended = here(function, jobs, device=torch.device(device), threaded=threaded)
    results = dict(tqdm(ended, total=len(jobs), desc=desc, unit="unit", disable=None if desc else True))
    report({clusters.name_of(jobs[number], number): one for number, one in results.items() if isinstance(one, Exception)}, len(jobs))
    return [results[number] for number in range(len(jobs))]


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
    """Raises the one error there is, or one that names all jobs that failed: of the type that they share, if it is a plain one."""
    if not errors:
        return
    first, types = next(iter(errors.values())), {type(error) for error in errors.values()}
    if len(errors) == 1:
        raise first
    failures = "; ".join(text if (text := str(error)).startswith(name) else f"{name}: {text}" for name, error in errors.items())
    kind = type(first) if len(types) == 1 and types <= SHARED else RuntimeError
    raise kind(f"{len(errors)} of {count} failed, the others are done: {failures}") from first


def here(function: Callable, jobs: list[tuple], *, device: torch.device, threaded: bool) -> Iterator[tuple[int, Any]]:
    """Number, and value or error, of every job, made on this machine, in order."""
    spread = device.type == "cpu" and not threaded
    count = min(joblib.cpu_count(), len(jobs)) if spread else 1
    run = joblib.Parallel(n_jobs=max(count, 1), return_as="generator")
    yield from enumerate(run(joblib.delayed(beside)(function, job, os.getpid(), threaded) for job in jobs))


def beside(function: Callable, job: tuple, owner: int, threaded: bool) -> Any:
    """The value of a job in the process `owner`, or in one that ends with it; the error in its place where units are made."""
    if os.getpid() != owner:
        clusters.follow(owner)
    try:
        return attempt(function, job, threaded=threaded)
    except Exception as error:
        if not clusters.units_of(job):
            raise
        if os.getpid() != owner:
            error.add_note(traceback.format_exc())  # which is not handed on with it
        return error


def attempt(function: Callable, job: tuple, *, threaded: bool) -> Any:
    """The value of a job in this process. RuntimeError names a unit that it should have made and did not."""
    threads = torch.get_num_threads()
    torch.set_num_threads(threads if threaded else 1)
    try:
        value = function(*job)
    finally:
        torch.set_num_threads(threads)
    for unit in clusters.units_of(job):
        if not unit.done:
            raise RuntimeError(f"{unit.path} was not made; accepted: a file with the record of what it was to be made from")
    return value
