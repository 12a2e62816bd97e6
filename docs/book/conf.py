"""How Sphinx sets the book: `make book`. Pages are those of the repository; a notebook shows its executed copy, where there is one.

The lessons of the course and the first notebook run while the book is made; chapters and base models do not. No page asks the network.
"""

import csv
import re
from pathlib import Path

import nbformat
from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

project = html_title = "The CNS-Bench compendium"
extensions = ["myst_nb"]
master_doc = "README"
include_patterns = ["README.md", "CONTRIBUTING.md", "docs/*.md", "docs/book/gallery.md", "benchmarks/README.md", "notebooks/**"]
html_static_path = html_css_files = ["style.css"]
html_theme = "sphinx_book_theme"
html_copy_source = html_show_copyright = html_show_sphinx = False
html_show_search_summary = False  # it would fetch each page, which a browser refuses on a disk
html_context = {"default_mode": "light"}
html_theme_options = {"show_toc_level": 2, "use_download_button": False, "use_fullscreen_button": False, "footer_content_items": []}
nb_execution_mode = "force"
nb_execution_excludepatterns = ["notebooks/[0-9]*", "notebooks/world/*", "notebooks/course/solutions/*"]
nb_execution_timeout, nb_execution_raise_on_error = 600, True
nb_merge_streams = True
nb_render_markdown_format = "myst"  # the only one that sets tables, which the settings of every chapter are
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
# links to folders lead nowhere
suppress_warnings = ["mystnb.unknown_mime_type", "myst.header", "myst.xref_missing", "misc.highlighting_failure"]
WIDGET = "application/vnd.jupyter.widget-view+json"
CORE = [14, *range(10), 16, 11]  # the chapters that are read in an afternoon; the others are appendices


def chapters(root: Path) -> dict[int, str]:
    """The pages of the chapters by their numbers."""
    return {int(path.name[:2]): f"/notebooks/{path.stem}" for path in sorted((root / "notebooks").glob("[0-9]*.ipynb"))}


def contents(root: Path) -> str:
    """The table of contents, for Sphinx."""
    pages = chapters(root)
    parts = {
        "Start here": ["/notebooks/start_here", "/docs/book/gallery"],
        "The core track": [pages[number] for number in CORE if number in pages],
        "Appendices": [page for number, page in pages.items() if number not in CORE],
        "The course": ["/notebooks/course/README", "/notebooks/course/**"],
        "The base models": ["/notebooks/world/*"],
        "The pages": ["/docs/*", "/CONTRIBUTING", "/benchmarks/README"],
    }
    trees = (["```{toctree}", ":hidden:", ":glob:", f":caption: {name}", "", *own, "```", ""] for name, own in parts.items())
    return "\n".join(line for tree in trees for line in tree)


def gallery(root: Path) -> str:
    """Every figure, chapter by chapter, with the figure of a paper that it stands beside."""
    with open(root / "docs" / "book" / "gallery.csv", newline="") as file:
        papers = {(row["step"], row["figure"]): row for row in csv.DictReader(file)}
    text = ["# Every figure", ""]
    for page in chapters(root).values():
        step = page.split("_", 1)[1]
        text += [f"## [{step}]({page}.ipynb)", ""]
        for path in sorted((root / "figures" / step).glob("*.png")):
            paper = papers.get((step, path.stem))
            said = f"{paper['paper']} shows {paper['there']}. Here: {paper['here']}." if paper else "Beyond the papers."
            alt = f"Figure {path.stem} of {step}"
            text += [f"![{alt}](/figures/{step}/{path.name})", "", f"`figures/{step}/{path.stem}`: {said}", ""]
    return "\n".join(text)


def shown(path: Path, root: Path) -> str:
    """The executed copy of a notebook in place of the stripped one, with a text for each picture, and without widgets."""
    copy = Path(root, "executed", path.name)
    book = nbformat.read(copy if copy.exists() else path, as_version=4)
    book.cells = [cell for cell in book.cells if "injected-parameters" not in cell.metadata.get("tags", [])]
    heading = ""
    for cell in book.cells:
        if cell.cell_type == "markdown":
            heading = [heading, *re.findall(r"^#+ (.+)$", cell.source, re.MULTILINE)][-1]
            continue
        cell.outputs = [output for output in cell.outputs if WIDGET not in output.get("data", {})]
        cell.metadata["mystnb"] = {"image": {"alt": f"Picture in the section {heading}"}}
    return nbformat.writes(book)


def read_page(app, name, source):
    """What stands on a page before Sphinx parses it."""
    path, root = Path(app.env.doc2path(name)), Path(app.srcdir)
    if path.suffix == ".ipynb":
        source[0] = shown(path, root)
    elif name == "README":
        source[0] += "\n" + contents(root)
    elif name == "docs/book/gallery":
        source[0] = gallery(root)


def set_math(app, doctree):
    """Sets formulas as MathML, which browsers draw themselves; any other renderer would have to be fetched."""
    for found in [*doctree.findall(nodes.math), *doctree.findall(nodes.math_block)]:
        block = isinstance(found, nodes.math_block)
        formula = tex2mathml(found.astext(), as_block=block)
        found.replace_self(nodes.raw("", f'<div class="formula">{formula}</div>' if block else formula, format="html"))


def setup(app):
    """Connects what this book does to every page."""
    app.connect("source-read", read_page)
    app.connect("doctree-read", set_math)
