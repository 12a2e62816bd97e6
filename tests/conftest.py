"""Tiny random-weight models in the formats of the real ones, written once per test session."""

import gc
import os
import socket
from pathlib import Path

import hypothesis
import pytest
from tiny_pipeline import WIDTH, write_pipeline

hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def tiny_pipeline_dir(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("models") / "tiny-sd"
    write_pipeline(path)
    return path


@pytest.fixture(scope="session")
def tiny_tokens_dir(tmp_path_factory) -> Path:
    import torch
    from safetensors.torch import save_file

    from cnslib.core.names import identifier, token
    from cnslib.core.units import record_bytes

    folder = tmp_path_factory.mktemp("tokens")
    generator = torch.Generator().manual_seed(0)
    for name in ("sneaker", "ankle boot"):
        vector = torch.randn(WIDTH, generator=generator)
        save_file({token(name): vector}, folder / f"{identifier(name)}.safetensors")
        record_bytes(folder / f"{identifier(name)}.safetensors")
    return folder


@pytest.fixture(scope="module")
def pipe(tiny_pipeline_dir, tiny_tokens_dir):
    """The tiny pipeline with the tokens of two classes. Each module that changes it has its own."""
    from tiny_sliders import CLASSES, pipeline

    return pipeline(tiny_pipeline_dir, tiny_tokens_dir, CLASSES)


@pytest.fixture(scope="module")
def origin(tiny_pipeline_dir, tiny_tokens_dir):
    from tiny_sliders import CLASSES

    from cnslib.models import text_to_image

    return text_to_image.origin(tiny_pipeline_dir, tiny_tokens_dir, CLASSES)


@pytest.fixture
def executed(tmp_path):
    import nbformat

    from cnslib.core import paths
    from cnslib.tools import kernels

    def call(notebook: nbformat.NotebookNode, folder: Path = paths.ROOT) -> nbformat.NotebookNode:
        source, target = tmp_path / "source.ipynb", tmp_path / "executed.ipynb"
        nbformat.write(notebook, source)
        assert kernels.execute(source, target, {}, folder=folder) == ""
        return nbformat.read(target, as_version=4)

    return call


@pytest.fixture(scope="session", autouse=True)
def one_process():
    """All work stays in this process: it is too little to start others for, or is counted here. Tests of the processes ask for two."""
    with pytest.MonkeyPatch.context() as patch:
        yield patch.setenv("LOKY_MAX_CPU_COUNT", "1")


@pytest.fixture(scope="session", autouse=True)
def handed_over(one_process):
    """Each piece of work is copied as for another process: starting that takes longer than the work."""
    import functools

    import cloudpickle

    from cnslib.core import workers

    beside = workers.beside

    @functools.wraps(beside)
    def call(function, piece, *where):
        return beside(*cloudpickle.loads(cloudpickle.dumps((function, piece))), *where)

    with pytest.MonkeyPatch.context() as patch:
        yield patch.setattr(workers, "beside", call)


@pytest.fixture(scope="module")
def in_place(handed_over):
    """The pieces themselves are worked on: the tests watch one of their parts."""
    from cnslib.core import workers

    with pytest.MonkeyPatch.context() as patch:
        yield patch.setattr(workers, "beside", workers.beside.__wrapped__)


@pytest.fixture(autouse=True)
def here():
    """No test hands its pieces of work to the workers of an earlier one."""
    yield
    from cnslib.core import clusters

    clusters.use()


LOOPBACK = ("127.", "::1", "localhost", "0.0.0.0")


def pytest_configure() -> None:
    """No test reaches the network: connections and look-ups beyond this machine fail in every test, by construction.

    Subprocesses of tests are told so by the variables that the libraries obey.
    """
    plain = {name: getattr(socket.socket, name) for name in ("connect", "connect_ex", "sendto")}
    look_up = socket.getaddrinfo

    def guarded(name):
        def call(self, *arguments):
            address = arguments[-1]
            if self.family in (socket.AF_INET, socket.AF_INET6) and not str(address[0]).startswith(LOOPBACK):
                raise ConnectionRefusedError(f"tests reach no network: {address}")
            return plain[name](self, *arguments)

        return call

    def local(host, *arguments, **more):
        if host is not None and not str(host).startswith(LOOPBACK) and host != socket.gethostname():
            raise socket.gaierror(f"tests reach no network: {host}")
        return look_up(host, *arguments, **more)

    for name in plain:
        setattr(socket.socket, name, guarded(name))
    socket.getaddrinfo = local
    os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The chain, the longest test, comes first, then files with long ones: what is left for the end can be shared by processes."""
    long = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (item.path.name != "test_smoke.py", item.path not in long))


def pytest_collection_finish() -> None:
    """What is imported by now is no garbage: statsmodels' corrections collect on every call, and would look at all of it each time."""
    gc.freeze()
