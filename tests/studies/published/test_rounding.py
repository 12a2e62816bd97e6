"""The partial correlation of supplement F, and what rounding of the printed tables allows."""

import numpy as np
import pytest

from cnslib.data import published
from cnslib.studies.published import rounding


def test_partial_correlation_is_that_of_the_three_pairwise_ones():
    table = rounding.family()
    ood, own, size = (
        table[[0.5, 1.0, 1.5, 2.0, 2.5]].mean(axis=1).to_numpy(),
        table["id_accuracy"].to_numpy(),
        table["parameters"].to_numpy(),
    )
    for measure, given in ((np.log2, {}), (np.asarray, {"measure": np.asarray})):
        r = np.corrcoef([measure(size), ood, own])
        expected = (r[0, 1] - r[0, 2] * r[1, 2]) / np.sqrt((1 - r[0, 2] ** 2) * (1 - r[1, 2] ** 2))
        assert rounding.partial(measure(size), ood, own)[0] == pytest.approx(expected)
        assert rounding.correlation(np.concatenate([size, ood, own]), **given) == pytest.approx(expected)


def test_drawn_tables_round_to_the_printed_row():
    model = rounding.family().index[0]
    drawn = rounding.draws(model, 50, np.random.default_rng(0))
    accuracies, others = rounding.printed(model)
    np.testing.assert_allclose(np.abs(drawn - accuracies).max(), 0, atol=0.005)
    assert np.abs(drawn @ rounding.combinations().T - others).max() <= 0.005 + 1e-8
    low, high = rounding.bounds(model, rounding.outcomes()["scale 2.5"])
    assert low <= drawn[:, -1].min() and drawn[:, -1].max() <= high and high - low <= 0.01 + 1e-8


def test_drop_and_mean_accuracy_are_weights_that_give_the_printed_columns():
    table, weights = rounding.family(), rounding.outcomes()
    scales = table[list(rounding.SCALES)]
    above = scales.drop(columns=0.0).mean(axis=1)
    assert scales.to_numpy() @ weights[rounding.MEAN] == pytest.approx(above.to_numpy())
    assert scales.to_numpy() @ weights[rounding.DROP] == pytest.approx((scales[0.0] - above).to_numpy())


def test_the_printed_correlation_is_one_that_the_rounding_of_drops_allows():
    said = float(published.facts("cns_text")["partial_correlation"])
    row = rounding.correlations(starts=200, confidence=0.95, seed=1).set_index("accuracy").loc[rounding.DROP]
    assert row["estimate"] == pytest.approx(-0.450, abs=1e-3) and row["low"] <= said <= row["high"]


def test_the_number_of_parameters_itself_takes_the_drop_to_zero_and_the_accuracy_up():
    table = rounding.correlations(starts=200, confidence=0.95, seed=1).set_index("accuracy")
    assert table["counted"].loc[[rounding.DROP, rounding.MEAN, "scale 0.5"]].tolist() == pytest.approx([-0.04, 0.94, 0.74], abs=0.005)
    assert (table["counted_low"] <= table["counted"]).all() and (table["counted"] <= table["counted_high"]).all()
    assert table.loc[rounding.DROP, "counted_low"] < 0 < table.loc[rounding.DROP, "counted_high"]


def test_rounding_of_the_partial_correlation_nests():
    row = rounding.correlations(starts=100, confidence=0.9, seed=1).iloc[0]
    assert -1 <= row["least"] <= row["low"] < row["high"] <= row["most"] <= 1
    assert row["estimate"] == pytest.approx(0.687, abs=1e-3) and row["low"] > float(published.facts("cns_text")["partial_correlation"])
