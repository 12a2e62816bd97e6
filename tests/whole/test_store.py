"""The DVC store inside the repository: what it gives back are the bytes that went in, and what it cannot give back is named."""

import configparser
import os
import re
import shutil
import subprocess
import sys

import pytest

from cnslib.core import paths

pytestmark = pytest.mark.slow


def dvc(folder, *arguments):
    """A command of DVC in a folder."""
    quiet = os.environ | {"DVC_NO_ANALYTICS": "1", "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    return subprocess.run([sys.executable, "-m", "dvc", *arguments], cwd=folder, env=quiet, capture_output=True, text=True)


def restored(folder):
    """What `make data` runs, in a folder."""
    (line,) = re.findall(r"^\t(\$\(BIN\)/dvc pull.*?)  #", (paths.ROOT / "Makefile").read_text(), re.MULTILINE)
    command = line.replace("$(BIN)/dvc", f"{sys.executable} -m dvc")
    return subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True)


@pytest.fixture(scope="module")
def pushed(tmp_path_factory):
    """A repository with this one's settings of DVC: one file in the store, and neither in the workspace nor in the cache. Read only."""
    folder = tmp_path_factory.mktemp("repository")
    assert dvc(folder, "init", "--no-scm").returncode == 0
    settings = (paths.ROOT / ".dvc" / "config").read_text().replace("[core]", "[core]\n    no_scm = true")
    (folder / ".dvc" / "config").write_text(settings)
    (folder / "kept.parquet").write_bytes(b"what the filter kept")
    assert dvc(folder, "add", "kept.parquet").returncode == 0
    assert dvc(folder, "push").returncode == 0
    (folder / "kept.parquet").unlink()
    for path in (folder / ".dvc" / "cache").rglob("*"):
        if path.is_file():
            path.chmod(0o644)
            path.unlink()
    return folder


@pytest.fixture
def stored(pushed, tmp_path):
    """A copy of it."""
    return shutil.copytree(pushed, tmp_path / "repository")


def in_store(folder):
    """The one file of the store."""
    (found,) = (path for path in (folder / "store").rglob("*") if path.is_file())
    return found


def test_whole_files_are_restored_without_a_word_from_a_store_that_is_verified(stored):
    settings = configparser.ConfigParser()
    settings.read(paths.ROOT / ".dvc" / "config")
    assert settings["'remote \"store\"'"]["verify"] == "true"
    found = restored(stored)
    assert (found.returncode, found.stdout) == (0, "") and (stored / "kept.parquet").read_bytes() == b"what the filter kept"


def test_a_flipped_bit_in_the_store_is_named_and_not_restored(stored):
    place = in_store(stored)
    data = bytearray(place.read_bytes())
    data[3] ^= 1
    place.chmod(0o644)
    place.write_bytes(data)
    found = restored(stored)
    assert found.returncode != 0 and not (stored / "kept.parquet").exists()
    assert "kept.parquet" in found.stdout + found.stderr


def test_a_file_that_the_store_lacks_is_named(stored):
    in_store(stored).unlink()
    found = restored(stored)
    assert "kept.parquet" in found.stdout + found.stderr and not (stored / "kept.parquet").exists()
