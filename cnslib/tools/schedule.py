"""Stages of dvc.yaml side by side: each starts as soon as the stages that it depends on are done."""

import graphlib
import os
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

from tqdm.auto import tqdm

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
    then, and at most four.

    The first error ends the work, after the stages that run beside it, and is raised. Stages that no key names are taken as done.
    """
    sorter = graphlib.TopologicalSorter({name: others & waits.keys() for name, others in waits.items()})
    sorter.prepare()
    running: dict[Future, str] = {}
    with ThreadPoolExecutor(min((os.cpu_count() or 1) + 1, MOST)) as pool, tqdm(total=len(waits), desc="stages", disable=None) as bar:
        while sorter.is_active():
            running |= {pool.submit(launch, name): name for name in sorter.get_ready()}
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                settle(future, pool)
                tqdm.write(f"{running[future]}: done")
                sorter.done(running.pop(future))
                bar.update()


def settle(future: Future, pool: ThreadPoolExecutor) -> None:
    """Raises a stage's error, after taking back the stages that have not begun."""
    if error := future.exception():
        pool.shutdown(wait=False, cancel_futures=True)
        raise error
