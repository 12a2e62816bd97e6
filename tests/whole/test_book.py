import re
import shutil
import subprocess
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from cnslib.core import paths
from cnslib.tools import kernels

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    root = tmp_path_factory.mktemp("house")
    for folder in ("notebooks", "executed", "docs", "figures/failure"):
        (root / folder).mkdir(parents=True)
    shutil.copytree(paths.ROOT / "docs" / "book", root / "docs" / "book")
    (root / "README.md").write_text("# The front\n\n[the map](docs/map.md)\n")
    (root / "docs" / "map.md").write_text("# The map\n\n[back](../README.md), [figures](../figures/failure)\n")
    shutil.copy(paths.ROOT / "figures" / "failure" / "survival.png", root / "figures" / "failure")
    cells = [new_markdown_cell("# How far?\n\n## Survival\n\nLook at $\\frac{a}{b}$, 0.49<!-- accuracy/x -->."), new_code_cell("draw()")]
    metadata = {"kernelspec": kernels.KERNELSPEC, "language_info": {"name": "python"}}
    nbformat.write(new_notebook(cells=cells, metadata=metadata), root / "notebooks" / "09_failure.ipynb")
    nbformat.write(new_notebook(cells=cells[:1], metadata=metadata), root / "notebooks" / "start_here.ipynb")
    cells[1].outputs = [new_output("display_data", {"image/png": PIXEL, "text/plain": "<Figure>"})]
    nbformat.write(new_notebook(cells=cells, metadata=metadata), root / "executed" / "09_failure.ipynb")
    command = [sys.executable, "-m", "sphinx", "-q", "-D", "nb_execution_mode=off", "-c", root / "docs" / "book", root, root / "html"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {path.relative_to(root / "html").as_posix(): path.read_text() for path in (root / "html").rglob("*.html")}


@pytest.mark.slow
def test_a_chapter_is_its_executed_copy_with_formulas_for_the_browser_and_without_marks(pages):
    text = pages["notebooks/09_failure.html"]
    assert 'alt="Picture in the section Survival"' in text and "<mfrac>" in text and "&lt;!--" not in text


@pytest.mark.slow
def test_every_picture_has_a_text_and_nothing_is_loaded_from_a_network(pages):
    for name, text in pages.items():
        assert all(re.search(r'alt="[^"]+"', image) for image in re.findall(r"<img [^>]*>", text)), name
        assert not re.findall(r'<(?:script|img|link rel="stylesheet")[^>]* (?:src|href)="https?://', text), name
