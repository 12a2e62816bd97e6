"""The widgets: one line without a front-end, and in JupyterLab, driven by a mouse in a headless browser, what a reader sees."""

import base64
import json
import os
import re
from pathlib import Path

import nbformat
import numpy as np
import pytest
import tiny_browser
import tiny_lab

from cnslib.core import paths, tables
from cnslib.core.settings import read
from cnslib.data import artifacts
from cnslib.stats import accuracy
from cnslib.tools import runner
from cnslib.tools.play import state, supply, widgets

SECONDS = 900  # until the page gives up: machines that also do something else are slow
PREPARED = {"imports", "settings", "data"}


def test_without_a_front_end_a_line_says_where_to_look(monkeypatch):
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    assert "JupyterLab" in widgets.severity(None, None, None).data and "JupyterLab" in widgets.game(None, None).data


def notebook(folder: Path, name: str, overlay: Path) -> None:
    """A notebook's cells that read the data, and those to play with, on the run of an overlay."""
    content = nbformat.read(runner.find(name), as_version=4)
    content.cells = [cell for cell in content.cells if cell.id in PREPARED | {"parameters"} or cell.id.startswith("own-garment")]
    next(cell for cell in content.cells if cell.id == "parameters").source = f'params, overlay = "params.yaml", "{overlay}"'
    nbformat.write(content, folder / f"{name}.ipynb")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """JupyterLab on the playing part of notebook 09, all cells run; its figures and pictures go to a folder of the test."""
    if tiny_browser.found() is None:
        pytest.skip(f"no browser: none of {', '.join(tiny_browser.NAMES)} is installed")
    folder, settings = tmp_path_factory.mktemp("notebooks"), tmp_path_factory.mktemp("lab")
    (settings / "artifacts").symlink_to(paths.ROOT / "artifacts")
    (settings / "overlay.yaml").write_text(f'base: {{out: "{settings}"}}\n')
    notebook(folder, "failure", settings / "overlay.yaml")
    library = os.pathsep.join(filter(None, [str(paths.ROOT), os.environ.get("PYTHONPATH", "")]))
    with tiny_lab.notebook(folder, "failure.ipynb", settings, seconds=SECONDS, PYTHONPATH=library) as opened:
        opened.wait("!!document.querySelector('.cns-severity table') && !!document.querySelector('.cns-game img')", seconds=SECONDS)
        opened.folder = settings
        yield opened
        assert opened.errors == []


def part(name: str, inside: str = "") -> str:
    """An element of a widget."""
    return f"document.querySelector('.cns-{name} {inside}')"


def text(page, name: str) -> str:
    return page.value(f"{part(name)}.innerText")


def settled(page, name: str) -> float:
    """The scale at which the slider stands, once the picture is the one of that scale."""
    here, readout = part(name, "img"), part(name, ".widget-readout")
    page.wait(f"{here}.alt.endsWith('scale ' + {readout}.innerText) && !/is drawn/.test({part(name)}.innerText)", seconds=SECONDS)
    return float(page.value(f"{readout}.innerText"))


def shown(page, name: str) -> bytes:
    """The bytes of the picture on the page."""
    return base64.b64decode(page.value(f"{part(name, 'img')}.src").split(",")[1])


def button(name: str) -> str:
    return f"[...document.querySelectorAll('.cns-game button')].find(one => one.innerText.trim() == {json.dumps(name)})"


@pytest.mark.slow
def test_dragging_the_slider_changes_picture_and_answers(page):
    assert settled(page, "severity") == 0 and "from the benchmark" in text(page, "severity")
    picture, table = shown(page, "severity"), page.value(f"{part('severity', 'table')}.innerText")
    page.drag(part("severity", ".noUi-handle"), right=90)
    page.photograph(page.folder / "dragging.png", part("severity"))
    scale = settled(page, "severity")
    page.wait(f"{part('severity', 'table')}.innerText.includes('answer at scale {scale:g}')", seconds=SECONDS)
    page.photograph(page.folder / "dragged.png", part("severity"))
    assert scale > 0 and shown(page, "severity") != picture
    assert page.value(f"{part('severity', 'table')}.innerText") != table
    assert len(re.findall("right|wrong", text(page, "severity"))) == len(read.load(paths.resolve("params.yaml"))["base"].shown)


@pytest.mark.slow
def test_a_picture_between_the_benchmarks_scales_is_the_one_that_is_kept(page):
    page.value(f"{part('severity', '.noUi-handle')}.focus()")
    while settled(page, "severity") in read.load(paths.resolve("params.yaml"))["base"].scales:
        page.key("ArrowRight")
    scale = settled(page, "severity")
    assert "drawn on demand" in text(page, "severity")
    (kept,) = (page.folder / supply.KEPT / "pictures").rglob("*.parquet")
    table = tables.read(kept, tables.images)
    stored = table.loc[table["scale"] == scale, "image"].item()  # a JPEG; the page shows its pixels as a PNG
    assert np.array_equal(tables.decode(shown(page, "severity"), "page"), tables.decode(stored, "kept"))


@pytest.mark.slow
def test_the_reader_names_the_garment_and_stands_among_all_classifiers(page):
    run = read.start("failure", "params.yaml")
    found = accuracy.outcomes(artifacts.answers(run), artifacts.kept(run))
    opened, _ = state.rounds(found)[0]
    wrong = next(name for name in run.base.classes if name != opened.name)
    page.photograph(page.folder / "before.png", part("game"))
    assert opened.name not in page.value(f"{part('game', 'img')}.alt") and settled(page, "game") == found.scales[-1]
    page.click(button(wrong))
    page.wait(f"/Not so at scale/.test({part('game')}.innerText)", seconds=SECONDS)
    assert page.value(f"{button(opened.name)}.disabled")
    page.drag(part("game", ".noUi-handle"), right=-250)
    scale = settled(page, "game")
    page.wait(f"!{button(opened.name)}.disabled", seconds=SECONDS)
    page.click(button(opened.name))
    page.wait(f"/Your failure point/.test({part('game')}.innerText)", seconds=SECONDS)
    page.photograph(page.folder / "after.png", part("game"))
    said, failure = text(page, "game"), found.scales[found.scales.index(scale) + 1]
    assert f"Your failure point is scale {failure:g}" in said and opened.name in said
    assert all(re.search(rf"\b{model}\b", said) for model in found.models)
    page.click(button("next garment"))
    page.wait(f"/what is it/.test({part('game')}.innerText)", seconds=SECONDS)
    assert settled(page, "game") == found.scales[-1]
