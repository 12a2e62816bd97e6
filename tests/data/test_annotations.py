"""VIA projects: what annotators open and save, read back; a bad file gives one error that says what is wrong."""

import json

import numpy as np
import pandas as pd
import pytest

from cnslib.core import tables
from cnslib.data import annotations


def rows(count=4):
    """Images of one class and shift at growing scales, with PNG bytes of different sizes."""
    rng = np.random.default_rng(0)
    pictures = [tables.encode(rng.integers(0, 256, (4, 4 + i, 3), dtype=np.uint8)) for i in range(count)]
    return pd.DataFrame({"shift": "heavy snow", "class": "ankle boot", "seed": 3, "scale": np.arange(count) / 2, "image": pictures})


def saved(path, change=lambda project: None, answer="class"):
    """A project in which every picture has one answer, saved after a change."""
    project = annotations.project(rows(), name="anna", answers=dict.fromkeys(annotations.file_names(rows()), answer))
    change(project)
    path.write_text(json.dumps(project))
    return path


def test_a_file_name_holds_class_shift_seed_and_scale():
    assert annotations.file_names(rows())[1] == "ankle_boot-heavy_snow-seed_0003-scale_0500.png"


def test_a_jpeg_is_named_and_shown_as_one(tmp_path):
    table = rows(2)
    table.at[1, "image"] = tables.encode(np.zeros((4, 4, 3), np.uint8), quality=90)
    assert [name.rsplit(".")[-1] for name in annotations.file_names(table)] == ["png", "jpg"]
    sheet = annotations.Sheet(table, tmp_path / "anna.json")
    assert [cell.children[1].format for cell in sheet.grid.children] == ["png", "jpg"]


def test_answers_come_back_as_they_were_given(tmp_path):
    given = dict(zip(annotations.file_names(rows()), [*annotations.ANSWERS, "class"], strict=True))
    annotations.write(rows(), tmp_path / "anna.json", answers=given)
    assert annotations.read(tmp_path / "anna.json", rows()) == given


def test_a_project_has_what_via_opens_and_its_pictures_lie_beside_it(tmp_path):
    annotations.export(rows(), tmp_path / "desk" / "to_label.json")
    project = json.loads((tmp_path / "desk" / "to_label.json").read_text())
    assert project["_via_data_format_version"] == "2.0.10" and project["_via_settings"]["project"]["name"] == "to_label"
    assert list(project["_via_attributes"]["file"]["answer"]["options"]) == ["class", "partial class properties", "not class"]
    assert project["_via_image_id_list"] == list(project["_via_img_metadata"])
    for name, entry in project["_via_img_metadata"].items():
        data = (tmp_path / "desk" / entry["filename"]).read_bytes()
        assert entry["size"] == len(data) and name == f"{entry['filename']}{len(data)}" and entry["file_attributes"] == {}


def test_an_unfinished_project_is_read_only_when_that_is_allowed(tmp_path):
    first, second, *_ = annotations.file_names(rows())
    annotations.write(rows(), tmp_path / "anna.json", answers={first: "class"})
    assert annotations.read(tmp_path / "anna.json", rows(), finished=False) == {first: "class"}
    with pytest.raises(ValueError, match=rf"3 pictures are without an answer, first {second}; accepted: one answer per picture"):
        annotations.read(tmp_path / "anna.json", rows())


def test_a_missing_picture_is_named(tmp_path):
    path = saved(tmp_path / "anna.json", lambda project: project["_via_img_metadata"].popitem())
    with pytest.raises(ValueError, match=r"anna\.json: 1 picture is missing, first ankle_boot-heavy_snow-seed_0003-scale_1500\.png"):
        annotations.read(path, rows())


def test_a_picture_that_nobody_asked_for_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"anna\.json: 2 pictures are not part of this project, first .*scale_1000\.png"):
        annotations.read(saved(tmp_path / "anna.json"), rows(2))


def test_an_unknown_label_is_named_with_the_accepted_ones(tmp_path):
    with pytest.raises(ValueError, match=r"unknown label, first .*scale_0000\.png \('maybe'\); accepted: the labels class, partial"):
        annotations.read(saved(tmp_path / "anna.json", answer="maybe"), rows())


@pytest.mark.parametrize("content", ["no json", "[]", "3", '{"_via_settings": {}}'])
def test_what_is_no_project_is_refused(tmp_path, content):
    path = tmp_path / "anna.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"anna\.json: .*_via_img_metadata.* missing; accepted: a VIA 2 project file"):
        annotations.read(path, rows())


def test_a_project_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"anna\.json does not exist"):
        annotations.read(tmp_path / "anna.json", rows())


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


def test_a_sheet_asks_its_question_and_says_where_it_saves(tmp_path):
    sheet = annotations.Sheet(rows(1), tmp_path / "anna & co.json")
    assert sheet.children[1].value.endswith("anna &amp; co.json</code>.") and "Does the picture show" in sheet.children[1].value
    title, _, buttons = sheet.grid.children[0].children
    assert title.value.startswith("<b>ankle boot</b>") and [value for _, value in buttons.options] == list(annotations.ANSWERS)
    assert sheet.children[0] is sheet.children[-1]


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


def test_one_picture_with_two_different_answers_is_named(tmp_path):
    """VIA keeps pictures by name and size: a second entry of the same name is possible, and the last one used to win."""

    def twice(answer):
        def change(project):
            entries = project["_via_img_metadata"]
            first = next(iter(entries.values()))
            entries["again"] = first | {"size": 1, "file_attributes": {annotations.ATTRIBUTE: answer}}

        return change

    with pytest.raises(
        ValueError, match=r"anna\.json: 1 picture is answered twice and differently, first .*accepted: one answer per picture"
    ):
        annotations.read(saved(tmp_path / "anna.json", twice("not class"), answer="class"), rows())
    assert len(annotations.read(saved(tmp_path / "anna.json", twice("class"), answer="class"), rows())) == len(rows())


@pytest.mark.parametrize(
    "entry", [3, {}, {"filename": "a"}, {"filename": 3, "file_attributes": {}}, {"filename": "a", "file_attributes": {"answer": 3}}]
)
def test_a_picture_without_name_or_answer_is_one_line(tmp_path, entry):
    def change(project):
        project["_via_img_metadata"]["odd"] = entry

    with pytest.raises(ValueError, match=r"anna\.json: a picture has no filename or file_attributes; accepted: a VIA 2 project"):
        annotations.read(saved(tmp_path / "anna.json", change), rows())
