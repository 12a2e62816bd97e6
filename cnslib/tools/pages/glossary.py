"""The terms of docs/glossary.md, and their first uses in a notebook, which lead there."""

import re

import nbformat

from cnslib.core import paths

HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
# What is no prose: code, formulas, links with their texts, headings, table rows.
APART = re.compile(r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$\n]*\$|!?\[[^\]]*\]\([^)]*\)|^#[^\n]*|^\|[^\n]*", re.MULTILINE | re.DOTALL)


def terms() -> list[str]:
    """The terms in their order."""
    return HEADING.findall((paths.ROOT / "docs" / "glossary.md").read_text())


def anchor(term: str) -> str:
    """The part of the page that explains a term."""
    return re.sub(r"[^\w -]", "", term.lower()).replace(" ", "-")


def pattern(term: str) -> re.Pattern:
    """A term in prose: in the singular or the plural, small or with a capital letter; one of capitals as it is written; a name as code."""
    if "_" in term:
        return re.compile(re.escape(f"`{term}`"))
    stem = re.escape(term[:-1]) + "(y|ies)" if term.endswith("y") else re.escape(term) + "s?"
    exact = term.upper() == term or term == "LoRA"
    return re.compile(rf"(?<![\w-]){stem}(?![\w-])", 0 if exact else re.IGNORECASE)


def first(book: nbformat.NotebookNode, term: str) -> tuple[nbformat.NotebookNode, int, int] | None:
    """The Markdown cell after the title that uses a term first, and where; None if it is not used, or leads to its page already."""
    wanted, led = pattern(term), f"glossary.md#{anchor(term)})"
    for cell in book.cells[1:]:
        if cell.cell_type != "markdown":
            continue
        apart = [found.span() for found in APART.finditer(cell.source) if found[0] != f"`{term}`"]
        places = [m for m in wanted.finditer(cell.source) if not any(low <= m.start() < high for low, high in apart)]
        place = cell.source.find(led)
        if place >= 0 and (not places or place < places[0].start()):
            return None
        if places:
            return cell, places[0].start(), places[0].end()
    return None
