"""Runs notebooks headless: `cns run [--params FILE] [--overlay FILE] [--together] STEP [STEP ...]`.

The runner is the only caller of papermill. It tells the notebook its two parameter files, executes it with the python3 kernel in the
repository root, and writes a normalised copy, so that two equal runs leave equal notebooks.
"""

import argparse
import ast
import errno
import os
import sys
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import papermill

from cnslib.core import paths
from cnslib.core.settings import read
from cnslib.tools import kernels, schedule

PATIENCE = 600  # seconds for a kernel to start in: on a busy machine papermill's 60 were not enough, and hours of work ended there
OUTPUT_PATIENCE = 60  # seconds for the output of a cell that has ended: after nbclient's 4 a busy machine loses it, errors too
KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}


def find(step: str) -> Path:
    """The notebook NN_<step>.ipynb under notebooks/ or notebooks/world/; ValueError lists the accepted steps."""
    notebooks = {path.stem.split("_", 1)[1]: path for path in steps()}
    if step not in notebooks:
        raise ValueError(f"unknown step {step!r}; accepted: {', '.join(notebooks)}")
    return notebooks[step]


def steps() -> list[Path]:
    """Every numbered notebook, in order, the builders of base models first."""
    return [*sorted(paths.NOTEBOOKS.glob("world/*_*.ipynb")), *sorted(paths.NOTEBOOKS.glob("[0-9]*_*.ipynb"))]


def declared(notebook: nbformat.NotebookNode, name: str) -> dict[str, object]:
    """Names and literal values of the one parameters cell.

    Raises ValueError unless exactly one cell is tagged and it holds nothing but assignments of literals.
    """
    cells = [c for c in notebook.cells if "parameters" in c.metadata.get("tags", [])]
    if len(cells) != 1:
        raise ValueError(f"{name}: {len(cells)} cells are tagged `parameters`, exactly one is needed")
    try:
        return {node.targets[0].id: ast.literal_eval(node.value) for node in ast.parse(cells[0].source).body}
    except (AttributeError, ValueError):
        raise ValueError(f"{name}: the parameters cell may hold only assignments of literals") from None


def run(step: str, params: str, overlay: str = "", **how: Any) -> Path:
    """Executes one step's notebook, which reads the two parameter files itself; returns the executed copy.

    Paths start at the repository root. `how` goes to papermill, such as another manager of kernels. A failing notebook is left in
    executed/ for reading; RuntimeError names the step and the error.
    """
    source, values = find(step), {"params": params, "overlay": overlay}
    sections = read.load(*(paths.resolve(name) for name in values.values() if name))
    if declared(nbformat.read(source, as_version=4), source.name).keys() != values.keys():
        raise ValueError(f"{source.name}: the parameters cell must hold {' and '.join(values)}, and nothing else")
    target = paths.Layout(sections["base"].out).executed / source.name
    making = target.with_name(f".{os.getpid()}.{target.name}")  # the earlier copy stays until this one is whole
    fixed = {"kernel_name": "python3", "cwd": paths.ROOT, "progress_bar": False, "record_timing": False}
    waiting = {"start_timeout": PATIENCE, "iopub_timeout": OUTPUT_PATIENCE}
    how = {"kernel_manager_class": kernels.Patient} | waiting | how
    try:
        papermill.execute_notebook(source, making, values, **fixed, **how)
        keep(making, target)
    except papermill.exceptions.PapermillExecutionError as error:
        keep(making, target)
        raise RuntimeError(f"{step}: {error.ename}: {error.evalue}; see {paths.shown(target)}") from error
    except nbclient.exceptions.DeadKernelError as error:
        if making.exists():
            keep(making, target)
        raise RuntimeError(f"{step}: its kernel died, as one does that runs out of memory; see {paths.shown(target)}") from error
    finally:
        making.unlink(missing_ok=True)
    return target


def keep(making: Path, target: Path) -> None:
    """Puts a notebook that was executed, to its end or to an error, in the place of the earlier copy, normalised."""
    nbformat.write(normalised(nbformat.read(making, as_version=4)), making)
    os.replace(making, target)


