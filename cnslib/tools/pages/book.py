"""The book: every executed notebook and the gallery of all figures as a site that opens from disk.

`cns book` takes the executed copies as they are. It runs the lessons, the first notebook, and chapters that have no copy. A base model's
notebook without one would train for hours, so it is run with the models that ship, and says so. Pages go to build/book/source, and Sphinx
makes build/book/html of them.
"""

import argparse
import base64
import html
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pandas as pd
from docutils.nodes import make_id
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_markdown_cell
from ruamel.yaml import YAML

from cnslib.core import paths
from cnslib.tools import kernels, runner
from cnslib.tools.pages import folds, reference, shipped

SETTING = paths.ROOT / "docs" / "book"
FIGURE = re.compile(r"""figures / f?["'](\w+)""")
NOT_RUN = "*This notebook has not been run on this machine, so it is shown without its outputs.*"
START = "start_here"
WIDE = 640  # pixels
WIDGET = "application/vnd.jupyter.widget-view+json"
STEPS = ("world", "inversion", "sliders", "generation", "filtering", "evaluation")
CORE = (*STEPS, "accuracy", "ranking", "axes", "failure", "photos", "report", "line")  # read in an afternoon; the others are appendices
PARTS = {"The core track": "notebooks", "Appendices": "notebooks", "The course": "notebooks/course", "The base models": "notebooks/world"}


@dataclass(frozen=True)
class Figure:
    """A picture of one step, and where the book shows it: the page and the anchor of its section."""

    step: str
    name: str
    title: str
    heading: str
    page: str

    @property
    def key(self) -> tuple[str, str]:
        """What a list of figures calls it by."""
        return self.step, self.name

    @property
    def file(self) -> str:
        """The picture's place in the book and the repository, without its ending."""
        return f"figures/{self.step}/{self.name}"

    @property
    def alt(self) -> str:
        """What the picture is, for those who cannot see it."""
        name = self.name.replace("_", " ")
        return f"{self.title} {self.heading}. Figure {name} of the step {self.step}; its numbers are in {self.file}.csv"


def make(out: Path) -> Path:
    """Writes the pages and the site under `out`; returns the first page. RuntimeError with Sphinx's words where it has something to say."""
    source, site = out / "source", out / "html"
    for folder in (source, site):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(SETTING, source, ignore=shutil.ignore_patterns("*.csv", "__pycache__"))
    write(source)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", str(source), str(site)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"sphinx: {done.stderr.strip()}")
    return site / "index.html"


def write(source: Path) -> None:
    """Every page of the book, and the files that its pages link to."""
    stages = YAML(typ="safe", pure=True).load((paths.ROOT / "dvc.yaml").read_text())["stages"]
    figures = []
    for path in notebooks():
        book = shown(path)
        found = placed(book, path)
        figures += found
        described(book, found, path)
        place(source / path.relative_to(paths.ROOT), nbformat.writes(book))
        place(source / "extra" / "sources" / path.relative_to(paths.ROOT), path.read_text())
    for path in [*sorted((paths.NOTEBOOKS / "course").rglob("*.md")), *reference.texts()]:
        text = path.read_text()
        place(source / path.relative_to(paths.ROOT), reference.led(text, path))
        for file in reference.files(text, path):
            place(source / file.relative_to(paths.ROOT.resolve()), file.read_bytes())
    for wing, names in reference.wings().items():
        place(source / "reference" / f"{wing}.md", reference.page(wing, names))
    for figure in figures:
        for kind in ("png", "csv"):
            place(source / "extra" / f"{figure.file}.{kind}", (paths.ROOT / f"{figure.file}.{kind}").read_bytes())
    place(source / "stages.md", stage_page(stages))
    place(source / "gallery.md", gallery(figures, stages))
    place(source / "index.md", front(figures) + contents())


