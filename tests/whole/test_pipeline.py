"""The pipeline's files agree with each other: notebooks, parameter files and dvc.yaml."""

import ast
import importlib
import inspect
import re
from pathlib import Path

import nbformat
import pytest
from ruamel.yaml import YAML

from cnslib.core import paths
from cnslib.core.settings import method, read
from cnslib.tools import runner

STAGES = YAML(typ="safe", pure=True).load(paths.resolve("dvc.yaml").read_text())["stages"]
PARAMETERS = YAML(typ="safe", pure=True).load(paths.resolve("params.yaml").read_text())
NOTEBOOKS = runner.steps()


def step(notebook: Path) -> str:
    return notebook.stem.split("_", 1)[1]


def cells(notebook: Path, kind: str = "code") -> list[nbformat.NotebookNode]:
    return [cell for cell in nbformat.read(notebook, as_version=4).cells if cell.cell_type == kind]


def code(name: str) -> str:
    return "\n".join(cell.source for cell in cells(runner.find(name)))


def behind(name: str) -> str:
    """A notebook's code, and that of the library's `opened(run, ...)` that it calls to load models and name folders."""
    text = code(name)
    homes = {
        alias.name: node.module
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cnslib")
        for alias in node.names
    }
    called = re.findall(r"\b(\w+)\.opened\(run", text)
    parts = [inspect.getsource(importlib.import_module(f"{homes[room]}.{room}").opened) for room in called]
    return "\n".join([text, *parts]).replace("run.step", f'"{name}"')


def entries(stage: dict, kind: str) -> dict[str, dict]:
    """The outs or metrics of a stage with their flags."""
    return dict(next(iter(e.items())) if isinstance(e, dict) else (e, {}) for e in stage.get(kind, []))


def imported(source: str) -> set[Path]:
    """The files of the library that a source text imports, from the root."""
    nodes = list(ast.walk(ast.parse(source)))
    whole = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in whole} | {f"{node.module}.{alias.name}" for node in whole for alias in node.names}
    places = [Path(*name.split(".")) for name in names if name.split(".")[0] == "cnslib"]
    files = [place.with_suffix(".py") for place in places]
    return {file for file in files if paths.resolve(str(file)).exists()}


def reached(source: str) -> set[Path]:
    """The files of the library that a source text imports, directly or through others."""
    waiting, found = imported(source), set()
    while waiting:
        file = waiting.pop()
        found.add(file)
        waiting |= imported(paths.resolve(str(file)).read_text()) - found
    return found


def strings(value) -> list[str]:
    """The texts at the leaves of a section."""
    if isinstance(value, dict | list):
        return [text for part in (value.values() if isinstance(value, dict) else value) for text in strings(part)]
    return [value] if isinstance(value, str) else []


def declared(name: str) -> dict[str, object]:
    notebook = runner.find(name)
    return runner.declared(nbformat.read(notebook, as_version=4), notebook.name)


def test_one_word_names_a_step_from_parameters_to_notebook():
    sections = [name for name in read.load(paths.resolve("params.yaml")) if name not in ("base", "dataset")]
    assert list(STAGES) == sections == [step(p) for p in sorted(paths.NOTEBOOKS.glob("[0-9]*.ipynb"))]
    assert all(stage["cmd"] == f"cns run {name}" for name, stage in STAGES.items())


def test_every_chain_of_the_makefile_runs_all_steps_in_order():
    written = re.search(r"^STEPS := (.*)$", paths.resolve("Makefile").read_text(), re.MULTILINE)
    assert written[1].split() == list(STAGES)


def started(name: str) -> ast.Call:
    """The call by which a notebook reads its parameters."""
    calls = [node for node in ast.walk(ast.parse(code(name))) if isinstance(node, ast.Call) and ast.unparse(node.func) == "start"]
    (call,) = calls
    return call


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=step)
def test_run_all_starts_from_the_committed_file_and_its_own_section(notebook):
    """JupyterLab and `dvc repro` read the same: the cell holds no value of its own."""
    file = "world.yaml" if notebook.parent.name == "world" else "params.yaml"
    assert declared(step(notebook)) == {"params": file, "overlay": ""}
    name, *files = started(step(notebook)).args
    assert ast.literal_eval(name) == step(notebook) and [ast.unparse(node) for node in files] == ["params", "overlay"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=step)
def test_a_notebook_makes_sure_of_the_models_that_it_reads(notebook):
    assigned = dict(re.findall(r"^(\w+) = (\[.*\])$", code(step(notebook)), re.MULTILINE))
    written = [ast.unparse(keyword.value) for keyword in started(step(notebook)).keywords]
    asked = [ast.literal_eval(assigned.get(value, value)) for value in written]
    used = {key for key in re.findall(r"\bbase\.(\w+)", behind(step(notebook))) if key in method.MODELS}
    assert set(*asked) == used


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=step)
def test_no_notebook_lists_classifiers(notebook):
    """Another classifier is one line of params.yaml."""
    assert "data/models/classifiers" not in code(step(notebook))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=step)
def test_notebooks_are_stripped_and_portable(notebook):
    content = nbformat.read(notebook, as_version=4)
    assert content.metadata.kernelspec == runner.KERNELSPEC
    assert all(not cell.outputs and cell.execution_count is None for cell in content.cells if cell.cell_type == "code")
    assert not any(re.fullmatch("[0-9a-f]{8}", cell.id) for cell in content.cells)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=step)
