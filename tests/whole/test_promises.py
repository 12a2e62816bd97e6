import ast
import re

from cnslib.core import paths

TEXT = (paths.ROOT / "docs" / "promises.md").read_text()
ROWS = [line.split("|") for line in TEXT.splitlines() if line.startswith("| ") and not line.startswith("| promise")]


def test_every_test_that_is_named_exists():
    for file, name in re.findall(r"`([\w/]+\.py)::(\w+)`", TEXT):
        tree = ast.parse((paths.ROOT / "tests" / file).read_text())
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, f"{file}::{name}"


def test_every_promise_names_what_holds_it():
    targets = re.findall(r"^([a-z]+):", (paths.ROOT / "Makefile").read_text(), re.MULTILINE)
    assert len(ROWS) >= 20
    for row in ROWS:
        assert set(re.findall(r"`make (\w+)`", row[2])) <= set(targets) and re.search(r"::|`make |\]\(", row[2]), row[1]
