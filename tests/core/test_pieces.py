"""A piece of work: its name, the units in it, and that they are made."""

from functools import partial
from pathlib import Path

import pytest
import torch

from cnslib.core import pieces
from cnslib.core.units import Recipe, Unit

RECIPE = Recipe("tests", 1)


@pytest.fixture
def unit(tmp_path) -> Unit:
    return Unit(tmp_path / "heavy_snow" / "bag.txt", RECIPE.stamp("a"))


def make(unit: Unit) -> int:
    unit.path.parent.mkdir()
    unit.path.write_text("made")
    unit.finish()
    return torch.get_num_threads()


def test_units_are_found_beside_other_things_and_in_lists(unit):
    other = Unit(unit.path.with_name("boot.txt"), RECIPE.stamp("b"))
    assert pieces.units_of(("bag", unit, 3, [other, "x"], (unit,))) == (unit, other, unit)
    assert pieces.units_of(("bag", {"unit": unit})) == ()


def test_a_piece_is_called_after_its_units_else_after_its_words_and_numbers(unit):
    assert pieces.name_of(("snow", unit, 3), 7) == "heavy_snow/bag"
    assert pieces.name_of(("snow", 3, None), 7) == "7 snow 3"


def test_a_partial_function_has_the_name_of_what_it_calls():
    assert pieces.function_name(partial(make)) == pieces.function_name(make) == "make"


@pytest.mark.parametrize("threaded", [False, True])
def test_a_piece_has_one_thread_unless_it_shares_its_work_itself(unit, threaded):
    torch.set_num_threads(2)
    try:
        found, cost = pieces.attempt(make, (unit,), device="cpu", threaded=threaded)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert found == (2 if threaded else 1) and unit.done and cost.memory > 0 and cost.device


def test_a_unit_that_was_not_made_is_named(unit):
    with pytest.raises(RuntimeError, match=r"heavy_snow/bag\.txt was not made"):
        pieces.attempt(lambda unit: None, (unit,), device="cpu", threaded=False)


def test_a_path_is_no_unit(tmp_path):
    assert pieces.units_of((Path(tmp_path),)) == ()
