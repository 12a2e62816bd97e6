"""What notebook 40 shows of the scenarios."""

import numpy as np
import pandas as pd
import pytest
from tiny_scenarios import SETTINGS, answers
from tiny_scenarios import found as accuracies_of

from cnslib.core.names import UNSHIFTED
from cnslib.stats import accuracy
from cnslib.studies.scenarios import score, subjects, views
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
    assert (table["p_holm"] < 0.05).all() and table["p_holm"].is_monotonic_increasing


def test_a_sheet_names_the_scenarios_that_change_both_object_and_background(found):
    said = views.sheet_caption(found[:1], "garments", [UNSHIFTED, "grey", "blurred object", "summed background"], seed=1)
    assert said == "3 of 4 columns keep the object or the background bit for bit, all but summed background. n = 1 garments"
    assert views.sheet_caption(found[:1], "garments", ["grey"], seed=1) == (
        "1 of 1 columns keep the object or the background bit for bit. n = 1 garments"
    )


def test_how_far_pixels_move_is_measured_where_the_scenario_acts():
    """A grey square of 0.4 on 0.2: black behind it moves the ground by 0.2, and grey nothing."""
    mask = np.zeros((8, 8))
    mask[2:6, 2:6] = 1
    image = np.where(mask[..., None] > 0, 0.4, 0.2) * np.ones((8, 8, 3))
    own = subjects.Subject("bag", 0, image, mask, np.ones((8, 8, 3)))
    moved = views.moved([own], ["segmented", "grey", "random background", "bright object"], seed=1)
    assert moved[["segmented", "grey", "random background"]].tolist() == pytest.approx([0.2, 0, 0.8], abs=1e-2)
    assert moved["bright object"] > 0.2
    table = views.cost_table({"garments": pd.DataFrame({"scenario": ["segmented"], "estimate": [0.5]})}, {"garments": moved})
    assert table["garments"].loc["segmented"].tolist() == pytest.approx([0.5, 0.2], abs=1e-2)


def test_the_sum_costs_what_lies_between_it_and_the_composite():
    both = dict.fromkeys([*TRAINED, "summed background"], 1.0)
    replies = answers({"x": both | {"random background": 0.75, "summed background": 0.25}})
    found = score.accuracies(replies, [*TRAINED, "summed background"], settings=SETTINGS.bootstrap)
    assert views.composite_minus_sum(found)["estimate"] == pytest.approx(0.5)


def test_tables_by_scenario_leave_out_the_whole():
    table = views.by_scenario(pd.DataFrame({"shift": ["grey", accuracy.ALL], "estimate": [0.1, 0.2]}))
    assert table["scenario"].tolist() == ["grey"]


def test_rows_of_table_1_are_keyed_by_model_and_scenario():
    table = pd.DataFrame({"experiment": ["EX1", "EX2"], "model": "vit", "scenario": ["red", "grey"], "estimate": [0.1, 0.2]})
    assert {name: part["key"].tolist() for name, part in views.keyed(table)} == {"EX1": ["vit, red"], "EX2": ["vit, grey"]}
