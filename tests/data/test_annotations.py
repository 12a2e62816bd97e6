"""VIA projects: what annotators open and save, read back; a bad file gives one line that says what is wrong."""

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


NAMES = annotations.file_names(rows())


def saved(path, change=lambda project: None, answer="class"):
    """A project in which every picture has one answer, saved after a change."""
    annotations.write(rows(), path, answers=dict.fromkeys(NAMES, answer))
    project = json.loads(path.read_text())
    change(project)
    path.write_text(json.dumps(project))
    return path


def second(answer):
    """A change that adds another entry of the first picture; VIA keeps pictures by name and size."""

    def change(project):
        entries = project["_via_img_metadata"]
        entries["again"] = next(iter(entries.values())) | {"size": 1, "file_attributes": {"answer": answer}}

    return change


def odd(entry):
    return lambda project: project["_via_img_metadata"].update(odd=entry)


def test_a_file_name_holds_class_shift_seed_scale_and_kind(tmp_path):
    assert NAMES[1] == "ankle_boot-heavy_snow-seed_0003-scale_0500.png"
    table = rows(2)
    table.at[1, "image"] = tables.encode(np.zeros((4, 4, 3), np.uint8), quality=90)
    assert [name.rsplit(".")[-1] for name in annotations.file_names(table)] == ["png", "jpg"]
    sheet = annotations.Sheet(table, tmp_path / "anna.json")
    assert [(cell.children[1].format, cell.children[1].value) for cell in sheet.grid.children] == list(
        zip(["png", "jpg"], table["image"], strict=True)
    )


def test_answers_come_back_as_they_were_given(tmp_path):
    given = dict(zip(NAMES, [*annotations.ANSWERS, "class"], strict=True))
    annotations.write(rows(), tmp_path / "anna.json", answers=given)
    assert annotations.read(tmp_path / "anna.json", rows()) == given
    assert len(annotations.read(saved(tmp_path / "twice.json", second("class")), rows())) == len(NAMES)


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
    annotations.write(rows(), tmp_path / "anna.json", answers={NAMES[0]: "class"})
    assert annotations.read(tmp_path / "anna.json", rows(), finished=False) == {NAMES[0]: "class"}
    with pytest.raises(ValueError, match=rf"3 pictures are without an answer, first {NAMES[1]}; accepted: one answer per picture"):
        annotations.read(tmp_path / "anna.json", rows())


@pytest.mark.parametrize(
    ("change", "count", "problem"),
    [
        (lambda project: project["_via_img_metadata"].popitem(), 4, rf"1 picture is missing, first {NAMES[3]}"),
        (lambda project: None, 2, rf"2 pictures are not part of this project, first {NAMES[2]}"),
        (second("not class"), 4, r"1 picture is answered twice and differently, first .*accepted: one answer per picture"),
        (second("maybe"), 4, r"1 picture is answered twice"),
        (odd(3), 4, r"accepted: a VIA 2 project file"),
        (odd({"filename": "a"}), 4, r"odd\.file_attributes .*accepted: a VIA 2 project file"),
        (odd({"filename": 3, "file_attributes": {}}), 4, r"odd\.filename .*accepted: a VIA 2 project file"),
        (lambda project: project.pop("_via_settings"), 4, r"_via_settings .*accepted: a VIA 2 project file"),
    ],
)
def test_what_does_not_fit_is_one_line(tmp_path, change, count, problem):
    with pytest.raises(ValueError, match=rf"anna\.json: .*{problem}") as error:
        annotations.read(saved(tmp_path / "anna.json", change), rows(count))
    assert "\n" not in str(error.value)


def test_unknown_labels_files_that_are_no_project_and_missing_ones_are_named(tmp_path):
    path = saved(tmp_path / "anna.json", answer="maybe")
    with pytest.raises(ValueError, match=r"unknown label, first .*scale_0000\.png \('maybe'\); accepted: .*class, partial"):
        annotations.read(path, rows())
    for content in ("no json", "[]", "3"):
        path.write_text(content)
        with pytest.raises(ValueError, match=r"anna\.json: .*accepted: a VIA 2 project file"):
            annotations.read(path, rows())
    with pytest.raises(FileNotFoundError, match=r"ben\.json does not exist"):
        annotations.read(tmp_path / "ben.json", rows())


def click(sheet, number, answer):
    """What a browser does when a button under the picture with this number on the page is pressed."""
    sheet.grid.children[number].children[2].value = answer


def test_every_click_is_saved_and_nothing_before_the_first(tmp_path):
    sheet = annotations.Sheet(rows(3), tmp_path / "anna & co.json")
    assert not list(tmp_path.iterdir()) and sheet.children[1].value.endswith("anna &amp; co.json</code>.")
    click(sheet, 0, "class")
    click(sheet, 2, "not class")
    click(sheet, 0, "partial class properties")
    found = annotations.read(sheet.path, rows(3), finished=False)
    assert found == {NAMES[0]: "partial class properties", NAMES[2]: "not class"}
    assert sheet.state.value == "page 1 of 1, 2 of 3 pictures answered"


def test_pages_turn_and_stop_at_both_ends_and_a_sheet_goes_on_where_it_ended(tmp_path):
    table = rows(annotations.PAGE + 2)
    sheet = annotations.Sheet(table, tmp_path / "anna.json")
    back, ahead = sheet.children[0].children[:2]
    for button, page, count in ((back, 0, annotations.PAGE), (ahead, 1, 2), (ahead, 1, 2)):
        button.click()
        assert sheet.page == page and len(sheet.grid.children) == count
    annotations.write(table, sheet.path, answers=dict.fromkeys(annotations.file_names(table)[: annotations.PAGE], "class"))
    again = annotations.Sheet(table, sheet.path)
    assert again.page == 1
    again.turn(-1)
    assert {cell.children[2].value for cell in again.grid.children} == {"class"}
