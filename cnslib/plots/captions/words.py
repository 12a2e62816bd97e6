"""Numbers with their intervals and lists of names as words, for captions and for the sentences below figures."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from cnslib.core.settings.method import ABOUT, Bootstrap
from cnslib.stats.accuracy import ALL, LEAST_TRAJECTORIES


def interval(record: Mapping[Any, Any] | pd.Series, form: str = ".2f", suffix: str = "") -> str:
    """An estimate with its interval, as in "0.31 (0.20 to 0.41)"; other bounds by their suffix, such as those of `models_low`."""
    low, high = (record[f"{suffix}{side}"] for side in ("low", "high"))
    return f"{record['estimate']:{form}} ({low:{form}} to {high:{form}})"


def answered(text: str) -> str:
    """The answer to a notebook's question: its first sentence in bold, what stands beside it as it is."""
    first, stop, rest = text.partition(". ")
    return f"**{first}.** {rest}" if stop else f"**{text}**"


def listed(names: Iterable[str]) -> str:
    """Names as in "a, b and c"; "none" where there are none."""
    *others, last = list(names) or ["none"]
    return f"{', '.join(others)} and {last}" if others else last


def numbered(count: int, noun: str) -> str:
    """A number of things, as in "3 tests" or "1 test"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def both_notes(drawn: dict[str, Bootstrap]) -> str:
    """What the intervals of a number from two benchmarks are about, each of which resamples in its own way; by what is resampled."""
    about = [f"{name}: {ABOUT[own.target]}" for name, own in drawn.items()]
    return f"{next(iter(drawn.values())).confidence:.0%} intervals ({'; '.join(about)})"


def chance(share: float) -> str:
    """A share of resamples as a probability: rounded, but neither to "0%" nor to "100%", which no number of resamples can show."""
    return "under 1%" if share < 0.005 else "over 99%" if share > 0.995 else f"{share:.0%}"


def certain(table: pd.DataFrame, null: float = 0.0) -> tuple[int, int]:
    """How many rows of a table have an interval above the null, and how many one below it."""
    return int((table["low"] > null).sum()), int((table["high"] < null).sum())


def extremes(values: pd.Series, form: str = ".2f") -> tuple[str, str]:
    """The names of the largest and of the smallest value, each with the value in brackets; "none" where no value is known."""
    known = values.dropna()
    if known.empty:
        return "none", "none"
    largest, smallest = (f"{name} ({known[name]:{form}})" for name in (known.idxmax(), known.idxmin()))
    return largest, smallest


def enough(table: pd.DataFrame, shift: str = "shift") -> pd.DataFrame:
    """The rows of single shifts with enough trajectories for a finding (`LEAST_TRAJECTORIES`); of all single shifts where none has."""
    single = table[table[shift] != ALL]
    known = single[single["n"] >= LEAST_TRAJECTORIES]
    return single if known.empty else known
