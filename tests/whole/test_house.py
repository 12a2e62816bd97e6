import ast
from collections import Counter

from cnslib.core import paths

LIBRARY = paths.ROOT / "cnslib"
MODULES = {path: path.read_text() for path in sorted(LIBRARY.rglob("*.py")) if path.name != "__init__.py"}
ORDER = ["core", "stats", "data", "plots", "models", "world", "method", "studies", "tools"]
APART = {"plots": {"models"}, "models": {"plots"}, "data": {"stats"}, "method": {"world"}}  # below, and yet not imported
HEAVY = {"torch", "torchvision", "diffusers", "transformers", "peft", "timm", "open_clip"}


def imported(source: str) -> set[str]:
    nodes = list(ast.walk(ast.parse(source)))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return names | {f"{node.module}.{alias.name}" for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}


def test_imports_go_down_and_statistics_and_plots_import_no_network():
    wrong = []
    for path, source in MODULES.items():
        folder, names = path.relative_to(LIBRARY).parts[0], imported(source)
        below = set(ORDER[: ORDER.index(folder) + 1]) - APART.get(folder, set())
        wrong += [(path.name, name) for name in names if name.startswith("cnslib.") and name.split(".")[1] not in below]
        wrong += [(path.name, name) for name in names if folder in ("stats", "plots") and name.split(".")[0] in HEAVY]
    assert wrong == []


def test_a_module_has_at_most_400_lines_and_a_function_60():
    functions = {
        path: [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)] for path, source in MODULES.items()
    }
    assert [path.name for path, source in MODULES.items() if source.count("\n") > 400] == []
    assert [f.name for found in functions.values() for f in found if f.end_lineno - f.lineno >= 60] == []


def test_a_folder_has_at_most_eighteen_modules():
    assert {folder.name: n for folder, n in Counter(path.parent for path in MODULES).items() if n > 18} == {}
