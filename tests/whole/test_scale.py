"""The scale test's simulation and tables, at a size of seconds."""

import pytest

from cnslib.core import paths, tables
from cnslib.stats import accuracy

EXTENT = {"models": 25, "kept": 30, "classes": 4, "seeds": 12}


@pytest.fixture(scope="module")
def scale():
    """The benchmark as a module, with two shifts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(paths.ROOT / "benchmarks")
        import scale

        patch.setattr(scale, "SHIFTS", ("cartoon style", "heavy snow"))
        yield scale


@pytest.fixture(scope="module")
def file(scale, tmp_path_factory):
    path = tmp_path_factory.mktemp("scale") / "predictions.parquet"
    scale.simulate(path, extent=scale.Extent(**EXTENT))
    return path


def test_simulated_predictions_are_a_table_of_the_evaluation(file):
    found = tables.read(file, tables.predictions)
    assert len(found) == 25 * 2 * 30 * 6
    right = (found["top1"] == found["class"]).groupby(found["scale"]).mean()
    assert right[0.0] > right[1.5] > right[2.5]
    assert ((found["margin"] > 0) == (found["top1"] == found["class"]))[found["margin"] != 0].all()


def test_every_analysis_of_the_scale_test_makes_its_tables(scale, file):
    made, took = scale.analyse(file)
    assert not [name for name, table in made.items() if table.empty]
    assert {f"{kind} {shift}" for kind in ("pairs", "flips", "overlap") for shift in ("heavy snow", accuracy.ALL)} < set(made)
    assert len(made["intervals"]) == 25 * 2 * 30
    assert (
        list(took.index) == ["read", "resample", "accuracy", "ranking", "axes", "failure", "line", "total"] and (took["peak GB"] > 0).all()
    )
