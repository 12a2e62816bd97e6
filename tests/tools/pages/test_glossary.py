"""Terms and their first uses, in a notebook of three cells."""

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from cnslib.core import paths
from cnslib.tools.pages import glossary


def book(*texts: str):
    return new_notebook(cells=[new_markdown_cell("# Title with oracle?"), new_code_cell("oracle = 1"), *map(new_markdown_cell, texts)])


def found(term: str, *texts: str) -> str | None:
    """The first use of a term with the three characters before it."""
    place = glossary.first(book(*texts), term)
    return place and place[0].source[place[1] - 3 : place[2]]


def test_the_terms_are_the_headings_of_the_page(tmp_path, monkeypatch):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "glossary.md").write_text("# Glossary\n\n## Oracle\n\nText.\n\n## Kendall's tau\n\nText.\n")
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    assert glossary.terms() == ["Oracle", "Kendall's tau"] and glossary.anchor("Kendall's tau") == "kendalls-tau"


@pytest.mark.parametrize(
    ("term", "text", "use"),
    [
        ("Oracle", "Ask the oracle.", "he oracle"),
        ("Trajectory", "All trajectories count.", "ll trajectories"),
        ("CE", "Scenes once have CE here.", "ve CE"),
        ("Log-rank", "Now *log-rank* tests.", "w *log-rank"),
        ("mae_probe", "Here `mae_probe` wins.", "re `mae_probe`"),
    ],
)
def test_a_first_use_is_found_in_every_form(term, text, use):
    assert found(term, "Nothing here.", text) == use


@pytest.mark.parametrize("text", ["The `oracle` is code.", "## The oracle", "$oracle$", "[the oracle](x.md)", "| oracle |", "oracle-like"])
def test_code_headings_formulas_links_and_tables_are_no_uses(text):
    assert found("Oracle", text) is None


def test_a_term_whose_first_use_leads_to_its_page_is_done():
    led = "The [oracle](../docs/glossary.md#oracle) says so. "
    assert found("Oracle", led + "Another oracle.") is None
    assert found("Oracle", "An oracle. " + led) == "An oracle"
