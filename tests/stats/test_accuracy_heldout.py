"""Accuracy without a shift, from answers or from published accuracies."""

import numpy as np
import pandas as pd
import pytest

from cnslib.core import tables
from cnslib.core.names import UNSHIFTED
from cnslib.core.settings.method import Bootstrap
from cnslib.stats import accuracy

SETTINGS = Bootstrap(2000, 0.95, 3)


def answers(folder, right: dict[str, int]) -> None:
    """Five images of one class; each model is right on the first ones."""
    for model, count in right.items():
        keys = [(UNSHIFTED, "bag", seed, 0.0) for seed in range(5)]
        table = pd.DataFrame(keys, columns=tables.KEY).assign(model=model, top1=["bag"] * count + ["coat"] * (5 - count))
        more = {"top5": [["bag"]] * 5, "probability": 0.5, "margin": 0.0, "preprocessing": "model"}
        tables.write(table.assign(**more), folder / "heldout" / f"{model}.parquet", tables.predictions)


def test_shares_are_counted_from_the_answers_and_resampled_on_their_own(tmp_path):
    answers(tmp_path, {"a": 3, "b": 5})
    found = accuracy.shares(tmp_path, settings=SETTINGS)
    assert found.samples[0, -1, :, 0].tolist() == [0.4, 0.0] and found.n.tolist() == [5, 5]
    other = accuracy.shares(tmp_path, settings=Bootstrap(2000, 0.95, 4))
    assert abs(np.corrcoef(found.samples[1:, 0, 0, 0], other.samples[1:, 0, 0, 0])[0, 1]) < 0.2


def test_published_accuracies_vary_as_many_independent_images_do(tmp_path):
    pd.DataFrame({"model": ["b", "a"], "accuracy": [0.8, 0.5], "n": 10000}).to_csv(tmp_path / "heldout.csv", index=False)
    found = accuracy.shares(tmp_path, settings=SETTINGS)
    assert found.models == ["a", "b"] and found.samples[0, -1, :, 0].tolist() == pytest.approx([0.5, 0.2]) and found.n[-1] == 10000
    assert found.samples[1:, -1, :, 0].std(0) == pytest.approx([0.005, 0.004], rel=0.1)  # sqrt(p (1 - p) / n)
    table = accuracy.accuracy(found).query("shift == 'catalog'").set_index("model")
    assert table.loc["a", ["low", "high"]].tolist() == pytest.approx([0.4902, 0.5098], abs=1e-3)


def test_answers_come_before_published_accuracies(tmp_path):
    answers(tmp_path, {"a": 3})
    pd.DataFrame({"model": ["a"], "accuracy": [0.1], "n": 9}).to_csv(tmp_path / "heldout.csv", index=False)
    assert accuracy.shares(tmp_path, settings=SETTINGS).samples[0, 0, 0, 0] == 0.4


def test_a_classifier_without_a_value_is_not_a_number_and_order_is_that_of_the_models(tmp_path):
    answers(tmp_path, {"a": 3, "b": 5})
    found = accuracy.shares(tmp_path, settings=SETTINGS)
    assert accuracy.spread(found, ["a", "b"]) is found
    wide = accuracy.spread(found, ["b", "c", "a"]).samples[0, -1, :, 0]
    assert wide[[0, 2]].tolist() == [0.0, 0.4] and np.isnan(wide[1])


def test_neither_answers_nor_accuracies_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="no table of predictions"):
        accuracy.shares(tmp_path, settings=SETTINGS)
