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


def test_a_command_knows_its_cell_and_tells_its_last_line_after_what_failed():
    says = "import os; print('FAILED tests/a.py::b'); print(os.environ['LEVEL']); raise SystemExit({})"
    command = [sys.executable, "-c"]
    assert matrix.attempt([*command, says.format(0)], {"LEVEL": "avx2"}) == (0, "avx2")
    assert matrix.attempt([*command, says.format(3)], {"LEVEL": "avx2"}) == (3, "FAILED tests/a.py::b; avx2")
    assert matrix.attempt([*command, ""], {}) == (0, "")
