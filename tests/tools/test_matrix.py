"""The matrix of instruction sets and threads: which cells it has, and that the first failure ends a cell."""

import sys

import pytest

from cnslib.tools import matrix


@pytest.mark.parametrize("levels", [["default", "avx2"], ["default", "avx2", "avx512"]])
def test_each_level_and_each_pinned_number_of_threads_comes_once(levels):
    """The pinned level comes last, with one thread; the other levels share two and four threads."""
    found = matrix.cells(levels, everything=False)
    assert {level for level, _ in found} == set(levels) and sorted(count for _, count in found) == sorted(matrix.THREADS)
    assert found[-1] == ("avx2", 1)


def test_a_level_that_the_processor_lacks_is_never_tried():
    assert matrix.cells(["default"], everything=False) == [("default", 2), ("default", 4)]
    assert matrix.cells(["default"], everything=True) == [("default", count) for count in matrix.THREADS]


def test_everything_is_every_level_with_every_number_of_threads():
    found = matrix.cells(["default", "avx2", "avx512"], everything=True)
    assert len(set(found)) == len(found) == 3 * len(matrix.THREADS)
    assert [level for level, _ in found[-len(matrix.THREADS) :]] == ["avx2"] * len(matrix.THREADS)


def test_commands_follow_each_other_until_one_fails(tmp_path):
    """Each command knows the variables of its cell; what follows a failure is not run."""
    says = "import os, sys; print('first'); print(os.environ['LEVEL']); sys.exit(int(sys.argv[1]))"
    leaves = [sys.executable, "-c", "import pathlib, sys; pathlib.Path(sys.argv[1]).touch()", str(tmp_path / "ran")]
    given = {"LEVEL": "avx2"}
    assert matrix.attempt([[sys.executable, "-c", says, "3"], leaves], given) == (3, "avx2")
    assert not (tmp_path / "ran").exists()
    fails = "print('FAILED tests/a.py::b'); print('1 failed'); raise SystemExit(1)"
    assert matrix.attempt([[sys.executable, "-c", fails]], given) == (1, "1 failed; FAILED tests/a.py::b")
    assert matrix.attempt([[sys.executable, "-c", says, "0"], leaves], given) == (0, "")
    assert (tmp_path / "ran").exists()
