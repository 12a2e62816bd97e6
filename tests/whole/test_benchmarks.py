"""The benchmark of large tables: what it simulates is what it says, and every analysis makes its tables."""

import pytest

from cnslib.core import paths, tables


@pytest.fixture
def scripts(monkeypatch):
    """The folder of the scripts, to import from."""
    monkeypatch.syspath_prepend(paths.ROOT / "benchmarks")


def test_every_analysis_of_the_scale_script_makes_its_tables(scripts, tmp_path, monkeypatch):
    import scale

    monkeypatch.setattr(scale, "SHIFTS", ("cartoon style", "heavy snow"))
    scale.simulate(tmp_path / "p.parquet", extent=scale.Extent(models=25, kept=30, classes=4, seeds=12))
    rows = tables.read(tmp_path / "p.parquet", tables.predictions)
    right = (rows["top1"] == rows["class"]).groupby(rows["scale"]).mean()
    assert len(rows) == 25 * 2 * 30 * 6 and right[0.0] > right[1.5] > right[2.5]
    made, _ = scale.analyse(tmp_path / "p.parquet")
    assert [name for name, table in made.items() if table.empty] == [] and len(made["intervals"]) == 25 * 2 * 30
