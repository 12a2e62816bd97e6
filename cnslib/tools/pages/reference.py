"""The pages of the book beside its notebooks: the texts of docs/, and a reference of the library from its docstrings.

Links between pages stay as they are. A link to the README leads to the book's first page, one to a folder does, too, and other files of
the repository that a page links to are copied beside it.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from cnslib.core import paths

LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)#]+)(#[^)]*)?\)")
PAGES = (".md", ".ipynb")
WORDS = {
    "core": "parameters, folders, seeds, units of work",
    "stats": "tables into numbers with n and interval",
    "data": "pictures and answers, ours and others'",
    "plots": "tables into pictures",
    "models": "what has weights",
    "world": "the mini world",
    "method": "the paper's five steps",
    "studies": "the further chapters",
    "tools": "the command `cns`, and the exercises of the course",
}


def texts() -> list[Path]:
    """The pages that are written by hand."""
    others = (paths.ROOT / "CONTRIBUTING.md", paths.ROOT / "benchmarks" / "README.md")
    return [*sorted((paths.ROOT / "docs").glob("*.md")), *(path for path in others if path.exists())]


def led(text: str, page: Path) -> str:
    """A page's text with links that lead somewhere in the book."""
    root = paths.ROOT.resolve()

    def link(found: re.Match) -> str:
        target = (page.parent / found[1]).resolve()
        away = target == root / "README.md" or target.is_dir()
        return f"]({os.path.relpath(root / 'index.md', page.resolve().parent)})" if away else found[0]

    return LINK.sub(link, text)


def files(text: str, page: Path) -> Iterator[Path]:
    """The files that a page links to and that are no pages."""
    for found in LINK.finditer(text):
        target = (page.parent / found[1]).resolve()
        if target.is_file() and target.suffix not in PAGES:
            yield target


def modules(wing: Path) -> list[str]:
    """The dotted names of a wing's modules, corridors after rooms."""
    found = sorted(wing.rglob("*.py"), key=lambda path: (path.parent.as_posix(), path.name))
    return [".".join(path.relative_to(paths.ROOT).with_suffix("").parts) for path in found if path.name != "__init__.py"]


def wings() -> dict[str, list[str]]:
    """The modules of each wing of the library."""
    found = {name: modules(paths.ROOT / "cnslib" / name) for name in WORDS}
    return {name: own for name, own in found.items() if own}


def page(wing: str, names: list[str]) -> str:
    """The reference of one wing: a section per module, which Sphinx fills from the docstrings."""
    parts = [f"# `cnslib.{wing}`: {WORDS[wing]}", ""]
    for name in names:
        parts += [f"## {name.removeprefix('cnslib.')}", "", "```{eval-rst}", f".. automodule:: {name}", "   :members:", "```", ""]
    return "\n".join(parts)
