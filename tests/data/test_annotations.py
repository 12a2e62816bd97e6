import json

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


def saved(path, change=lambda project: None):
    annotations.write(rows(), path, answers=dict.fromkeys(NAMES, "class"))
    project = json.loads(path.read_text())
    change(project)
    path.write_text(json.dumps(project))
    return path


def twice(answer):
    def change(project):
        entries = project["_via_img_metadata"]
        entries["odd"] = next(iter(entries.values())) | {"size": 1, "file_attributes": {"answer": answer}}

    return change


def test_answers_come_back_as_they_were_given_and_an_unfinished_project_where_that_is_allowed(tmp_path):
    given = dict(zip(NAMES, [*annotations.ANSWERS, "class"], strict=True))
    annotations.write(rows(), tmp_path / "anna.json", answers=given)
    assert annotations.read(tmp_path / "anna.json", rows()) == given
    assert len(annotations.read(saved(tmp_path / "twice.json", twice("class")), rows())) == len(NAMES)
    annotations.write(rows(), tmp_path / "anna.json", answers={NAMES[0]: "class"})
    assert annotations.read(tmp_path / "anna.json", rows(), finished=False) == {NAMES[0]: "class"}
    with pytest.raises(ValueError, match=rf"pictures without an answer: 3, first {NAMES[1]}; accepted: one answer per picture"):
        annotations.read(tmp_path / "anna.json", rows())


def test_the_second_question_counts_by_scale_what_is_answered_and_leaves_the_first_alone(tmp_path):
    """Table 9, of two people's answers to four pictures at four scales: three and two of them."""
    for name, clear in (("anna", ["unclear", "clear", "clear"]), ("ben", ["unclear", "unclear"])):
        shifts = dict(zip(NAMES, clear, strict=False))
        annotations.write(rows(), tmp_path / f"{name}.json", answers=dict.fromkeys(NAMES, "class"), shifts=shifts)
    files = [tmp_path / "anna.json", tmp_path / "ben.json"]
    counts = annotations.visibility(files, rows())
    assert counts.to_dict("index") == {0.0: {"unclear": 2, "clear": 0}, 0.5: {"unclear": 1, "clear": 1}, 1.0: {"unclear": 0, "clear": 1}}
    assert (annotations.annotated(files, rows(), "labels.files") == "class").all(axis=None)
    assert annotations.visibility([saved(tmp_path / "old.json")], rows()).empty  # a project without the question
    annotations.write(rows(), tmp_path / "wrong.json", shifts={NAMES[0]: "perhaps"})
    with pytest.raises(ValueError, match=r"wrong\.json: pictures answered by an unknown label: 1, .*'perhaps'.*unclear, clear$"):
        annotations.visibility([tmp_path / "wrong.json"], rows())


@pytest.mark.parametrize(
    ("change", "count", "problem"),
    [
        (lambda project: project["_via_img_metadata"].popitem(), 4, rf"missing: 1, first {NAMES[3]}"),
        (lambda project: None, 2, rf"not part of this project: 2, first {NAMES[2]}"),
        (twice("not class"), 4, r"answered twice and differently: 1, first .*accepted: one answer per picture"),
    ],
)
def test_what_does_not_fit_is_one_line(tmp_path, change, count, problem):
    with pytest.raises(ValueError, match=rf"anna\.json: .*{problem}") as error:
        annotations.read(saved(tmp_path / "anna.json", change), rows(count))
    assert "\n" not in str(error.value)


def test_every_click_is_saved_pages_turn_and_a_sheet_continues_where_it_ended(tmp_path):
    table = rows(annotations.PAGE + 2)
    sheet = annotations.Sheet(table, tmp_path / "anna & co.json")
    assert not list(tmp_path.iterdir()) and sheet.children[0].value.endswith("anna &amp; co.json</code>.")
    buttons = [cell.children[2] for cell in sheet.grid.children]
    buttons[0].value, buttons[2].value, buttons[0].value = "class", "not class", "partial class properties"  # what a click does
    answers = {NAMES[0]: "partial class properties", NAMES[2]: "not class"}
    assert annotations.read(sheet.path, table, finished=False) == answers
    sheet.grid.children[1].children[3].value = "clear"
    assert annotations.read(sheet.path, table, finished=False, question="shift") == {NAMES[1]: "clear"}
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
