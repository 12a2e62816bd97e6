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
import papermill
from joblib.externals.loky import get_reusable_executor

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
    """What `execute` does, in this process, by papermill."""
    gc.freeze()  # what was imported stays: a search for garbage need not look through it, which takes half a second
    threading.Thread(target=follow, daemon=True).start()
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # the kernel's debugger would warn, and is not used
    matplotlib.rcParams["backend"] = "module://matplotlib_inline.backend_inline"  # as a kernel has it
    papermill.engines.papermill_engines.register("in process", InProcess)
    fixed = {"engine_name": "in process", "kernel_name": "python3", "progress_bar": False, "record_timing": False}
    try:
        papermill.execute_notebook(source, target, values, cwd=folder, **fixed)
        return ""
    except papermill.exceptions.PapermillExecutionError as error:
        return f"{error.ename}: {error.evalue}"
    finally:
        get_reusable_executor(reuse=True).shutdown(kill_workers=True)  # or the exit waits five minutes for workers that have nothing to do
        atexit._run_exitfuncs()  # which a process of multiprocessing leaves out; nodes of a cluster are released there


def follow() -> None:
    """Ends this process with the one that started it: the one that it was forked from stays as long as its children."""
    multiprocessing.parent_process().join()  # type: ignore[union-attr]  # this process has one
    os._exit(1)


class InProcess(papermill.engines.Engine):
    """Runs the cells on IPython's kernel in this process: no sockets, and nothing to wait for at the end."""

    @classmethod
    def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, **settings: Any) -> None:
        """One cell after the other up to the first error, with the outputs as a notebook holds them."""
        from ipykernel.inprocess.manager import InProcessKernelManager

        manager = InProcessKernelManager()
        manager.start_kernel()
        client = manager.client()
        client.start_channels()
        for index, cell in enumerate(nb_man.nb.cells):
            if cell.cell_type != "code":
                continue
            nb_man.cell_start(cell, index)
            client.execute(cell.source, allow_stdin=False)
            cell.outputs = outputs(client.iopub_channel.get_msgs())
            nb_man.cell_complete(cell, index)
            if any(output.output_type == "error" for output in cell.outputs):
                break


def normalise(path: Path) -> None:
    """Drops from an executed copy what differs between two equal runs: times, ids, and metadata other than tags."""
    notebook = nbformat.read(path, as_version=4)
    for index, cell in enumerate(notebook.cells):
        cell.id, tags = f"cell-{index:02d}", cell.metadata.get("tags")
        cell.metadata = nbformat.from_dict({"tags": tags} if tags else {})
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNELSPEC, "language_info": {"name": "python"}})
    nbformat.write(notebook, path)


def outputs(messages: list[dict]) -> list[nbformat.NotebookNode]:
    """The outputs of a cell, neighbouring parts of its printed text in one; progress on stderr is left out."""
    collected: list[nbformat.NotebookNode] = []
    for output in (nbformat.v4.output_from_msg(message) for message in messages if message["msg_type"] in SHOWN):
        if collected and output.output_type == "stream" == collected[-1].output_type and output.name == collected[-1].name:
            collected[-1].text += output.text
        elif output.get("name") != "stderr":
            collected.append(output)
    return collected
