import json

import nbformat
import pytest
from checks import exercises
from nbformat.v4 import new_code_cell

LESSONS = sorted(path.stem for path in exercises.COURSE.glob("[0-9]_*.ipynb"))
BLANK = "answer = ..."


def lesson(name: str) -> nbformat.NotebookNode:
    return nbformat.read(exercises.COURSE / f"{name}.ipynb", as_version=4)


def asked(name: str) -> dict[str, nbformat.NotebookNode]:
    return {cell.id: cell for cell in lesson(name).cells if "exercise" in cell.metadata.get("tags", [])}


def both(name: str) -> nbformat.NotebookNode:
    """The lesson with each exercise unanswered first, and then solved; before the quiz the mistakes that the data hide."""
    book, code = lesson(name), exercises.solutions(name)
    solved = {key: new_code_cell(cell.source.replace(BLANK, code[key])) for key, cell in asked(name).items()}
    cells = [part for cell in book.cells for part in ([cell, solved[cell.id]] if cell.id in solved else [cell])]
    book.cells = [*cells[:-1], new_code_cell("print(exercises.hidden(sheet))"), cells[-1]]
    return book


@pytest.mark.slow
@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_runs_unanswered_and_each_solution_is_right(name, executed):
    book = executed(both(name), exercises.COURSE)
    said = [cell.outputs[-1].data["text/markdown"] for cell in book.cells if "sheet.check(" in cell.source]
    assert len(said) == 2 * len(asked(name))
    assert all("There is no answer yet" in text for text in said[::2]) and all(text.startswith("✓") for text in said[1::2])
    assert book.cells[-2].outputs[0].text == "[]\n"  # on these data every known mistake leads to another answer than the right one
    first = json.dumps(json.loads((exercises.COURSE / "quizzes" / f"{name}.json").read_text())[0]["question"], ensure_ascii=False)
    assert any(first in output.data.get("application/javascript", "") for output in book.cells[-1].outputs)
