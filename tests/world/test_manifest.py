"""The manifest of the base models: what it keeps, and for whom."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from cnslib.core import recipes
from cnslib.world import manifest


def test_the_manifest_keeps_every_model_and_shares_carry_wilson_intervals(tmp_path):
    (tmp_path / "a").mkdir()
    quality = {"accuracy": manifest.share([True] * 8 + [False] * 2)}
    for name in ("a", "b"):
        manifest.record(tmp_path, name, seed=1, steps=2, recipe=recipes.PLAIN, quality=quality)
    saved = json.loads((tmp_path / "manifest.json").read_text())
    assert sorted(saved) == ["a", "b"]
    found = saved["a"]["quality"]["accuracy"]
    assert (found["n"], found["estimate"]) == (10, 0.8)
    assert (found["low"], found["high"]) == (pytest.approx(0.4902, abs=1e-4), pytest.approx(0.9433, abs=1e-4))


def test_models_that_are_recorded_side_by_side_do_not_lose_each_others_entries(tmp_path):
    names = [str(number) for number in range(16)]
    for name in names:
        (tmp_path / name).mkdir()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: manifest.record(tmp_path, name, seed=1, steps=1, recipe=recipes.PLAIN, quality={}), names))
    assert sorted(manifest.read(tmp_path)) == sorted(names)


def test_a_model_is_current_with_its_options_recipe_and_files_alone(tmp_path):
    (tmp_path / "a").mkdir()
    manifest.record(tmp_path, "a", seed=1, steps=1, recipe=recipes.PLAIN, quality={}, options={"rate": 0.1})
    assert manifest.current(tmp_path, "a", recipe=recipes.PLAIN, options={"rate": 0.1})
    assert not manifest.current(tmp_path, "a", recipe=recipes.PLAIN, options={"rate": 0.2})
    assert not manifest.current(tmp_path, "a", recipe=recipes.AUGMENTED, options={"rate": 0.1})
    assert not manifest.current(tmp_path, "b", recipe=recipes.PLAIN, options={"rate": 0.1})
    (tmp_path / "a" / "config.json").write_text("{}")
    assert not manifest.current(tmp_path, "a", recipe=recipes.PLAIN, options={"rate": 0.1})


def test_figures_that_are_measured_later_join_those_of_their_model_and_of_no_other(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        manifest.record(tmp_path, name, seed=1, steps=2, recipe=recipes.PLAIN, quality={"first": manifest.share([True])})
    manifest.measured(tmp_path, "a", {"second": manifest.share([False])})
    saved = manifest.read(tmp_path)
    assert list(saved["a"]["quality"]) == ["first", "second"] and list(saved["b"]["quality"]) == ["first"]
    assert saved["a"]["quality"]["second"]["estimate"] == 0 and saved["a"]["steps"] == 2
    with pytest.raises(KeyError, match="'c'"):
        manifest.measured(tmp_path, "c", {})
