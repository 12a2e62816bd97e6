"""The notebook runner, on tiny notebooks."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from cnslib import config, paths, runner

BASE = config.Base(".", "cpu", *"abcdef", ["bag"], ["heavy fog"], [0.0], 1, [], "epsilon", {}, "", "paper", "exact")


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


def test_a_run_injects_the_values_and_two_runs_leave_equal_notebooks(repository):
    names = "\n".join(f"{key} = None" for key in config.World.__dataclass_fields__)
    nbformat.write(notebook(tagged(names), new_code_cell("print(seed + 1)")), repository / "notebooks" / "00_world.ipynb")
    table = {"base": BASE, "world": config.World(1, 1, 41)}
    first = runner.run("world", table).read_bytes()
    second = runner.run("world", table).read_bytes()
    assert first == second and b"42" in first and str(repository).encode() not in first


def test_a_failing_notebook_raises_and_stays_for_reading(repository):
    names = "\n".join(f"{key} = None" for key in config.World.__dataclass_fields__)
    nbformat.write(notebook(tagged(names), new_code_cell("1 / 0")), repository / "notebooks" / "00_world.ipynb")
    table = {"base": BASE, "world": config.World(1, 1, 1)}
    with pytest.raises(RuntimeError, match=r"world: ZeroDivisionError: division by zero; see executed/00_world\.ipynb"):
        runner.run("world", table)
    assert "ZeroDivisionError" in (repository / "executed" / "00_world.ipynb").read_text()


def test_unknown_steps_are_named():
    with pytest.raises(ValueError, match="unknown step 'slider'; accepted:"):
        runner.find("slider")


def test_the_command_line_reports_one_error_line(capsys):
    assert runner.main(["slider"]) == 2
    assert capsys.readouterr().err.startswith("error: unknown step 'slider'")


def test_side_by_side_takes_only_steps_whose_order_is_known(capsys):
    assert runner.main(["--together", "zoo"]) == 2
    assert "zoo not in dvc.yaml; accepted: world, inversion" in capsys.readouterr().err


def test_steps_side_by_side_leave_what_each_leaves_alone(repository, monkeypatch):
    names = "\n".join(f"{key} = None" for key in config.World.__dataclass_fields__)
    nbformat.write(notebook(tagged(names), new_code_cell("print(seed + 1)")), repository / "notebooks" / "00_world.ipynb")
    monkeypatch.setattr(runner.schedule, "predecessors", lambda root: {"world": set()})
    table = {"base": BASE, "world": config.World(1, 1, 41)}
    alone = runner.run("world", table).read_bytes()
    runner.together(["world"], table)
    assert (repository / "executed" / "00_world.ipynb").read_bytes() == alone
