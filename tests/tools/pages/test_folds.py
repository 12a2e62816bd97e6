"""What the book folds: a reader tells one fold from the next by its title, and meets the answer only after opening one."""

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from cnslib.tools.pages import folds

SHOWS = [new_output("stream", text="seen")]


def code(source: str, *, tags=(), outputs=(), **metadata):
    return new_code_cell(source, metadata=metadata | {"tags": list(tags)}, outputs=list(outputs))


def titles(*cells) -> list[str | None]:
    """What stands on the fold of each code cell that is left; None where nothing is folded."""
    book = new_notebook(cells=[new_markdown_cell("# A question?"), *cells])
    folds.fold(book)
    return [cell.metadata.get("mystnb", {}).get("code_prompt_show") for cell in book.cells if cell.cell_type == "code"]


def test_neighbours_that_prepare_share_a_fold_that_says_what_is_in_it():
    cells = [code('params = "a.yaml"\noverlay = ""', tags=["parameters"]), code("import numpy as np"), code("from cnslib import core")]
    book = new_notebook(cells=[*cells, code("run = 1")])
    folds.fold(book)
    assert [cell.source.count("import") for cell in book.cells] == [2, 0]
    assert book.cells[0].metadata["mystnb"]["code_prompt_show"] == "Preparation: parameters, imports"
    assert {"parameters", "hide-input"} <= set(book.cells[0].metadata["tags"]) and "hide-input" not in folds.tags(book.cells[1])


def test_two_folds_of_a_page_have_titles_of_their_own():
    skipped = {"slideshow": {"slide_type": "skip"}}
    found = titles(code("import os"), code("shown"), code("sheet = os.sep\nnames = sheet", **skipped))
    assert found == ["Preparation: imports", None, "Preparation: sheet, names"]


def test_a_cell_that_shows_something_keeps_its_place_and_is_no_preparation():
    skipped = {"slideshow": {"slide_type": "skip"}}
    assert titles(code("import os"), code("figure = 1", outputs=SHOWS, **skipped)) == ["Preparation: imports", "Code: figure"]


def test_prose_between_two_preparations_keeps_them_apart():
    assert titles(code("import os"), new_markdown_cell("Why?"), code("import re")) == ["Preparation: imports"] * 2


def test_the_answer_waits_under_a_fold():
    book = new_notebook(cells=[code("answer", tags=["answer"], outputs=SHOWS)])
    folds.fold(book)
    (cell,) = book.cells
    assert folds.tags(cell) == ["answer", "hide-output", "remove-input"] and "guess first" in cell.metadata["mystnb"]["code_prompt_show"]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("a, b = 1, 2\nc.d = 3\ne[0] = 4", ["a", "b"]),
        ("a = 1\na = 2\nb = c = d = e = f = 3", ["a", "b", "c", "d"]),
        ("print(1)", ["code"]),
        ("params = 1", ["code"]),
    ],
)
def test_a_title_lists_the_first_names_that_a_cell_defines(source, words):
    assert folds.contents(code(source)) == words


def test_a_page_keeps_what_was_noted_for_its_pictures():
    cell = code("import os", mystnb={"image": {"alt": "a"}})
    folds.fold(new_notebook(cells=[cell]))
    assert cell.metadata["mystnb"]["image"] == {"alt": "a"}
