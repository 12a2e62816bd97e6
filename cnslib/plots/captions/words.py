"""Numbers with their intervals as words, for the sentences of the world's zoo."""

from collections.abc import Mapping
from typing import Any

import pandas as pd


def interval(record: Mapping[Any, Any] | pd.Series, form: str = ".2f") -> str:
    """An estimate with its interval, as in "0.31 (0.20 to 0.41)"."""
    return f"{record['estimate']:{form}} ({record['low']:{form}} to {record['high']:{form}})"


def answered(text: str) -> str:
    """The answer to a notebook's question: its first sentence in bold."""
    first, stop, rest = text.partition(". ")
    return f"**{first}.** {rest}" if stop else f"**{text}**"


def numbered(count: int, noun: str) -> str:
    """A number of things, as in "3 tests" or "1 test"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
