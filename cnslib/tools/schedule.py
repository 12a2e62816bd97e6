"""Stages of dvc.yaml side by side: each starts as soon as the stages that it depends on are done."""

import graphlib
import os
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

from tqdm import tqdm  # of the terminal: `auto` takes a program that has loaded ipykernel for a notebook

MOST = 4  # stages at once: each may take 2 GB


def predecessors(root: Path) -> dict[str, set[str]]:
    """For each stage of root/dvc.yaml the stages that make one of its dependencies, as DVC sees them."""
    from dvc.repo import Repo  # takes a second, which a single step need not wait for

    with Repo(root) as repo:
        graph = repo.index.graph
        made = {stage: stage.name for stage in repo.index.stages if hasattr(stage, "name")}  # a .dvc file is no stage to run
        return {name: {made[other] for other in graph.successors(stage) if other in made} for stage, name in made.items()}


def run(waits: dict[str, set[str]], launch: Callable[[str], object]) -> None:
    """Launches every stage after those it waits for: one more at once than there are cores, since each waits for the disk now and
    then, and at most four. Of those that could start the one goes first that most others wait for, directly or not.

    The first error ends the work, after the stages that run beside it, and is raised. Stages that no key names are taken as done.
    """
    waits = {name: others & waits.keys() for name, others in waits.items()}
    sorter, most, awaited = graphlib.TopologicalSorter(waits), min((os.cpu_count() or 1) + 1, MOST), dependents(waits)
    sorter.prepare()
    ready: list[str] = []
    running: dict[Future, str] = {}
    with ThreadPoolExecutor(most) as pool, tqdm(total=len(waits), desc="stages", disable=None) as bar:
        while sorter.is_active():
            ready = sorted([*ready, *sorter.get_ready()], key=lambda name: (-awaited[name], list(waits).index(name)))
            starting, ready = ready[: most - len(running)], ready[most - len(running) :]
            running |= {pool.submit(launch, name): name for name in starting}
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                settle(future, pool)
                tqdm.write(f"{running[future]}: done")
                sorter.done(running.pop(future))
                bar.update()


def dependents(waits: dict[str, set[str]]) -> dict[str, int]:
    """How many stages depend on each one, directly or by way of others."""
    before: dict[str, set[str]] = {}
    for name in graphlib.TopologicalSorter(waits).static_order():
        before[name] = waits[name].union(*(before[other] for other in waits[name]))
    return {name: sum(name in others for others in before.values()) for name in waits}


def settle(future: Future, pool: ThreadPoolExecutor) -> None:
    """Raises a stage's error, after taking back the stages that have not begun."""
    if error := future.exception():
        pool.shutdown(wait=False, cancel_futures=True)
        raise error
