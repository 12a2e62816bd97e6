"""Units over the workers of a cluster, by Parsl (`pip install cnslib[cluster]`): the engine hands jobs out, and files are believed.

Workers stay until the process ends or they have been idle. What jobs share (a pipeline, a judge) is a file, which a worker loads once.
Opening it runs what it holds: so its sha256 is told over Parsl's encrypted connection, and nothing is opened but those very bytes.
"""

import atexit
import contextlib
import functools
import hashlib
import os
import shlex
import shutil
import socket
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, as_completed
from pathlib import Path
from typing import Any

import cloudpickle

from cnslib.core import pins, units
from cnslib.core.names import demand, identifier
from cnslib.core.settings.sections import Cluster

chosen: tuple[Cluster, Path] | None = None  # the workers of this process, and the folder for their logs
started: dict[str, tuple[Executor, Any]] = {}  # by cluster and folder the workers that run, and Parsl's kernel behind them
kept: dict[str, tuple[Callable, dict]] = {}  # what this worker has loaded of shared objects, by the file's sha256
HEARTBEAT = 15  # seconds between signs of life of nodes; four that are missing and the node counts as lost
PATIENCE = 60  # seconds until a file that another machine wrote must be seen: shared file systems remember that it was not there
# Passed on to workers: what decides the arithmetic, whether hubs are asked, and where the library lies.
PASSED = (*pins.PINS, "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HOME", "PYTHONPATH", "CUBLAS_WORKSPACE_CONFIG")


def use(cluster: Cluster | None = None, folder: Path | None = None) -> None:
    """Sets the workers that make the units of this process, and where their logs lie; without arguments this machine's own cores."""
    global chosen
    chosen = (cluster, folder) if cluster and folder else None


def units_of(job: tuple) -> list[units.Unit]:
    """The units that a job makes."""
    values = [value for part in job for value in (part if isinstance(part, list | tuple) else [part])]
    return [value for value in values if isinstance(value, units.Unit)]


def name_of(job: tuple, number: int) -> str:
    """What a job is called: its units by folder and name, else the words and numbers in it."""
    made = [f"{unit.path.parent.name}/{unit.path.stem}" for unit in units_of(job)]
    return ", ".join(made) or " ".join([str(number), *(str(part) for part in job if isinstance(part, str | int))])


def spread(function: Callable, jobs: list[tuple], cluster: Cluster, folder: Path, *, threaded: bool) -> Iterator[tuple[int, Any]]:
    """Number, and value or error, of every job, as they end; one that fails is tried again, whatever the cause, then reported."""
    folder.mkdir(parents=True, exist_ok=True)
    for leftover in folder.glob("shared-*"):  # of a driver that was killed
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="shared-", dir=folder) as place:
        packed, shared = pack(function, jobs)
        file = Path(place) / "objects"
        file.write_bytes(shared)
        shared_file = str(file), hashlib.sha256(shared).hexdigest()
        running: dict[Future, tuple] = {}
        for number, (job, data) in enumerate(zip(jobs, packed, strict=True)):
            name = name_of(job, number)
            log = folder / "logs" / f"{identifier(name).replace('/', '-')[:100]}.log"
            running[pool(cluster, folder).submit(run, data, *shared_file, name, str(log), threaded)] = number, job, name, log
        for future in as_completed(running):
            number, *sent = running[future]
            yield number, outcome(future, *sent)


def outcome(future: Future, job: tuple, name: str, log: Path) -> Any:
    """The value of a job whose units are there, else an error that names it: that the engine says so is not enough."""
    try:
        value, end = future.result(), time.monotonic() + PATIENCE
        while missing := [unit.path for unit in units_of(job) if not unit.done]:
            if time.monotonic() > end:
                raise RuntimeError(f"the worker was done, but {missing[0]} is not there, or not as it was written")
            time.sleep(min(1.0, PATIENCE / 10))
        return value
    except Exception as error:  # the engine has its own, such as a lost worker
        kind = "" if isinstance(error, RuntimeError) else f"{type(error).__name__}: "
        return RuntimeError(f"{name}: {kind}{error}; see {log}")


def pack(function: Callable, jobs: list[tuple]) -> tuple[list[bytes], bytes]:
    """What differs from job to job, by place, and the bytes of the function with what all of them share."""
    first = dict(enumerate(jobs[0]))
    shared = {place: value for place, value in first.items() if all(job[place] is value for job in jobs)}
    varying = [{place: value for place, value in enumerate(job) if place not in shared} for job in jobs]
    return [cloudpickle.dumps(part) for part in varying], cloudpickle.dumps((function, shared))


def loaded(file: str, sha256: str) -> tuple[Callable, dict]:
    """A function and what its jobs share, read where this worker has something else. ValueError unless its bytes have that sha256."""
    if sha256 not in kept:
        kept.clear()  # before more is loaded: a card may hold one pipeline, and not two
        data = Path(file).read_bytes()
        if (digest := hashlib.sha256(data).hexdigest()) != sha256:
            raise ValueError(f"{file} is not as it was written: its bytes have the sha256 {digest[:12]}..., and not {sha256[:12]}...")
        kept[sha256] = cloudpickle.loads(data)
    return kept[sha256]


def run(data: bytes, file: str, sha256: str, name: str, log: str, threaded: bool) -> Any:
    """The value of a job in this process, which Parsl calls in a worker; RuntimeError tells what it raised, the log the traceback."""
    from cnslib.core import workers  # needs torch, which the interchange of `main` does not

    follow(os.getppid())
    Path(log).parent.mkdir(parents=True, exist_ok=True)
    with open(log, "a", buffering=1) as stream, contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
        print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {name} on {socket.gethostname()}, process {os.getpid()}")
        try:
            function, shared = loaded(file, sha256)
            parts = shared | cloudpickle.loads(data)
            value = workers.attempt(function, tuple(parts[place] for place in sorted(parts)), threaded=threaded)
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

    demand(hasattr(providers, cluster.provider), "cluster.provider", cluster.provider, ", ".join(sorted(providers.__all__)))
    demand(hasattr(launchers, cluster.launcher), "cluster.launcher", cluster.launcher, ", ".join(sorted(launchers.__all__)))
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
    """Ends this process soon after its parent `owner` has gone: a killed parent cannot tell, and a job may take minutes."""

    def watch() -> None:
        while os.getppid() == owner:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    """Parsl's interchange, which ends soon after the process that started it, and not with its group: it still releases the nodes."""
    import runpy

    os.setpgrp()
    follow(os.getppid())
    runpy.run_module("parsl.executors.high_throughput.interchange", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
