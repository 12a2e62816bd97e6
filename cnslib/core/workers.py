"""Pieces of work side by side: one process per core and one thread in each, so that the number of cores does not touch the bits."""

import functools
import os
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import joblib
import torch
from tqdm.auto import tqdm


def each(function: Callable, pieces: Iterable[tuple], *, device: torch.device | str, desc: str | None = None) -> list[Any]:
    """The results of `function(*piece)` for every piece, in order; `desc` names a progress bar.

    On a CPU the pieces are spread over the cores this process may use (LOKY_MAX_CPU_COUNT lowers that); on any other device they
    run here, one after the other. What a piece holds is copied to its process. The first error ends the work and is raised. The
    processes end within two seconds when this one is killed.
    """
    pieces = list(pieces)
    count = min(joblib.cpu_count(), len(pieces)) if torch.device(device).type == "cpu" else 1
    run = joblib.Parallel(n_jobs=max(count, 1), return_as="generator")
    results = run(joblib.delayed(alone)(function, piece, os.getpid()) for piece in pieces)
    return list(tqdm(results, total=len(pieces), desc=desc, disable=None if desc else True))


def alone(function: Callable, piece: tuple, owner: int) -> Any:
    """One piece in one thread, in the process `owner` or in one that ends with it."""
    if os.getpid() != owner:
        follow(owner)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return function(*piece)
    finally:
        torch.set_num_threads(threads)


@functools.cache
def follow(owner: int) -> None:
    """Ends this process soon after its parent `owner` has gone: a killed parent cannot tell, and a piece may take minutes."""

    def watch() -> None:
        while os.getppid() == owner:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
