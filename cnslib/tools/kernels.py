"""Runs a notebook in a process of its own, which ends with it. On a CPU it is forked from one that has imported what notebooks import.

That one does nothing but import, so it has no threads, and what is forked from it need not wait for torch again: 5 s a notebook.
"""

import atexit
import gc
import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import matplotlib
import nbformat
from joblib.externals.loky import get_reusable_executor
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook

FORKED, FRESH = (multiprocessing.get_context(name) for name in ("forkserver", "spawn"))
PRELOAD = [__name__, "ipykernel.inprocess.ipkernel"]
HEAVY = ["cnslib.method.evaluation", "cnslib.method.generation", "cnslib.method.sliders", "cnslib.stats.accuracy", "cnslib.plots.curves"]
KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}
SHOWN = ("stream", "display_data", "execute_result", "error")  # messages of a kernel that are outputs
FORKED.set_forkserver_preload(PRELOAD)


def warm() -> None:
    """Starts the process to fork from, which goes on to import what many notebooks import. One that runs already stays."""
    FORKED.set_forkserver_preload([*PRELOAD, *HEAVY])
    forkserver.ensure_running()


def execute(source: Path, target: Path, values: dict[str, str], *, folder: Path, context: Any = FORKED) -> str:
    """Runs a notebook and writes its executed copy, to the end or to an error, which is returned ("" for none)."""
    try:
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            return pool.submit(inside, source, target.resolve(), values, folder).result()
    except BrokenProcessPool:
        return "its process died, as one does that runs out of memory"


def inside(source: Path, target: Path, values: dict[str, str], folder: Path) -> str:
    """What `execute` does, in this process: papermill's parameters, and IPython's kernel without sockets."""
    gc.freeze()  # what was imported stays: a search for garbage need not look through it, which takes half a second
    threading.Thread(target=follow, daemon=True).start()
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # the kernel's debugger would warn, and is not used
    matplotlib.rcParams["backend"] = "module://matplotlib_inline.backend_inline"  # as a kernel has it
    notebook = load_notebook_node(str(source))
    notebook = normalised(parameterize_notebook(notebook, values) if values else notebook)
    os.chdir(folder)
    try:
        return run_cells(notebook, target)
    finally:
        get_reusable_executor(reuse=True).shutdown(kill_workers=True)  # or the exit waits five minutes for workers that have nothing to do
        atexit._run_exitfuncs()  # which a process of multiprocessing leaves out; nodes of a cluster are released there


def follow() -> None:
    """Ends this process with the one that started it: the one that it was forked from stays as long as its children."""
    multiprocessing.parent_process().join()  # type: ignore[union-attr]  # this process has one
    os._exit(1)


def normalised(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A notebook without what differs between two equal runs: ids, and metadata other than tags."""
    for index, cell in enumerate(notebook.cells):
        cell.id, tags = f"cell-{index:02d}", cell.metadata.get("tags")
        cell.metadata = nbformat.from_dict({"tags": tags} if tags else {})
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNELSPEC, "language_info": {"name": "python"}})
    return notebook


def run_cells(notebook: nbformat.NotebookNode, target: Path) -> str:
    """Runs one cell after the other up to the first error, which is returned; the copy is written after each."""
    from ipykernel.inprocess.manager import InProcessKernelManager

    manager = InProcessKernelManager()
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    nbformat.write(notebook, target)
    for number, cell in enumerate((cell for cell in notebook.cells if cell.cell_type == "code"), 1):
        client.execute(cell.source, allow_stdin=False)
        cell.execution_count, cell.outputs = number, outputs(client.iopub_channel.get_msgs())
        nbformat.write(notebook, target)
        for error in (output for output in cell.outputs if output.output_type == "error"):
            return f"{error.ename}: {error.evalue}"
    return ""


def outputs(messages: list[dict]) -> list[nbformat.NotebookNode]:
    """The outputs of a cell, neighbouring parts of its printed text in one; progress on stderr is left out."""
    found: list[nbformat.NotebookNode] = []
    for output in (nbformat.v4.output_from_msg(message) for message in messages if message["msg_type"] in SHOWN):
        if found and output.output_type == "stream" == found[-1].output_type and output.name == found[-1].name:
            found[-1].text += output.text
        elif output.get("name") != "stderr":
            found.append(output)
    return found