def test_a_notebook_has_one_title_and_it_is_a_question(notebook):
    prose = "\n".join(cell.source for cell in cells(notebook, "markdown"))
    titles = re.findall("^# .*", prose, re.MULTILINE)
    assert len(titles) == 1 and titles[0].endswith("?") and not re.search("^###", prose, re.MULTILINE)


def sections(name: str) -> list[str]:
    """The sections that a notebook reads: its own, the shared one, and those it takes from its run."""
    others = set(re.findall(r"\brun\.(\w+)", behind(name))) & read.SECTIONS.keys()
    return sorted({name, "base"} | others | through_the_door(name))


def through_the_door(name: str) -> set[str]:
    """The step (section and folder) behind each function of `data.artifacts` that a notebook calls with its run."""
    doors = dict.fromkeys(("alignments", "sights", "kept", "scores", "scored", "filtered"), "filtering")
    doors |= dict.fromkeys(("answers", "predictions", "answered", "sizes"), "evaluation")
    called = re.findall(r"artifacts\.(\w+)\(run", code(name)) + (["answers", "kept"] if "of_images(run" in code(name) else [])
    return {doors[door] for door in called}


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_tracks_exactly_the_sections_that_its_notebook_reads(name):
    assert sorted(STAGES[name]["params"]) == sections(name)


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_depends_on_its_notebook_and_on_the_wings_it_reaches(name):
    """Every file that its notebook imports, or a file that this imports, lies in a dependency, and each of these is needed."""
    files = reached(code(name))
    wings = [Path(dep) for dep in STAGES[name]["deps"] if dep.startswith("cnslib")]
    assert {file for file in files if not any(file.is_relative_to(wing) for wing in wings)} == set()
    assert {wing for wing in wings if not any(file.is_relative_to(wing) for file in files)} == set()
    assert [dep for dep in STAGES[name]["deps"] if dep.startswith("notebooks")] == [runner.find(name).relative_to(paths.ROOT).as_posix()]


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_depends_on_the_files_that_its_section_and_its_notebook_name(name):
    files = [text for text in strings(PARAMETERS[name]) if text.startswith(("data/", "artifacts/"))]
    files += [f"published/{file}" for file in re.findall(r"PUBLISHED / \"([^\"]+)\"", code(name))]
    assert all(any(Path(file).is_relative_to(dep) for dep in STAGES[name]["deps"]) for file in files)


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_lists_the_artifacts_that_its_notebook_reads_and_writes(name):
    used = set(re.findall(r"artifacts\(\"(\w+)\"\)", behind(name))) | through_the_door(name)
    made = {Path(out).parts[1] for out in entries(STAGES[name], "outs") if out.startswith("artifacts/")}
    read = {Path(dep).parts[1] for dep in STAGES[name]["deps"] if dep.startswith("artifacts/")}
    assert made <= {name} and used - {name} <= read and (name in used) == bool(made)


@pytest.mark.parametrize("name", STAGES)
def test_figures_and_metrics_of_a_notebook_are_kept_in_git(name):
    figures = {out: flags for out, flags in entries(STAGES[name], "outs").items() if out.startswith("figures/")}
    assert figures == {f"figures/{name}": {"cache": False}}
    written = set(re.findall(r"layout\.metrics / \"(\w+\.json)\"", code(name)))
    assert f"{name}.json" in written
    assert entries(STAGES[name], "metrics") == {f"metrics/{file}": {"cache": False} for file in written}


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_depends_on_the_metrics_of_the_steps_whose_gates_it_reads(name):
    steps = re.findall(r"gates\.stored\(layout\.metrics, (\[[^]]*\])\)", code(name))
    wanted = {f"metrics/{step}.json" for listed in steps for step in ast.literal_eval(listed)}
    assert {dep for dep in STAGES[name]["deps"] if dep.startswith("metrics/")} == wanted


@pytest.mark.parametrize("name", STAGES)
def test_every_figure_that_a_notebook_names_is_committed_as_picture_page_and_numbers(name):
    found = {path.name for path in paths.resolve(f"figures/{name}").glob("*")}
    stems = set(re.findall(r"figures / \"(\w+)\"", code(name)))
    assert {f"{stem}.{kind}" for stem in stems for kind in ("png", "pdf", "csv")} <= found
    assert found == {f"{stem}.{kind}" for stem in {Path(file).stem for file in found} for kind in ("png", "pdf", "csv")}


def test_only_steps_that_resume_keep_their_old_output():
    kept = {name for name, stage in STAGES.items() for flags in entries(stage, "outs").values() if flags.get("persist")}
    resuming = {"inversion", "sliders", "generation", "filtering", "evaluation", "bisection", "calibration"}
    studied = {"photos", "corruptions", "directions", "ablation", "denoiser", "oodcv", "synthetic"}
    assert kept == resuming | studied | {"labels", "report", "controlshift", "scenarios", "segmentation"}


def test_nothing_depends_on_executed_notebooks():
    assert not [dep for stage in STAGES.values() for dep in stage["deps"] if dep.startswith("executed")]


def test_the_pipeline_can_be_read():
    assert len(paths.resolve("dvc.yaml").read_text().splitlines()) <= 450
