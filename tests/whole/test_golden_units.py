"""The golden results themselves: what they notice, and what they say."""

import golden_units
import numpy as np
import pandas as pd
import pytest

from cnslib.core.units import Recipe

RECIPE = Recipe("tests", 1)


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Makes the golden result of a table."""
    monkeypatch.setattr(golden_units, "FOLDER", tmp_path)

    def call(found, recipe=RECIPE):
        with monkeypatch.context() as patch:
            patch.setenv("GOLDEN", "write")
            assert not golden_units.difference(recipe, found)

    return call


def test_another_output_asks_for_a_raised_number(write):
    write(pd.DataFrame({"margin": [1.0, 2.0], "top1": ["bag", "coat"]}))
    assert not golden_units.difference(RECIPE, pd.DataFrame({"margin": [1.00005, 2.0], "top1": ["bag", "coat"]}))
    for other in ({"margin": [1.01, 2.0], "top1": ["bag", "coat"]}, {"margin": [1.0, 2.0], "top1": ["bag", "bag"]}, {"margin": [1.0, 2.0]}):
        assert "raise the recipe's number" in golden_units.difference(RECIPE, pd.DataFrame(other))


def test_a_picture_may_be_off_by_a_grey_level(write):
    picture = np.full((1, 6, 6, 3), 100, np.uint8)
    write(picture)
    assert not golden_units.difference(RECIPE, picture + 1)
    assert "another image" in golden_units.difference(RECIPE, picture + 3)


def test_a_missing_result_is_named(write):
    assert golden_units.difference(RECIPE, pd.DataFrame({"margin": [1.0]})).startswith("tests.json is missing")
