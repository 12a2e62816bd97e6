import os
import subprocess
import sys

import pytest

from cnslib.core import paths, units

RECIPE = units.Recipe("tests", 1)
WORK = """
import sys, time
from pathlib import Path
from cnslib.core import units
recipe = units.Recipe("tests", 1)
shelf = units.Shelf(Path(sys.argv[1]), {"a": ("a.txt", recipe.stamp("a"))}, "*.txt")
assert shelf.waiting() == ["a"]
with units.atomic(shelf["a"].path) as partial:
    partial.write_text("half")
    print("half", flush=True)
    sys.stdin.readline()
    partial.write_text("whole")
shelf["a"].finish()
print("done", flush=True)
sys.stdin.readline()
"""


def shelf(folder):
    return units.Shelf(folder, {"b": ("b.txt", RECIPE.stamp("b"))}, "*.txt")


@pytest.fixture
def other(tmp_path):
    command = [sys.executable, "-c", WORK, str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(paths.ROOT)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout.readline() == "half\n"
        yield process
        process.kill()


def test_the_second_process_names_the_first_and_leaves_its_half_written_file(other, tmp_path):
    partial = next(tmp_path.glob(".*.partial"))
    for ask in (shelf(tmp_path).waiting, lambda: units.hold(tmp_path, object())):
        with pytest.raises(RuntimeError, match=rf"is in the hands of process {other.pid} \(.*python.* -c"):
            ask()
    assert partial.read_text() == "half"
    print(file=other.stdin, flush=True)
    assert other.stdout.readline() == "done\n"
    assert (tmp_path / "a.txt").read_text() == "whole" and units.verified(tmp_path / "a.txt")
