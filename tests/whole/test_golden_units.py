import golden_units
import pandas as pd
import pytest

from cnslib.core.units import Recipe

RECIPE = Recipe("tests", 1)


@pytest.fixture
def write(tmp_path, monkeypatch):
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
