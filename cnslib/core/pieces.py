"""A piece of work: what it is called, which units it makes, and what it costs where it is made, in this process or on a cluster."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from cnslib.core import processes, units
from cnslib.core.sites import Cost


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
