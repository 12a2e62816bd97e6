"""`make pages`: writes the notebooks as pages with their pictures, docs/read/*.md, from the executed copies that `make repro` leaves.

Prose, tables and pictures stand open, code is folded away. A picture is linked where figures/ holds the same bytes; another one is
written beside its page. The last line of a page is a hash of what it was made from: by it `make test` sees a page that is out of date.
"""

import base64
import hashlib
import os
import re
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import nbformat

from cnslib.core import paths
from cnslib.tools import kernels

READ = Path(__file__).parent
CORE = [14, *range(10), 16, 11]  # the core track in the order of reading: photographs first
MARK = re.compile(r"<!--.*?-->", re.DOTALL)
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)")
OPEN_ROWS = 20  # a longer table is folded away


def chapters() -> list[Path]:
    """The first notebook and all numbered ones, the core track before the appendices."""
    numbered = sorted(paths.NOTEBOOKS.glob("[0-9]*.ipynb"), key=lambda path: int(path.name[:2]))
    order = {number: place for place, number in enumerate(CORE)}
    return [paths.NOTEBOOKS / "start_here.ipynb", *sorted(numbered, key=lambda path: order.get(int(path.name[:2]), len(order)))]


def sources(notebook: Path) -> list[str]:
    """What a page shows: patterns, from the root, of the notebook and of the numbers and figures that it writes."""
    step = notebook.stem.split("_", 1)[1]
    return [f"notebooks/{notebook.name}", f"metrics/{step}.json", f"figures/{step}/*.csv", f"figures/{step}/*.png"]


def stamp(notebook: Path, *, committed: bool = False) -> str:
    """A hash of what a page shows, as it lies in the folder or as git's index has it; `make repro` may have rounded a pixel otherwise."""
    listed = git("ls-files", "-s", *sources(notebook))
    hashes = [line.split()[1] for line in listed] if committed else git("hash-object", *(line.split("\t")[1] for line in listed))
    return hashlib.sha256("\n".join(hashes).encode()).hexdigest()[:16]


def git(*arguments: str) -> list[str]:
    """The lines that a command of git prints."""
    return subprocess.run(["git", *arguments], cwd=paths.ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def linked(text: str) -> str:
    """A notebook's Markdown with links that lead on from docs/read, to other pages where they led to notebooks, and without marks."""

    def moved(found: re.Match) -> str:
        target = (paths.NOTEBOOKS / found[1]).resolve()
        if target.parent == paths.NOTEBOOKS and target.suffix == ".ipynb":
            return f"]({target.stem}.md"
        return f"]({os.path.relpath(target, READ)}"

    return LINK.sub(moved, MARK.sub("", text)).strip()


def picture(data: str, width: int, drawn: dict[bytes, Path], stem: Path, heading: str) -> str:
    """An <img> of a PNG: the figure with the same bytes, or a file of its own beside the page."""
    png = base64.b64decode(data)
    path = drawn.get(hashlib.sha256(png).digest()) or stem
    if path == stem:
        path = stem.with_name(f"{stem.name}_{len([*stem.parent.glob(f'{stem.name}_*.png')]) + 1}.png")
        path.write_bytes(png)
    return f'<img src="{os.path.relpath(path, READ)}" alt="{heading}" width="{width}">'


def table(html: str) -> str:
    """A data frame without styles, a row on a line, folded away where it is long."""
    short = re.sub(r"<style.*?</style>|</?div[^>]*>|<p>\d+ rows.*?</p>", "", html, flags=re.DOTALL)
    short = re.sub(r' (?:border|class|style|valign)="[^"]*"', "", short)
    short = re.sub(r">\s+<", "><", short).replace("<tr>", "\n<tr>").strip()
    rows = short.count("<tr>")
    return short if rows <= OPEN_ROWS else f"<details><summary>Table of {rows - 1} rows</summary>\n\n{short}\n\n</details>"


def result(output: nbformat.NotebookNode, drawn: dict[bytes, Path], stem: Path, heading: str) -> str:
    """One output of a cell as Markdown; "" for a widget."""
    data = output.get("data", {})
    if "image/png" in data:
        width = output.get("metadata", {}).get("image/png", {}).get("width", 480)
        return picture(data["image/png"], round(width * 96 / 72), drawn, stem, heading)
    if "text/markdown" in data:
        return f"<details><summary>Settings</summary>\n\n{data['text/markdown']}\n\n</details>"
    if "text/html" in data:
        return table(data["text/html"])
    text = output.get("text") or ("" if "application/vnd.jupyter.widget-view+json" in data else data.get("text/plain", ""))
    return f"```text\n{text.rstrip()}\n```" if text.strip() else ""


def page(notebook: Path, executed: Path) -> str:
    """A notebook as Markdown. Neighbouring code cells without an output between them share one fold."""
    drawn = {hashlib.sha256(path.read_bytes()).digest(): path for path in (paths.ROOT / "figures").rglob("*.png")}
    for left in READ.glob(f"{notebook.stem}_*.png"):
        left.unlink()
    cells = [c for c in nbformat.read(executed, as_version=4).cells if "injected-parameters" not in c.metadata.get("tags", [])]
    parts, heading = [], notebook.stem
    for kind, run in groupby(cells, lambda cell: cell.cell_type):
        code: list[str] = []
        for cell in run:
            if kind == "markdown":
                heading = [heading, *re.findall(r"^#+ (.+)$", cell.source, re.MULTILINE)][-1]
                parts.append(linked(cell.source))
                continue
            code.append(cell.source)
            shown = [found for output in cell.outputs if (found := result(output, drawn, READ / notebook.stem, heading))]
            if shown:
                parts += [folded(code), *shown]
                code = []
        parts += [folded(code)] if code else []
    title, rest = parts[0].split("\n", 1)
    above = f"*[The notebook](../../notebooks/{notebook.name}) with its results · [all chapters](README.md)*"
    return "\n\n".join([title, above, rest.strip(), *parts[1:], f"<!-- made from {stamp(notebook)} -->"]) + "\n"


def folded(code: list[str]) -> str:
    """Cells of code behind one line."""
    return "<details><summary>Code</summary>\n\n```python\n" + "\n\n".join(code) + "\n```\n\n</details>"


def contents(pages: dict[str, str]) -> str:
    """The page of all pages: each chapter's question and the sentence that answers it."""
    lines = ["# The chapters, with their pictures\n\n`make pages` writes them after `make repro`.\n"]
    lines += ["| chapter | question | answer |", "|---|---|---|"]
    for name, text in pages.items():
        answer = re.search(r"\*\*(.+?)\*\*", text, re.DOTALL)
        title = text.split("\n", 1)[0].lstrip("# ")
        lines.append(f"| [{name.split('_')[0]}]({name}.md) | {title} | {answer[1] if answer and name != 'start_here' else ''} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Writes all pages; 1 where an executed copy is missing."""
    executed = {notebook: paths.ROOT / "executed" / notebook.name for notebook in chapters()}
    start = executed[chapters()[0]]
    kernels.execute(chapters()[0], paths.made(start.parent) / start.name, {}, folder=paths.ROOT)
    if missing := [paths.shown(path) for path in executed.values() if not path.exists()]:
        print(f"missing: {', '.join(missing)}; `make repro` writes them", file=sys.stderr)
        return 1
    pages = {notebook.stem: page(notebook, copy) for notebook, copy in executed.items()}
    for name, text in pages.items():
        (READ / f"{name}.md").write_text(text)
    (READ / "README.md").write_text(contents(pages))
    return 0


if __name__ == "__main__":
    sys.exit(main())