def place(path: Path, content: str | bytes) -> None:
    """Writes a file and the folders above it."""
    paths.made(path.parent)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def notebooks() -> list[Path]:
    """Every notebook of the book: the first one, chapters, base models and lessons."""
    first = [path for path in (paths.NOTEBOOKS / f"{START}.ipynb",) if path.exists()]
    return [*first, *runner.steps(), *sorted((paths.NOTEBOOKS / "course").glob("[0-9]_*.ipynb"))]


def executed(path: Path) -> Path | None:
    """The executed copy of a notebook, of its last run here."""
    copy = paths.Layout(".").executed / path.name
    return copy if copy.exists() else None


def waiting() -> list[str]:
    """The chapters that have no executed copy yet."""
    return [path.stem.split("_", 1)[1] for path in runner.steps() if path.parent == paths.NOTEBOOKS and not executed(path)]


def unseen() -> list[Path]:
    """The base models' notebooks whose executed copy is missing, or of other code."""
    return [path for path in runner.steps() if path.parent != paths.NOTEBOOKS and code(executed(path)) != code(path)]


def code(path: Path | None) -> list[str] | None:
    """The code of a notebook, without the parameters that a run writes into its copy."""
    cells = nbformat.read(path, as_version=4).cells if path else []
    own = [cell for cell in cells if cell.cell_type == "code" and "injected-parameters" not in cell.metadata.get("tags", [])]
    return [cell.source for cell in own] if path else None


def shown(path: Path) -> nbformat.NotebookNode:
    """The executed copy of a notebook without papermill's second parameters; a lesson, which is no step, is run."""
    book = nbformat.read(path, as_version=4)
    if path not in runner.steps():
        where = {"metadata": {"path": str(paths.ROOT)}}
        NotebookClient(book, timeout=600, resources=where, kernel_manager_class=kernels.Patient).execute()
    elif copy := executed(path):
        book = nbformat.read(copy, as_version=4)
    else:
        book.cells.insert(1, new_markdown_cell(NOT_RUN))
    book.cells = [cell for cell in book.cells if "injected-parameters" not in cell.metadata.get("tags", [])]
    return still(book)


