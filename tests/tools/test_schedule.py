"""Stages side by side: each after those it waits for, and the first error ends the work."""

import subprocess
import sys
import threading

import pytest
from ruamel.yaml import YAML

from cnslib.core import paths
from cnslib.tools import schedule

STAGES = {
    "world": {"cmd": "true", "deps": ["notebooks"], "outs": ["artifacts/world"]},
    "accuracy": {"cmd": "true", "deps": ["artifacts/world", "stats.py"], "metrics": [{"metrics/accuracy.json": {"cache": False}}]},
    "summary": {"cmd": "true", "deps": ["metrics/accuracy.json"], "outs": ["out.txt"]},
}


@pytest.fixture
def repository(tmp_path):
    """An empty repository of DVC."""
    subprocess.run([sys.executable, "-m", "dvc", "init", "--no-scm", "--quiet"], cwd=tmp_path, check=True)
    return tmp_path


def test_a_stage_waits_for_those_that_make_its_dependencies(repository):
    YAML().dump({"stages": STAGES}, repository / "dvc.yaml")
    assert schedule.predecessors(repository) == {"world": set(), "accuracy": {"world"}, "summary": {"accuracy"}}


def test_the_order_of_the_compendium_is_that_of_its_artifacts():
    found = schedule.predecessors(paths.ROOT)
    assert found["world"] == set() and found["filtering"] == {"generation"} and found["accuracy"] >= {"evaluation", "filtering"}


def test_stages_run_after_those_they_wait_for_and_two_that_do_not_run_together():
    both = threading.Barrier(2, timeout=60)
    order = []

    def launch(name):
        if name in ("left", "right"):
            both.wait()
        order.append(name)

    schedule.run({"left": {"first"}, "right": {"first"}, "first": {"elsewhere"}, "last": {"left", "right"}}, launch)
    assert order[0] == "first" and set(order[1:3]) == {"left", "right"} and order[3] == "last"


def test_the_stage_that_most_others_wait_for_goes_first_and_equal_ones_in_their_order(monkeypatch):
    monkeypatch.setattr(schedule, "MOST", 1)
    order = []
    schedule.run({"plain": set(), "some": set(), "most": set(), "a": {"some"}, "b": {"most"}, "c": {"b", "elsewhere"}}, order.append)
    assert order == ["most", "some", "b", "plain", "a", "c"]


def test_dependents_are_counted_once_however_many_ways_lead_to_them():
    assert schedule.dependents({"d": {"b", "c"}, "b": {"a"}, "c": {"a"}, "a": set()}) == {"d": 0, "b": 1, "c": 1, "a": 3}


def test_the_first_error_keeps_later_stages_from_starting():
    seen = []

    def launch(name):
        seen.append(name)
        raise ValueError(name)

    with pytest.raises(ValueError, match="first"):
        schedule.run({"first": set(), "second": {"first"}}, launch)
    assert seen == ["first"]


def test_without_a_terminal_there_is_no_bar_though_the_program_has_loaded_kernels():
    source = "from cnslib.tools import runner, schedule; schedule.run({'a': set()}, lambda name: print(name))"
    done = subprocess.run([sys.executable, "-c", source], cwd=paths.ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["a", "a: done"] and "stages" not in done.stderr
