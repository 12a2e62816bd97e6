"""What the benchmarks' scripts calculate, where the answer is known by hand."""

import numpy as np
import pytest
import torch

from cnslib import paths


@pytest.fixture
def scripts(monkeypatch):
    """The folder of the scripts, to import from."""
    monkeypatch.syspath_prepend(paths.ROOT / "benchmarks")


def test_growth_finds_the_exponent_of_a_power_law_and_a_slope(scripts):
    import growth

    sizes = np.array([1, 2, 4, 8, 1, 2, 4, 8])
    assert np.allclose(growth.exponent(sizes, 3 * sizes**1.5), 1.5)
    estimate, low, high = growth.slope(sizes, 5 * sizes + np.array([1.0, -1.0] * 4))
    assert low < estimate < high


def test_roofline_counts_every_product_of_an_attention_layer_and_its_gradient(scripts):
    import roofline

    width, batch, tokens = 64, 2, 10
    layer = torch.nn.MultiheadAttention(width, 4, batch_first=True).eval().requires_grad_(False)
    inputs = torch.randn(batch, tokens, width)
    by_hand = 2 * batch * tokens * 4 * width**2 + 4 * batch * tokens**2 * width
    assert roofline.operations(lambda: layer(inputs, inputs, inputs, need_weights=False)) == by_hand
    linear = torch.nn.Linear(width, 32)
    forward = 2 * tokens * width * 32
    assert roofline.operations(lambda: linear(inputs[0]).sum().backward()) == 2 * forward  # no gradient of the inputs is asked for
