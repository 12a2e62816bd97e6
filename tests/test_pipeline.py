"""The pipeline's files agree with each other: notebooks, parameter files, dvc.yaml and the exported code."""

import ast
import re
from pathlib import Path

import nbformat
import pytest
from ruamel.yaml import YAML

from cnslib import config, parameters, paths, runner

# What these modules pass on to a notebook are parameters, which the stages track by value, and places. So a change in them
# changes no result, and no stage depends on them.
NEUTRAL = {"analyses", "chapters", "config", "parameters", "paths", "runner", "studies"}
PIPELINE = YAML(typ="safe", pure=True).load(paths.resolve("dvc.yaml").read_text())["stages"]
STAGES = {name: stage for name, stage in PIPELINE.items() if name != "export"}
NOTEBOOKS = runner.steps()


def step(notebook: Path) -> str:
    return notebook.stem.split("_", 1)[1]


def cells(notebook: Path, kind: str = "code") -> list[nbformat.NotebookNode]:
    return [cell for cell in nbformat.read(notebook, as_version=4).cells if cell.cell_type == kind]


def code(name: str) -> str:
    return "\n".join(cell.source for cell in cells(runner.find(name)))


def entries(stage: dict, kind: str) -> dict[str, dict]:
    """The outs or metrics of a stage with their flags."""
    return dict(next(iter(e.items())) if isinstance(e, dict) else (e, {}) for e in stage.get(kind, []))


def imported(source: str) -> set[str]:
    """The modules of cnslib that a source text imports."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "cnslib":
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cnslib."):
            found.add(node.module.split(".")[1])
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("cnslib.")}
    return found


def reached(source: str) -> set[str]:
    """The modules that a source text imports, directly or through other modules."""
    waiting, found = imported(source), set()
    while waiting:
        name = waiting.pop()
        found.add(name)
        waiting |= imported((paths.ROOT / "cnslib" / f"{name}.py").read_text()) - found
    return found


def declared(name: str) -> dict[str, object]:
    notebook = runner.find(name)
    return runner.declared(nbformat.read(notebook, as_version=4), notebook.name)


def test_one_word_names_a_step_from_parameters_to_notebook():
    sections = [name for name in parameters.load(paths.resolve("params.yaml")) if name != "base"]
    assert list(STAGES) == sections == [step(p) for p in sorted(paths.NOTEBOOKS.glob("*.ipynb"))]
    assert all(stage["cmd"] == f"python -m cnslib.runner {name}" for name, stage in STAGES.items())


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=step)
def test_a_notebook_opens_with_the_answer_that_its_last_cells_compute(notebook):
    """Under the title comes the place of the answer, and one later cell fills it with what the results say."""
    title, opening = nbformat.read(notebook, as_version=4).cells[:2]
    assert title.cell_type == "markdown" and title.source.startswith("# ")
    assert "answer = display(" in opening.source
    assert sum("answer.update(" in cell.source for cell in cells(notebook)) == 1


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
    asked = [ast.literal_eval(keyword.value) for keyword in started(step(notebook)).keywords]
    used = {key for key in re.findall(r"\bbase\.(\w+)", code(step(notebook))) if key in config.MODELS}
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
def test_notebooks_ask_a_question_first_and_define_nothing(notebook):
    prose = "\n".join(cell.source for cell in cells(notebook, "markdown"))
    titles = re.findall("^# .*", prose, re.MULTILINE)
    assert len(titles) == 1 and titles[0].endswith("?") and not re.search("^###", prose, re.MULTILINE)
    assert not re.search(r"^\s*(def|class) ", code(step(notebook)), re.MULTILINE)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=step)
def test_code_cells_are_short_enough_for_a_slide(notebook):
    """At most eight lines of code, the parameters apart, and at least six words of prose for each line."""
    shown = [cell for cell in cells(notebook) if "parameters" not in cell.metadata.get("tags", [])]
    lengths = {cell.id: sum(bool(line.strip()) for line in cell.source.splitlines()) for cell in shown}
    assert {name: length for name, length in lengths.items() if length > 8} == {}
    words = sum(len(cell.source.split()) for cell in cells(notebook, "markdown"))
    assert words >= 6 * sum(lengths.values())


def sections(name: str) -> list[str]:
    """The sections that a notebook reads: its own, the shared one, and those it takes from its run."""
    others = set(re.findall(r"\brun\.(\w+)", code(name))) & parameters.SECTIONS.keys()
    return sorted({name, "base"} | others)


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_tracks_exactly_the_sections_that_its_notebook_reads(name):
    assert sorted(STAGES[name]["params"]) == sections(name)


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_depends_on_its_code_and_every_module_it_reaches(name):
    modules = {f"cnslib/{module}.py" for module in reached(code(name)) - NEUTRAL}
    listed = {dep for dep in STAGES[name]["deps"] if dep.endswith(".py")}
    assert listed == modules | {f".nb/{runner.find(name).stem}.py"}


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_depends_on_the_files_that_its_notebook_names(name):
    table = parameters.read(paths.resolve("params.yaml"))
    base = {key: value for key, value in table.pop("base").items() if f"base.{key}" in code(name)}
    told = [base, *(table[section] for section in sections(name) if section in table)]
    values = [v for own in told for value in own.values() for v in (value.values() if isinstance(value, dict) else [value])]
    files = [v for v in values if isinstance(v, str) and v.startswith(("data/", "artifacts/"))]
    files += [f"published/{file}" for file in re.findall(r"PUBLISHED / \"([^\"]+)\"", code(name))]
    assert all(any(Path(file).is_relative_to(dep) for dep in STAGES[name]["deps"]) for file in files)


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_lists_the_artifacts_that_its_notebook_reads_and_writes(name):
    used = set(re.findall(r"artifacts\(\"(\w+)\"\)", code(name)))
    made = {Path(out).parts[1] for out in entries(STAGES[name], "outs") if out.startswith("artifacts/")}
    read = {Path(dep).parts[1] for dep in STAGES[name]["deps"] if dep.startswith("artifacts/")}
    assert made <= {name} and used - {name} <= read and (name in used) == bool(made)


@pytest.mark.parametrize("name", STAGES)
def test_figures_and_metrics_of_a_notebook_are_kept_in_git(name):
    listed = {out: flags for out, flags in entries(STAGES[name], "outs").items() if out.startswith("figures/")}
    assert listed == {f"figures/{name}": {"cache": False}} and "layout.figures / " in code(name)
    assert entries(STAGES[name], "metrics") == {f"metrics/{name}.json": {"cache": False}}


def test_only_steps_that_resume_keep_their_old_output():
    kept = {name for name, stage in STAGES.items() for flags in entries(stage, "outs").values() if flags.get("persist")}
    resuming = {"inversion", "sliders", "generation", "filtering", "evaluation", "bisection", "calibration"}
    studied = {"photos", "corruptions", "directions", "composition", "ablation", "denoiser", "oodcv", "synthetic"}
    assert kept == resuming | studied | {"controlshift", "degradation", "scenarios", "segmentation"}


def test_exported_code_is_in_step_with_the_notebooks():
    exports = {path.name: path.read_text() for path in paths.EXPORTS.glob("*")}
    assert exports == {f"{p.stem}.py": runner.exported(nbformat.read(p, as_version=4)) for p in NOTEBOOKS}


def test_nothing_depends_on_executed_notebooks_or_on_notebooks_with_their_prose():
    assert not [d for s in STAGES.values() for d in s["deps"] if d.startswith(("executed", "notebooks"))]
