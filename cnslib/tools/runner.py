"""Runs notebooks headless: `cns run [--params FILE] [--overlay FILE] [--together] STEP [STEP ...]`.

Each notebook is told its two parameter files and runs in the repository root, in a process of its own; the executed copy is normalised, so
that two equal runs leave equal notebooks.
"""

import argparse
import ast
import errno
import graphlib
import os
import sys
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

import nbformat
from tqdm import tqdm  # of the terminal: `auto` takes a program that has loaded ipykernel for a notebook

from cnslib.core import paths
from cnslib.core.settings import read
from cnslib.tools import kernels

MOST = 4  # steps at once: each may take 2 GB
KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}
REFUSED = {errno.ENOSPC: "the disk is full", errno.EDQUOT: "the quota is used up", errno.EROFS: "the disk is read-only"}
REFUSED |= dict.fromkeys((errno.EACCES, errno.EPERM), "no permission")


def steps() -> list[Path]:
    """Every numbered notebook, in order, the builders of base models first."""
    return [*sorted(paths.NOTEBOOKS.glob("world/*_*.ipynb")), *sorted(paths.NOTEBOOKS.glob("[0-9]*_*.ipynb"))]


def find(step: str) -> Path:
    """The notebook NN_<step>.ipynb under notebooks/ or notebooks/world/; ValueError lists the accepted steps."""
    notebooks = {path.stem.split("_", 1)[1]: path for path in steps()}
    if step not in notebooks:
        raise ValueError(f"unknown step {step!r}; accepted: {', '.join(notebooks)}")
    return notebooks[step]


def declared(notebook: nbformat.NotebookNode, name: str) -> dict[str, object]:
    """Names and literal values of the one parameters cell; ValueError unless exactly one is tagged and it only assigns literals."""
    cells = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    if len(cells) != 1:
        raise ValueError(f"{name}: {len(cells)} cells are tagged `parameters`, exactly one is needed")
    try:
        return {node.targets[0].id: ast.literal_eval(node.value) for node in ast.parse(cells[0].source).body}
    except (AttributeError, ValueError):
        raise ValueError(f"{name}: the parameters cell may hold only assignments of literals") from None


def run(step: str, params: str, overlay: str = "") -> Path:
    """Executes one step's notebook on two parameter files, named from the repository root; returns the executed copy.

    RuntimeError names the step and the error of a notebook that fails, which is left in executed/ for reading.
    """
    source, values = find(step), {"params": params, "overlay": overlay}
    base = load(params, overlay)["base"]
    if declared(nbformat.read(source, as_version=4), source.name).keys() != values.keys():
        raise ValueError(f"{source.name}: the parameters cell must hold {' and '.join(values)}, and nothing else")
    target = paths.Layout(base.out).executed / source.name
    making = target.with_name(f".{os.getpid()}.{target.name}")  # the earlier copy stays until this one is whole
    context = kernels.FORKED if base.device == "cpu" else kernels.FRESH  # CUDA cannot be forked
    try:
        error = kernels.execute(source, making, values, folder=paths.ROOT, context=context)
        if making.exists():
            nbformat.write(normalised(nbformat.read(making, as_version=4)), making)
            os.replace(making, target)
    finally:
        making.unlink(missing_ok=True)
    if error:
        raise RuntimeError(f"{step}: {error}; see {paths.shown(target)}")
    return target


def load(params: str, overlay: str) -> dict:
    """The parameters by section, from two files named from the repository root."""
    return read.load(*(paths.resolve(name) for name in (params, overlay) if name))


def normalised(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A copy without what differs between two equal runs: times, paths, ids, progress on stderr."""
    for index, cell in enumerate(notebook.cells):
        tags = cell.metadata.get("tags", [])
        cell.metadata = nbformat.NotebookNode({"tags": tags} if tags else {})
        cell.id = f"cell-{index:02d}"
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    notebook.metadata = nbformat.NotebookNode({"kernelspec": KERNELSPEC, "language_info": {"name": "python"}})
    return notebook


def predecessors(root: Path) -> dict[str, set[str]]:
    """For each stage of root/dvc.yaml the stages that make one of its dependencies, as DVC sees them."""
    from dvc.repo import Repo  # takes a second, which a single step need not wait for

    with Repo(root) as repo:
        graph = repo.index.graph
        made = {stage: stage.name for stage in repo.index.stages if hasattr(stage, "name")}  # a .dvc file is no stage to run
        return {name: {made[other] for other in graph.successors(stage) if other in made} for stage, name in made.items()}


def schedule(waits: dict[str, set[str]], launch: Callable[[str], object]) -> None:
    """Launches every stage after those it waits for, one more at once than there are cores; first the one that most others wait for.

    The first error ends the work, after the stages that run beside it, and is raised. Stages that no key names are taken as done.
    """
    waits = {name: others & waits.keys() for name, others in waits.items()}
    before: dict[str, set[str]] = {}
    for name in graphlib.TopologicalSorter(waits).static_order():
        before[name] = waits[name].union(*(before[other] for other in waits[name]))
    order = sorted(waits, key=lambda name: -sum(name in others for others in before.values()))
    sorter, most = graphlib.TopologicalSorter(waits), min((os.cpu_count() or 1) + 1, MOST)
    sorter.prepare()
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


def warm(names: list[str]) -> None:
    """Makes ready for steps side by side: what their processes import."""
    kernels.prepare(nbformat.read(find(name), as_version=4) for name in names)


def run_all(names: list[str], params: str, overlay: str, *, together: bool) -> None:
    """Runs steps in their order or side by side; ValueError for one that cannot run, before any does."""
    sections, waits = load(params, overlay), predecessors(paths.ROOT) if together else {}
    for step in names:
        find(step)
        if step not in sections:
            raise ValueError(f"{params}: no section {step!r}; accepted: {', '.join(sections)}")
        if together and step not in waits:
            raise ValueError(f"--together: {step} not in dvc.yaml; accepted: {', '.join(waits)}")
    if together:
        warm(names)
        schedule({step: waits[step] for step in names}, lambda step: run(step, params, overlay))
        return
    for step in names:
        print(f"{step}: running {paths.shown(find(step))}", flush=True)
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
    except (ValueError, FileNotFoundError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1 if isinstance(error, RuntimeError) else 2
    except OSError as error:
        said = f"{REFUSED.get(error.errno or 0, error.strerror)}; make room or give access, then run the same command again"
        print(f"error: {error.filename or 'a file'}: {said}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
