"""Stages side by side: each after those it depends on, and the first failure ends the work."""

import subprocess
import sys

import pytest
from ruamel.yaml import YAML

from cnslib import paths, schedule

STAGES = {
    "export": {"outs": [{".nb": {"cache": False}}]},
    "world": {"deps": [".nb/00_world.py"], "outs": ["artifacts/world"]},
    "accuracy": {"deps": ["artifacts/world", "cnslib/stats.py"], "metrics": [{"metrics/accuracy.json": {"cache": False}}]},
    "summary": {"deps": ["metrics/accuracy.json"], "outs": ["out.txt"]},
}


def test_a_stage_waits_for_those_that_make_its_dependencies():
    waits = {"export": set(), "world": {"export"}, "accuracy": {"world"}, "summary": {"accuracy"}}
    assert schedule.predecessors(STAGES) == waits


def test_every_stage_of_the_compendium_waits_for_the_exported_code():
    stages = YAML(typ="safe", pure=True).load((paths.ROOT / "dvc.yaml").read_text())["stages"]
    found = schedule.predecessors(stages)
    assert all("export" in waits for name, waits in found.items() if name != "export")
    assert found["filtering"] == {"export", "generation"}


@pytest.fixture
def pipeline(tmp_path):
    """Two stages that join in a third, in a folder of their own."""

    def write(third: str):
        subprocess.run([sys.executable, "-m", "dvc", "init", "--no-scm", "--quiet"], cwd=tmp_path, check=True)
        commands = {"left": "echo 1 > left", "right": "echo 2 > right", "both": third}
        deps = {"left": [], "right": [], "both": ["left", "right"]}
        stages = {name: {"cmd": command, "deps": deps[name], "outs": [name]} for name, command in commands.items()}
        YAML().dump({"stages": stages}, tmp_path / "dvc.yaml")
        return tmp_path

    return write


def test_stages_run_after_those_they_need_and_are_recorded(pipeline):
    root = pipeline("cat left right > both")
    schedule.run(root)
    assert (root / "both").read_text() == "1\n2\n"
    assert set(YAML(typ="safe").load((root / "dvc.lock").read_text())["stages"]) == {"left", "right", "both"}


def test_a_stage_that_fails_is_named_with_what_it_printed(pipeline):
    root = pipeline("echo too little snow; exit 3")
    with pytest.raises(RuntimeError, match=r"(?s)stage both failed:.*too little snow"):
        schedule.run(root)
