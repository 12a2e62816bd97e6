import json
import re

import numpy as np
import pandas as pd
import pytest

from cnslib.core import tables
from cnslib.data import annotations


def rows(count=4):
    rng = np.random.default_rng(0)
    pictures = [tables.encode(rng.integers(0, 256, (4, 4 + i, 3), dtype=np.uint8)) for i in range(count)]
    return pd.DataFrame({"shift": "heavy snow", "class": "ankle boot", "seed": 3, "scale": np.arange(count) / 2, "image": pictures})


NAMES = annotations.file_names(rows())


def saved(path, change=lambda project: None, answer="class"):
    annotations.write(rows(), path, answers=dict.fromkeys(NAMES, answer))
    project = json.loads(path.read_text())
    change(project)
    path.write_text(json.dumps(project))
    return path


def extra(entry):
    """A change that adds an entry: another one of the first picture (VIA keeps pictures by name and size), or what is none."""

    def change(project):
        entries = project["_via_img_metadata"]
        first = next(iter(entries.values()))
        entries["odd"] = first | {"size": 1, "file_attributes": {"answer": entry}} if isinstance(entry, str) else entry

    return change


def test_a_file_name_holds_class_shift_seed_scale_and_kind():
    assert NAMES[1] == "ankle_boot-heavy_snow-seed_0003-scale_0500.png"
    table = rows(2)
    table.at[1, "image"] = tables.encode(np.zeros((4, 4, 3), np.uint8), quality=90)
    assert [name.rsplit(".")[-1] for name in annotations.file_names(table)] == ["png", "jpg"]


def test_answers_come_back_as_they_were_given_and_an_unfinished_project_where_that_is_allowed(tmp_path):
    given = dict(zip(NAMES, [*annotations.ANSWERS, "class"], strict=True))
    annotations.write(rows(), tmp_path / "anna.json", answers=given)
    assert annotations.read(tmp_path / "anna.json", rows()) == given
    assert len(annotations.read(saved(tmp_path / "twice.json", extra("class")), rows())) == len(NAMES)
    annotations.write(rows(), tmp_path / "anna.json", answers={NAMES[0]: "class"})
    assert annotations.read(tmp_path / "anna.json", rows(), finished=False) == {NAMES[0]: "class"}
    with pytest.raises(ValueError, match=rf"pictures without an answer: 3, first {NAMES[1]}; accepted: one answer per picture"):
        annotations.read(tmp_path / "anna.json", rows())


def test_a_project_has_what_via_opens_and_its_pictures_lie_beside_it(tmp_path):
    annotations.export(rows(), tmp_path / "desk" / "to_label.json")
    project = json.loads((tmp_path / "desk" / "to_label.json").read_text())
    assert project["_via_data_format_version"] == "2.0.10" and project["_via_settings"]["project"]["name"] == "to_label"
    assert list(project["_via_attributes"]["file"]["answer"]["options"]) == ["class", "partial class properties", "not class"]
    assert project["_via_image_id_list"] == list(project["_via_img_metadata"])
    for name, entry in project["_via_img_metadata"].items():
        data = (tmp_path / "desk" / entry["filename"]).read_bytes()
        assert entry["size"] == len(data) and name == f"{entry['filename']}{len(data)}" and entry["file_attributes"] == {}


@pytest.mark.parametrize(
    ("change", "count", "problem"),
    [
        (lambda project: project["_via_img_metadata"].popitem(), 4, rf"missing: 1, first {NAMES[3]}"),
        (lambda project: None, 2, rf"not part of this project: 2, first {NAMES[2]}"),
        (extra("not class"), 4, r"answered twice and differently: 1, first .*accepted: one answer per picture"),
        (extra({"filename": "a"}), 4, r"odd\.file_attributes .*accepted: a VIA 2 project file"),
        (lambda project: project.pop("_via_settings"), 4, r"_via_settings .*accepted: a VIA 2 project file"),
    ],
)
def test_what_does_not_fit_is_one_line(tmp_path, change, count, problem):
    with pytest.raises(ValueError, match=rf"anna\.json: .*{problem}") as error:
        annotations.read(saved(tmp_path / "anna.json", change), rows(count))
    assert "\n" not in str(error.value)


def test_unknown_labels_and_files_that_are_no_project_are_named(tmp_path):
    path = saved(tmp_path / "anna.json", answer="maybe")
    with pytest.raises(ValueError, match=r"unknown label: 4, first .*scale_0000\.png \('maybe'\); accepted: .*class, partial"):
        annotations.read(path, rows())
    for content in ("no json", "[]", "3"):
        path.write_text(content)
        with pytest.raises(ValueError, match=r"anna\.json.*accepted: a VIA 2 project file"):
            annotations.read(path, rows())


def test_a_project_with_a_byte_order_mark_is_read_and_one_picture_twice_is_named(tmp_path):
    """Merging two projects by hand leaves an entry twice, of which JSON readers keep the last."""
    path = saved(tmp_path / "anna.json", answer="class")
    plain = annotations.read(path, rows())
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert annotations.read(path, rows()) == plain
    project = json.loads(path.read_text(encoding="utf-8-sig"))
    name, entry = next(iter(project["_via_img_metadata"].items()))
    path.write_text(json.dumps(project).replace('"_via_img_metadata": {', f'"_via_img_metadata": {{"{name}": {json.dumps(entry)}, ', 1))
    with pytest.raises(ValueError, match="stands twice"):
        annotations.read(path, rows())


def test_every_click_is_saved_pages_turn_and_a_sheet_continues_where_it_ended(tmp_path):
    table = rows(annotations.PAGE + 2)
    sheet = annotations.Sheet(table, tmp_path / "anna & co.json")
    assert not list(tmp_path.iterdir()) and sheet.children[0].value.endswith("anna &amp; co.json</code>.")
    buttons = [cell.children[2] for cell in sheet.grid.children]
    buttons[0].value, buttons[2].value, buttons[0].value = "class", "not class", "partial class properties"  # what a click does
    answers = {NAMES[0]: "partial class properties", NAMES[2]: "not class"}
    assert annotations.read(sheet.path, table, finished=False) == answers
    assert sheet.state.value == f"2 of {annotations.PAGE + 2} pictures answered"
    for page, count in ((2, 2), (9, 2), (1, annotations.PAGE)):
        sheet.page.value = page
        assert len(sheet.grid.children) == count
    annotations.write(table, sheet.path, answers=dict.fromkeys(annotations.file_names(table)[: annotations.PAGE], "class"))
    again = annotations.Sheet(table, sheet.path)
    assert again.page.value == 2
    again.page.value = 1
    assert {cell.children[2].value for cell in again.grid.children} == {"class"}


def test_the_instructions_name_all_answers_and_show_every_class(tmp_path):
    pictures = {name: np.full((4, 6, 3), 50 * place, np.uint8) for place, name in enumerate(("ankle boot", "bag"))}
    annotations.guide(tmp_path, pictures)
    text = (tmp_path / "how_to_label.html").read_text()
    assert all(f"<b>{answer}</b>" in text for answer in annotations.ANSWERS)
    for name, file in zip(pictures, re.findall(r'img src="([^"]+)"', text), strict=True):
        assert np.array_equal(tables.decode((tmp_path / file).read_bytes(), file), pictures[name])
