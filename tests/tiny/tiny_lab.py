"""JupyterLab on a folder, with settings of its own, and a page on one of its notebooks in a headless browser."""

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import tiny_browser

TOKEN = "only-this-test"
FOLDERS = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR", "IPYTHONDIR")
KERNEL = "[...(window.jupyterapp?.shell?.widgets('main') ?? [])][0]?.sessionContext?.session?.kernel"
QUIET = ("--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate", "--LabApp.news_url=None")


@contextlib.contextmanager
def lab(folder: Path, settings: Path, **environment: str) -> Iterator[str]:
    """The address of a server that shows the folder; kernels have `environment` besides this process's own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={address.rsplit(':', 1)[1]}"]
    command += [f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={folder}", "--LabApp.expose_app_in_browser=True", *QUIET]
    own = {name: str(settings / name.lower()) for name in FOLDERS}
    with (
        (settings / "lab.log").open("w") as log,
        subprocess.Popen(command, env=os.environ | own | environment, stdout=log, stderr=log) as server,
    ):
        try:
            until_up(f"{address}/api?token={TOKEN}", server)
            yield address
        finally:
            server.terminate()


def until_up(address: str, server: subprocess.Popen) -> None:
    """Returns when the server answers; RuntimeError when it has ended."""
    while server.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(address):
            return
        time.sleep(0.2)
    raise RuntimeError(f"jupyter lab ended with {server.returncode}")


@contextlib.contextmanager
def notebook(folder: Path, name: str, settings: Path, *, seconds: float, **environment: str) -> Iterator[tiny_browser.Page]:
    """A page on a notebook of the folder whose cells are being run."""
    with (
        lab(folder, settings, **environment) as address,
        tiny_browser.page(f"{address}/lab/tree/{name}?token={TOKEN}", settings / "profile") as page,
    ):
        page.wait(f"{KERNEL}?.status == 'idle'", seconds=seconds)
        page.value("void window.jupyterapp.commands.execute('notebook:run-all-cells')")
        yield page
