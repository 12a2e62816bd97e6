"""docs/promises.md: every test that it names exists, and every promise names one or a command of the Makefile."""

import ast
import re

import pytest

from cnslib.core import paths

TEXT = (paths.ROOT / "docs" / "promises.md").read_text()
NAMED = re.findall(r"`([\w/]+\.py)::(\w+)`", TEXT)
ROWS = [line.split("|") for line in TEXT.splitlines() if line.startswith("| ") and not line.startswith("| promise")]


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_a_named_test_exists(file, name):
    tree = ast.parse((paths.ROOT / "tests" / file).read_text())
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1].strip()[:60])
def test_a_promise_names_a_test_or_a_command(row):
    targets = re.findall(r"^([a-z]+):", (paths.ROOT / "Makefile").read_text(), re.MULTILINE)
    commands = re.findall(r"`make (\w+)`", row[2])
    assert set(commands) <= set(targets) and ("::" in row[2] or commands or "](" in row[2])


def test_the_readme_leads_to_the_promises():
    assert "(docs/promises.md)" in (paths.ROOT / "README.md").read_text() and len(ROWS) >= 20
