import json

import pytest

from cnslib.core import recipes
from cnslib.world import manifest


def test_figures_carry_wilson_intervals_and_those_that_are_measured_later_join_those_of_their_model_alone(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        manifest.record(tmp_path, name, seed=1, steps=2, recipe=recipes.PLAIN, quality={"first": manifest.share([True] * 8 + [False] * 2)})
    manifest.measured(tmp_path, "a", {"second": manifest.share([False])})
    saved = json.loads((tmp_path / "manifest.json").read_text())
    assert list(saved["a"]["quality"]) == ["first", "second"] and list(saved["b"]["quality"]) == ["first"]
    assert saved["a"]["quality"]["second"]["estimate"] == 0 and saved["a"]["steps"] == 2
    assert saved["b"]["quality"]["first"] == pytest.approx({"n": 10, "estimate": 0.8, "low": 0.4902, "high": 0.9433}, abs=1e-4)