def refused(error: OSError) -> str:
    """What the file system refused, in one line: a full disk and a missing permission by their names."""
    what = {errno.ENOSPC: "the disk is full", errno.EDQUOT: "the quota is used up", errno.EROFS: "the disk is read-only"}
    what |= dict.fromkeys((errno.EACCES, errno.EPERM), "no permission")
    said = what.get(error.errno or 0, error.strerror)
    return f"{error.filename or 'a file'}: {said}; make room or give access, then run the same command again"


def normalised(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A copy without what differs between two equal runs: times, paths, ids, progress on stderr."""
    for index, cell in enumerate(notebook.cells):
        tags = cell.metadata.get("tags", [])
        cell.metadata = nbformat.NotebookNode({"tags": tags} if tags else {})
        cell.id = f"cell-{index:02d}"
        if cell.cell_type == "code":
            cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]
    notebook.metadata = nbformat.NotebookNode({"kernelspec": KERNELSPEC, "language_info": {"name": "python"}})
    return notebook


def require_all(names: list[str], params: str, overlay: str = "") -> None:
    """Raises ValueError for the first of some steps that cannot run: before any of them does, not after hours of the others."""
    sections = read.load(*(paths.resolve(name) for name in (params, overlay) if name))
    for step in names:
        find(step)
        if step not in sections:
            raise ValueError(f"{params}: no section {step!r}; accepted: {', '.join(sections)}")


def together(names: list[str], params: str, overlay: str = "") -> None:
    """Runs steps side by side, each after those that dvc.yaml makes it wait for, on kernels of the `manager` for their device.

    Raises ValueError for a step that dvc.yaml lacks, RuntimeError for the first that fails.
    """
    waits = schedule.predecessors(paths.ROOT)
    if missing := sorted(set(names) - waits.keys()):
        raise ValueError(f"--together: {', '.join(missing)} not in dvc.yaml; accepted: {', '.join(waits)}")
    require_all(names, params, overlay)
    kernel = manager(read.load(*(paths.resolve(name) for name in (params, overlay) if name))["base"].device)
    warm(names)
    schedule.run({step: waits[step] for step in names}, lambda step: run(step, params, overlay, kernel_manager_class=kernel))


def manager(device: str) -> type[kernels.Patient]:
    """Who starts the kernels of steps side by side: forked ones on a CPU, else an interpreter for each, since CUDA cannot be forked."""
    return kernels.Manager if device == "cpu" else kernels.Patient


def warm(names: list[str]) -> None:
    """Makes ready for steps side by side: what their kernels import, and the folder that they share."""
    kernels.prepare(nbformat.read(find(name), as_version=4) for name in names)
    os.chdir(paths.ROOT)  # papermill goes there and back, and the folder belongs to all threads


def main(arguments: list[str]) -> int:
    """Command line: runs the named steps, in the given order or side by side; 1 if one fails, 2 for what is not accepted."""
    parser = argparse.ArgumentParser(prog="cns run", description=__doc__.splitlines()[0])
    parser.add_argument("steps", nargs="+", metavar="STEP", help="a notebook's name without its number")
    parser.add_argument("--params", default="params.yaml", help="parameter file (default params.yaml)")
    parser.add_argument("--overlay", default="", help="file whose keys replace some of its values (smoke.yaml)")
    parser.add_argument("--together", action="store_true", help="run steps that do not wait for each other side by side")
    options = parser.parse_args(arguments)
    try:
        if options.together:
            together(options.steps, options.params, options.overlay)
            return 0
        require_all(options.steps, options.params, options.overlay)
        for step in options.steps:
            print(f"{step}: running {paths.shown(find(step))}", flush=True)
            print(f"{step}: executed copy {paths.shown(run(step, options.params, options.overlay))}", flush=True)
    except (ValueError, FileNotFoundError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1 if isinstance(error, RuntimeError) else 2
    except OSError as error:
        print(f"error: {refused(error)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
