"""Pieces of work side by side: one process per core and one thread in each, so that the number of cores does not touch the bits.

Where `base.workers` names a cluster, the pieces go to its workers; see `clusters`. Either way each runs the same code alone.
"""

import os
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import joblib
import torch
from tqdm.auto import tqdm

from cnslib.core import clusters, sites
from cnslib.core.pieces import attempt, function_name, name_of, units_of
from cnslib.core.processes import follow

SHARED = {ValueError, FileNotFoundError, FloatingPointError}  # errors that say what is wrong with an input, and keep saying it


def each(
    function: Callable, pieces: Iterable[tuple], *, device: torch.device | str, desc: str | None = None, threaded: bool = False
) -> list[Any]:
    """The results of `function(*piece)` for every piece, in order; `desc` names a progress bar, and the work where costs are noted.

    On a CPU the pieces are spread over the cores this process may use (LOKY_MAX_CPU_COUNT lowers that); on any other device, and
    where pieces are `threaded` themselves, they run here, one after the other. What a piece holds is copied to its process.
    A piece that holds a unit, or a list of them, makes it: the unit must be done in the end, and an error does not keep the other
    pieces from being made. It is raised then; several are told by name in one. Without units the first error ends the work. The
    processes end within two seconds when this one is killed.
    """
    pieces, site = list(pieces), sites.current
    making = any(units_of(piece) for piece in pieces)
    if site.cluster and site.folder and (making or len(pieces) > 1):
        ended = clusters.spread(
            function, pieces, cluster=site.cluster, folder=site.folder, device=str(device), desc=desc, threaded=threaded
        )
    else:
        ended = here(function, pieces, device=device, desc=desc, threaded=threaded)
    found: dict[int, Any] = {}
    errors: dict[str, Exception] = {}
    for number, name, outcome in ended:
        if isinstance(outcome, Exception):
            errors[name] = outcome
        else:
            found[number], cost = outcome
            site.note(desc or function_name(function), name, max(1, len(units_of(pieces[number]))), cost)
    report(errors, len(pieces))
    return [found[number] for number in range(len(pieces))]


def share(most: int) -> int:
    """How many things that gain from company go into one piece: `most` here, one on a cluster.

    A block that ends takes its pieces with it, and has to hold a piece twice (`simulation.fanout`), so a cluster's are the smallest.
    """
    return 1 if sites.current.cluster else most


def report(errors: dict[str, Exception], count: int) -> None:
    """Raises the one error there is, or one that names all pieces that failed: of the type that they share, if it is a plain one."""
    if len(errors) == 1:
        raise next(iter(errors.values()))
    if errors:
        told = "; ".join(text if (text := str(error)).startswith(name) else f"{name}: {text}" for name, error in errors.items())
        types = {type(error) for error in errors.values()}
        kind = types.pop() if len(types) == 1 and types <= SHARED else RuntimeError
        raise kind(f"{len(errors)} of {count} failed, the others are done: {told}") from next(iter(errors.values()))


def here(
    function: Callable, pieces: list[tuple], *, device: torch.device | str, desc: str | None, threaded: bool
) -> Iterator[tuple[int, str, Any]]:
    """Number, name, and value with cost or else error of every piece, made on this machine, in order."""
    spread = torch.device(device).type == "cpu" and not threaded
    count = min(joblib.cpu_count(), len(pieces)) if spread else 1
    run = joblib.Parallel(n_jobs=max(count, 1), return_as="generator")
    results = run(joblib.delayed(beside)(function, piece, os.getpid(), str(device), threaded) for piece in pieces)
    for number, outcome in enumerate(tqdm(results, total=len(pieces), desc=desc, disable=None if desc else True)):
        yield number, name_of(pieces[number], number), outcome


def beside(function: Callable, piece: tuple, owner: int, device: str, threaded: bool) -> Any:
    """Value and cost of a piece in the process `owner`, or in one that ends with it; the error in their place where units are made."""
    if os.getpid() != owner:
        follow(owner)
    try:
        return attempt(function, piece, device=device, threaded=threaded)
    except Exception as error:
        if not units_of(piece):
            raise
        if os.getpid() != owner:
            error.add_note(traceback.format_exc())  # which is not handed on with it
        return error
