"""Stages side by side: each after those it waits for, and the first error ends the work."""

import subprocess
import sys
import threading

import pytest
from ruamel.yaml import YAML

from cnslib import paths, reproduce, schedule

STAGES = {
    "export": {"outs": [{".nb": {"cache": False}}]},
    "world": {"deps": [".nb/00_world.py"], "outs": ["artifacts/world"]},
    "accuracy": {"deps": ["artifacts/world", "cnslib/stats.py"], "metrics": [{"metrics/accuracy.json": {"cache": False}}]},
    "summary": {"deps": ["metrics/accuracy.json"], "outs": ["out.txt"]},
}


def test_a_stage_waits_for_those_that_make_its_dependencies(tmp_path):
    YAML().dump({"stages": STAGES}, tmp_path / "dvc.yaml")
    waits = {"export": set(), "world": {"export"}, "accuracy": {"world"}, "summary": {"accuracy"}}
    assert schedule.predecessors(tmp_path) == waits


def test_every_stage_of_the_compendium_waits_for_the_exported_code():
    found = schedule.predecessors(paths.ROOT)
    assert all("export" in waits for name, waits in found.items() if name != "export")
    assert found["filtering"] == {"export", "generation"}


def test_stages_run_after_those_they_wait_for_and_two_that_do_not_run_together():
    both = threading.Barrier(2, timeout=60)
    order = []

    def launch(name):
        if name in ("left", "right"):
            both.wait()
        order.append(name)

    schedule.run({"left": {"first"}, "right": {"first"}, "first": {"elsewhere"}, "last": {"left", "right"}}, launch)
    assert order[0] == "first" and set(order[1:3]) == {"left", "right"} and order[3] == "last"


def test_the_first_error_keeps_later_stages_from_starting():
    seen = []

    def launch(name):
        seen.append(name)
        raise ValueError(name)

    with pytest.raises(ValueError, match="first"):
        schedule.run({"first": set(), "second": {"first"}}, launch)
    assert seen == ["first"]


def test_a_command_that_fails_is_named_with_what_it_printed(tmp_path):
    with pytest.raises(RuntimeError, match=r"(?s)snow failed:.*No module named cnslib.blizzard"):
        schedule.finish("snow", ["cnslib.blizzard"], tmp_path)


def test_threads_of_stages_that_share_the_cores_sleep_while_they_wait_unless_the_user_wants_otherwise(tmp_path, monkeypatch):
    (tmp_path / "told.py").write_text("import os, sys; sys.exit(os.environ['OMP_WAIT_POLICY'])")
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    with pytest.raises(RuntimeError, match="failed:\npassive"):
        schedule.finish("told", ["told"], tmp_path)
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    with pytest.raises(RuntimeError, match="failed:\nactive"):
        schedule.finish("told", ["told"], tmp_path)


def test_dvc_runs_two_stages_at_once_and_records_both(tmp_path):
    subprocess.run([sys.executable, "-m", "dvc", "init", "--no-scm", "--quiet"], cwd=tmp_path, check=True)
    commands = {"left": "echo 1 > left", "right": "echo 2 > right", "both": "cat left right > both"}
    stages = {name: {"cmd": command, "outs": [name]} for name, command in commands.items()}
    stages["both"]["deps"] = ["left", "right"]
    YAML().dump({"stages": stages}, tmp_path / "dvc.yaml")
    reproduce.stages(tmp_path)
    assert (tmp_path / "both").read_text() == "1\n2\n"
    assert set(YAML(typ="safe").load((tmp_path / "dvc.lock").read_text())["stages"]) == {"left", "right", "both"}
