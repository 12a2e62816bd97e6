"""Stages of dvc.yaml side by side: each starts as soon as the stages that it depends on are done."""

import graphlib
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path, PurePosixPath

from ruamel.yaml import YAML
from tqdm.auto import tqdm

MOST = 4  # stages at once: each may take 2 GB
# The threads of stages that share the cores must not wait for each other by spinning: it made their small tensors eight times slower.
PATIENCE = {"OMP_WAIT_POLICY": "passive"}


def predecessors(root: Path) -> dict[str, set[str]]:
    """For each stage of root/dvc.yaml the stages that make one of its dependencies, or the folder that holds it."""
    stages = YAML(typ="safe", pure=True).load((root / "dvc.yaml").read_text())["stages"]
    made = {path: name for name, stage in stages.items() for path in outs(stage)}
    return {name: {made[path] for dep in stage.get("deps", []) for path in within(dep) if path in made} for name, stage in stages.items()}


def outs(stage: dict) -> list[str]:
    """The paths that a stage makes; an entry is a path or a mapping from it to its settings."""
    return [entry if isinstance(entry, str) else next(iter(entry)) for entry in [*stage.get("outs", []), *stage.get("metrics", [])]]


def within(path: str) -> list[str]:
    """A path and the folders that hold it."""
    return [path, *(str(parent) for parent in PurePosixPath(path).parents)]


def run(waits: dict[str, set[str]], launch: Callable[[str], None]) -> None:
    """Launches every stage after those it waits for: one more at once than there are cores, since each waits for DVC and the disk now
    and then, and at most four.

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


def finish(name: str, command: list[str], root: Path) -> None:
    """Runs a stage's command in a process of its own. RuntimeError holds what it printed if it fails."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # DVC's stages call `python`
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=root,
        env=PATIENCE | os.environ | {"PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"{name} failed:\n{done.stdout}")
