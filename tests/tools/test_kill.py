"""Runs that are killed for real: what they leave after they were started again is what an undisturbed run leaves."""

import sys

import numpy as np
import psutil
import pytest

from cnslib.core import paths
from cnslib.tools import kill

STEP = """
import sys, time
from pathlib import Path
from cnslib.core import units

recipe = units.Recipe("tests", 1)
files = {key: (f"{key}.txt", recipe.stamp(key)) for key in range(12)}
shelf = units.Shelf(Path(sys.argv[1]) / "artifacts" / "step", files, "*.txt")
for key in shelf.waiting():
    with units.atomic(shelf[key].path) as partial, open(partial, "w") as stream:
        for line in range(20):
            print(key, line, file=stream, flush=True)
            time.sleep(0.005)
    shelf[key].finish()
"""


def command(folder):
    """A step of twelve units, each written line by line."""
    return [sys.executable, "-c", STEP, str(folder)]


@pytest.mark.slow
@pytest.mark.parametrize("moment", [0.2, 0.5, 0.7, 0.9])
def test_a_step_that_is_killed_three_times_leaves_the_bytes_of_an_undisturbed_one(tmp_path, moment):
    took = kill.timed(command(tmp_path / "undisturbed"))
    met = [kill.killed(command(tmp_path / "killed"), took * moment * share) for share in (1, 0.8, 0.6)]
    kill.timed(command(tmp_path / "killed"))
    assert met[0] and kill.differing(tmp_path / "undisturbed", tmp_path / "killed") == []
    assert not list((tmp_path / "killed").rglob("*.partial"))


CHILD = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(60)"
PARENT = "import subprocess, sys; subprocess.run([sys.executable, '-c', *sys.argv[1:]], start_new_session=True)"


@pytest.mark.slow
def test_what_a_killed_process_started_ends_with_it(tmp_path):
    """As a kernel of Jupyter, the child is in a session of its own."""
    note = tmp_path / "pid"
    assert kill.killed([sys.executable, "-c", PARENT, CHILD, str(note)], 5.0)
    number = int(note.read_text())
    assert not psutil.pid_exists(number) or not kill.alive(psutil.Process(number))


def test_a_step_that_fails_is_named():
    with pytest.raises(RuntimeError, match="ended with 3; accepted: 0"):
        kill.timed([sys.executable, "-c", "raise SystemExit(3)"])


def test_a_changed_a_missing_and_a_new_file_differ(tmp_path):
    for place in ("first", "second"):
        (tmp_path / place / "metrics").mkdir(parents=True)
        (tmp_path / place / "metrics" / "same.json").write_text("1")
        (tmp_path / place / "metrics" / "changed.json").write_text(place)
        (tmp_path / place / "metrics" / f"{place}.json").write_text("1")
    assert kill.differing(tmp_path / "first", tmp_path / "second") == ["metrics/changed.json", "metrics/first.json", "metrics/second.json"]
    with pytest.raises(ValueError, match="accepted: one with artifacts, metrics, figures in it"):
        kill.differing(tmp_path / "nothing", tmp_path / "second")


def test_kills_are_dealt_to_the_steps_in_turn(monkeypatch):
    """Five kills of three steps, each at a moment within the step's time; every step is run to its end."""
    ran, moments = [], []
    monkeypatch.setattr(kill, "timed", lambda command: ran.append(command[-1]) or 10.0)
    monkeypatch.setattr(kill, "killed", lambda command, after: moments.append((command[-1], after)) or True)
    overlays = dict.fromkeys(("undisturbed", "killed"), paths.resolve("smoke.yaml"))
    with pytest.raises(ValueError, match="--kills: 2 is not accepted; accepted: 3 or more"):
        kill.chain(["world", "sliders", "line"], overlays, kills=2, seed=1)
    ran.clear()
    assert kill.chain(["world", "sliders", "line"], overlays, kills=5, seed=1) == 5
    assert [step for step, _ in moments] == ["world", "world", "sliders", "sliders", "line"]
    assert ran == ["world", "sliders", "line"] * 2
    assert all(0.5 <= after <= 9.5 for _, after in moments) and len(np.unique([after for _, after in moments])) == 5
