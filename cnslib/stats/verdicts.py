"""Verdicts on published claims: one vocabulary and a few rules, for the library and the notebooks alike.

A verdict says what our interval makes of what was published, and names its rule. The rules, by what was published:

- "above X", "below X", "at least X", "at most X": *same direction* where the whole interval lies there, *opposite direction* where it
  lies on the other side, else *undecided*.
- "about X": *agrees* where the whole interval lies within the tolerance of X, *opposite direction* where all of it lies further away,
  else *undecided*. An interval that merely holds X proves nothing, so a tolerance of 0 can but contradict. A number that is itself
  the null is such a claim: that there is no effect.
- a number: *undecided* where the interval holds the null, *opposite direction* where the number lies on the null's other side, *agrees*
  where the interval holds it (or meets the published interval), give or take the tolerance, else *same direction*.
- a number without a null, or none at all: *not measured*. Levels of another task, of another kind of model, of another quantity have
  no direction in common.

Whatever was published, it is *not measured* where we have no number, and *undecided* where ours has no interval.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from cnslib.core.names import demand
from cnslib.stats.accuracy import TINY

AGREES, SAME, OPPOSITE = "agrees", "same direction", "opposite direction"
UNDECIDED, UNMEASURED = "undecided", "not measured"
WORDS = (AGREES, SAME, OPPOSITE, UNDECIDED, UNMEASURED)
CONFIRMED = (AGREES, SAME)
SIDES = {"above": 1, "at least": 1, "below": -1, "at most": -1}
CLOSED = ("at least", "at most")  # they hold X itself
STATEMENT = re.compile(rf"({'|'.join(SIDES)}|about) (-?\d+(?:\.\d+)?)")
ACCEPTED = f"a number, or a number after {', '.join(SIDES)} or about"

OneOrEach = float | None | Iterable[float | None]  # one for all rows, or one per row


@dataclass(frozen=True)
class Claim:
    """What was published: its kind ("above", "about", "number", "none"...), the number, its interval, and what it is judged with."""

    kind: str
    number: float
    low: float
    high: float
    tolerance: float
    null: float

    def rule(self) -> str:
        """The rule in words."""
        if self.kind == "none":
            return "no direction to compare"
        if self.kind == "about":
            return f"within {self.tolerance:g} of {self.number:g}"
        if self.kind == "number":
            near = f"within {self.tolerance:g} of the interval" if self.tolerance else "in the interval"
            return f"{near}, or side of {self.null:g}"
        return f"{self.kind} {self.number:g}"

    def verdict(self, low: float, high: float) -> str:
        """What an interval makes of it."""
        if self.kind == "none":
            return UNMEASURED
        if np.isnan(low) or np.isnan(high):
            return UNDECIDED
        near = low - self.tolerance <= self.high + TINY and high + self.tolerance >= self.low - TINY
        if self.kind == "about":
            within = low >= self.number - self.tolerance - TINY and high <= self.number + self.tolerance + TINY
            return word(within, not near, confirmed=AGREES)
        if self.kind == "number":
            side = np.sign(self.number - self.null)
            ahead, behind = beyond(low, high, self.null, side), beyond(low, high, self.null, -side)
            return word(ahead, behind, confirmed=AGREES if near else SAME)
        side, closed = SIDES[self.kind], self.kind in CLOSED
        return word(beyond(low, high, self.number, side, closed=closed), beyond(low, high, self.number, -side))


def beyond(low: float, high: float, place: float, side: float, *, closed: bool = False) -> bool:
    """Whether a whole interval lies above (1) or below (-1) a place, up to rounding; a closed side holds the place itself."""
    nearest = (low - place) if side > 0 else (place - high)
    return bool(nearest >= -TINY if closed else nearest > TINY)


def word(confirms: bool, contradicts: bool, *, confirmed: str = SAME) -> str:
    """The verdict where a test can confirm or contradict a claim, or do neither."""
    return confirmed if confirms else OPPOSITE if contradicts else UNDECIDED


def read(published: float | str, low: float, high: float, *, tolerance: float, null: float) -> Claim:
    """A claim from its cell. Raises ValueError for a text that is neither a number nor a statement."""
    given = {"tolerance": tolerance, "null": null}
    if isinstance(published, str) and (said := STATEMENT.match(published)):
        number = float(said[2])
        return Claim(said[1], number, number, number, **given)
    number = pd.to_numeric(published, errors="coerce")
    demand(not isinstance(published, str) or not np.isnan(number), "published", published, ACCEPTED)
    low, high = (number if np.isnan(bound) else bound for bound in (low, high))
    kind = "none" if np.isnan(number) or np.isnan(null) else "about" if abs(number - null) <= TINY else "number"
    return Claim(kind, float(number), float(low), float(high), **given)


def claims(said: pd.DataFrame, *, tolerance: OneOrEach, null: OneOrEach) -> list[Claim]:
    """The claims of a table with the column published, and perhaps published_low and published_high."""
    bounds = [said[name] if name in said else [np.nan] * len(said) for name in ("published_low", "published_high")]
    given = [np.broadcast_to(np.asarray(value, float), len(said)) for value in (tolerance, null)]
    return [read(cell, *theirs, tolerance=t, null=n) for cell, *theirs, t, n in zip(said["published"], *bounds, *given, strict=True)]


def beside(ours: pd.DataFrame, published, *, tolerance: OneOrEach = 0.0, null: OneOrEach = 0.0) -> pd.DataFrame:
    """Our numbers with what was published, the difference, the rule and the verdict, as columns behind our own.

    `ours` has a row per claim with its estimate (or ours), low and high; a table without low and high holds exact numbers. `published`,
    `tolerance` and `null` are one for all rows or one per row, in order; `published` may be a table with the columns published,
    published_low and published_high. A null of None says that there is no direction. Raises ValueError for a text that is no claim.
    """
    table = ours.rename(columns={"estimate": "ours"}).infer_objects()
    cells = published if isinstance(published, pd.DataFrame) else {"published": np.broadcast_to(np.asarray(published, object), len(table))}
    said = pd.DataFrame({name: list(cells[name]) for name in cells}, index=table.index).infer_objects()
    listed = claims(said, tolerance=tolerance, null=null)
    lows, highs = (table[side] if side in table else table["ours"] for side in ("low", "high"))
    rows = zip(table["ours"], lows, highs, listed, strict=True)
    judged = [UNMEASURED if pd.isna(estimate) else claim.verdict(low, high) for estimate, low, high, claim in rows]
    numbers = np.array([np.nan if claim.kind in SIDES else claim.number for claim in listed], float)
    new = said.assign(difference=table["ours"].to_numpy(float) - numbers, rule=[claim.rule() for claim in listed], verdict=judged)
    return table.drop(columns=new.columns, errors="ignore").assign(**{name: new[name].array for name in new})


def statements(ours: dict[str, dict], said: pd.DataFrame) -> pd.DataFrame:
    """Our records beside a list of claims (id, quantity, published, and null and tolerance where they are not 0), a row per line.

    Raises KeyError for a line that is not among ours.
    """
    table = pd.DataFrame([{"quantity": line.quantity, **ours[line.id]} for line in said.itertuples()]).set_index("quantity")
    given = {name: said[name].fillna(0.0) for name in ("tolerance", "null") if name in said}
    return beside(table, said["published"], **given)
