"""Units over the workers of a cluster, by Parsl (`pip install cnslib[cluster]`): the engine hands pieces out, and files are believed.

Workers start once in a process and stay until it ends or they have been idle; every further call finds them warm. Pieces and their
values travel over Parsl's own encrypted connection. What pieces share (a pipeline, a judge) is a file, which a worker loads once.
Opening it runs what it holds: so its sha256 is told over that connection, and nothing is opened but those very bytes.
"""

import atexit
import contextlib
import functools
import hashlib
import io
import os
import pickle  # for `Unpacker`, which reads what came over the connection  # nosec B403
import shlex
import shutil
import socket
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, as_completed
from pathlib import Path
from typing import Any

import cloudpickle

from cnslib.core import pins, units
from cnslib.core.names import demand, identifier
from cnslib.core.settings.method import Cluster

chosen: tuple[Cluster, Path] | None = None  # the workers of this process, and the folder for their logs
started: dict[str, tuple[Executor, Any]] = {}  # by cluster and folder the workers that run, and Parsl's kernel behind them
kept: dict[str, list] = {}  # what this worker has loaded of shared objects, by the file's sha256
HEARTBEAT = 15  # seconds between signs of life of nodes; four that are missing and the node counts as lost
PATIENCE = 60  # seconds until a file that another machine wrote must be seen: shared file systems remember that it was not there
PLAIN = (str, bytes, int, float, bool, type(None), Path, units.Unit)  # what every piece holds itself
# Passed on to workers: what decides the arithmetic, whether hubs are asked, and where the library lies.
HUBS = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HOME")
PASSED = (*pins.PINS, *HUBS, "PYTHONPATH", "CUBLAS_WORKSPACE_CONFIG")


def use(cluster: Cluster | None = None, folder: Path | None = None) -> None:
    """Sets the workers that make the units of this process, and where their logs lie; without arguments this machine's own cores."""
    global chosen
    chosen = (cluster, folder) if cluster and folder else None


def spread(function: Callable, pieces: list[tuple], cluster: Cluster, folder: Path, *, threaded: bool) -> Iterator[tuple[int, Any]]:
    """Number, and value or error, of every piece, as they end; one that fails is tried again, whatever the cause, then told."""
    from cnslib.core.workers import name_of  # needs torch, which the interchange of `main` does not

    folder.mkdir(parents=True, exist_ok=True)
    for leftover in folder.glob("shared-*"):  # of a driver that was killed
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="shared-", dir=folder) as place:
        packed, shared = pack(function, pieces)
        file = Path(place) / "objects"
        file.write_bytes(shared)
        told = str(file), hashlib.sha256(shared).hexdigest()
        names = [name_of(piece, number) for number, piece in enumerate(pieces)]
        logs = [folder / "logs" / f"{identifier(name).replace('/', '-')[:100]}.log" for name in names]
        submit = pool(cluster, folder).submit
        sent = zip(packed, names, logs, strict=True)
        running = {submit(run, data, *told, name, str(log), threaded): number for number, (data, name, log) in enumerate(sent)}
        for future in as_completed(running):
            number = running[future]
            yield number, outcome(future, pieces[number], names[number], logs[number])


def outcome(future: Future, piece: tuple, name: str, log: Path) -> Any:
    """The value of a piece whose units are there, else an error that names it: that the engine says so is not enough."""
    from cnslib.core.workers import units_of

    try:
        value, end = future.result(), time.monotonic() + PATIENCE
        while missing := [unit.path for unit in units_of(piece) if not unit.done]:
            if time.monotonic() > end:
                raise RuntimeError(f"the worker was done, but {missing[0]} is not there, or not as it was written")
            time.sleep(min(1.0, PATIENCE / 10))
        return value
    except RuntimeError as error:
        return RuntimeError(f"{name}: {error}; see {log}")
    except Exception as error:  # the engine's own, such as a lost worker
        return RuntimeError(f"{name}: {type(error).__name__}: {error}; see {log}")


class Packer(cloudpickle.Pickler):
    """Pickles a piece; networks, and the objects whose ids are `wanted`, are left to `shared`, which numbers them by their ids."""

    def __init__(self, stream: io.BytesIO, wanted: set[int], shared: dict[int, tuple[int, object]]):
        super().__init__(stream)
        self.wanted, self.shared = wanted, shared

    def persistent_id(self, obj: object) -> int | None:
        """The number of what is shared."""
        from torch import nn

        if id(obj) in self.wanted or isinstance(obj, nn.Module):
            return self.shared.setdefault(id(obj), (len(self.shared), obj))[0]  # held, so that no other object gets its id
        return None


class Unpacker(pickle.Unpickler):
    """Reads what a `Packer` wrote."""

    def __init__(self, stream: io.BytesIO, shared: list):
        super().__init__(stream)
        self.shared = shared

    def persistent_load(self, number: int) -> object:
        """What is shared."""
        return self.shared[number]


def pack(function: Callable, pieces: list[tuple]) -> tuple[list[bytes], bytes]:
    """Every piece with its function as bytes, and the bytes of what pieces share, where an object that two hold is one object."""
    seen = Counter(id(value) for piece in pieces for value in {id(value): value for value in piece}.values())
    wanted = {id(value) for piece in pieces for value in piece if seen[id(value)] > 1 and not isinstance(value, PLAIN)} | {id(function)}
    shared: dict[int, tuple[int, object]] = {}
    streams = [io.BytesIO() for _ in pieces]
    for stream, piece in zip(streams, pieces, strict=True):
        Packer(stream, wanted, shared).dump((function, piece))
    return [stream.getvalue() for stream in streams], cloudpickle.dumps([obj for _, obj in shared.values()])


