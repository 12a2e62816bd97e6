"""Verdicts on published claims: one vocabulary and a few rules, for the library and the notebooks alike.

A verdict says what our interval makes of what was published, and names its rule. The rules, by what was published:

- "above X", "below X", "at least X", "at most X": *same direction* where the whole interval lies there, *opposite direction* where it
  lies on the other side, else *undecided*.
- "about X": *agrees* where the whole interval lies within the tolerance of X, *opposite direction* where all of it lies further away,
  else *undecided*. An interval that merely holds X proves nothing, so a tolerance of 0 can but contradict. A number that is itself
  the null is such a claim: that there is no effect.
- a number: *undecided* where the interval holds the null, *opposite direction* where the number lies on the null's other side, *agrees*
  where the interval holds it (or meets the published interval), give or take the tolerance, else *same direction*.
- a number without a null, or none at all: *not measured*. Levels of another task or of another quantity have no direction in common,
  and that two numbers which cannot be negative are both positive says nothing.
- a claim about a model for which one of another kind stands in: *not measured*.
- a claim whose null lies at the end of what is possible, or beyond: *not measured*, since nothing could contradict it.
- a claim that is set aside for a reason, such as one about far larger sets: *not measured*, and the reason stands in the place of the rule.

Whatever was published, it is *not measured* where we have no number, and *undecided* where ours has no interval. What is undecided
comes with the smallest effect that could have been seen: the distance from the null at which an interval as wide would have decided.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from cnslib.core.names import demand
from cnslib.stats.accuracy import TINY
from cnslib.stats.bootstrap import Range

AGREES, SAME, OPPOSITE = "agrees", "same direction", "opposite direction"
UNDECIDED, UNMEASURED = "undecided", "not measured"
WORDS = (AGREES, SAME, OPPOSITE, UNDECIDED, UNMEASURED)
CONFIRMED = (AGREES, SAME)
SIDES = {"above": 1, "at least": 1, "below": -1, "at most": -1}
CLOSED = ("at least", "at most")  # they hold X itself
STATEMENT = re.compile(rf"({'|'.join(SIDES)}|about) (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?: \(.*\))?")  # behind it, in brackets, where it stands
ACCEPTED = f"a number, or a number after {', '.join(SIDES)} or about"

OneOrEach = float | None | Iterable[float | None]  # one for all rows, or one per row
EVERYWHERE: Range = (-np.inf, np.inf)


LEVEL = "no direction to compare"
STAND_IN = "a model of another kind stands in"
CERTAIN = "the null is the end of what is possible"


@dataclass(frozen=True)
class Claim:
    """What was published: its kind ("above", "about", "number", "none"...), the number, its interval, and what it is judged with."""

    kind: str
    number: float
    low: float
    high: float
    tolerance: float
    null: float
    reason: str = LEVEL  # why nothing is compared, for the kind "none"

    def rule(self) -> str:
        """The rule in words."""
        if self.kind == "none":
            return self.reason
        if self.kind == "about":
            return f"within {self.tolerance:g} of {self.number:g}"
        if self.kind == "number":
            near = f"within {self.tolerance:g} of the interval" if self.tolerance else "in the interval"
            return f"{near}, or side of {self.null:g}"
        return f"{self.kind} {self.number:g}"

    def smallest(self, ours: float, low: float, high: float) -> float:
        """The smallest effect that such an interval could have shown: half of it from the null, or beyond the tolerance of a number."""
        return max(ours - low, high - ours) + (self.tolerance if self.kind == "about" else 0.0)

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


def read(
    published: float | str, low: float, high: float, *, tolerance: float, null: float, within: Range = EVERYWHERE, stand_in: bool = False
) -> Claim:
    """A claim from its cell. Raises ValueError for a text that is neither a number nor a statement."""
    claim = said(published, low, high, {"tolerance": tolerance, "null": null})
    null = claim.number if claim.kind in (*SIDES, "about") else claim.null
    certain = claim.kind in (*SIDES, "number") and not within[0] < null < within[1]
    reason = STAND_IN if stand_in else CERTAIN if certain else ""
    return replace(claim, kind="none", reason=reason) if reason else claim


def said(published: float | str, low: float, high: float, given: dict[str, Any]) -> Claim:
    """What a cell says."""
    if isinstance(published, str) and (words := STATEMENT.fullmatch(published)):
        number = float(words[2])
        return Claim(words[1], number, number, number, **given)
    number = pd.to_numeric(published, errors="coerce")
    demand(not isinstance(published, str) or not np.isnan(number), "published", published, ACCEPTED)
    low, high, null = (*(number if np.isnan(bound) else bound for bound in (low, high)), given["null"])
    kind = "none" if np.isnan(number) or np.isnan(null) else "about" if abs(number - null) <= TINY else "number"
    return Claim(kind, float(number), float(low), float(high), **given)


def claims(table: pd.DataFrame, *, within: Range, **given: Any) -> list[Claim]:
    """The claims of a table with the column published, and perhaps published_low and published_high; `given` as `read` takes it."""
    theirs = [table[name] if name in table else [np.nan] * len(table) for name in ("published_low", "published_high")]
    each: dict[str, Any] = {name: np.broadcast_to(np.asarray(value, float), len(table)) for name, value in given.items()}
    rows = zip(table["published"], *theirs, *each.values(), strict=True)
    return [read(row[0], row[1], row[2], within=within, **dict(zip(each, row[3:], strict=True))) for row in rows]


def beside(
    ours: pd.DataFrame,
    published,
    *,
    tolerance: OneOrEach = 0.0,
    null: OneOrEach = 0.0,
    within: Range = EVERYWHERE,
    stand_in: OneOrEach = False,
) -> pd.DataFrame:
    """Our numbers with what was published, the difference, the rule, the verdict and the smallest visible effect, behind our own columns.

    `ours` has a row per claim with its estimate (or ours), low and high; a table without low and high holds exact numbers. `published`,
    `tolerance`, `null` and `stand_in` (whether a model of another kind stands in) are one for all rows or one per row, in order;
    `published` may be a table with the columns published, published_low and published_high. A null of None says that there is no
    direction; `within` is where such numbers can lie. `smallest` is NaN but for what is undecided. Raises ValueError for no claim.
    """
    table = ours.rename(columns={"estimate": "ours"}).infer_objects()
    cells = published if isinstance(published, pd.DataFrame) else {"published": np.broadcast_to(np.asarray(published, object), len(table))}
    theirs = pd.DataFrame({name: list(cells[name]) for name in cells}).infer_objects()
    listed = claims(theirs, tolerance=tolerance, null=null, within=within, stand_in=stand_in)
    lows, highs = (table[side] if side in table else table["ours"] for side in ("low", "high"))
    rows = list(zip(table["ours"], lows, highs, listed, strict=True))
    judged = [UNMEASURED if pd.isna(estimate) else claim.verdict(low, high) for estimate, low, high, claim in rows]
    seen = [claim.smallest(*own) if word == UNDECIDED else np.nan for (*own, claim), word in zip(rows, judged, strict=True)]
    numbers = np.array([np.nan if claim.kind in SIDES else claim.number for claim in listed])
    named = {"rule": [claim.rule() for claim in listed], "verdict": judged, "smallest": np.array(seen, float)}
    new = theirs.assign(difference=table["ours"].to_numpy(float) - numbers, **named)
    return table.drop(columns=new.columns, errors="ignore").assign(**{name: new[name].array for name in new})


def set_aside(table: pd.DataFrame, reasons: Iterable[Any]) -> pd.DataFrame:
    """Judged claims, of which those with a reason are not measured: it says why ours could neither hold nor contradict them.

    A reason per row, in order; missing where there is none.
    """
    given = pd.Series(list(reasons), table.index, dtype=object)
    aside = given.notna()
    judged = {"rule": table["rule"].mask(aside, given), "verdict": table["verdict"].mask(aside, UNMEASURED)}
    return table.assign(**judged, smallest=table["smallest"].mask(aside))


def counted(words: pd.Series) -> str:
    """What became of the claims, for a sentence: how many hold, are opposite, undecided or not measured."""
    kinds = {"hold": CONFIRMED, "opposite": (OPPOSITE,), "undecided": (UNDECIDED,), "not measured": (UNMEASURED,)}
    found = {name: int(words.isin(own).sum()) for name, own in kinds.items()}
    parts = [f"{n} holds" if (name, n) == ("hold", 1) else f"{n} {name}" for name, n in found.items()]
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def statements(ours: dict[str, dict], said: pd.DataFrame) -> pd.DataFrame:
    """Our records beside a list of claims (id, quantity, published, and null and tolerance where they are not 0), a row per line.

    Raises KeyError for a line that is not among ours.
    """
    table = pd.DataFrame([{"quantity": line.quantity, **ours[line.id]} for line in said.itertuples()]).set_index("quantity")
    given = {name: said[name].fillna(0.0) for name in ("tolerance", "null") if name in said}
    return beside(table, said["published"], **given)
