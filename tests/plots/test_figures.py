import os
import subprocess
import sys

import pandas as pd
import pytest
from matplotlib import pyplot as plt

from cnslib.plots import curves, figures, palette

TABLE = pd.DataFrame(
    {
        "shift": ["heavy snow"] * 4 + ["heavy fog"] * 4,
        "model": ["vit", "vit", "alexnet", "alexnet"] * 2,
        "scale": [0.0, 0.5] * 4,
        "n": 40,
        "estimate": [0.0, 0.25, 0.0, 0.5, 0.0, 0.125, 0.0, 1 / 3],
        "low": [0.0, 0.2, 0.0, 0.4, 0.0, 0.0, 0.0, 0.3],
        "high": [0.0, 0.3, 0.0, 0.6, 0.0, 0.2, 0.0, 0.4],
    }
)
FILES = ("drop.png", "drop.pdf", "drop.csv")


@pytest.fixture(autouse=True)
def close_figures():
    figures.use_style()
    yield
    plt.close("all")


def drops(stem) -> None:
    figure = figures.panels(TABLE, curves.estimate_lines, label="drop")
    figures.caption(figure, figures.extent(TABLE["n"]))
    figures.save(figure, stem, TABLE)


@pytest.mark.slow
def test_another_process_writes_the_same_bytes(tmp_path):
    drops(tmp_path / "here" / "drop")
    code = f"import pathlib, test_figures as t; t.figures.use_style(); t.drops(pathlib.Path({str(tmp_path)!r}) / 'there' / 'drop')"
    environment = {**os.environ, "PYTHONHASHSEED": "7", "MPLBACKEND": "agg"}
    subprocess.run([sys.executable, "-c", code], cwd=os.path.dirname(__file__), env=environment, check=True)
    for name in FILES:
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()


def test_the_csv_holds_the_plotted_numbers_whatever_the_row_order(tmp_path):
    drops(tmp_path / "drop")
    read = pd.read_csv(tmp_path / "drop.csv")
    pd.testing.assert_frame_equal(read, TABLE.sort_values(list(TABLE.columns), ignore_index=True), rtol=1e-5)
    assert "0.333333" in (tmp_path / "drop.csv").read_text()
    figures.save(plt.figure(), tmp_path / "shuffled", TABLE.iloc[::-1])
    assert (tmp_path / "shuffled.csv").read_bytes() == (tmp_path / "drop.csv").read_bytes()


def test_the_twelfth_digit_does_not_order_the_rows(tmp_path):
    for name, last in (("here", 1e-12), ("elsewhere", -1e-12)):
        rows = pd.DataFrame({"estimate": [0.25 + last, 0.25, 0.1], "model": ["vit", "resnet", "deit"]})
        figures.save(plt.figure(), tmp_path / name, rows)
    assert (tmp_path / "here.csv").read_text() == "estimate,model\n0.1,deit\n0.25,resnet\n0.25,vit\n"
    assert (tmp_path / "elsewhere.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()


GROUPED = {"alexnet": ["alexnet"], "resnet": ["resnet_s", "resnet"], "CLIP": ["clip_probe"]}


@pytest.fixture
def fixed():
    figures.use_style(shifts=["heavy snow", "cartoon style"], families=GROUPED)


def test_a_name_looks_the_same_whoever_stands_beside_it_and_a_family_shares_its_colour(fixed):
    alone, among = palette.looks(["resnet"]), palette.looks(["clip_probe", "CLIP", "resnet", "alexnet", "zebra"])
    assert alone["resnet"] == among["resnet"] and list(among) == ["zebra", "alexnet", "resnet", "clip_probe", "CLIP"]
    assert among["CLIP"]["color"] == among["clip_probe"]["color"] != among["resnet"]["color"]
