import configparser
import os
import re
import subprocess
import sys

import pytest

from cnslib.core import paths

pytestmark = pytest.mark.slow
NAMES = ("flipped.parquet", "lacking.parquet")


def dvc(folder, *arguments):
    quiet = os.environ | {"DVC_NO_ANALYTICS": "1", "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    return subprocess.run([sys.executable, "-m", "dvc", *arguments], cwd=folder, env=quiet, capture_output=True, text=True)


@pytest.fixture(scope="module")
def pulled(tmp_path_factory):
    """The folder, and what `make data` said, in a repository with this one's settings of DVC whose store has rotted.

    Of two files in the store one has a flipped bit, and the other is gone; neither is in the workspace or in the cache.
    """
    folder = tmp_path_factory.mktemp("repository")
    assert dvc(folder, "init", "--no-scm").returncode == 0
    settings = (paths.ROOT / ".dvc" / "config").read_text().replace("[core]", "[core]\n    no_scm = true")
    (folder / ".dvc" / "config").write_text(settings)
    for name in NAMES:
        (folder / name).write_bytes(f"what lies in {name}".encode())
    assert dvc(folder, "add", *NAMES).returncode == dvc(folder, "push").returncode == 0
    for path in [*(folder / name for name in NAMES), *(folder / ".dvc" / "cache").rglob("*"), *(folder / "store").rglob("*")]:
        if path.is_file():
            path.chmod(0o644)
            data = bytearray(path.read_bytes())
            path.unlink()
            if path.is_relative_to(folder / "store") and data.endswith(NAMES[0].encode()):
                data[3] ^= 1
                path.write_bytes(data)
    (line,) = re.findall(r"^\t(\$\(BIN\)/dvc pull.*?)  #", (paths.ROOT / "Makefile").read_text(), re.MULTILINE)
    command = line.replace("$(BIN)/dvc", f"{sys.executable} -m dvc")
    done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True)
    assert done.returncode != 0
    return folder, done.stdout + done.stderr


def test_a_flipped_bit_in_the_store_is_named_and_not_restored(pulled):
    folder, said = pulled
    assert NAMES[0] in said and not (folder / NAMES[0]).exists()
    settings = configparser.ConfigParser()
    settings.read(paths.ROOT / ".dvc" / "config")
    assert settings["'remote \"store\"'"]["verify"] == "true"


def test_a_file_that_the_store_lacks_is_named(pulled):
    folder, said = pulled
    assert NAMES[1] in said and not (folder / NAMES[1]).exists()
