"""Pieces of work as files: what a worker in another process, or on another machine, is handed, and what it hands back.

What pieces share (a pipeline, a judge) is a file of its own. A worker keeps what it has loaded of it, so the next piece changes the
slider and not the networks. A task is done when its units are verified and its result is there with the bytes of its record; that the
engine says so is not enough.
"""

import contextlib
import io
import os
import pickle  # the driver's own files, in a folder that `require_private` accepts  # nosec B403
import socket
import stat
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle
from torch import nn

from cnslib.core import units, workers
from cnslib.core.names import identifier
from cnslib.core.processes import follow
from cnslib.core.sites import Cost

PLAIN = (str, bytes, int, float, bool, type(None), Path, units.Unit)  # what every task holds itself
PATIENCE = 60  # seconds until a file that another machine wrote must be seen: shared file systems remember that it was not there
COMMON = "common"  # the file of what tasks share
kept: dict[str, list] = {}  # what this worker has loaded of it, by its record


@dataclass(frozen=True)
class Task:
    """A piece of work by name, the file that a worker is handed, its log, and the units that it makes."""

    name: str
    file: Path
    log: Path
    units: tuple[units.Unit, ...]

    @property
    def result(self) -> Path:
        """Where its value and cost are written."""
        return self.file.with_suffix(".result")


class Packer(cloudpickle.Pickler):
    """Pickles a piece; networks, and the objects whose ids are `shared`, are left to `common`, which numbers them by their ids."""

    def __init__(self, stream: io.BufferedIOBase, shared: set[int], common: dict[int, tuple[int, object]]):
        super().__init__(stream)
        self.shared, self.common = shared, common

    def persistent_id(self, obj: object) -> int | None:
        """The number of what is shared."""
        if id(obj) in self.shared or isinstance(obj, nn.Module):
            return self.common.setdefault(id(obj), (len(self.common), obj))[0]  # held, so that no other object gets its id
        return None


class Unpacker(pickle.Unpickler):
    """Reads what a `Packer` wrote."""

    def __init__(self, stream: io.BufferedIOBase, common: list):
        super().__init__(stream)
        self.common = common

    def persistent_load(self, number: int) -> object:
        """What is shared."""
        return self.common[number]


def write(function: Callable, pieces: list[tuple], folder: Path, logs: Path, *, device: str, threaded: bool) -> list[Task]:
    """The tasks of some pieces, for workers of a device: a file for each, and one of what they share.

    What is shared is pickled together, so that an object that two of them hold is one object for the worker, too.
    """
    seen = Counter(id(value) for piece in pieces for value in {id(value): value for value in piece}.values())
    shared = {id(value) for piece in pieces for value in piece if seen[id(value)] > 1 and not isinstance(value, PLAIN)} | {id(function)}
    common: dict[int, tuple[int, object]] = {}
    found = []
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for number, piece in enumerate(pieces):
        name = workers.name_of(piece, number)
        slug = "-".join(identifier(part) for part in name.split("/"))[:100]
        task = Task(name, folder / f"{number:06d}.task", logs / f"{slug}.log", workers.units_of(piece))
        with open(task.file, "wb") as stream:
            Packer(stream, shared, common).dump((task, function, piece, device, threaded))
        found.append(task)
    with open(folder / COMMON, "wb") as stream:
        cloudpickle.dump([obj for _, obj in common.values()], stream)
    units.seal(folder / COMMON)
    return found


def require_private(folder: Path) -> None:
    """PermissionError unless a folder belongs to this user and nobody else can write into it.

    Pickles run what they hold. Those of tasks are written by the driver and read by its own workers, so no one else may put one there.
    """
    found = folder.stat()
    if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(f"{folder} can be written by others than this user; accepted: a folder that only its owner can write")


def loaded(folder: Path) -> list:
    """What the tasks of a folder share, read anew where this worker has something else; its bytes are verified before they are read."""
    record = units.sidecar(folder / COMMON).read_text()
    if record not in kept:
        units.verified(folder / COMMON)
        kept.clear()  # before more is loaded: a card may hold one pipeline, and not two
        with open(folder / COMMON, "rb") as stream:
            kept[record] = pickle.load(stream)  # nosec B301
    return kept[record]


def run(file: str) -> None:
    """Does the work of a task file in this process: called by the engine in a worker.

    RuntimeError tells what the piece raised, whose own errors need not survive the way back; the traceback is in the task's log.
    """
    follow(os.getppid())
    path = Path(file)
    require_private(path.parent)
    with open(path, "rb") as stream:
        task, function, piece, device, threaded = Unpacker(stream, loaded(path.parent)).load()
    with logged(task):
        found = workers.attempt(function, piece, device=device, threaded=threaded)
        units.write_sealed(task.result, cloudpickle.dumps(found))


@contextlib.contextmanager
def logged(task: Task) -> Iterator[None]:
    """Sends all that this process prints to the task's log, also what libraries print below Python."""
    task.log.parent.mkdir(parents=True, exist_ok=True)
    streams, before = (sys.stdout, sys.stderr), [os.dup(number) for number in (1, 2)]
    with open(task.log, "a") as log:
        try:
            for stream, number in zip(streams, (1, 2), strict=True):
                stream.flush()
                os.dup2(log.fileno(), number)
            with contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
                started = time.strftime("%Y-%m-%d %H:%M:%S")
                print(f"{started} {task.name} on {socket.gethostname()}, process {os.getpid()}", flush=True)
                yield
                print("done", flush=True)
        except Exception as error:
            log.write(traceback.format_exc())
            raise RuntimeError(f"{type(error).__name__}: {error}") from None
        finally:
            log.flush()
            for number, copy in zip((1, 2), before, strict=True):
                os.dup2(copy, number)
                os.close(copy)


def outcome(task: Task) -> tuple[Any, Cost]:
    """Value and cost of a task that the engine calls done. RuntimeError names what is not there, or not as it was written."""
    require_private(task.result.parent)
    end = time.monotonic() + PATIENCE
    while True:
        try:
            units.verified(task.result)
            missing = [unit.path for unit in task.units if not unit.done]
            if not missing:
                return pickle.loads(task.result.read_bytes())  # nosec B301
            problem = f"{missing[0]} is not there, or not as it was written"
        except (FileNotFoundError, ValueError) as error:
            problem = str(error)
        if time.monotonic() > end:
            raise RuntimeError(f"the worker was done, but {problem}")
        time.sleep(min(1.0, PATIENCE / 10))
