"""What the benchmarks' scripts calculate, where the answer is known by hand or from another library."""

import numpy as np
import pytest
import torch
from scipy import stats

from cnslib.core import paths, tables


@pytest.fixture
def scripts(monkeypatch):
    """The folder of the scripts, to import from."""
    monkeypatch.syspath_prepend(paths.ROOT / "benchmarks")


def test_growth_finds_an_exponent_and_a_slope_with_students_interval(scripts):
    import growth

    sizes = np.array([1, 2, 4, 8, 1, 2, 4, 8])
    assert np.allclose(growth.exponent(sizes, 3 * sizes**1.5), 1.5)
    sizes, values = sizes[:5], 5 * sizes[:5] + np.array([0.5, -1, 1, 0.2, -0.3])
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
    assert roofline.operations(lambda: linear(inputs[0]).sum().backward()) == 4 * tokens * width * 32  # the inputs need no gradient


def test_every_analysis_of_the_scale_script_makes_its_tables(scripts, tmp_path, monkeypatch):
    import scale

    monkeypatch.setattr(scale, "SHIFTS", ("cartoon style", "heavy snow"))
    scale.simulate(tmp_path / "p.parquet", extent=scale.Extent(models=25, kept=30, classes=4, seeds=12))
    rows = tables.read(tmp_path / "p.parquet", tables.predictions)
    right = (rows["top1"] == rows["class"]).groupby(rows["scale"]).mean()
    assert len(rows) == 25 * 2 * 30 * 6 and right[0.0] > right[1.5] > right[2.5]
    made, _ = scale.analyse(tmp_path / "p.parquet")
    assert [name for name, table in made.items() if table.empty] == [] and len(made["intervals"]) == 25 * 2 * 30