def loaded(file: str, sha256: str) -> list:
    """What some pieces share, read again where this worker has something else. ValueError unless it has the bytes that were told of."""
    if sha256 not in kept:
        kept.clear()  # before more is loaded: a card may hold one pipeline, and not two
        data = Path(file).read_bytes()
        if (found := hashlib.sha256(data).hexdigest()) != sha256:
            raise ValueError(f"{file} is not as it was written: its bytes have the sha256 {found[:12]}..., and not {sha256[:12]}...")
        kept[sha256] = cloudpickle.loads(data)
    return kept[sha256]


def run(data: bytes, file: str, sha256: str, name: str, log: str, threaded: bool) -> Any:
    """The value of a piece in this process, which Parsl calls in a worker; RuntimeError tells what it raised, the log the traceback."""
    from cnslib.core import workers

    follow(os.getppid())
    Path(log).parent.mkdir(parents=True, exist_ok=True)
    with open(log, "a", buffering=1) as stream, contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
        print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {name} on {socket.gethostname()}, process {os.getpid()}")
        try:
            function, piece = Unpacker(io.BytesIO(data), loaded(file, sha256)).load()
            value = workers.attempt(function, piece, threaded=threaded)
        except Exception as error:
            traceback.print_exc()
            raise RuntimeError(f"{type(error).__name__}: {error}") from None  # other types need not survive the way back
        print("done")
        return value


def pool(cluster: Cluster, folder: Path) -> Executor:
    """The workers of a cluster, started once and ended with this process. ModuleNotFoundError names the extra that is missing."""
    try:
        import parsl
        from parsl.concurrent import ParslPoolExecutor
    except ModuleNotFoundError:
        raise ModuleNotFoundError("base.workers: Parsl is not installed; accepted: `pip install cnslib[cluster]`, or no workers") from None
    key = units.digest(cluster, str(folder))
    if key not in started:
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # where Parsl looks for its scripts
        kernel = parsl.DataFlowKernel(configuration(cluster, folder))
        atexit.register(close)
        started[key] = ParslPoolExecutor(dfk=kernel), kernel
    return started[key][0]


def close() -> None:
    """Ends all workers that this process has started."""
    for key in list(started):
        started.pop(key)[1].cleanup()


def configuration(cluster: Cluster, folder: Path) -> Any:
    """Parsl's own configuration. ValueError names a provider, a launcher or an option that Parsl does not know."""
    import parsl
    from parsl import launchers, providers
    from parsl.jobs.error_handlers import windowed_error_handler

    for key, known in (("provider", providers), ("launcher", launchers)):
        name = getattr(cluster, key)
        demand(hasattr(known, name), f"cluster.{key}", name, ", ".join(sorted(known.__all__)))
    options = {key: value for key, value in cluster.options.items() if value != ""}
    try:
        launcher = getattr(launchers, cluster.launcher)()
        provider = getattr(providers, cluster.provider)(**options, launcher=launcher, worker_init=setup(cluster))
    except TypeError as error:
        raise ValueError(f"cluster.options: {options} is not accepted by {cluster.provider}: {error}") from None
    executor = parsl.HighThroughputExecutor(
        label="units",
        provider=provider,
        max_workers_per_node=cluster.workers,
        available_accelerators=cluster.workers if cluster.card_each else (),
        address=cluster.address or None,
        heartbeat_period=HEARTBEAT,
        heartbeat_threshold=4 * HEARTBEAT,
        interchange_launch_cmd=[sys.executable, "-m", "cnslib.core.clusters"],
        encrypted=True,
        block_error_handler=functools.partial(windowed_error_handler, threshold=cluster.retries + 1),  # the first may meet a bad node
    )
    waiting = {"strategy": "htex_auto_scale", "max_idletime": cluster.idle}
    return parsl.Config(executors=[executor], run_dir=str(folder / "parsl"), retries=cluster.retries, usage_tracking=0, **waiting)


def setup(cluster: Cluster) -> str:
    """Lines of the shell before workers start: this environment's programs, this process's arithmetic, a fair share of the cores."""
    passed = [f"export {name}={shlex.quote(os.environ[name])}" for name in PASSED if name in os.environ]
    cores = "$(env -u OMP_NUM_THREADS nproc)"  # which would answer with that number
    share = f"export LOKY_MAX_CPU_COUNT=$(( ({cores} + {cluster.workers - 1}) / {cluster.workers} ))"
    return "\n".join([f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH", *passed, share, cluster.setup])


@functools.cache
def follow(owner: int) -> None:
    """Ends this process soon after its parent `owner` has gone: a killed parent cannot tell, and a piece may take minutes."""

    def watch() -> None:
        while os.getppid() == owner:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    """Parsl's interchange, which ends soon after the process that started it: a killed driver leaves no nodes behind.

    It leaves the group of a notebook's kernel, which interrupts and ends its group before it ends: the nodes are released by this process.
    """
    import runpy

    os.setpgrp()
    follow(os.getppid())
    runpy.run_module("parsl.executors.high_throughput.interchange", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
