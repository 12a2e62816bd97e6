"""What the notebooks ask of the library is there: each name of a module, and each call with arguments that its function takes."""

import ast
import inspect
from importlib import import_module
from pathlib import Path
from types import ModuleType

import nbformat
import pytest

HOUSE = Path(__file__).parents[2]
NOTEBOOKS = sorted((HOUSE / "notebooks").rglob("*.ipynb"))


def code(path: Path) -> ast.Module:
    """All code cells of a notebook as one syntax tree."""
    cells = (cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "code")
    return ast.parse("\n".join(cells))


def asked(tree: ast.Module, kind: type) -> list:
    return [node for node in ast.walk(tree) if isinstance(node, kind)]


def reached(module: str, name: str) -> object:
    """What `from module import name` gives."""
    return getattr(import_module(module), name, None) or import_module(f"{module}.{name}")


def rooms(tree: ast.Module) -> dict[str, ModuleType]:
    """Modules of the library by their names in a notebook; names that the notebook binds anew are left out."""
    named = {alias.asname or alias.name: (node.module, alias.name) for node in asked(tree, ast.ImportFrom) for alias in node.names}
    found = {name: reached(*place) for name, place in named.items() if place[0].startswith("cnslib")}
    bound = {node.id for node in asked(tree, ast.Name) if isinstance(node.ctx, ast.Store)}
    return {name: value for name, value in found.items() if inspect.ismodule(value) and name not in bound}


def of_a_room(node: ast.expr, known: dict[str, ModuleType]) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in known


def fits(call: ast.Call, known: dict[str, ModuleType]) -> bool:
    """Whether a function takes as many values and the keywords of a call; calls that unpack are taken to fit."""
    unpacks = any(isinstance(value, ast.Starred) for value in call.args) or any(word.arg is None for word in call.keywords)
    try:
        signature = inspect.signature(getattr(known[call.func.value.id], call.func.attr))
        return unpacks or bool(signature.bind(*call.args, **{word.arg: word for word in call.keywords}))
    except TypeError:
        return False


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_asks_only_for_names_that_its_modules_have(path):
    tree = code(path)
    known = rooms(tree)
    assert not {
        ast.unparse(node) for node in asked(tree, ast.Attribute) if of_a_room(node, known) and not hasattr(known[node.value.id], node.attr)
    }


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_calls_functions_with_arguments_that_they_take(path):
    tree = code(path)
    known = rooms(tree)
    assert not [ast.unparse(node) for node in asked(tree, ast.Call) if of_a_room(node.func, known) and not fits(node, known)]


def test_a_missing_name_and_a_wrong_argument_are_seen():
    tree = ast.parse("from cnslib.core import names\nnames.nobody\nnames.demand(1, 2, 3, 4, 5, 6)")
    known = rooms(tree)
    (call,) = asked(tree, ast.Call)
    assert of_a_room(call.func, known)
    assert not fits(call, known)
    assert not hasattr(known["names"], "nobody")
