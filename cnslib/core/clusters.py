"""Units over the workers of a cluster, by Parsl (`pip install cnslib[cluster]`): the engine hands files out, and files are believed.

Workers start once in a process and stay until it ends or they have been idle; every further call finds them warm.
"""

import atexit
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from functools import partial
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from cnslib.core import pins, units
from cnslib.core.names import demand
from cnslib.core.settings.cluster import Cluster

engines: dict[str, Executor] = {}  # the workers that this process has started, and Parsl's kernels behind them
kernels: dict[str, Any] = {}
HEARTBEAT = 15  # seconds between signs of life of nodes; four that are missing and the node counts as lost
# Passed on to workers: what decides the arithmetic, whether hubs are asked, and where the library lies.
PASSED = (
    *pins.LEVELS["avx2"],
    *pins.threads(1),
    "HF_HUB_OFFLINE",
    "TRANSFORMERS_OFFLINE",
    "HF_HOME",
    "PYTHONPATH",
    "CUBLAS_WORKSPACE_CONFIG",
)


def spread(
    function: Callable,
    pieces: list[tuple],
    *,
    cluster: Cluster,
    folder: Path,
    device: str,
    desc: str | None,
    threaded: bool,
    executor: Executor | None = None,
) -> Iterator[tuple[int, str, Any]]:
    """Number, name, and value with cost or else error of every piece, as they end; by default on the workers of the cluster."""
    from cnslib.core import tasks  # needs torch, which the interchange of `main` does not

    folder.mkdir(parents=True, exist_ok=True)
    for leftover in folder.glob("tasks-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    place = Path(tempfile.mkdtemp(prefix="tasks-", dir=folder))
    try:
        made = tasks.write(function, pieces, place, folder / "logs", device=device, threaded=threaded)
        engine = executor or pool(cluster, folder)
        yield from finished(made, engine, retries=cluster.retries, desc=desc)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def finished(made: list, engine: Executor, *, retries: int, desc: str | None) -> Iterator[tuple[int, str, Any]]:
    """Number, name, and value with cost or else error of every task; one that fails is tried again, whatever the cause, then told."""
    from cnslib.core import tasks

    running: dict[Future, tuple[int, int]] = {engine.submit(tasks.run, *task.call): (number, 0) for number, task in enumerate(made)}
    failed = again = 0
    with tqdm(total=len(made), desc=desc, unit="unit", disable=None if desc else True) as bar:
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                number, tried = running.pop(future)
                found = judged(made[number], future)
                if isinstance(found, Exception) and tried < retries:
                    running[engine.submit(tasks.run, *made[number].call)] = (number, tried + 1)
                    again += 1
                else:
                    failed += isinstance(found, Exception)
                    bar.update()
                    yield number, made[number].name, found
                bar.set_postfix({"failed": failed, "tried again": again})


def judged(task: Any, future: Future) -> Any:
    """What a task came to, by its files: value and cost, or an error that names the task."""
    from cnslib.core import tasks

    try:
        if error := future.exception():
            raise error
        return tasks.outcome(task, future.result())
    except RuntimeError as error:
        return RuntimeError(f"{task.name}: {error}; see {task.log}")
    except Exception as error:  # the engine's own, such as a lost worker
        return RuntimeError(f"{task.name}: {type(error).__name__}: {error}; see {task.log}")


def pool(cluster: Cluster, folder: Path) -> Executor:
    """The workers of a cluster, started once and ended with this process. ModuleNotFoundError names the extra that is missing."""
    try:
        import parsl
        from parsl.concurrent import ParslPoolExecutor
    except ModuleNotFoundError:
        raise ModuleNotFoundError("base.workers: Parsl is not installed; accepted: `pip install cnslib[cluster]`, or no workers") from None
    key = units.digest(cluster, str(folder))
    if key not in engines:
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # where Parsl looks for its scripts
        kernels[key] = kernel = parsl.DataFlowKernel(configuration(cluster, folder))
        atexit.register(close)
        engines[key] = ParslPoolExecutor(dfk=kernel)
    return engines[key]


def close() -> None:
    """Ends all workers that this process has started."""
    for key in list(kernels):
        del engines[key]
        kernels.pop(key).cleanup()


def configuration(cluster: Cluster, folder: Path) -> Any:
    """Parsl's own configuration. ValueError names a provider, a launcher or an option that Parsl does not know."""
    import parsl
    from parsl import launchers, providers

    for key, known in (("provider", providers), ("launcher", launchers)):
        name = getattr(cluster, key)
        demand(hasattr(known, name), f"cluster.{key}", name, ", ".join(sorted(known.__all__)))
    given = {key: value for key, value in cluster.options.items() if value != ""}
    try:
        launcher = getattr(launchers, cluster.launcher)()
        provider = getattr(providers, cluster.provider)(**given, launcher=launcher, worker_init=setup(cluster))
    except TypeError as error:
        raise ValueError(f"cluster.options: {given} is not accepted by {cluster.provider}: {error}") from None
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
        block_error_handler=partial(give_up, retries=cluster.retries),
    )
    fixed: dict[str, Any] = {
        "retries": 0,
        "usage_tracking": 0,
        "strategy": "htex_auto_scale",
        "max_idletime": cluster.idle,
    }
    return parsl.Config(executors=[executor], run_dir=str(folder / "parsl"), **fixed)


def give_up(executor: Any, status: dict[str, Any], *, retries: int) -> None:
    """Parsl's own rule, which ends all work once every block has failed, but only after `retries` more: the first may meet a bad node."""
    from parsl.jobs.error_handlers import simple_error_handler

    if len(status) > retries:
        simple_error_handler(executor, status)


def setup(cluster: Cluster) -> str:
    """Lines of the shell before workers start: this environment's programs, this process's arithmetic, a fair share of the cores."""
    passed = [f"export {name}={shlex.quote(os.environ[name])}" for name in PASSED if name in os.environ]
    cores = "$(env -u OMP_NUM_THREADS nproc)"  # which would answer with that number
    share = f"export LOKY_MAX_CPU_COUNT=$(( ({cores} + {cluster.workers - 1}) / {cluster.workers} ))"
    return "\n".join([f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH", *passed, share, cluster.setup])


def main() -> None:
    """Parsl's interchange, which ends soon after the process that started it: a killed driver leaves no nodes behind.

    It leaves the group of a notebook's kernel, which interrupts and ends its group before it ends: the nodes are released by this process.
    """
    import runpy

    from cnslib.core.processes import follow

    os.setpgrp()
    follow(os.getppid())
    runpy.run_module("parsl.executors.high_throughput.interchange", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
