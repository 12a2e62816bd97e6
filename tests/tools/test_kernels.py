"""Kernels that are forked from one process: each starts clean, and what it imports is there already."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat
import papermill
import psutil
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from cnslib.core import paths
from cnslib.tools import kernels, runner

pytestmark = pytest.mark.slow
FIRST = "import json, os, sys\nknown = 'email.charset' in sys.modules\nimport email.charset\nleft = 1\n"
TOLD = "print(json.dumps([known, os.getpid(), os.getppid(), os.getcwd(), sys.modules['__main__'].__name__]))"
SCRIPT = """
import sys
if __name__ == "__mp_main__":
    open("imported", "w").write(str("cnslib.tools.kernels" in sys.modules))
import nbformat, papermill
from cnslib.tools import kernels
if __name__ == "__main__":
    source = sys.argv[1]
    kernels.prepare([nbformat.read(source, as_version=4)])
    for name in ("first", "second"):
        papermill.execute_notebook(source, f"{name}.ipynb", kernel_name="python3", kernel_manager_class=kernels.Manager)
"""


def notebook(*cells: str) -> nbformat.NotebookNode:
    return new_notebook(cells=[new_code_cell(cell) for cell in cells], metadata={"kernelspec": runner.KERNELSPEC})


@pytest.mark.parametrize("manager", [kernels.Patient, kernels.Manager])
def test_a_kernel_ends_what_it_started_and_waits_for_no_process_that_follows_it(manager, tmp_path):
    """Those would keep it for half a minute: they obey no signal, or are not cleared away. They end as after any script."""
    work = "import joblib, psutil, subprocess\nprint(joblib.Parallel(2)(joblib.delayed(abs)(number) for number in (1, 2)))"
    asked = "started = subprocess.Popen(['sleep', '300'])\nleft = [child.pid for child in get_ipython().kernel._process_children()]\n"
    told = "print(started.pid, left == [started.pid], len(psutil.Process().children()) > 2)"
    source = notebook(work, asked + told)
    nbformat.write(source, tmp_path / "source.ipynb")
    kernels.prepare([source])
    done = papermill.execute_notebook(
        tmp_path / "source.ipynb", None, kernel_name="python3", kernel_manager_class=manager, progress_bar=False
    )
    said = done.cells[-1].outputs[0].text.split()
    assert said[1:] == ["True", "True"] and not psutil.pid_exists(int(said[0]))


@pytest.fixture
def script(tmp_path):
    """A program of its own that runs source.ipynb twice: what the fork server imports is fixed when it starts."""
    (tmp_path / "twice.py").write_text(SCRIPT)
    return [sys.executable, "twice.py", "source.ipynb"]


def started(script, folder, **settings) -> subprocess.Popen:
    return subprocess.Popen(script, cwd=folder, env=os.environ | {"PYTHONPATH": str(paths.ROOT)}, **settings)


def test_a_kernel_has_what_notebooks_import_and_nothing_that_another_left(script, tmp_path):
    nbformat.write(notebook("assert 'left' not in globals()", FIRST + TOLD), tmp_path / "source.ipynb")
    assert started(script, tmp_path).wait() == 0
    outputs = [nbformat.read(tmp_path / f"{name}.ipynb", as_version=4).cells[1].outputs[0].text for name in ("first", "second")]
    (known, one, server, folder, name), second = (json.loads(text) for text in outputs)
    assert (tmp_path / "imported").read_text() == "True"  # before there was a kernel
    assert known and folder == str(tmp_path) and name == "__main__"
    assert second[1] != one and second[2] == server


def test_an_error_in_a_forked_kernel_is_the_notebooks_error(tmp_path):
    nbformat.write(notebook("1 / 0"), tmp_path / "source.ipynb")
    with pytest.raises(papermill.exceptions.PapermillExecutionError, match="ZeroDivisionError"):
        how = {"kernel_name": "python3", "kernel_manager_class": kernels.Manager}
        papermill.execute_notebook(tmp_path / "source.ipynb", tmp_path / "out.ipynb", **how)


@pytest.mark.parametrize("manager", [kernels.Patient, kernels.Manager])
def test_a_kernel_may_take_its_time_to_give_back_what_it_holds(manager, tmp_path):
    last = f"import atexit, time\natexit.register(lambda: (time.sleep(6), open({str(tmp_path / 'given')!r}, 'w').close()))"
    nbformat.write(notebook(last), tmp_path / "source.ipynb")
    papermill.execute_notebook(tmp_path / "source.ipynb", tmp_path / "out.ipynb", kernel_name="python3", kernel_manager_class=manager)
    assert (tmp_path / "given").exists()


@pytest.mark.parametrize("manager", [kernels.Patient, kernels.Manager])
def test_a_kernel_takes_no_port_that_another_program_may_take_first(manager, tmp_path, monkeypatch):
    """Two connections that began between the choice of a port and its use stopped a chain once."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    told = "from ipykernel.connect import get_connection_info\nprint(get_connection_info())"
    nbformat.write(notebook(told), tmp_path / "source.ipynb")
    papermill.execute_notebook(tmp_path / "source.ipynb", tmp_path / "out.ipynb", kernel_name="python3", kernel_manager_class=manager)
    connection = json.loads(nbformat.read(tmp_path / "out.ipynb", as_version=4).cells[0].outputs[0].text)
    assert connection["transport"] == "ipc" and str(tmp_path) in connection["ip"]
    assert not list(tmp_path.glob("cns-*"))


SLOW = """
import time
kernel = get_ipython().kernel
publish = kernel._publish_status_and_flush
def late(status, channel, *more):
    if channel == "control":
        time.sleep(1)
        open("sends", "w").write(str(kernel.iopub_socket.io_thread.thread.is_alive()))
    publish(status, channel, *more)
kernel._publish_status_and_flush = late
"""


@pytest.mark.parametrize("manager", [kernels.Patient, kernels.Manager])
def test_a_kernel_sends_its_last_message_before_it_ends(manager, tmp_path):
    """Else that waits for a thread that is gone, and the kernel is killed after half a minute."""
    nbformat.write(notebook(SLOW), tmp_path / "source.ipynb")
    how = {"kernel_name": "python3", "kernel_manager_class": manager, "cwd": str(tmp_path)}
    papermill.execute_notebook(tmp_path / "source.ipynb", tmp_path / "out.ipynb", **how)
    assert (tmp_path / "sends").read_text() == "True"


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="reads /proc")
def test_a_kernel_ends_with_the_program_that_started_it(script, tmp_path):
    cell = "import os, pathlib, time\npathlib.Path('kernel').write_text(str(os.getpid()))\ntime.sleep(600)"
    nbformat.write(notebook(cell), tmp_path / "source.ipynb")
    program = started(script, tmp_path)
    end = time.monotonic() + 120
    while not (tmp_path / "kernel").exists() or not (tmp_path / "kernel").read_text():
        assert time.monotonic() < end and program.poll() is None
        time.sleep(0.1)
    program.send_signal(signal.SIGKILL)
    program.wait()
    kernel = Path("/proc") / (tmp_path / "kernel").read_text()
    while kernel.exists() and (kernel / "cmdline").read_bytes():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_every_module_that_a_cell_imports_is_named():
    source = "import numpy as np\nfrom cnslib.stats import accuracy\nfrom cnslib.core.settings.analyses import Accuracy\nx = 1"
    found = kernels.imported(source)
    assert found == [
        "numpy",
        "cnslib.stats",
        "cnslib.stats.accuracy",
        "cnslib.core.settings.analyses",
        "cnslib.core.settings.analyses.Accuracy",
    ]
