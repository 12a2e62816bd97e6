import errno
import json
import subprocess
import sys
import threading
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from ruamel.yaml import YAML

from cnslib.core import paths
from cnslib.core.settings import read
from cnslib.tools import kernels, runner


def notebook(*cells) -> nbformat.NotebookNode:
    return new_notebook(cells=list(cells), metadata={"kernelspec": kernels.KERNELSPEC})


def tagged(source: str) -> nbformat.NotebookNode:
    return new_code_cell(source, metadata={"tags": ["parameters"]})


@pytest.fixture
def repository(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path / "notebooks")
    (tmp_path / "notebooks").mkdir()
    return tmp_path


def world(repository, code: str, *, device: str = "cpu") -> dict[str, str]:
    nbformat.write(notebook(tagged("params = None\noverlay = None"), new_code_cell(code)), repository / "notebooks" / "00_world.ipynb")
    base, counts = read.read(Path(__file__).parents[2] / "params.yaml")["base"], {"train_images": 1, "heldout_images": 1}
    (repository / "plain.yaml").write_text(json.dumps({"base": base | {"device": device}, "world": counts | {"seed": 1}}))
    (repository / "other.yaml").write_text("world: {seed: 41}")
    return {"params": str(repository / "plain.yaml"), "overlay": str(repository / "other.yaml")}


@pytest.mark.slow
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_run_tells_its_parameter_files_and_two_runs_leave_equal_notebooks(repository, device):
    code = "from cnslib.core.settings.read import start\nprint(start('world', params, overlay).settings.seed + 1)"
    files = world(repository, code, device=device)
    copies = [runner.run("world", **files).read_bytes() for _ in range(2 if device == "cpu" else 1)]
    assert copies[0] == copies[-1]
    copy = nbformat.read(repository / "executed" / "00_world.ipynb", as_version=4)
    assert copy.cells[-1].outputs[0]["text"] == "42\n"


def test_outputs_are_those_of_a_notebook_and_nothing_of_one_run_reaches_the_next(repository):
    code = "import sys\nprint(1)\nprint(2)\nprint('lost', file=sys.stderr)\nassert 'left' not in globals()\nleft = 3\nleft"
    for _ in range(2):
        made = nbformat.read(runner.run("world", **world(repository, code)), as_version=4)
    stream, result = made.cells[-1].outputs
    assert stream.text == "1\n2\n" and result.output_type == "execute_result" and result.data == {"text/plain": "3"}


@pytest.mark.parametrize(
    ("code", "message"),
    [("1 / 0", "ZeroDivisionError: division by zero"), ("import os\nprint('alive', flush=True)\nos._exit(9)", "its process died, .*")],
)
def test_a_notebook_that_fails_is_named_in_one_line_and_takes_the_place_of_the_earlier_copy(repository, capsys, code, message):
    copy = runner.run("world", **world(repository, "x = 1"))
    files = world(repository, code)
    with pytest.raises(RuntimeError, match=rf"world: {message}; see executed/00_world\.ipynb"):
        runner.run("world", **files)
    assert code.splitlines()[-1] in json.loads(copy.read_text())["cells"][-1]["source"][-1]
    assert [path.name for path in copy.parent.iterdir()] == [copy.name]


def test_a_full_disk_is_named_and_the_earlier_copy_survives(repository, capsys, monkeypatch):
    files = world(repository, "x = 1")
    copy = runner.run("world", **files)
    before = copy.read_bytes()

    def full(*arguments, **more):
        raise OSError(errno.ENOSPC, "No space left on device", str(copy))

    monkeypatch.setattr(runner.kernels, "execute", full)
    assert runner.main(["--params", files["params"], "--overlay", files["overlay"], "world"]) == 1
    assert f"No space left on device: {str(copy)!r}" in capsys.readouterr().err
    assert copy.read_bytes() == before and [path.name for path in copy.parent.iterdir()] == [copy.name]


def test_a_stage_waits_for_those_that_make_its_dependencies(tmp_path):
    subprocess.run([sys.executable, "-m", "dvc", "init", "--no-scm", "--quiet"], cwd=tmp_path, check=True)
    stages = {
        "world": {"cmd": "true", "deps": ["notebooks"], "outs": ["artifacts/world"]},
        "accuracy": {"cmd": "true", "deps": ["artifacts/world", "stats.py"], "metrics": [{"metrics/accuracy.json": {"cache": False}}]},
        "summary": {"cmd": "true", "deps": ["metrics/accuracy.json"], "outs": ["out.txt"]},
    }
    YAML().dump({"stages": stages}, tmp_path / "dvc.yaml")
    assert runner.predecessors(tmp_path) == {"world": set(), "accuracy": {"world"}, "summary": {"accuracy"}}


def test_stages_run_after_those_they_wait_for_and_two_that_do_not_run_together():
    both, order = threading.Barrier(2, timeout=60), []

    def launch(name):
        if name in ("left", "right"):
            both.wait()
        order.append(name)

    runner.schedule({"left": {"first"}, "right": {"first"}, "first": {"elsewhere"}, "last": {"left", "right"}}, launch)
    assert order[0] == "first" and set(order[1:3]) == {"left", "right"} and order[3] == "last"
