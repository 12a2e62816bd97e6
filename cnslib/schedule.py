"""DVC's stages side by side: each starts as soon as the stages that it depends on are done."""

import graphlib
import os
import subprocess
import sys
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path, PurePosixPath

from ruamel.yaml import YAML
from tqdm.auto import tqdm

MOST = 4  # stages at once: each may take 2 GB


def predecessors(stages: dict[str, dict]) -> dict[str, set[str]]:
    """For each stage of a dvc.yaml the stages that make one of its dependencies, or the folder that holds it."""
    made = {path: name for name, stage in stages.items() for path in outs(stage)}
    return {name: {made[path] for dep in stage.get("deps", []) for path in within(dep) if path in made} for name, stage in stages.items()}


def outs(stage: dict) -> list[str]:
    """The paths that a stage makes; an entry is a path or a mapping from it to its settings."""
    return [entry if isinstance(entry, str) else next(iter(entry)) for entry in [*stage.get("outs", []), *stage.get("metrics", [])]]


def within(path: str) -> list[str]:
    """A path and the folders that hold it."""
    return [path, *(str(parent) for parent in PurePosixPath(path).parents)]


def reproduce(root: Path, name: str) -> str:
    """Runs one stage whether or not anything changed, under DVC's locks; returns what it printed.

    Raises RuntimeError with that text if the stage fails.
    """
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # DVC's stages call `python`
    command = [sys.executable, "-m", "dvc", "--wait-for-lock", "repro", "--force", "--single-item", name]
    done = subprocess.run(command, cwd=root, env=os.environ | {"PATH": path}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise RuntimeError(f"stage {name} failed:\n{done.stdout}")
    return done.stdout


def run(root: Path) -> None:
    """Runs every stage of root/dvc.yaml, as many at once as there are cores, at most four.

    The first stage that fails ends the work, after those that run beside it: RuntimeError holds what it printed.
    """
    stages = YAML(typ="safe", pure=True).load((root / "dvc.yaml").read_text())["stages"]
    sorter = graphlib.TopologicalSorter(predecessors(stages))
    sorter.prepare()
    running: dict = {}
    with ThreadPoolExecutor(min(os.cpu_count() or 1, MOST)) as pool, tqdm(total=len(stages), desc="stages", disable=None) as bar:
        while sorter.is_active():
            running |= {pool.submit(reproduce, root, name): name for name in sorter.get_ready()}
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                settle(future, pool)
                tqdm.write(f"{running[future]}: done")
                sorter.done(running.pop(future))
                bar.update()


def settle(future, pool: ThreadPoolExecutor) -> None:
    """Raises a stage's error, after taking back the stages that have not begun."""
    if future.exception():
        pool.shutdown(wait=False, cancel_futures=True)
        raise future.exception()
