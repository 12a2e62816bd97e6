"""Exercises that check themselves: an answer is compared with the right one, and with the mistakes that are often made."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from cnslib.core import paths
from cnslib.core.names import demand

COURSE = paths.NOTEBOOKS / "course"
SECTION = re.compile(r"^## (\w+)\n(.*?)^```python\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
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
    """The right answer, the answers that known mistakes lead to, and what to say: of a mistake, of the right answer, and as a hint.

    A mistake is the sentence that is said of it, or the name of one on the lesson's page.
    """

    right: Answer
    mistakes: Mapping[str, Answer] = field(default_factory=dict)
    tolerance: float = 0.002  # of numbers, absolute
    praise: str = ""
    hints: tuple[str, ...] = ("Read the question again.",)

    def check(self, answer: Any) -> Reply:
        """The verdict on an answer: right, not given yet, of another form, rounded too far, a known mistake, or wrong with the first hint.

        An answer that is just what a mistake leads to is told so; of a rounded one near a mistake the rounding is told first.
        """
        if answer is ...:
            return Reply("There is no answer yet: put it in place of the three dots and run the cell again.")
        if wanted := unlike(answer, self.right):
            return Reply(f"The answer should be {wanted}; yours is a {type(answer).__name__}.", False)
        if same(answer, self.right, self.tolerance):
            return Reply(self.praise, True)
        exact, near = ([said for said, wrong in self.mistakes.items() if same(answer, wrong, t)] for t in (EQUAL, self.tolerance))
        clothes = [rounded(answer, self.right, self.tolerance) or percent(answer, self.right)]
        said = [text for text in [*exact, *clothes, *near, f"Hint: {self.hints[0]}"] if text]
        return Reply(said[0], False)


@dataclass(frozen=True)
class Sheet:
    """The exercises of one lesson by name; hints, and sentences for mistakes and for right answers, come from its page of solutions."""

    lesson: str
    exercises: Mapping[str, Exercise]

    def __getitem__(self, name: str) -> Exercise:
        """One exercise with its sentences; ValueError lists the accepted names."""
        demand(name in self.exercises, "exercise", name, ", ".join(self.exercises))
        own, text = self.exercises[name], page(self.lesson)[name][0]
        sentences = dict(re.findall(r"^- `(\w+)`: (.*)$", text, re.MULTILINE))
        hints = tuple(re.findall(r"^- (?!`\w+`: )(.*)$", text, re.MULTILINE))
        praise = own.praise or " ".join(re.findall(r"^> (.*)$", text, re.MULTILINE))
        return replace(own, mistakes={sentences.get(k, k): wrong for k, wrong in own.mistakes.items()}, hints=hints, praise=praise)

    def check(self, name: str, answer: Any) -> Reply:
        """The verdict on an answer."""
        return self[name].check(answer)

    def hint(self, name: str, number: int = 1) -> Reply:
        """A hint, counted from 1; beyond the last one the way to the solution."""
        hints = self[name].hints
        if number > len(hints):
            return Reply(f'There is no further hint. The code is in `sheet.solution("{name}")`.')
        return Reply(f"Hint {number} of {len(hints)}: {hints[number - 1]}")

    def solution(self, name: str) -> Reply:
        """The code of a solution."""
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
    fits, shape = numeric(answer) and np.shape(answer) == np.shape(right), " by ".join(map(str, np.shape(right)))
    return "" if fits else f"{shape} numbers" if shape else "a number"


def rounded(answer: Any, right: Answer, tolerance: float) -> str:
    """What to say of the right numbers with too few digits; else nothing."""
    enough = math.ceil(-math.log10(tolerance))  # digits: to round to these moves a number by less than the tolerance
    if whole(right) or not any(same(answer, np.round(right, digits), EQUAL) for digits in range(1, enough)):
        return ""
    return f"Nearly: the answer is rounded too far. Give {enough} digits after the point, or leave it as it is computed."


def percent(answer: Any, right: Answer) -> str:
    """What to say of the right numbers in percent; else nothing."""
    if whole(right) or not same(answer, 100 * right, min(0.5, 10 * float(np.nanmax(np.abs(right))))):
        return ""
    return "That is in percent. Give it as a fraction: 0.83, not 83."


def whole(right: Answer) -> bool:
    """Whether a right answer is made of names, or of numbers that are whole as a count is, or a step of a scale."""
    return isinstance(right, frozenset | tuple) or np.array_equal(right, np.round(right))


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
        return answer.strip(" .").lower() in [text.strip(" .").lower() for text in other]
    return bool(np.shape(answer) == np.shape(other) and np.allclose(answer, other, rtol=0, atol=tolerance, equal_nan=True))


def hidden(sheet: Sheet) -> list[tuple[str, str]]:
    """The known mistakes (exercise, name) that lead to the right answer on the data of a sheet, and pass for it."""
    pairs = [(name, own, said, wrong) for name, own in sheet.exercises.items() for said, wrong in own.mistakes.items()]
    return [(name, said) for name, own, said, wrong in pairs if not isinstance(wrong, tuple) and same(wrong, own.right, own.tolerance)]


def page(lesson: str) -> dict[str, tuple[str, str]]:
    """Text and code of every exercise of a lesson: the sections of notebooks/course/solutions/<lesson>.md."""
    sections = SECTION.findall((COURSE / "solutions" / f"{lesson}.md").read_text())
    return {name: (text, code) for name, text, code in sections}


def solutions(lesson: str) -> dict[str, str]:
    """The code of every solution of a lesson, by exercise."""
    return {name: code for name, (_, code) in page(lesson).items()}


def quiz(lesson: str) -> None:
    """Shows the five questions of notebooks/course/quizzes/<lesson>.json; nothing is graded or kept."""
    from jupyterquiz import display_quiz

    display_quiz(str(COURSE / "quizzes" / f"{lesson}.json"), shuffle_answers=False, max_width=800)
