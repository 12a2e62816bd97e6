"""A book of two notebooks: every link leads somewhere, every picture has a text, and nothing is asked of a network."""

import base64
import io
import shutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import pandas as pd
import pytest
import tiny_browser
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

from cnslib.core import paths
from cnslib.tools import runner
from cnslib.tools.pages import book

STAGES = """stages:
  failure:
    desc: where it breaks
    cmd: cns run failure
    deps: [notebooks/09_failure.ipynb]
    outs:
      - figures/failure: {cache: false}
"""
GALLERY = "step,figure,paper,there,here\nfailure,survival,CNS-Bench Fig. 8,bars & counts,a curve\n"
SAVES = 'figures.save(figure, layout.figures / "{}", table)'
WIDE = "a_long_word_" * 8
TALL = pd.DataFrame({name: ["what a table says in a sentence of some length"] * 60 for name in "abcd"})
BUFFER = io.BytesIO()
Image.new("RGB", (4, 4)).save(BUFFER, "PNG")
PICTURE = {"image/png": base64.b64encode(BUFFER.getvalue()).decode(), "text/plain": "<Figure>"}


class Page(HTMLParser):
    """What a page links to, loads, and names."""

    def __init__(self, path: Path):
        super().__init__()
        self.path = path
        self.links, self.loads, self.ids, self.pictures = [], [], set(), []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        """Sorts the attributes of one element."""
        named = dict(attributes)
        self.ids |= {named["id"]} if "id" in named else set()
        if tag == "a" and "href" in named:
            self.links.append(named["href"])
        if tag in ("script", "img", "link") and (named.get("src") or (named.get("href") and named.get("rel") != "canonical")):
            self.loads.append(named.get("src") or named["href"])
        if tag == "img":
            self.pictures.append(named)

    def broken(self) -> list[str]:
        """Links and files of this site that do not exist, and sections that their page lacks."""
        found = []
        for link in [*self.links, *self.loads]:
            parts = urlsplit(link)
            target = (self.path.parent / unquote(parts.path)).resolve() if parts.path else self.path
            if parts.scheme or link.startswith("//"):
                continue
            if not target.exists() or (parts.fragment and target.suffix == ".html" and parts.fragment not in Page(target).ids):
                found.append(link)
        return found


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A small repository: one chapter with two figures, run, and one that never was."""
    root = tmp_path_factory.mktemp("house")
    shutil.copytree(book.SETTING, root / "docs" / "book")
    python = {"kernelspec": runner.KERNELSPEC, "language_info": {"name": "python"}}
    bars = {"widgets": {"application/vnd.jupyter.widget-state+json": {"state": {}, "version_major": 2, "version_minor": 0}}}
    chapter = new_notebook(
        metadata=python | bars,
        cells=[
            new_markdown_cell("# How far?\n\nNext: [the labels](20_labels.ipynb), [the map](../docs/map.md), [front](../README.md)"),
            new_code_cell("import pandas as pd"),
            new_markdown_cell(f"## Survival of all\n\nLook at $\\frac{{a}}{{b}}$ and `{WIDE}`.\n\n$${' + '.join('abcdefgh' * 5)}$$"),
            new_code_cell(SAVES.format("survival"), outputs=[new_output("display_data", PICTURE)]),
            new_markdown_cell("## And then?"),
            new_code_cell(SAVES.format("spread"), outputs=[new_output("display_data", PICTURE)]),
            new_code_cell("claims", outputs=[new_output("execute_result", {"text/html": TALL.to_html()}, execution_count=1)]),
            new_code_cell("answer", metadata={"tags": ["answer"]}, outputs=[new_output("display_data", {"text/markdown": "**At once.**"})]),
            new_code_cell("bar", outputs=[new_output("display_data", {book.WIDGET: {"model_id": "a"}, "text/plain": "0%"})]),
            new_code_cell("run", outputs=[new_output("display_data", {"text/markdown": "| key | value |\n| --- | --- |\n| a | 1 |"})]),
        ],
    )
    files = {
        "dvc.yaml": STAGES,
        "docs/book/gallery.csv": GALLERY,
        "docs/book/front.csv": "step,figure,words\nfailure,spread,How wide & how far?\n",
        "docs/book/opening.md": "Read [on](notebooks/09_failure.ipynb).\n",
        "notebooks/09_failure.ipynb": nbformat.writes(new_notebook(cells=chapter.cells[:1])),
        "notebooks/20_labels.ipynb": nbformat.writes(
            new_notebook(metadata=python, cells=[new_markdown_cell("# Who says so?"), new_code_cell("1 + 1")])
        ),
        "notebooks/course/README.md": "# A course\n",
        "README.md": "# The front\n",
        "docs/map.md": "# The map\n\n[figures](../figures/failure), [settings](../dvc.yaml), [front](../README.md).\n",
        "cnslib/stats/ranking.py": "",
        "executed/09_failure.ipynb": nbformat.writes(chapter),
    }
    for name in ("survival", "spread"):
        files |= {f"figures/failure/{name}.png": BUFFER.getvalue(), f"figures/failure/{name}.csv": "x\n1\n"}
    for name, content in files.items():
        book.place(root / name, content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "ROOT", root)
        patch.setattr(paths, "NOTEBOOKS", root / "notebooks")
        patch.setattr(paths, "MODELS", root / "data" / "models")
        patch.setattr(book, "SETTING", root / "docs" / "book")
        yield root


@pytest.fixture(scope="module")
def site(house):
    """The folder of the made book."""
    return book.make(house / "build").parent


@pytest.fixture(scope="module")
def pages(site):
    return {path.relative_to(site).as_posix(): Page(path) for path in site.rglob("*.html") if "_static" not in path.parts}


@pytest.mark.slow
def test_every_link_and_section_exists(pages):
    assert {name: page.broken() for name, page in pages.items() if page.broken()} == {}


@pytest.mark.slow
def test_every_picture_has_a_text(pages):
    pictures = [picture for page in pages.values() for picture in page.pictures]
    assert len(pictures) >= 4 and all(picture.get("alt") for picture in pictures)
    assert any("How far? Survival of all. Figure survival" in picture["alt"] for picture in pages["notebooks/09_failure.html"].pictures)


@pytest.mark.slow
def test_the_first_page_shows_the_chosen_figures_in_words_and_leads_to_all(pages):
    first = pages["index.html"]
    assert [picture["src"] for picture in first.pictures if "figures/" in picture["src"]] == ["figures/failure/spread.png"]
    assert "<strong>How wide &amp; how far?</strong>" in first.path.read_text() and "gallery.html" in first.links
    assert {"stages.html#failure", "figures/failure/spread.csv", "sources/notebooks/09_failure.ipynb"} <= set(first.links)
    assert "Beyond the papers." in first.path.read_text()


@pytest.mark.slow
def test_nothing_is_loaded_from_a_network(pages):
    loads = {load for page in pages.values() for load in page.loads}
    assert loads and not any(urlsplit(load).netloc for load in loads)


@pytest.mark.slow
def test_a_card_leads_to_section_stage_numbers_and_source(site, pages):
    first = pages["gallery.html"]
    anchor = "notebooks/09_failure.html#survival-of-all"
    wanted = {anchor, "stages.html#failure", "figures/failure/survival.csv", "sources/notebooks/09_failure.ipynb"}
    assert wanted <= set(first.links) and (site / "figures/failure/survival.csv").read_text() == "x\n1\n"
    text = first.path.read_text()
    assert "CNS-Bench Fig. 8</strong> shows bars &amp; counts." in text and text.count("Beyond the papers.") == 1


@pytest.mark.slow
def test_a_notebook_that_was_not_run_says_so(site):
    said = "has not been run on this machine"
    assert said in (site / "notebooks/20_labels.html").read_text() and said not in (site / "notebooks/09_failure.html").read_text()


@pytest.mark.slow
def test_the_search_knows_the_chapters(site):
    assert "surviv" in (site / "searchindex.js").read_text() and (site / "search.html").exists()


@pytest.mark.slow
def test_tables_that_a_cell_writes_are_set(site):
    text = (site / "notebooks/09_failure.html").read_text()
    assert "<table" in text and "| key |" not in text and "Author name" not in text


@pytest.mark.slow
def test_formulas_are_set_for_the_browser(site):
    assert "<mfrac>" in (site / "notebooks/09_failure.html").read_text()


@pytest.mark.slow
def test_pages_beside_the_notebooks_lead_to_the_first_page_and_to_copies_of_files(pages):
    links = pages["docs/map.html"].links
    assert links.count("../index.html") >= 2 and any(link.endswith("dvc.yaml") for link in links)


@pytest.mark.slow
def test_the_reference_holds_the_docstrings_of_the_library(pages):
    assert "cnslib.stats.ranking.ranks" in pages["reference/stats.html"].ids


@pytest.fixture(scope="module")
def browser(site, tmp_path_factory):
    """A page in a headless browser, from disk."""
    if tiny_browser.found() is None:
        pytest.skip(f"no browser: none of {', '.join(tiny_browser.NAMES)} is installed")
    with tiny_browser.page((site / "index.html").as_uri(), tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1400])
def test_no_page_is_wider_than_a_phone_or_a_desk_and_none_complains(site, pages, browser, width):
    browser.resize(width, 844)
    wide = {}
    for name in pages:
        browser.visit((site / name).as_uri())
        wide[name] = browser.value("document.documentElement.scrollWidth")
    assert {name: found for name, found in wide.items() if found > width} == {} and len(wide) > 10
    assert browser.errors == [] and browser.logged == []


@pytest.mark.slow
def test_a_tall_table_scrolls_under_its_head_and_a_fold_says_what_is_in_it(site, browser):
    browser.resize(390, 844)
    browser.visit((site / "notebooks/09_failure.html").as_uri())
    table = "document.querySelector('.text_html:has(table)')"
    assert browser.value(f"[{table}.clientHeight < 600, {table}.scrollHeight > 1200, {table}.scrollWidth > 600]") == [True] * 3
    browser.value(f"{table}.scrollTop = 800")
    top = f"{table}.querySelector('thead').getBoundingClientRect().top - {table}.getBoundingClientRect().top"
    assert abs(browser.value(top)) < 2
    folds = browser.value("[...document.querySelectorAll('summary')].map(one => one.innerText.trim())")
    assert folds == ["Preparation: imports", "The answer: guess first, then look"]
    answer = "[...document.querySelectorAll('strong')].find(one => one.innerText.trim() == 'At once.')"
    assert browser.value(f"!({answer}?.offsetHeight)")
    browser.click("[...document.querySelectorAll('summary')][1]")
    browser.wait(f"{answer}.offsetHeight > 0", seconds=10)


def test_a_chapter_without_an_executed_copy_waits_to_be_run(house):
    assert book.waiting() == ["labels"]


def test_a_base_model_without_a_copy_of_its_present_code_waits_to_be_shown(house):
    model = house / "notebooks" / "world" / "10_autoencoder.ipynb"
    injected = new_code_cell("# Parameters", metadata={"tags": ["injected-parameters"]})
    book.place(model, nbformat.writes(new_notebook(cells=[new_markdown_cell("# How much?"), new_code_cell("1 + 1")])))
    try:
        assert book.unseen() == [model]
        for source, waiting in {"1 + 1": [], "1 + 2": [model]}.items():
            copy = new_notebook(cells=[new_code_cell(source), injected])
            book.place(house / "executed" / model.name, nbformat.writes(copy))
            assert book.unseen() == waiting
    finally:
        model.unlink()
        (house / "executed" / model.name).unlink()


def test_a_row_of_the_gallery_without_a_figure_is_refused(house):
    with pytest.raises(ValueError, match=r"gallery.csv: \('failure', 'survival'\) is no figure of a notebook"):
        book.gallery([], {})


def test_a_figure_belongs_to_the_section_above_it(house):
    chapter = nbformat.read(house / "executed" / "09_failure.ipynb", as_version=4)
    found = book.placed(chapter, house / "notebooks" / "09_failure.ipynb")
    assert [(figure.name, figure.page) for figure in found] == [
        ("survival", "notebooks/09_failure.html#survival-of-all"),
        ("spread", "notebooks/09_failure.html#and-then"),
    ]


def test_a_figure_that_is_drawn_before_it_is_saved_has_its_text(house):
    cells = [new_markdown_cell("# How far?"), new_code_cell("draw()"), new_code_cell(SAVES.format("survival"))]
    figure = book.Figure("failure", "survival", "How far?", "", "")
    chapter = new_notebook(cells=cells)
    book.described(chapter, [figure], house / "notebooks" / "09_failure.ipynb")
    assert chapter.cells[1].metadata["mystnb"]["image"]["alt"] == figure.alt


def test_chapters_of_the_core_track_stand_before_the_appendices(house):
    parts = {caption: [path.stem for path in book.part(caption, paths.NOTEBOOKS)] for caption in ("The core track", "Appendices")}
    assert parts == {"The core track": ["09_failure"], "Appendices": ["20_labels"]}


def test_a_wide_picture_may_be_scrolled_on_a_phone():
    heads = [base64.b64encode(bytes(16) + side.to_bytes(4) + bytes(4)).decode() for side in (600, 900)]
    cells = [new_code_cell("1", outputs=[new_output("display_data", {"image/png": head})]) for head in heads]
    assert [book.broad(cell) for cell in [*cells, new_code_cell("1")]] == [False, True, False]
    fine = new_output("display_data", {"image/png": heads[1]}, metadata={"image/png": {"width": 450}})  # two pixels of it in one
    assert not book.broad(new_code_cell("1", outputs=[fine]))


def test_what_prepares_is_folded_and_what_draws_is_not(house):
    chapter = nbformat.read(house / "executed" / "09_failure.ipynb", as_version=4)
    book.described(chapter, [], house / "notebooks" / "09_failure.ipynb")
    tags = [cell.metadata.get("tags", []) for cell in chapter.cells if cell.cell_type == "code"]
    assert ["hide-input" in own for own in tags] == [True] + [False] * 6


@pytest.mark.parametrize("name", ["gallery", "front"])
def test_every_row_of_a_list_names_a_committed_figure_and_says_what_it_shows(name):
    table = pd.read_csv(Path(__file__).parents[3] / "docs" / "book" / f"{name}.csv")
    figures = Path(__file__).parents[3] / "figures"
    assert all((figures / step / f"{name}.csv").exists() for step, name in zip(table["step"], table["figure"], strict=True))
    assert not table.isna().any(axis=None) and not table.duplicated(["step", "figure"]).any()
