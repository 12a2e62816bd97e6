"""Runs notebooks headless: `python -m cnslib.runner [--params FILE] [--overlay FILE] [--together] STEP [STEP ...]`.

The runner is the only caller of papermill. It tells the notebook its two parameter files, executes it with the python3 kernel in the
repository root, and writes a normalised copy, so that two equal runs leave equal notebooks.
"""

import argparse
import ast
import os
import sys
from pathlib import Path

import nbformat
import papermill

from cnslib import parameters, paths, schedule, units

KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}
THREADS = "2"  # sums depend on how many threads share them: one number for everybody keeps the bits; OMP_NUM_THREADS overrides it


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


def run(step: str, params: str, overlay: str = "") -> Path:
    """Executes one step's notebook, which reads the two parameter files itself; returns the executed copy.

    Paths start at the repository root. A failing notebook is left in executed/ for reading, and its error is raised.
    """
    source, values = find(step), {"params": params, "overlay": overlay}
    sections = parameters.load(*(paths.resolve(name) for name in values.values() if name))
    if declared(nbformat.read(source, as_version=4), source.name).keys() != values.keys():
        raise ValueError(f"{source.name}: the parameters cell must hold {' and '.join(values)}, and nothing else")
    target = paths.Layout(sections["base"].out).executed / source.name
    try:
        papermill.execute_notebook(source, target, values, kernel_name="python3", cwd=paths.ROOT, progress_bar=False, record_timing=False)
    finally:
        if target.exists():
            nbformat.write(normalised(nbformat.read(target, as_version=4)), target)
    return target


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


def exported(notebook: nbformat.NotebookNode) -> str:
    """The code of a notebook without its parameters cell: what a heavy stage depends on instead of prose and outputs."""
    code = [c for c in notebook.cells if c.cell_type == "code" and "parameters" not in c.metadata.get("tags", [])]
    return "\n\n".join(f"# {cell.id}\n{cell.source}" for cell in code) + "\n"


def export() -> list[Path]:
    """Writes .nb/<notebook>.py for every notebook; a file that would not change is left alone, one without a notebook deleted."""
    written = []
    for source in steps():
        target = paths.EXPORTS / f"{source.stem}.py"
        data = exported(nbformat.read(source, as_version=4)).encode()
        if not target.exists() or target.read_bytes() != data:
            units.write_bytes(target, data)
            written.append(target)
    units.prune(paths.EXPORTS, {f"{source.stem}.py" for source in steps()}, "*.py")
    return written


def together(names: list[str], settings: list[str]) -> None:
    """Runs steps in processes of their own, each after those that dvc.yaml makes it wait for.

    Raises ValueError for a step that dvc.yaml lacks, RuntimeError with the output of a step that fails.
    """
    waits = schedule.predecessors(paths.ROOT)
    if missing := sorted(set(names) - waits.keys()):
        raise ValueError(f"--together: {', '.join(missing)} not in dvc.yaml; accepted: {', '.join(waits)}")
    chosen = {step: waits[step] for step in names}
    schedule.run(chosen, lambda step: schedule.finish(step, ["cnslib.runner", *settings, step], paths.ROOT))


def main(arguments: list[str]) -> int:
    """Command line: runs the named steps in the given order, or only exports the notebooks' code."""
    parser = argparse.ArgumentParser(prog="python -m cnslib.runner", description=__doc__.splitlines()[0])
    parser.add_argument("steps", nargs="*", metavar="STEP", help="a notebook's name without its number")
    parser.add_argument("--params", default="params.yaml", help="parameter file (default params.yaml)")
    parser.add_argument("--overlay", default="", help="file whose keys replace some of its values (smoke.yaml)")
    parser.add_argument("--together", action="store_true", help="run steps that do not wait for each other side by side")
    parser.add_argument("--export", action="store_true", help="write the code-only copies in .nb/")
    options = parser.parse_args(arguments)
    os.environ.setdefault("OMP_NUM_THREADS", THREADS)
    if options.export:
        export()
    try:
        if options.together:
            together(options.steps, ["--params", options.params, "--overlay", options.overlay])
            return 0
        for step in options.steps:
            print(f"{step}: running {paths.shown(find(step))}", flush=True)
            print(f"{step}: executed copy {paths.shown(run(step, options.params, options.overlay))}", flush=True)
    except (ValueError, FileNotFoundError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except RuntimeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except papermill.exceptions.PapermillExecutionError as error:
        print(f"error in {step}: {error.ename}: {error.evalue}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
