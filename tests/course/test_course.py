"""The course: every lesson has what a lesson needs, runs unanswered, and its solutions are right, its known mistakes wrong."""

import ast
import builtins
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
    """The exercise cells by their names."""
    return {cell.id: cell for cell in lesson(name).cells if "exercise" in cell.metadata.get("tags", [])}


def both(name: str) -> nbformat.NotebookNode:
    """The lesson with each exercise unanswered first, and then solved; before the quiz the mistakes that the data hide."""
    book, code = lesson(name), exercises.solutions(name)
    solved = {key: new_code_cell(cell.source.replace(BLANK, code[key])) for key, cell in asked(name).items()}
    cells = [part for cell in book.cells for part in ([cell, solved[cell.id]] if cell.id in solved else [cell])]
    book.cells = [*cells[:-1], new_code_cell("print(exercises.hidden(sheet))"), cells[-1]]
    return book


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_has_goals_prerequisites_times_four_exercises_and_a_quiz(name):
    cells = lesson(name).cells
    title = cells[0].source
    assert all(f"**{word}" in title for word in ("You will be able to", "You need", "Time:"))
    assert len(asked(name)) >= 4 and cells[-1].source == f'exercises.quiz("{name}")'


@pytest.mark.parametrize("name", LESSONS)
def test_every_exercise_is_blank_is_checked_by_its_name_and_has_a_solution(name):
    for key, cell in asked(name).items():
        assert cell.source == f'{BLANK}\nsheet.check("{key}", answer)'
    assert list(asked(name)) == list(exercises.solutions(name))
    assert all("answer = " in code and BLANK not in code for code in exercises.solutions(name).values())


@pytest.mark.parametrize("name", LESSONS)
def test_every_solution_stands_alone(name):
    """Who solved the exercises before it otherwise, or not, can still run it: it asks for nothing that only a solution makes."""
    known, code = set(dir(builtins)), exercises.solutions(name)
    for cell in (cell for cell in lesson(name).cells if cell.cell_type == "code"):
        assert used(code.get(cell.id, "")) <= known, cell.id
        known |= made(cell.source)


def used(source: str) -> set[str]:
    """The names that a text asks for and does not make."""
    tree = ast.parse(source)
    asked = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return asked - made(source)


def made(source: str) -> set[str]:
    """The names that a text assigns or imports."""
    nodes = list(ast.walk(ast.parse(source)))
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    return bound | {alias.asname or alias.name.split(".")[0] for node in imports for alias in node.names}


@pytest.mark.parametrize("name", LESSONS)
def test_a_quiz_has_five_questions_with_one_right_answer_and_feedback_on_all(name):
    questions = json.loads((exercises.COURSE / "quizzes" / f"{name}.json").read_text())
    assert len(questions) == 5
    for question in questions:
        assert sum(answer["correct"] for answer in question["answers"]) == 1
        assert all(answer["feedback"] and answer["answer"] for answer in question["answers"]) and "$" not in str(question)


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
