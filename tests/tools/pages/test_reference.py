"""The pages beside the notebooks: where their links lead, and which modules the reference holds."""

import pytest

from cnslib.core import paths
from cnslib.tools.pages import reference


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A small repository: two pages, a folder of figures, a wing with a room and a corridor."""
    files = ["README.md", "CONTRIBUTING.md", "docs/map.md", "docs/data.md", "paper.yaml", "figures/world/a.png"]
    files += ["cnslib/stats/__init__.py", "cnslib/stats/ranking.py", "cnslib/stats/deep/line.py"]
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    return tmp_path


def test_the_pages_are_those_of_docs_and_the_guide_for_changes(root):
    assert [path.name for path in reference.texts()] == ["data.md", "map.md", "CONTRIBUTING.md"]


def test_links_to_the_readme_and_to_folders_lead_to_the_first_page_and_others_stay(root):
    text = "[a](../README.md) [b](../figures/world) [c](data.md#top) [d](https://x.org/README.md) [e](../paper.yaml) [f](#here)"
    led = "[a](../index.md) [b](../index.md) [c](data.md#top) [d](https://x.org/README.md) [e](../paper.yaml) [f](#here)"
    assert reference.led(text, root / "docs" / "map.md") == led
    assert reference.led("[a](README.md)", root / "CONTRIBUTING.md") == "[a](index.md)"


def test_files_that_a_page_links_to_are_named_and_pages_and_folders_are_not(root):
    text = "[b](../figures/world) [c](data.md) [e](../paper.yaml) [x](../none.yaml)"
    assert list(reference.files(text, root / "docs" / "map.md")) == [(root / "paper.yaml").resolve()]


def test_the_reference_has_a_section_for_every_module(root):
    assert reference.wings() == {"stats": ["cnslib.stats.ranking", "cnslib.stats.deep.line"]}
    page = reference.page("stats", ["cnslib.stats.ranking"])
    assert "## stats.ranking" in page and ".. automodule:: cnslib.stats.ranking" in page