def still(book: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A notebook without widgets, such as the bars of a progress: nobody moves them on a page, which would fetch their scripts."""
    book.metadata.pop("widgets", None)
    for cell in book.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if WIDGET not in output.get("data", {})]
    return book


def sections(book: nbformat.NotebookNode) -> Iterator[tuple[nbformat.NotebookNode, str, str]]:
    """The cells of a notebook, each with the notebook's title and the heading of its section."""
    title = heading = ""
    for cell in book.cells:
        if cell.cell_type == "markdown":
            titles = re.findall(r"^#+ (.+)$", cell.source, re.MULTILINE)
            title, heading = title or next(iter(titles), ""), titles[-1] if titles else heading
        yield cell, title, heading


def placed(book: nbformat.NotebookNode, path: Path) -> list[Figure]:
    """The saved figures of a chapter with the section that shows each; the page's top for one that a loop names."""
    if path.parent != paths.NOTEBOOKS or path.stem == START:
        return []
    step, page = path.stem.split("_", 1)[1], path.relative_to(paths.ROOT).with_suffix("").as_posix()
    saved = sorted(file.stem for file in (paths.ROOT / "figures" / step).glob("*.png"))
    found: dict[str, Figure] = {}
    title = ""
    for cell, title, heading in sections(book):
        for stem in FIGURE.findall(cell.source) if cell.cell_type == "code" else []:
            names = [stem] if stem in saved else [name for name in saved if name.startswith(stem)]
            found |= {name: Figure(step, name, title, heading, f"{page}.html#{make_id(heading)}") for name in names}
    rest = [Figure(step, name, title, "", f"{page}.html") for name in saved if name not in found]
    return [*found.values(), *rest]


def described(book: nbformat.NotebookNode, figures: list[Figure], path: Path) -> None:
    """Gives every picture a text for those who cannot see it, leads to the book's first page, and folds preparations and the answer."""
    texts = {figure.name: figure.alt for figure in figures}
    for number, (cell, title, heading) in enumerate(sections(book)):
        if cell.cell_type == "markdown":
            cell.source = reference.led(cell.source, path)
            continue
        named = [texts[stem] for stem in stems(book.cells[number:]) if stem in texts]
        image = {"alt": named[0] if named else f"{title} Picture in the section {heading}."}
        cell.metadata["mystnb"] = {"image": image | ({"classes": "wide"} if broad(cell) else {})}
    folds.fold(book)


def stems(cells: list[nbformat.NotebookNode]) -> list[str]:
    """The figures that the first of some cells draws: those of the first cell that saves any."""
    return next((found for cell in cells if cell.cell_type == "code" and (found := FIGURE.findall(cell.source))), [])


def broad(cell: nbformat.NotebookNode) -> bool:
    """Whether a code cell shows a picture that is more than twice as wide as a phone."""
    return any(wide(output) > WIDE for output in cell.get("outputs", []) if "image/png" in output.get("data", {}))


def wide(output: nbformat.NotebookNode) -> int:
    """How many pixels wide a picture is shown: as its output says, or as it is, which a PNG has in bytes 16 to 20."""
    own = int.from_bytes(base64.b64decode(output["data"]["image/png"])[16:20])
    return output.get("metadata", {}).get("image/png", {}).get("width", own)


def front(figures: list[Figure]) -> str:
    """The first page: what the book is, and a card for each figure that carries it."""
    chosen, papers = listed_figures("front.csv", figures), listed_figures("gallery.csv", figures)
    shown = [figure for key in chosen.index for figure in figures if key == figure.key]
    cards = [card(figure, row(papers, figure), words=chosen.loc[figure.key, "words"]) for figure in shown]
    return "\n".join(["# The CNS-Bench compendium", "", (SETTING / "opening.md").read_text(), "", *grid(cards)])


def gallery(figures: list[Figure], stages: dict) -> str:
    """A page with a card for each figure, step by step."""
    table = listed_figures("gallery.csv", figures)
    text = ["# Every figure", "", "In the order of the analysis. Each says which figure or table of the papers it stands beside.", ""]
    for step in dict.fromkeys(figure.step for figure in figures):
        own = [figure for figure in figures if figure.step == step]
        cards = [card(figure, row(table, figure)) for figure in own]
        text += [f"## {own[0].title}", "", sentence(stages[step]["desc"]), "", *grid(cards)]
    return "\n".join(text)


def listed_figures(name: str, figures: list[Figure]) -> pd.DataFrame:
    """A list of docs/book/ by step and figure; ValueError names a figure that no notebook has."""
    table = pd.read_csv(SETTING / name).set_index(["step", "figure"])
    if unknown := sorted(set(table.index) - {figure.key for figure in figures}):
        raise ValueError(f"{name}: {unknown[0]} is no figure of a notebook")
    return table


def row(table: pd.DataFrame, figure: Figure) -> pd.Series | None:
    """What a list says of a figure, if anything."""
    return table.loc[figure.key] if figure.key in table.index else None


def grid(cards: list[str]) -> list[str]:
    """Cards side by side, as many as there is room for."""
    return ['<div class="gallery">', *cards, "</div>", ""]


def card(figure: Figure, paper: pd.Series | None, *, words: str = "") -> str:
    """One figure with its links: notebook, stage, numbers, source, and the paper's figure in words; `words` in place of its section."""
    source = f"sources/{figure.page.split('.html')[0]}.ipynb"
    places = {"notebook": figure.page, "stage": f"stages.html#{figure.step}", "csv": f"{figure.file}.csv", "source": source}
    links = " · ".join(f'<a href="{place}">{word}</a>' for word, place in places.items())
    title, below = html.escape(words or figure.heading or figure.title), f"<p>{links}</p>{beside(paper)}"
    picture = f'<img src="{figure.file}.png" alt="{html.escape(figure.alt)}" loading="lazy">'
    return (
        f'<figure><a class="thumbnail" href="{figure.page}">{picture}</a>'
        f'<figcaption><a href="{figure.page}"><strong>{title}</strong></a>{below}</figcaption></figure>'
    )


def beside(paper: pd.Series | None) -> str:
    """The paper's figure in words, and what is here."""
    if paper is None:
        return "<p>Beyond the papers.</p>"
    there, here = html.escape(paper["there"]), html.escape(paper["here"])
    return f"<p><strong>{html.escape(paper['paper'])}</strong> shows {there}.</p><p><strong>Here:</strong> {here}.</p>"


def contents() -> str:
    """The book's table of contents, for Sphinx."""
    first = [f"notebooks/{START}"] if (paths.NOTEBOOKS / f"{START}.ipynb").exists() else []
    parts = {"Start here": [*first, "gallery"]}
    for caption, folder in PARTS.items():
        files = part(caption, paths.ROOT / folder)
        own = [page_of(path) for path in files]
        if folder.endswith("course"):
            own = [f"{folder}/README", *own, *(f"{folder}/solutions/{path.stem}" for path in files)]
        parts[caption] = own
    parts["The pages"] = [page_of(path) for path in reference.texts()]
    parts["The library"] = [f"reference/{wing}" for wing in reference.wings()]
    parts["The pipeline"] = ["stages"]
    return "\n".join(["", *(listing(caption, own) for caption, own in parts.items() if own)])


def part(caption: str, folder: Path) -> list[Path]:
    """The notebooks of one part of the book in its order: those of the core track by it, the others by their numbers."""
    files = {path.stem.split("_", 1)[1]: path for path in notebooks() if path.parent == folder and path.stem != START}
    if caption == "The core track":
        return [files[step] for step in CORE if step in files]
    return [path for step, path in files.items() if caption != "Appendices" or step not in CORE]


def page_of(path: Path) -> str:
    """A file's page in the book."""
    return path.relative_to(paths.ROOT).with_suffix("").as_posix()


def listing(caption: str, pages: list[str]) -> str:
    """One part of the table of contents."""
    return "\n".join(["```{toctree}", ":hidden:", ":maxdepth: 1", f":caption: {caption}", "", *pages, "```", ""])


def stage_page(stages: dict) -> str:
    """What DVC runs: a section per stage with its command, its inputs and outputs."""
    text = ["# The stages", "", "Each notebook is a stage of DVC. `dvc repro` runs those whose inputs have changed.", ""]
    for name, stage in stages.items():
        text += [f"## {name}", "", sentence(stage["desc"]), "", f"- runs `{stage['cmd']}`"]
        text += [f"- {word}: {listed(stage[key])}" for key, word in {"deps": "reads", "outs": "writes"}.items() if key in stage]
        text += [""]
    return "\n".join(text)


def sentence(text: str) -> str:
    """A stage's description with a capital letter and a full stop."""
    return f"{text[0].upper()}{text[1:]}."


def listed(entries: list) -> str:
    """The paths of a stage's entries."""
    return ", ".join(f"`{next(iter(entry)) if isinstance(entry, dict) else entry}`" for entry in entries)


def main(arguments: list[str]) -> int:
    """Command line: makes the book; 1 with one line if a page cannot be set."""
    parser = argparse.ArgumentParser(prog="cns book", description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="build/book", help="folder that receives source/ and html/ (default build/book)")
    options = parser.parse_args(arguments)
    try:
        for step in waiting():
            print(f"book: running {step}", flush=True)
            runner.run(step, "params.yaml")
        for path in unseen():
            print(f"book: running {path.stem} with the models that ship", flush=True)
            place(paths.Layout(".").executed / path.name, nbformat.writes(shipped.run(path)))
        print(f"book: open {paths.shown(make(paths.resolve(options.out)))}")
    except (RuntimeError, ValueError, FileNotFoundError, CellExecutionError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0
