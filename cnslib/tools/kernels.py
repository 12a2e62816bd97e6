"""Notebook kernels forked from one process that has imported what notebooks import: each starts clean, none waits for torch again.

The process imports and does nothing else, so it has no threads, and a kernel forked from it is one that has just imported.
"""

import ast
import atexit
import gc
import multiprocessing
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterable
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import nbformat
import psutil
from ipykernel.ipkernel import IPythonKernel
from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning.local_provisioner import LocalProvisioner
from traitlets import Float, default

CONTEXT = multiprocessing.get_context("forkserver")
INLINE = "module://matplotlib_inline.backend_inline"  # ipykernel asks for it, which is too late once matplotlib is imported


def prepare(notebooks: Iterable[nbformat.NotebookNode]) -> None:
    """Starts the process, which goes on to import this module and each that a notebook imports. One that runs already stays."""
    sources = [cell.source for notebook in notebooks for cell in notebook.cells if cell.cell_type == "code"]
    os.environ.setdefault("MPLBACKEND", INLINE)
    needed = dict.fromkeys(name for source in sources for name in imported(source))
    CONTEXT.set_forkserver_preload(["ipykernel.kernelapp", __name__, *needed])
    forkserver.ensure_running()


def imported(source: str) -> list[str]:
    """The modules that a cell imports; `from a import b` may name a module a.b or a name in a, and both are tried."""
    nodes = list(ast.walk(ast.parse(source)))
    plain = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    whole = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    return plain + [name for node in whole for name in (str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names))]


def serve(arguments: list[str], environment: dict[str, str]) -> None:
    """A kernel in this process, a group of its own; it ends with the program that asked for it."""
    from ipykernel.kernelapp import IPKernelApp

    gc.freeze()  # what was imported stays: a search for garbage need not look through it, which takes half a second
    threading.Thread(target=follow, daemon=True).start()
    os.setsid()
    os.environ.update(environment)
    os.chdir(environment["PWD"])
    sys.argv = ["ipykernel_launcher", *arguments]
    IPKernelApp.launch_instance(argv=[*arguments, f"--IPKernelApp.parent_handle={os.getppid()}", "--log-level=ERROR"])
    atexit._run_exitfuncs()  # which a process of multiprocessing leaves out; nodes of a cluster are released there


def follow() -> None:
    """Ends this process when the one that asked for it has gone: the one that it was forked from stays as long as its kernels."""
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)


class Child:
    """A forked process as the kernel's provisioner handles one, which asks as one asks a Popen."""

    stdin = stdout = stderr = None

    def __init__(self, process: BaseProcess):
        process.start()
        self.process, self.pid = process, int(process.pid or 0)

    def poll(self) -> int | None:
        """The exit status, None while it runs."""
        return self.process.exitcode

    def wait(self) -> int | None:
        """The exit status, when it has ended."""
        self.process.join()
        return self.process.exitcode

    def send_signal(self, number: int) -> None:
        """Sends a signal to this process alone."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """Ends it at once."""
        self.process.kill()


class Provisioner(LocalProvisioner):
    """Forks a kernel where the standard one starts an interpreter."""

    async def launch_kernel(self, cmd: list[str], **settings: Any) -> KernelConnectionInfo:
        """Starts the kernel that the command line describes."""
        environment = settings["env"] | {"PWD": str(settings.get("cwd") or os.getcwd())}
        child = Child(CONTEXT.Process(target=serve, args=(cmd[cmd.index("-f") :], environment)))
        self.process = child  # type: ignore[assignment]  # asked as one asks a Popen
        self.pid = self.pgid = child.pid
        return self.connection_info


FOLLOWERS = ("loky", "resource_tracker")  # joblib's processes, and the ones that clean up shared memory, by their command lines


def follower(process: psutil.Process) -> bool:
    """Whether a process ends when the one that started it has ended, or has done so already."""
    try:
        return any(name in word for name in FOLLOWERS for word in process.cmdline())
    except psutil.NoSuchProcess:  # a zombie, too
        return True


class Kernel(IPythonKernel):
    """The standard kernel, but for two long waits at its end.

    It would wait half a minute for its followers: some obey no SIGTERM, and none is cleared away meanwhile. And one time in five its main
    thread would stop the one that sends messages, while the thread that was asked to end still has one: ten seconds or thirty.
    """

    def __init__(self, **settings: Any):
        super().__init__(**settings)
        self.answered = threading.Event()
        self.answered.set()
        atexit.register(self.answered.wait, 10)  # before the sockets are closed, which was registered earlier

    async def process_control(self, msg: list[Any]) -> None:
        """As the standard one; the process does not end in between."""
        self.answered.clear()
        try:
            await super().process_control(msg)
        finally:
            self.answered.set()

    def _process_children(self) -> list[psutil.Process]:
        """The processes that the standard one ends before itself, but followers."""
        return [child for child in super()._process_children() if not follower(child)]


class Patient(AsyncKernelManager):
    """A kernel manager for papermill (`kernel_manager_class`) that lets a kernel give back what it holds, such as nodes of a cluster.

    It speaks with its kernel over sockets in a folder of their own. The ports that the standard one picks are free when it looks, and may
    be another program's by the time the kernel takes them.
    """

    shutdown_wait_time = Float(60.0, config=True, help="seconds until a kernel that was asked to end is killed")

    @default("transport")
    def _of_sockets(self) -> str:
        return "ipc"

    @default("connection_file")
    def _in_a_folder_of_its_own(self) -> str:
        return str(Path(tempfile.mkdtemp(prefix="cns-")) / "kernel.json")  # short: a socket's path may have 107 letters, 103 on macOS

    async def _async_pre_start_kernel(self, **settings: Any) -> tuple[list[str], dict]:
        """As the standard one; the kernel is this module's."""
        command, settings = await super()._async_pre_start_kernel(**settings)
        return [*command, f"--IPKernelApp.kernel_class={Kernel.__module__}.{Kernel.__name__}"], settings

    async def _async_cleanup_resources(self, restart: bool = False) -> None:
        """As the standard one, and takes the folder away."""
        await super()._async_cleanup_resources(restart)
        if not restart:
            shutil.rmtree(Path(self.connection_file).parent, ignore_errors=True)

    cleanup_resources = _async_cleanup_resources


class Manager(Patient):
    """As the patient one, and its kernels are forked."""

    async def _async_pre_start_kernel(self, **settings: Any) -> tuple[list[str], dict]:
        """As the standard one, on the provisioner of this module."""
        self.provisioner = self.provisioner or Provisioner(kernel_id="forked", kernel_spec=self.kernel_spec, parent=self)
        return await super()._async_pre_start_kernel(**settings)
