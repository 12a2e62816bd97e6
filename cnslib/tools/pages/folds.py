"""What a page of the book folds away, and what stands on each fold: cells that only prepare, and the answer before one has guessed."""

import ast
from collections.abc import Iterable

import nbformat

NAMES = 4  # that a fold lists; what a cell defines beyond is not told
ANSWER = "The answer: guess first, then look"
TITLES = {True: "Preparation: ", False: "Code: "}  # of a cell that shows nothing, and of one that does


def fold(book: nbformat.NotebookNode) -> None:
    """Folds the code of cells that only prepare, neighbours under one fold that says what is in it, and the output of the answer."""
    together: list[nbformat.NotebookNode] = []
    kept = []
    for cell in book.cells:
        if quiet(cell) and together:
            merge(together[-1], cell)
            continue
        together = [cell] if quiet(cell) else []
        kept.append(cell)
    book.cells = kept
    for cell in filter(prepares, kept):
        mark(cell, "hide-input", TITLES[quiet(cell)] + ", ".join(contents(cell)))
    for cell in kept:
        if "answer" in tags(cell):
            mark(cell, "hide-output", ANSWER)
            cell.metadata["tags"].append("remove-input")  # which is the word `answer`


def tags(cell: nbformat.NotebookNode) -> list[str]:
    """The tags of a cell."""
    return list(cell.metadata.get("tags", []))


def prepares(cell: nbformat.NotebookNode) -> bool:
    """Whether a cell only prepares: the parameters, imports, and what a slide show skips."""
    if cell.cell_type != "code":
        return False
    skipped = cell.metadata.get("slideshow", {}).get("slide_type") == "skip"
    return skipped or cell.source.startswith(("import ", "from ")) or "parameters" in tags(cell)


def quiet(cell: nbformat.NotebookNode) -> bool:
    """Whether a cell only prepares and shows nothing."""
    return prepares(cell) and not cell.outputs


def merge(cell: nbformat.NotebookNode, following: nbformat.NotebookNode) -> None:
    """Puts the code of a cell under that of the one before it."""
    cell.source = f"{cell.source}\n\n{following.source}"
    cell.metadata["tags"] = list(dict.fromkeys([*tags(cell), *tags(following)]))


def mark(cell: nbformat.NotebookNode, tag: str, title: str) -> None:
    """Folds a part of a cell under a title."""
    cell.metadata["tags"] = [*tags(cell), tag]
    cell.metadata["mystnb"] = cell.metadata.get("mystnb", {}) | {"code_prompt_show": title, "code_prompt_hide": title}


def contents(cell: nbformat.NotebookNode) -> list[str]:
    """What stands in a cell that prepares, in words: parameters, imports, and the first names that it defines."""
    body = ast.parse(cell.source).body
    words = ["parameters"] if "parameters" in tags(cell) else []
    words += ["imports"] if any(isinstance(node, ast.Import | ast.ImportFrom) for node in body) else []
    return words + defined(body, without=("params", "overlay"))[:NAMES] or ["code"]


def defined(body: Iterable[ast.stmt], *, without: tuple[str, ...]) -> list[str]:
    """The names that statements assign, in their order."""
    targets = [target for node in body if isinstance(node, ast.Assign) for target in node.targets]
    named = [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]
    return [name for name in dict.fromkeys(named) if name not in without]
