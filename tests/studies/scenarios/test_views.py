"""What notebook 40 shows of the scenarios."""

import pandas as pd
import pytest
from tiny_scenarios import found as accuracies_of

from cnslib.core.names import UNSHIFTED
from cnslib.studies.scenarios import views
from cnslib.studies.scenarios.experiment2 import TRAINED


def test_a_transparent_picture_is_white_behind_the_object(found):
    sheet, rows = views.sheet(found[:1], [UNSHIFTED, views.TRANSPARENT], side=32, seed=1)
    assert sheet.shape == (1, 2, 32, 32, 3) and rows["class"].tolist() == ["sneaker"]
    outside = found[0].mask[::2, ::2] == 0
    assert (sheet[0, 1][outside] == 255).all() and not (sheet[0, 0][outside] == 255).all()


def test_losses_are_means_over_models_the_largest_first():
    """Grey costs 0.5 and 0.75 of the objects, the other scenarios 0.5 and nothing; the originals are always right."""
    steady = dict.fromkeys(TRAINED, 1.0)
    shaky = dict.fromkeys(TRAINED, 0.5) | {"unshifted": 1.0}
    table = views.losses(accuracies_of({"steady": steady | {"grey": 0.25}, "shaky": shaky}), ["red", "grey"])
    assert table["scenario"].tolist() == ["grey", "red"] and table["n"].tolist() == [20, 20]
    assert table["estimate"].tolist() == pytest.approx([0.625, 0.25])
    assert views.told(table.iloc[0].to_dict() | {"low": 0.5, "high": 0.75}) == "0.62 (0.50 to 0.75)"


def test_rows_of_table_1_are_keyed_by_model_and_scenario():
    table = pd.DataFrame({"experiment": ["EX1", "EX2"], "model": "vit", "scenario": ["red", "grey"], "estimate": [0.1, 0.2]})
    assert {name: part["key"].tolist() for name, part in views.keyed(table)} == {"EX1": ["vit, red"], "EX2": ["vit, grey"]}
