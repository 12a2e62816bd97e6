"""The notebook runner, on tiny notebooks."""

import errno
import json
import os

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from cnslib.core import paths
from cnslib.core.settings import read
from cnslib.tools import kernels, runner

COMMITTED = paths.resolve("params.yaml")


def notebook(*cells) -> nbformat.NotebookNode:
    return new_notebook(cells=list(cells), metadata={"kernelspec": runner.KERNELSPEC})


def tagged(source: str) -> nbformat.NotebookNode:
    return new_code_cell(source, metadata={"tags": ["parameters"]})


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """An empty repository root with a notebooks folder."""
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path / "notebooks")
    (tmp_path / "notebooks").mkdir()
    return tmp_path


def test_names_and_literals_of_the_parameters_cell_are_read():
    cells = notebook(new_markdown_cell("# A"), tagged("seed = 1  # one\nshifts = ['heavy snow']"))
    assert runner.declared(cells, "n") == {"seed": 1, "shifts": ["heavy snow"]}


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([], "0 cells"),
        ([tagged("a = 1"), tagged("b = 2")], "2 cells"),
        ([tagged("a = 1\nb = 2 * a")], "only assignments of literals"),
        ([tagged("print(1)")], "only assignments of literals"),
    ],
)
def test_notebooks_without_exactly_one_literal_parameters_cell_are_refused(cells, message):
    with pytest.raises(ValueError, match=message):
        runner.declared(notebook(*cells), "n")


def world(repository, code: str, *, cell: str = "params = None\noverlay = None") -> dict[str, str]:
    """Writes a notebook of the step `world` and its two parameter files; returns what the runner is told."""
    nbformat.write(notebook(tagged(cell), new_code_cell(code)), repository / "notebooks" / "00_world.ipynb")
    base, counts = read.read(COMMITTED)["base"], {"train_images": 1, "heldout_images": 1}
    (repository / "plain.yaml").write_text(json.dumps({"base": base, "world": counts | {"seed": 1}}))
    (repository / "other.yaml").write_text("world: {seed: 41}")
    return {"params": str(repository / "plain.yaml"), "overlay": str(repository / "other.yaml")}


@pytest.mark.slow
def test_a_run_tells_its_parameter_files_and_two_runs_leave_equal_notebooks(repository):
    files = world(repository, "from cnslib.core.settings.read import start\nprint(start('world', params, overlay).settings.seed + 1)")
    first, second = (runner.run("world", **files) for _ in range(2))
    printed = nbformat.read(first, as_version=4).cells[-1].outputs[0]["text"]
    assert first.read_bytes() == second.read_bytes() and printed == "42\n"


def test_a_failing_notebook_raises_and_stays_for_reading(repository):
    with pytest.raises(RuntimeError, match=r"world: ZeroDivisionError: division by zero; see executed/00_world\.ipynb"):
        runner.run("world", **world(repository, "1 / 0"))
    assert "ZeroDivisionError" in (repository / "executed" / "00_world.ipynb").read_text()


def test_a_kernel_that_dies_is_named_with_its_step_and_the_notebook_stays_for_reading(repository):
    with pytest.raises(RuntimeError, match=r"world: its kernel died, .*; see executed/00_world\.ipynb"):
        runner.run("world", **world(repository, "import os\nprint('alive', flush=True)\nos._exit(9)"))
    assert "os._exit" in (repository / "executed" / "00_world.ipynb").read_text()


def test_a_notebook_that_takes_values_in_the_place_of_files_is_refused(repository):
    files = world(repository, "seed", cell="params = None\nseed = 1")
    with pytest.raises(ValueError, match="the parameters cell must hold params and overlay, and nothing else"):
        runner.run("world", **files)


def test_unknown_steps_are_named():
    with pytest.raises(ValueError, match="unknown step 'slider'; accepted:"):
        runner.find("slider")


def test_the_command_line_reports_one_error_line(capsys):
    assert runner.main(["slider"]) == 2
    assert capsys.readouterr().err.startswith("error: unknown step 'slider'")


def test_side_by_side_takes_only_steps_whose_order_is_known(capsys):
    assert runner.main(["--together", "zoo"]) == 2
    assert "zoo not in dvc.yaml; accepted: world, inversion" in capsys.readouterr().err


@pytest.mark.slow
def test_steps_side_by_side_leave_what_each_leaves_alone(repository, monkeypatch):
    files = world(repository, "print(params)")
    monkeypatch.setattr(runner.schedule, "predecessors", lambda root: {"world": set()})
    alone = runner.run("world", **files).read_bytes()
    runner.together(["world"], **files)
    assert (repository / "executed" / "00_world.ipynb").read_bytes() == alone


@pytest.mark.parametrize(("device", "kernel"), [("cpu", kernels.Manager), ("cuda", kernels.Patient), ("cuda:1", kernels.Patient)])
def test_kernels_are_forked_on_a_cpu_alone(device, kernel):
    assert runner.manager(device) is kernel


@pytest.mark.parametrize(("device", "forked"), [("cpu", True), ("meta", False)])
def test_steps_side_by_side_ask_for_the_kernels_of_their_device(repository, monkeypatch, device, forked):
    """A forked kernel is a child of the process that imported for it, and not of this one."""
    files = world(repository, "import os\nprint(os.getppid())")
    (repository / "other.yaml").write_text(f"{{world: {{seed: 41}}, base: {{device: {device}}}}}")
    monkeypatch.setattr(runner.schedule, "predecessors", lambda root: {"world": set()})
    runner.together(["world"], **files)
    (output,) = nbformat.read(repository / "executed" / "00_world.ipynb", as_version=4).cells[-1].outputs
    assert (int(output["text"]) != os.getpid()) == forked


def test_a_mistyped_second_step_is_named_before_the_first_runs(repository, capsys):
    files = world(repository, "from pathlib import Path\nPath('ran').touch()")
    where = ["--params", files["params"], "--overlay", files["overlay"]]
    assert runner.main([*where, "world", "wrold"]) == 2
    assert "wrold" in capsys.readouterr().err
    nbformat.write(notebook(tagged("params = None\noverlay = None")), repository / "notebooks" / "01_inversion.ipynb")
    assert runner.main([*where, "world", "inversion"]) == 2
    assert "inversion" in capsys.readouterr().err
    assert not (repository / "ran").exists() and not (repository / "executed").exists()


def test_a_full_disk_is_named_and_the_earlier_copy_survives(repository, capsys, monkeypatch):
    """What papermill raises when the copy cannot be written."""
    files = world(repository, "x = 1")
    copy = runner.run("world", **files)
    before = copy.read_bytes()

    def full(*arguments, **more):
        raise OSError(errno.ENOSPC, "No space left on device", str(copy))

    monkeypatch.setattr(runner.papermill, "execute_notebook", full)
    where = ["--params", files["params"], "--overlay", files["overlay"], "world"]
    assert runner.main(where) == 1
    assert f"error: {copy}: the disk is full; make room or give access, then run the same command again" in capsys.readouterr().err
    assert copy.read_bytes() == before and [path.name for path in copy.parent.iterdir()] == [copy.name]


@pytest.mark.slow
def test_a_notebook_that_fails_takes_the_place_of_the_earlier_copy(repository):
    copy = runner.run("world", **world(repository, "x = 1"))
    with pytest.raises(RuntimeError, match=r"world: ZeroDivisionError: .*; see executed/00_world\.ipynb"):
        runner.run("world", **world(repository, "1 / 0"))
    assert "ZeroDivisionError" in copy.read_text() and [path.name for path in copy.parent.iterdir()] == [copy.name]
