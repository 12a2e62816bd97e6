"""Pieces of work as files: what a worker in another process, or on another machine, is handed, and what it hands back.

What pieces share (a pipeline, a judge) is a file of its own. A worker keeps what it has loaded of it, so the next piece changes the
slider and not the networks. A task is done when its units are verified and its result is there; that the engine says so is not enough.

Opening such a file runs what it holds. So each side tells the other the sha256 of what it wrote, over the engine's own connection, and
nothing is opened but the very bytes that were told of: who can write to a shared file system can stop a run, and not enter it.
"""

import contextlib
import hashlib
import io
import os
import pickle  # for `Unpacker`, which reads the bytes that `genuine` lets through  # nosec B403
import socket
import stat
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cloudpickle
from torch import nn

from cnslib.core import units
from cnslib.core.names import identifier
from cnslib.core.pieces import attempt, name_of, units_of
from cnslib.core.processes import follow
from cnslib.core.sites import Cost

PLAIN = (str, bytes, int, float, bool, type(None), Path, units.Unit)  # what every task holds itself
PATIENCE = 60  # seconds until a file that another machine wrote must be seen: shared file systems remember that it was not there
COMMON = "common"  # the file of what tasks share
kept: dict[str, list] = {}  # what this worker has loaded of it, by its record


@dataclass(frozen=True)
class Task:
    """A piece of work by name, the file that a worker is handed, its log, and the units that it makes.

    `call` is what the engine tells a worker: the file, and the sha256 of its bytes and of what it shares with others.
    """

    name: str
    file: Path
    log: Path
    units: tuple[units.Unit, ...]
    call: tuple[str, ...] = ()

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
        name = name_of(piece, number)
        slug = "-".join(identifier(part) for part in name.split("/"))[:100]
        task = Task(name, folder / f"{number:06d}.task", logs / f"{slug}.log", units_of(piece))
        with open(task.file, "wb") as stream:
            Packer(stream, shared, common).dump((task, function, piece, device, threaded))
        found.append(task)
    with open(folder / COMMON, "wb") as stream:
        cloudpickle.dump([obj for _, obj in common.values()], stream)
    shared_digest = units.file_digest(folder / COMMON)
    return [replace(task, call=(str(task.file), units.file_digest(task.file), shared_digest)) for task in found]


def require_private(folder: Path) -> None:
    """PermissionError unless a folder belongs to this user and nobody else can write into it.

    Pickles run what they hold. Those of tasks are written by the driver and read by its own workers, so no one else may put one there.
    """
    found = folder.stat()
    if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(f"{folder} can be written by others than this user; accepted: a folder that only its owner can write")


def genuine(path: Path, sha256: str) -> bytes:
    """The bytes of a file that the other side wrote. FileNotFoundError or ValueError, naming it, unless they are those it told of."""
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    data = path.read_bytes()
    if (found := hashlib.sha256(data).hexdigest()) != sha256:
        raise ValueError(f"{path} is not as it was written: its bytes have the sha256 {found[:12]}..., and not {sha256[:12]}...")
    return data


def loaded(common: Path, sha256: str) -> list:
    """What some tasks share, read anew where this worker has something else."""
    if sha256 not in kept:
        kept.clear()  # before more is loaded: a card may hold one pipeline, and not two
        kept[sha256] = cloudpickle.loads(genuine(common, sha256))
    return kept[sha256]


def run(file: str, sha256: str, common: str) -> str:
    """Does the work of a task file in this process: called by the engine in a worker, with a task's `call`.

    Returns the sha256 of its result. RuntimeError tells what the piece raised, whose own errors need not survive the way back; the
    traceback is in the task's log.
    """
    follow(os.getppid())
    path = Path(file)
    require_private(path.parent)
    content = io.BytesIO(genuine(path, sha256))
    task, function, piece, device, threaded = Unpacker(content, loaded(path.parent / COMMON, common)).load()
    with logged(task):
        found = cloudpickle.dumps(attempt(function, piece, device=device, threaded=threaded))
        units.write_bytes(task.result, found)
    return hashlib.sha256(found).hexdigest()


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


def outcome(task: Task, sha256: str) -> tuple[Any, Cost]:
    """Value and cost of a task that the engine calls done, with this result. RuntimeError names what is not there, or other bytes."""
    require_private(task.result.parent)
    end = time.monotonic() + PATIENCE
    while True:
        try:
            result = genuine(task.result, sha256)
            missing = [unit.path for unit in task.units if not unit.done]
            if not missing:
                return cloudpickle.loads(result)
            problem = f"{missing[0]} is not there, or not as it was written"
        except (FileNotFoundError, ValueError) as error:
            problem = str(error)
        if time.monotonic() > end:
            raise RuntimeError(f"the worker was done, but {problem}")
        time.sleep(min(1.0, PATIENCE / 10))
