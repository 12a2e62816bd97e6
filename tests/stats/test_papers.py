import pandas as pd
import pytest
import xarray as xr
from tiny_answers import SCALES, SETTINGS, falling, predictions

from cnslib.core import paths
from cnslib.stats import accuracy, papers

PUBLISHED = pd.DataFrame({0.0: [0.9, 0.8, 0.7, 0.6], 0.5: [0.85, 0.8, 0.8, 0.75], 1.0: [0.6, 0.6, 0.6, 0.6]}, index=list("abcd"))


def errors(models: dict[str, list[float]]) -> xr.DataArray:
    words = {name: falling(own, 20) for name, own in models.items()}
    still = {name: falling(own[:1] * 3, 20) for name, own in models.items()}
    table = pd.concat([predictions(words), predictions(still, "heavy fog")])
    return accuracy.by_shift(accuracy.wrong_predictions(table), SETTINGS)


def test_published_accuracies_are_table_5s_at_our_scales():
    assert papers.read(paths.PUBLISHED, [2.5, 0.0]).loc["clip_resnet101"].to_dict() == {2.5: 0.74, 0.0: 0.86}


def test_the_shape_of_a_curve_by_hand():
    ours, theirs, nulls = papers.shape(errors({"x": [0.9, 0.8, 0.5], "y": [0.7, 0.6, 0.5]}), PUBLISHED)
    assert ours["estimate"].tolist() == pytest.approx([0.8, 0.15, 1.0, 1.0 if ours["estimate"].iloc[-1] > 0 else -1.0])
    assert theirs[:3] == pytest.approx([0.75, 0.15, 1.0])
    assert theirs[3] == -1  # who starts higher loses more and has the smaller error
    assert nulls == [None, None, 1, None] and len(ours) == len(theirs) == 4
    assert set(ours["n"]) == {40}  # twenty under each of two shifts


def test_the_share_of_the_drop_is_that_by_scale_1_where_there_are_larger_scales():
    scales, right = [0.0, 1.0, 2.0], [0.9, 0.8, 0.5]
    table = predictions({name: falling(right, 20) for name in "xy"}, scales=scales)
    found = accuracy.by_shift(accuracy.wrong_predictions(table), SETTINGS)
    ours, theirs, _ = papers.shape(found, pd.DataFrame({0.0: PUBLISHED[0.0], 1.0: 0.8, 2.0: 0.6, 2.5: 0.5}))
    assert ours.loc["share of the drop by scale 1", "estimate"] == pytest.approx(0.25)
    assert theirs[:3] == pytest.approx([0.75, 0.25, -0.05 / 0.25])  # all four stand at 0.8 there, above where they began


def test_a_shift_that_costs_more_than_all_is_harder_on_both_sides():
    rows = [("r", "heavy snow", scale, value) for scale, value in zip(SCALES, [0.9, 0.7, 0.4], strict=True)]
    rows += [("r", accuracy.ALL, scale, value) for scale, value in zip(SCALES, [0.9, 0.8, 0.7], strict=True)]
    digitised = pd.DataFrame(rows, columns=["model", "shift", "scale", "accuracy"])
    table = papers.harder(errors({"x": [0.9, 0.8, 0.5], "y": [0.7, 0.6, 0.5]}), digitised, PUBLISHED)
    row = table.loc["heavy snow"]
    assert (row["published"], row["estimate"], row["ours of"]) == (pytest.approx(0.3), pytest.approx(0.15), accuracy.MEAN_MODEL)


def test_an_ordering_is_a_difference_of_drops_and_an_absent_classifier_is_left_out():
    listed = pd.DataFrame({"claim": ["one", "two"], "first": ["x", "z"], "second": "y", "paper_first": ["a", "b"], "paper_second": "d"})
    table = papers.orderings(errors({"x": [0.9, 0.8, 0.5], "y": [0.7, 0.6, 0.5]}), listed, PUBLISHED)
    assert (
        list(table.index) == ["one"]
        and table.loc["one", "ours"] == pytest.approx(0.1)
        and table.loc["one", "published"] == pytest.approx(0.3)
    )
    assert papers.orderings(errors({"x": [0.9, 0.8, 0.5], "w": [0.7, 0.6, 0.5]}), listed, PUBLISHED).empty


def test_the_four_numbers_of_a_curve_go_by_their_names():
    """Mean errors 0.18, 0.35, 0.2 and mean drops 0.08, 0.05, 0: one of three pairs has one order, so tau is -1/3."""
    ours, *_ = papers.shape(errors({"x": [0.9, 0.8, 0.5], "y": [0.7, 0.6, 0.5], "z": [0.8] * 3}), PUBLISHED)
    expected = {"accuracy at scale 0": 0.8, "drop at the last scale": 0.1, "share of the drop by scale 1": 1.0}
    assert ours["estimate"].to_dict() == pytest.approx(expected | {"tau of error and drop": -1 / 3})
