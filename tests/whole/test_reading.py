"""What a reader meets: the README fits a screen, links lead somewhere, formulas can be set, and the first notebook runs."""

import itertools
import re

import nbformat
import pytest
from docutils.utils.math.latex2mathml import tex2mathml
from nbclient import NotebookClient

from cnslib.core import paths
from cnslib.tools.pages import book, glossary, reference

README = paths.ROOT / "README.md"
TEXTS = [README, *reference.texts(), *sorted((paths.NOTEBOOKS / "course").rglob("*.md"))]
NOTEBOOKS = book.notebooks()
START = paths.NOTEBOOKS / f"{book.START}.ipynb"
FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<!\\)\$([^$\n]+?)\$", re.DOTALL)


def prose(path) -> str:
    """The text of a page, or of a notebook's Markdown cells."""
    if path.suffix == ".md":
        return path.read_text()
    return "\n\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown")


def name(path) -> str:
    return path.relative_to(paths.ROOT).as_posix()


def test_the_readme_fits_a_screen_and_leads_to_everything():
    text = README.read_text()
    assert len(text.splitlines()) <= 60 and len(text.split()) <= 600
    linked = {link[1] for link in reference.LINK.finditer(text)}
    pages = {name(path) for path in reference.texts() if path.parent.name == "docs"}
    assert pages | {"CITATION.cff", "CONTRIBUTING.md", "notebooks/start_here.ipynb", "notebooks/course/README.md"} <= linked
    assert re.findall(r"^    (make \w+)", text, re.MULTILINE) == ["make repro", "make test"]
    assert "`source .venv/bin/activate` finds `cns`" in text  # who follows the table below would else not find it


@pytest.mark.parametrize("path", [*TEXTS, *NOTEBOOKS], ids=name)
def test_every_link_between_files_leads_somewhere(path):
    links = [link[1] for link in reference.LINK.finditer(prose(path))]
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_the_map_names_every_notebook_in_its_order():
    notebooks = [path.name for path in sorted(paths.NOTEBOOKS.glob("[0-9]*.ipynb"))]
    assert re.findall(r"\(\.\./notebooks/(\d\d_\w+\.ipynb)\)", (paths.ROOT / "docs" / "map.md").read_text()) == notebooks


def test_the_core_track_is_one_path_and_each_appendix_says_what_it_adds():
    core, rest = (book.part(caption, paths.NOTEBOOKS) for caption in ("The core track", "Appendices"))
    assert [path.name[:2] for path in core] == [f"{number:02d}" for number in (*range(10), 14, 16, 11)]
    path = [*core, *rest]
    assert len(set(path)) == len(path) == len(list(paths.NOTEBOOKS.glob("[0-9]*.ipynb")))
    ends = {one.name: prose(one).rsplit("\n\n", 1)[-1] for one in path}
    assert [one.name for one, after in itertools.pairwise(path) if f"]({after.name})" not in ends[one.name]] == []
    assert [one.name for one in path if ("An appendix to the core track. It adds " in prose(one)) is (one in core)] == []


@pytest.mark.parametrize("path", [*TEXTS, *NOTEBOOKS], ids=name)
def test_every_formula_can_be_set(path):
    for found in FORMULA.finditer(re.sub(r"```.*?```|`[^`]*`", "", prose(path), flags=re.DOTALL)):
        assert tex2mathml(found[1] or found[2], as_block=bool(found[1])).startswith("<math")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name)
def test_the_first_use_of_every_term_leads_to_the_glossary(path):
    made = nbformat.read(path, as_version=4)
    assert [term for term in glossary.terms() if glossary.first(made, term)] == []


def test_links_to_the_glossary_lead_to_terms():
    anchors = {glossary.anchor(term) for term in glossary.terms()}
    links = {link for path in NOTEBOOKS for link in re.findall(r"glossary\.md#([^)]+)\)", prose(path))}
    assert links <= anchors and len(links) >= 20


def test_the_first_notebook_is_short_and_asks_a_question():
    cells = nbformat.read(START, as_version=4).cells
    code = [cell.source.splitlines() for cell in cells if cell.cell_type == "code"]
    assert len(code) <= 12 and max(map(len, code)) <= 8 and cells[0].source.splitlines()[0].endswith("?")
    assert not any(cell.get("outputs") for cell in cells)


@pytest.mark.slow
def test_the_first_notebook_runs_and_shows_three_figures(forking):
    book, place = nbformat.read(START, as_version=4), {"metadata": {"path": str(paths.ROOT)}}
    made = NotebookClient(book, timeout=600, resources=place, kernel_manager_class=forking).execute()
    assert sum("image/png" in output.get("data", {}) for cell in made.cells for output in cell.get("outputs", [])) == 3
    said = next(cell for cell in made.cells if cell.id == "said").outputs[0]["text"]
    assert said.startswith("The class is sneaker. Under heavy snow")  # the example chosen by eye, not the next best
