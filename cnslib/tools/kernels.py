"""Runs a notebook in a process of its own, which ends with it. On a CPU it is forked from one that has imported what notebooks import.

That one does nothing but import, so it has no threads, and what is forked from it need not wait for torch again: 5 s a notebook.
"""

import ast
import atexit
import gc
import multiprocessing
import os
import threading
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import matplotlib
import nbformat
import papermill

FORKED, FRESH = (multiprocessing.get_context(name) for name in ("forkserver", "spawn"))
PRELOAD = [__name__, "ipykernel.inprocess.ipkernel"]
FORKED.set_forkserver_preload(PRELOAD)


def prepare(notebooks: Iterable[nbformat.NotebookNode]) -> None:
    """Starts the process to fork from, which goes on to import each module that a notebook imports. One that runs already stays."""
    code = (ast.parse(cell.source) for notebook in notebooks for cell in notebook.cells if cell.cell_type == "code")
    froms = [node for tree in code for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names = dict.fromkeys(name for node in froms for name in (str(node.module), *(f"{node.module}.{part.name}" for part in node.names)))
    FORKED.set_forkserver_preload([*PRELOAD, *names])  # what is no module is passed over
    forkserver.ensure_running()


def execute(source: Path, target: Path, values: dict[str, str], *, folder: Path, context: Any = FORKED) -> str:
    """Runs a notebook and writes its executed copy, to the end or to an error, which is returned ("" for none)."""
    try:
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            return pool.submit(inside, source, target, values, folder).result()
    except BrokenProcessPool:
        return "its process died, as one does that runs out of memory"


def inside(source: Path, target: Path, values: dict[str, str], folder: Path) -> str:
    """What `execute` does, in this process."""
    gc.freeze()  # what was imported stays: a search for garbage need not look through it, which takes half a second
    threading.Thread(target=follow, daemon=True).start()
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # the kernel's debugger would warn, and is not used
    matplotlib.rcParams["backend"] = "module://matplotlib_inline.backend_inline"  # as a kernel has it
    papermill.engines.papermill_engines.register("here", Here)
    fixed = {"engine_name": "here", "kernel_name": "python3", "progress_bar": False, "record_timing": False}
    try:
        papermill.execute_notebook(source, target, values, cwd=folder, **fixed)
        return ""
    except papermill.exceptions.PapermillExecutionError as error:
        return f"{error.ename}: {error.evalue}"
    finally:
        atexit._run_exitfuncs()  # which a process of multiprocessing leaves out; nodes of a cluster are released there


def follow() -> None:
    """Ends this process with the one that started it: the one that it was forked from stays as long as its children."""
    multiprocessing.parent_process().join()  # type: ignore[union-attr]  # this process has one
    os._exit(1)


class Here(papermill.engines.Engine):
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


def outputs(messages: list[dict]) -> list[nbformat.NotebookNode]:
    """The outputs of a cell, with neighbouring parts of one stream in one."""
    found: list[nbformat.NotebookNode] = []
    for message in messages:
        if message["msg_type"] not in ("stream", "display_data", "execute_result", "error"):
            continue
        output = nbformat.v4.output_from_msg(message)
        if found and output.output_type == "stream" == found[-1].output_type and output.name == found[-1].name:
            found[-1].text += output.text
        else:
            found.append(output)
    return found
