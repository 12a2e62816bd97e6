"""The contact sheet, without a browser: clicks reach the project file, pages turn, and a sheet goes on where it ended."""

import numpy as np
import pandas as pd

from cnslib.core import tables
from cnslib.data import annotations


def rows(count):
    pictures = [tables.encode(np.full((4, 4, 3), i, np.uint8)) for i in range(count)]
    return pd.DataFrame({"shift": "heavy snow", "class": "bag", "seed": np.arange(count), "scale": 1.0, "image": pictures})


def click(sheet, number, answer):
    """What a browser does when a button under the picture with this number on the page is pressed."""
    sheet.grid.children[number].children[2].value = answer


def test_every_click_is_saved(tmp_path):
    table = rows(3)
    sheet = annotations.Sheet(table, tmp_path / "anna.json")
    click(sheet, 0, "class")
    click(sheet, 2, "not class")
    click(sheet, 0, "partial class properties")
    first, _, third = annotations.file_names(table)
    assert annotations.read(tmp_path / "anna.json", table, finished=False) == {first: "partial class properties", third: "not class"}
    assert sheet.state.value.endswith("2 of 3 pictures answered")


def test_a_new_sheet_saves_nothing_before_the_first_click(tmp_path):
    annotations.Sheet(rows(3), tmp_path / "anna.json")
    assert not list(tmp_path.iterdir())


def test_pages_turn_and_stop_at_both_ends(tmp_path):
    sheet = annotations.Sheet(rows(annotations.PAGE + 2), tmp_path / "anna.json")
    back, ahead = sheet.children[0].children[:2]
    assert len(sheet.grid.children) == annotations.PAGE
    back.click()
    assert sheet.page == 0
    ahead.click()
    ahead.click()
    assert sheet.page == 1 and len(sheet.grid.children) == 2
    click(sheet, 1, "class")
    assert list(sheet.answers) == [annotations.file_names(rows(annotations.PAGE + 2))[-1]]


def test_a_sheet_goes_on_with_the_first_unanswered_picture(tmp_path):
    table = rows(annotations.PAGE + 2)
    annotations.write(table, tmp_path / "anna.json", answers=dict.fromkeys(annotations.file_names(table)[: annotations.PAGE], "class"))
    sheet = annotations.Sheet(table, tmp_path / "anna.json")
    assert sheet.page == 1
    sheet.turn(-1)
    assert {cell.children[2].value for cell in sheet.grid.children} == {"class"}


def test_the_sheet_shows_the_pictures_that_were_asked_for(tmp_path):
    table = rows(3)
    sheet = annotations.Sheet(table, tmp_path / "anna.json")
    assert [cell.children[1].value for cell in sheet.grid.children] == table["image"].tolist()
