"""The house of the library: who may import whom, and how much a module and a folder hold."""

import ast
from pathlib import Path

import pytest

LIBRARY = Path(__file__).parents[2] / "cnslib"
ROOMS = sorted(path for path in LIBRARY.rglob("*.py") if path.name != "__init__.py")
# What each wing may import; itself always. Tools may import all, notebooks all but tools.
BELOW = {
    "core": set(),
    "stats": {"core"},
    "data": {"core"},
    "plots": {"core", "stats", "data"},
    "models": {"core", "stats", "data"},
    "world": {"core", "stats", "data", "plots", "models"},
    "method": {"core", "stats", "data", "plots", "models"},
    "studies": {"core", "stats", "data", "plots", "models", "world", "method"},
    "tools": {"core", "stats", "data", "plots", "models", "world", "method", "studies"},
}
HEAVY = {"torch", "torchvision", "diffusers", "transformers", "peft", "timm", "open_clip"}


def imported(path: Path) -> set[str]:
    """Dotted names of all modules that a file imports, inside functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def wing(path: Path) -> str:
    return path.relative_to(LIBRARY).parts[0]


def test_the_wings_are_those_of_the_plan():
    assert {path.name for path in LIBRARY.iterdir() if path.is_dir() and path.name != "__pycache__"} == BELOW.keys()
    assert [path.name for path in LIBRARY.glob("*.py")] == ["__init__.py"]


@pytest.mark.parametrize("path", ROOMS, ids=lambda path: path.relative_to(LIBRARY).as_posix())
def test_a_room_imports_only_from_wings_below(path):
    allowed = BELOW[wing(path)] | {wing(path)}
    reached = {name.split(".")[1] for name in imported(path) if name.startswith("cnslib.")}
    assert reached <= allowed


def test_statistics_and_plots_never_import_a_network():
    for path in ROOMS:
        if wing(path) in ("stats", "plots"):
            assert not {name.split(".")[0] for name in imported(path)} & HEAVY, path


def test_the_direction_of_imports_has_no_circle():
    order = ["core", "stats", "data", "plots", "models", "world", "method", "studies", "tools"]
    assert all(BELOW[name] <= set(order[: order.index(name)]) for name in order)


@pytest.mark.parametrize("path", ROOMS, ids=lambda path: path.relative_to(LIBRARY).as_posix())
def test_a_room_has_at_most_400_lines_and_functions_at_most_60(path):
    text = path.read_text()
    assert text.count("\n") <= 400
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    assert all(node.end_lineno - node.lineno < 60 for node in functions)


def test_a_corridor_has_at_most_eighteen_rooms():
    for folder in {path.parent for path in ROOMS}:
        siblings = [path for path in folder.iterdir() if path.name not in ("__init__.py", "__pycache__") and path.suffix in ("", ".py")]
        assert len(siblings) <= 18, f"{folder.name}: {len(siblings)}"
