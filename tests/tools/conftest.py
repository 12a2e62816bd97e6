"""The parameters of both scales, and the paper's encoders and classifiers counted."""

import socket

import pytest
import torch

from cnslib.core import paths
from cnslib.core.settings import read
from cnslib.tools import operations


@pytest.fixture(scope="session")
def mini() -> dict:
    """The parameters of the mini world."""
    return read.load(paths.resolve("params.yaml"))


@pytest.fixture(scope="session")
def paper() -> dict:
    """The parameters of the paper's scale."""
    return read.load(paths.resolve("params.yaml"), paths.resolve("paper.yaml"))


@pytest.fixture(scope="session")
def looking(paper):
    """The paper's encoders and classifiers, counted without a way out to any network."""

    def refuse(*arguments):
        raise OSError("no network in this test")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", refuse)
        patch.setattr(torch, "load", refuse)
        operations.network.cache_clear()
        return operations.count(paper)
