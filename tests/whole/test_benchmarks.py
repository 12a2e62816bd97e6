"""What the benchmarks' scripts calculate, where the answer is known by hand or from another library."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from cnslib.core import paths
from cnslib.stats.accuracy import Outcomes


@pytest.fixture
def scripts(monkeypatch):
    """The folder of the scripts, to import from."""
    monkeypatch.syspath_prepend(paths.ROOT / "benchmarks")


def test_growth_finds_the_exponent_of_a_power_law(scripts):
    import growth

    sizes = np.array([1, 2, 4, 8, 1, 2, 4, 8])
    assert np.allclose(growth.exponent(sizes, 3 * sizes**1.5), 1.5)


def test_growth_gives_a_slope_with_the_interval_of_student(scripts):
    import growth

    sizes = np.array([1, 2, 4, 8, 16])
    values = 5 * sizes + np.array([0.5, -1, 1, 0.2, -0.3])
    other = stats.linregress(sizes, values)
    half = stats.t.ppf(0.975, len(sizes) - 2) * other.stderr
    assert np.allclose(growth.slope(sizes, values), [other.slope, other.slope - half, other.slope + half])


def test_roofline_counts_every_product_of_an_attention_layer_and_of_a_gradient(scripts):
    import roofline

    width, batch, tokens = 64, 2, 10
    layer = torch.nn.MultiheadAttention(width, 4, batch_first=True).eval().requires_grad_(False)
    inputs = torch.randn(batch, tokens, width)
    by_hand = 2 * batch * tokens * 4 * width**2 + 4 * batch * tokens**2 * width
    assert roofline.operations(lambda: layer(inputs, inputs, inputs, need_weights=False)) == by_hand
    linear = torch.nn.Linear(width, 32)
    forward = 2 * tokens * width * 32
    assert roofline.operations(lambda: linear(inputs[0]).sum().backward()) == 2 * forward  # the inputs need no gradient


def test_samplers_compare_the_orders_of_the_same_seeds(scripts):
    import samplers

    trajectories = pd.DataFrame([("heavy snow", "bag", seed) for seed in (1, 2, 3, 4)], columns=["shift", "class", "seed"])
    wrong = np.zeros((4, 3, 2), bool)
    wrong[:2, 1, 1], wrong[:2, 2, 1], wrong[2:, 0, 1] = [True, False], True, True  # seeds 3 and 4 reverse the order of 1 and 2
    found = Outcomes(trajectories, ["a", "b", "c"], [0.0, 1.0], wrong)
    other = Outcomes(trajectories, found.models, found.scales, wrong[:, ::-1])
    table = samplers.by_size({"slow": found, "same": found, "reversed": other}, found, "slow", 2)
    assert (table["same"] == 1).all()
    assert table.loc[2, "reversed"] == -1
