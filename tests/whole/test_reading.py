import re
import runpy

import nbformat
import pytest
from docutils.utils.math.latex2mathml import tex2mathml

from cnslib.core import paths
from cnslib.tools import cli

ROOT = paths.ROOT
NOTEBOOKS = sorted((ROOT / "notebooks").rglob("*.ipynb"))
TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "notebooks").rglob("*.md"))]
PAGES = runpy.run_path(str(ROOT / "docs" / "read" / "pages.py"))
LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)#]+)(#[^)]*)?\)")
FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<!\\)\$([^$\n]+?)\$", re.DOTALL)


def prose(path) -> str:
    if path.suffix == ".md":
        return path.read_text()
    return "\n\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown")


@pytest.mark.parametrize("path", [*TEXTS, *NOTEBOOKS], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere_and_formulas_can_be_set(path):
    text = prose(path)
    assert [link[1] for link in LINK.finditer(text) if not (path.parent / link[1]).exists()] == []
    for found in FORMULA.finditer(re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)):
        assert tex2mathml(found[1] or found[2], as_block=bool(found[1])).startswith("<math")


def test_every_command_that_the_texts_name_exists():
    text = "\n".join(path.read_text() for path in TEXTS if path.name != "changelog.md")
    targets = set(re.findall(r"^([a-z]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    used = {program: set(re.findall(rf"(?:^ {{4}}|`){program} ([a-z]+)", text, re.MULTILINE)) for program in ("make", "cns")}
    assert {"repro", "test"} <= used["make"] <= targets and len(targets) <= 14
    assert {"run", "report"} <= used["cns"] <= {*cli.COMMANDS, "lab"}


def test_the_readme_shows_its_two_commands_and_leads_to_every_page():
    text = (ROOT / "README.md").read_text()
    assert re.findall(r"^    (make \w+)", text, re.MULTILINE) == ["make repro", "make test"]
    pages = {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")}
    assert pages | {"CITATION.cff", "CONTRIBUTING.md", "notebooks/start_here.ipynb"} <= {link[1] for link in LINK.finditer(text)}


@pytest.mark.parametrize("notebook", PAGES["chapters"](), ids=lambda path: path.stem)
def test_a_page_shows_the_committed_notebook_numbers_and_figures(notebook):
    text = (ROOT / "docs" / "read" / f"{notebook.stem}.md").read_text()
    assert text.endswith(f"<!-- made from {PAGES['stamp'](notebook, committed=True)} -->\n"), (
        "run `make repro` and `make pages`, and commit all"
    )


@pytest.mark.slow
def test_the_first_notebook_runs_and_shows_three_figures(executed):
    made = executed(nbformat.read(paths.NOTEBOOKS / "start_here.ipynb", as_version=4))
    assert sum("image/png" in output.get("data", {}) for cell in made.cells for output in cell.get("outputs", [])) == 3
