"""Two benchmarks' orders of the same models, on error rates that are chosen by hand."""

import numpy as np
import pandas as pd
import pytest

from cnslib.stats import ranking
from cnslib.stats.accuracy import ALL, Shares

MODELS = ["alexnet", "second", "third"]


def shares(errors, models=MODELS, noise=0.0, seed=0):
    """Error rates [shifts, models, scales] as a benchmark with twenty resamples that differ from them by some noise."""
    errors = np.asarray(errors, float)
    samples = errors + noise * np.random.default_rng(seed).normal(size=(21, *errors.shape))
    samples[0] = errors
    samples = np.concatenate([samples, samples.mean(1, keepdims=True)], axis=1)
    names = [f"shift {i}" for i in range(len(errors))]
    return Shares(samples, [*names, ALL], np.full(len(names) + 1, 10), models, list(range(errors.shape[2])), 0.95)


def test_errors_are_averaged_above_scale_zero():
    found = shares([[[0.9, 0.1, 0.3], [0, 0.2, 0.2], [0, 1, 1]], [[0.9, 0.5, 0.7], [0, 0, 0], [0, 1, 1]]])
    assert ranking.mean_errors(found)[0].tolist() == pytest.approx([0.4, 0.1, 1.0])
    assert ranking.mean_errors(found, shift="shift 1")[0].tolist() == pytest.approx([0.6, 0.0, 1.0])


def test_rank_changes_of_a_reversed_order():
    first, second = shares([[[0, 0.1], [0, 0.2], [0, 0.3]]]), shares([[[0, 0.9], [0, 0.8], [0, 0.7]]])
    table = ranking.rank_changes(first, second).set_index("model")
    assert table["first"].tolist() == [1, 2, 3] and table["second"].tolist() == [3, 2, 1]
    assert table[["estimate", "low", "high"]].to_numpy().tolist() == [[2, 2, 2], [0, 0, 0], [-2, -2, -2]]
    assert ranking.rank_agreement(first, second) == {"n": 10, "estimate": -1, "low": -1, "high": -1}
    assert ranking.rank_agreement(first, first)["estimate"] == 1


def test_uncertain_errors_give_a_wide_interval():
    near = shares([[[0, 0.2], [0, 0.2001], [0, 0.2002]]], noise=0.1)
    table = ranking.rank_changes(shares([[[0, 0.1], [0, 0.2], [0, 0.3]]]), near)
    assert (table["high"] - table["low"]).min() >= 1


def test_different_models_are_refused():
    one = shares([[[0, 0.1], [0, 0.2], [0, 0.3]]])
    other = shares([[[0, 0.1], [0, 0.2], [0, 0.3]]], models=["alexnet", "second", "fourth"])
    for compare in (ranking.rank_changes, ranking.rank_agreement):
        with pytest.raises(ValueError, match=r"fourth.*accepted: the same models"):
            compare(one, other)


def test_the_order_of_the_originals_is_that_at_scale_zero():
    kept, turned = [[[0.1, 0.5], [0.2, 0.6], [0.3, 0.7]]], [[[0.3, 0.5], [0.2, 0.6], [0.1, 0.7]]]
    assert ranking.originals_agreement(shares(kept))["estimate"] == 1
    assert ranking.originals_agreement(shares(turned))["estimate"] == -1


def test_a_pair_changes_between_shifts_when_its_order_does():
    table = ranking.order_changes(shares([[[0, 0.1], [0, 0.2], [0, 0.3]], [[0, 0.2], [0, 0.1], [0, 0.3]]]))
    assert table.set_index(["first", "second"])["probability"].to_dict() == {
        ("alexnet", "second"): 1,
        ("alexnet", "third"): 0,
        ("second", "third"): 0,
    }


def test_ce_leaves_the_originals_out():
    # severity 0 would change the ratio: (0.2 + 0.2) / (0.4 + 0.4) without it, (0.8 + 0.4) / (0 + 0.8) with it
    found = shares([[[0.0, 0.4, 0.4], [0.8, 0.2, 0.2], [0.0, 0.4, 0.4]]])
    table = ranking.corruption_error(found, reference="alexnet").set_index(["shift", "model"])["estimate"]
    assert table["shift 0", "second"] == pytest.approx(0.5) and table["shift 0", "third"] == 1


def test_common_severities_are_those_that_every_corruption_has():
    rows = [("unshifted", 0.0), ("contrast", 1.0), ("contrast", 1.5), ("contrast", 2.0), ("blur", 1.0), ("blur", 2.0)]
    table = pd.DataFrame(rows, columns=["shift", "scale"]).astype({"shift": "category"})
    assert ranking.common(table)["scale"].tolist() == [0.0, 1.0, 2.0, 1.0, 2.0]
