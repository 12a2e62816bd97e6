"""Runs notebooks headless: `cns run [--params FILE] [--overlay FILE] [--together] STEP [STEP ...]`.

Each notebook is told its two parameter files and runs in the repository root, in a process of its own.
"""

import argparse
import graphlib
import os
import sys
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

from tqdm import tqdm  # of the terminal: `auto` takes a program that has loaded ipykernel for a notebook

from cnslib.core import paths
from cnslib.core.settings import read
from cnslib.tools import kernels

MOST = 4  # steps at once: each may take 2 GB


def notebooks() -> dict[str, Path]:
    """Every numbered notebook NN_<step>.ipynb by its step, in order, the builders of base models first."""
    files = [*sorted(paths.NOTEBOOKS.glob("world/*_*.ipynb")), *sorted(paths.NOTEBOOKS.glob("[0-9]*_*.ipynb"))]
    return {path.stem.split("_", 1)[1]: path for path in files}


def run(step: str, params: str, overlay: str = "") -> Path:
    """Executes one step's notebook on two parameter files; returns the executed copy. RuntimeError names step and error of a failure."""
    source, base = notebooks()[step], read.load(params, overlay)["base"]
    target = paths.made(paths.Layout(base.out).root / "executed") / source.name
    making = target.with_name(f".{os.getpid()}.{target.name}")  # the earlier copy stays until this one is whole
    for left in target.parent.glob(f".*.{target.name}"):  # of a run that was killed
        if not Path("/proc", left.name.split(".")[1]).exists():
            left.unlink(missing_ok=True)
    context = kernels.FORKED if base.device == "cpu" else kernels.FRESH  # CUDA cannot be forked
    try:
        error = kernels.execute(source, making, {"params": params, "overlay": overlay}, folder=paths.ROOT, context=context)
        if making.exists():
            kernels.normalise(making)
            os.replace(making, target)
    finally:
        making.unlink(missing_ok=True)
    if error:
        raise RuntimeError(f"{step}: {error}; see {paths.shown(target)}")
    return target


def predecessors(root: Path) -> dict[str, set[str]]:
    """For each stage of root/dvc.yaml the stages that make one of its dependencies, as DVC sees them."""
    from dvc.repo import Repo  # takes a second, which a single step need not wait for

    with Repo(root) as repo:
        graph = repo.index.graph
        made = {stage: stage.name for stage in repo.index.stages if hasattr(stage, "name")}  # a .dvc file is no stage to run
        return {name: {made[other] for other in graph.successors(stage) if other in made} for stage, name in made.items()}


def schedule(waits: dict[str, set[str]], launch: Callable[[str], object]) -> None:
    """Launches every stage after those it waits for, the earlier named first, one more at once than there are cores.

    The first error ends the work, after the stages that run beside it. Stages that no key names are taken as done.
    """
    sorter = graphlib.TopologicalSorter({name: others & waits.keys() for name, others in waits.items()})
    sorter.prepare()
    order, most = list(waits), min((os.cpu_count() or 1) + 1, MOST)
    ready: list[str] = []
    running: dict[Future, str] = {}
    with ThreadPoolExecutor(most) as pool, tqdm(total=len(waits), desc="stages", disable=None) as bar:
        while sorter.is_active():
            ready = sorted([*ready, *sorter.get_ready()], key=order.index)
            starting, ready = ready[: most - len(running)], ready[most - len(running) :]
            running |= {pool.submit(launch, name): name for name in starting}
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                future.result()
                tqdm.write(f"{running[future]}: done")
                sorter.done(running.pop(future))
                bar.update()


def run_all(names: list[str], params: str, overlay: str, *, together: bool) -> None:
    """Runs steps in their order or side by side; ValueError for one that cannot run, before any does."""
    sections, waits = read.load(params, overlay), predecessors(paths.ROOT) if together else {step: set() for step in names}
    for step in names:
        for what, accepted in (("step", notebooks()), ("section", sections), ("stage of dvc.yaml", waits)):
            if step not in accepted:
                raise ValueError(f"no {what} {step!r}; accepted: {', '.join(accepted)}")
    if len(names) > 1:
        kernels.warm()
    if together:
        schedule({step: waits[step] for step in names}, lambda step: run(step, params, overlay))
        return
    for step in names:
        print(f"{step}: running {paths.shown(notebooks()[step])}", flush=True)
        print(f"{step}: executed copy {paths.shown(run(step, params, overlay))}", flush=True)


def main(arguments: list[str]) -> int:
    """Command line: runs the named steps, in the given order or side by side; 1 if one fails, 2 for what is not accepted."""
    parser = argparse.ArgumentParser(prog="cns run", description=__doc__.splitlines()[0])
    parser.add_argument("steps", nargs="+", metavar="STEP", help="a notebook's name without its number")
    parser.add_argument("--params", default="params.yaml", help="parameter file (default params.yaml)")
    parser.add_argument("--overlay", default="", help="file whose keys replace some of its values (smoke.yaml)")
    parser.add_argument("--together", action="store_true", help="run steps that do not wait for each other side by side")
    options = parser.parse_args(arguments)
    try:
        run_all(options.steps, options.params, options.overlay, together=options.together)
    except (ValueError, FileNotFoundError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (RuntimeError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0
