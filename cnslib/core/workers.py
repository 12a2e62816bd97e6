"""Pieces of work side by side: one process per core and one thread in each, so that the number of cores does not touch the bits.

Where `base.workers` names a cluster, the pieces go to its workers; see `clusters`. Either way each runs the same code alone.
"""

import contextlib
import math
import os
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import joblib
import torch
from tqdm.auto import tqdm

from cnslib.core import clusters, processes, sites, units
from cnslib.core.processes import follow
from cnslib.core.sites import Cost

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


def share(count: int, *, most: int) -> int:
    """How many of `count` things that gain from company go into one piece: `most`, or fewer where workers would have nothing to do."""
    cluster = sites.current.cluster
    return min(most, max(1, math.ceil(count / cluster.most))) if cluster else most


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


def attempt(function: Callable, piece: tuple, *, device: str, threaded: bool) -> tuple[Any, Cost]:
    """Value and cost of a piece in this process. RuntimeError names a unit that it should have made and did not."""
    with contextlib.nullcontext() if threaded else one_thread():
        value, cost = measured(lambda: function(*piece), device)
    for unit in units_of(piece):
        if not unit.done:
            raise RuntimeError(f"{unit.path} was not made; accepted: a file with the record of what it was to be made from")
    return value, cost


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Lets torch use one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def measured(work: Callable[[], Any], device: str) -> tuple[Any, Cost]:
    """A value and what it cost."""
    card = torch.device(device) if device.startswith("cuda") else None
    torch.cuda.reset_peak_memory_stats(card) if card else processes.forget_peak()
    begin = time.perf_counter()
    value = work()
    seconds = time.perf_counter() - begin
    if card:
        return value, Cost(seconds, torch.cuda.get_device_name(card), torch.cuda.max_memory_allocated(card))
    return value, Cost(seconds, processes.processor(), processes.peak())


def units_of(piece: tuple) -> tuple[units.Unit, ...]:
    """The units that a piece makes."""
    values = [value for part in piece for value in (part if isinstance(part, list | tuple) else [part])]
    return tuple(value for value in values if isinstance(value, units.Unit))


def name_of(piece: tuple, number: int) -> str:
    """What a piece is called: its units by folder and name, else the words and numbers in it."""
    made = [f"{unit.path.parent.name}/{unit.path.stem}" for unit in units_of(piece)]
    words = [str(part) for part in piece if isinstance(part, str | int)]
    return ", ".join(made) or " ".join([str(number), *words])


def function_name(function: Callable) -> str:
    """The name of a function, or of what a partial one calls."""
    return getattr(getattr(function, "func", function), "__name__", "")
