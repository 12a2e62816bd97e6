"""Exercises that check themselves: an answer is compared with the right one, and with the mistakes that are often made."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from cnslib.core import paths
from cnslib.core.names import demand

COURSE = paths.NOTEBOOKS / "course"
SOLUTION = re.compile(r"^## (\w+)\n\n```python\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
NAMED = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five"}  # digits
EQUAL = 1e-9  # numbers nearer than this are the same: two mistakes may lie within the tolerance of each other
# A number, or some in their order; a tuple of texts, of which each is right; a set of names; a Series by its labels.
Answer = float | np.ndarray | tuple[str, ...] | frozenset[str] | pd.Series


@dataclass(frozen=True)
class Reply:
    """What an exercise says; `right` is None where nothing was judged."""

    text: str
    right: bool | None = None

    def _repr_markdown_(self) -> str:
        return {True: "✓ **Right.** ", False: "✗ **Not yet.** ", None: ""}[self.right] + self.text


@dataclass(frozen=True)
class Exercise:
    """The right answer, hints from general to particular, and what to say of a mistake with the answer that it leads to."""

    right: Answer
    hints: tuple[str, ...]
    mistakes: Mapping[str, Answer] = field(default_factory=dict)
    tolerance: float = 0.002  # of numbers, absolute
    praise: str = ""

    def check(self, answer: Any) -> Reply:
        """The verdict on an answer: right, not given yet, of another form, rounded too far, a known mistake, or wrong with the first hint.

        A rounded answer is told so before a mistake that lies near it; where it is just what a mistake leads to, both are told.
        """
        if answer is ...:
            return Reply("There is no answer yet: put it in place of the three dots and run the cell again.")
        if wanted := unlike(answer, self.right):
            return Reply(f"The answer should be {wanted}; yours {form(answer)}.", False)
        if same(answer, self.right, self.tolerance):
            return Reply(self.praise, True)
        known = [said for said, wrong in self.mistakes.items() if same(answer, wrong, self.tolerance)]
        nearest = [said for said in known if same(answer, self.mistakes[said], EQUAL)]
        clothes = rounded(answer, self.right, self.tolerance)
        if clothes and nearest:
            return Reply(f"{clothes} Or, if it is not rounded: {nearest[0]}", False)
        clothes = clothes or percent(answer, self.right)
        return Reply(next(filter(None, [*nearest, clothes, *known, f"Hint: {self.hints[0]}"])), False)


@dataclass(frozen=True)
class Sheet:
    """The exercises of one lesson by name."""

    lesson: str
    exercises: Mapping[str, Exercise]

    def __getitem__(self, name: str) -> Exercise:
        """One exercise; ValueError lists the accepted names."""
        demand(name in self.exercises, "exercise", name, ", ".join(self.exercises))
        return self.exercises[name]

    def check(self, name: str, answer: Any) -> Reply:
        """The verdict on an answer."""
        return self[name].check(answer)

    def hint(self, name: str, number: int = 1) -> Reply:
        """A hint, counted from 1; beyond the last one the way to the solution."""
        hints = self[name].hints
        if number > len(hints):
            return Reply(f'There is no further hint. The code is in `sheet.solution("{name}")`.')
        place = max(number, 1)
        return Reply(f"Hint {place} of {len(hints)}: {hints[place - 1]}")

    def solution(self, name: str) -> Reply:
        """The code of a solution."""
        demand(name in self.exercises, "exercise", name, ", ".join(self.exercises))
        return Reply(f"```python\n{solutions(self.lesson)[name]}\n```")


def unlike(answer: Any, right: Answer) -> str:
    """What form the answer should have, if it has another one; else nothing."""
    if isinstance(right, pd.Series):
        fits = isinstance(answer, pd.Series) and set(answer.index) == set(right.index) and answer.index.is_unique and numeric(answer)
        return "" if fits else f"a Series with a number for each of {', '.join(map(str, right.index))}"
    if isinstance(right, frozenset):
        fits = isinstance(answer, (set, frozenset, list, tuple, np.ndarray, pd.Index, pd.Series))
        return "" if fits else "a set or list of names"
    if isinstance(right, tuple):
        return "" if isinstance(answer, str) else "a text in quotation marks"
    return "" if numeric(answer) and np.shape(answer) == np.shape(right) else numbers(np.shape(right))


def form(answer: Any) -> str:
    """What an answer is, in words that tell how it differs from what was asked for."""
    if numeric(answer) and np.size(answer) > 1:
        return f"is {numbers(np.shape(answer))}"
    kind = type(answer).__name__
    return f"is {'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def rounded(answer: Any, right: Answer, tolerance: float) -> str:
    """What to say of the right numbers with too few digits; else nothing."""
    enough = math.ceil(-math.log10(tolerance))  # digits: to round to these moves a number by less than the tolerance
    if whole(right) or not any(same(answer, np.round(right, digits), EQUAL) for digits in range(1, enough)):
        return ""
    return f"Nearly: the answer is rounded too far. Give {NAMED[enough]} digits after the point, or leave it as it is computed."


def percent(answer: Any, right: Answer) -> str:
    """What to say of the right numbers in percent; else nothing."""
    if whole(right) or not same(answer, 100 * right, min(0.5, 10 * float(np.nanmax(np.abs(right))))):
        return ""
    return "That is in percent. Give it as a fraction: 0.83, not 83."


def whole(right: Answer) -> bool:
    """Whether a right answer is made of names, or of numbers that are whole as a count is, or a step of a scale."""
    return isinstance(right, frozenset | tuple) or np.array_equal(right, np.round(right))


def numbers(shape: tuple[int, ...]) -> str:
    """The form of some numbers in words."""
    return f"{' by '.join(map(str, shape))} numbers" if shape else "a number"


def numeric(answer: Any) -> bool:
    """Whether an answer is made of numbers alone."""
    try:
        return np.asarray(answer).dtype.kind in "biuf"
    except ValueError:  # rows of several lengths
        return False


def same(answer: Any, other: Answer, tolerance: float) -> bool:
    """Whether an answer, which has the right form, is this one."""
    if isinstance(other, pd.Series):
        return same(answer.reindex(other.index).to_numpy(float), other.to_numpy(float), tolerance)
    if isinstance(other, frozenset):
        return set(map(str, answer)) == other
    if isinstance(other, tuple):
        return bare(answer) in map(bare, other)
    return bool(np.shape(answer) == np.shape(other) and np.allclose(answer, other, rtol=0, atol=tolerance, equal_nan=True))


def bare(text: str) -> str:
    """A text without what does not count: spaces and a full stop at its ends, capital letters."""
    return text.strip(" .").lower()


def hidden(sheet: Sheet) -> list[tuple[str, str]]:
    """The known mistakes (exercise, sentence) that lead to the right answer on the data of a sheet, and pass for it."""
    pairs = [(name, own, said, wrong) for name, own in sheet.exercises.items() for said, wrong in own.mistakes.items()]
    return [(name, said) for name, own, said, wrong in pairs if not isinstance(wrong, tuple) and same(wrong, own.right, own.tolerance)]


def solutions(lesson: str) -> dict[str, str]:
    """The code of every solution of a lesson, by exercise: the sections of notebooks/course/solutions/<lesson>.md."""
    return dict(SOLUTION.findall((COURSE / "solutions" / f"{lesson}.md").read_text()))


def quiz(lesson: str) -> None:
    """Shows the five questions of notebooks/course/quizzes/<lesson>.json; nothing is graded or kept."""
    from jupyterquiz import display_quiz

    display_quiz(str(questions(lesson)), shuffle_answers=False, max_width=800)


def questions(lesson: str) -> Path:
    """The file with the questions of a lesson."""
    return COURSE / "quizzes" / f"{lesson}.json"
