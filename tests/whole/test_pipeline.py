import ast
import re
from pathlib import Path

import nbformat
import pytest
from ruamel.yaml import YAML

from cnslib.core import paths
from cnslib.core.settings import method, read
from cnslib.tools import kernels, runner

STAGES = YAML(typ="safe", pure=True).load(paths.resolve("dvc.yaml").read_text())["stages"]
PARAMETERS = YAML(typ="safe", pure=True).load(paths.resolve("params.yaml").read_text())
NOTEBOOKS = [*runner.notebooks().values()]
PARTS = {"failure": {"bisection"}, "scenarios": {"segmentation"}}  # of a chapter, with sections and folders of their own


def step(notebook: Path) -> str:
    return notebook.stem.split("_", 1)[1]


def code(name: str) -> str:
    cells = nbformat.read(runner.notebooks()[name], as_version=4).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "code").replace("run.step", f'"{name}"')


def entries(stage: dict, kind: str) -> dict[str, dict]:
    return dict(next(iter(e.items())) if isinstance(e, dict) else (e, {}) for e in stage.get(kind, []))


def imported(source: str) -> set[Path]:
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    names = {node.module for node in nodes} | {f"{node.module}.{alias.name}" for node in nodes for alias in node.names}
    files = {Path(*name.split(".")).with_suffix(".py") for name in names if (name or "").startswith("cnslib.")}
    return {file for file in files if paths.resolve(str(file)).exists()}


def reached(source: str) -> set[Path]:
    waiting, found = imported(source), set()
    while waiting:
        found.add(file := waiting.pop())
        waiting |= imported(paths.resolve(str(file)).read_text()) - found
    return found


def strings(value) -> list[str]:
    if isinstance(value, dict | list):
        return [text for part in (value.values() if isinstance(value, dict) else value) for text in strings(part)]
    return [value] if isinstance(value, str) else []


def test_one_word_names_a_step_from_parameters_to_notebook_and_makefile():
    known = {"base", "dataset"}.union(*PARTS.values())
    sections = [name for name in read.load(paths.resolve("params.yaml")) if name not in known]
    assert list(STAGES) == sections == [step(path) for path in sorted(paths.NOTEBOOKS.glob("[0-9]*.ipynb"))]
    assert all(stage["cmd"] == f"cns run {name}" for name, stage in STAGES.items())
    written = re.search(r"^STEPS := (.*)$", paths.resolve("Makefile").read_text(), re.MULTILINE)
    assert written[1].split() == list(STAGES)
    assert len(paths.resolve("dvc.yaml").read_text().splitlines()) <= 450


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=step)
def test_a_notebook_starts_from_the_committed_file_and_its_own_section(notebook):
    content, name = nbformat.read(notebook, as_version=4), step(notebook)
    file = "world.yaml" if notebook.parent.name == "world" else "params.yaml"
    (told,) = [cell.source for cell in content.cells if "parameters" in cell.metadata.get("tags", [])]
    assert [ast.unparse(node) for node in ast.parse(told).body] == [f"params = {file!r}", "overlay = ''"]
    (start,) = [node for node in ast.walk(ast.parse(code(name))) if isinstance(node, ast.Call) and ast.unparse(node.func) == "start"]
    assert [ast.unparse(node) for node in start.args] == [repr(name), "params", "overlay"]
    assigned = dict(re.findall(r"^(\w+) = (\[.*\])$", code(name), re.MULTILINE))
    written = [ast.unparse(keyword.value) for keyword in start.keywords]
    asked = [ast.literal_eval(assigned.get(value, value)) for value in written]
    assert set(*asked) == {key for key in re.findall(r"\bbase\.(\w+)", code(name)) if key in method.MODELS}  # whose files are checked
    assert content.metadata.kernelspec == kernels.KERNELSPEC


def through_the_door(name: str) -> set[str]:
    """The step (section and folder) behind each function of `data.artifacts` that a notebook calls with its run."""
    doors = dict.fromkeys(("by_shift", "kept", "scores", "scored", "filtered", "version"), "filtering")
    doors |= dict.fromkeys(("top1", "predictions", "answered", "sizes"), "evaluation")
    called = re.findall(r"artifacts\.(\w+)\(run", code(name)) + (["top1", "kept"] if "of_images(run" in code(name) else [])
    return {doors[door] for door in called}


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_tracks_what_its_notebook_reads(name):
    stage, files, text = STAGES[name], reached(code(name)), code(name)
    sections = set(re.findall(r"\brun\.(\w+)", code(name))) & read.SECTIONS.keys() | through_the_door(name)
    sections |= {"dataset"} if "artifacts.version(run" in code(name) else set()
    assert sorted(stage["params"]) == sorted({name, "base"} | sections)
    tracked = [Path(dep) for dep in stage["deps"] if dep.startswith("cnslib")]
    assert {file for file in files if not any(file.is_relative_to(place) for place in tracked)} == set()
    assert {place for place in tracked if not any(file.is_relative_to(place) for file in files)} == set()
    assert [dep for dep in stage["deps"] if dep.startswith("notebooks")] == [runner.notebooks()[name].relative_to(paths.ROOT).as_posix()]
    named = [text for text in strings(PARAMETERS[name]) if text.startswith(("data/", "artifacts/"))]
    named += [f"published/{file}" for file in re.findall(r"PUBLISHED / \"([^\"]+)\"", text)]
    assert all(any(Path(file).is_relative_to(dep) for dep in stage["deps"]) for file in named)
    lists = " ".join(re.findall(r"artifacts\(step\) for step in (\([^)]*\))", text))
    used = set(re.findall(r"artifacts\(\"(\w+)\"\)", code(name)) + re.findall(r"\w+", lists)) | through_the_door(name)
    made = {Path(out).parts[1] for out in entries(stage, "outs") if out.startswith("artifacts/")}
    mine = {name} | PARTS.get(name, set())
    assert made <= mine and bool(used & mine) == bool(made)
    assert used - mine <= {Path(dep).parts[1] for dep in stage["deps"] if dep.startswith("artifacts/")}
    gates = [ast.literal_eval(names) for names in re.findall(r"metrics / f\"{step}\.json\" for step in (\([^)]*\))", text)]
    wanted = {f"metrics/{step}.json" for names in gates for step in names}
    assert {dep for dep in stage["deps"] if dep.startswith("metrics/")} == wanted


@pytest.mark.parametrize("name", STAGES)
def test_figures_and_metrics_of_a_notebook_are_committed_each_figure_as_picture_page_and_numbers(name):
    figures = {out: flags for out, flags in entries(STAGES[name], "outs").items() if out.startswith("figures/")}
    assert figures == {f"figures/{name}": {"cache": False}}
    written = set(re.findall(r"layout\.metrics / \"(\w+\.json)\"", code(name)))
    assert entries(STAGES[name], "metrics") == {f"metrics/{file}": {"cache": False} for file in written | {f"{name}.json"}}
    found = {path.name for path in paths.resolve(f"figures/{name}").glob("*")}
    stems = set(re.findall(r"figures / \"(\w+)\"", code(name))) | {Path(file).stem for file in found}
    assert found == {f"{stem}.{kind}" for stem in stems for kind in ("png", "pdf", "csv")}
