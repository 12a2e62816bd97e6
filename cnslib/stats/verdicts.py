"""Verdicts on published claims: one vocabulary and a few rules. A verdict says what our interval makes of what was published:

- "above X", "below X": *same direction* where the whole interval lies there, *opposite direction* where it lies on the other side,
  else *undecided*.
- "about X", or a number that is itself the null: *agrees* where the whole interval lies within the tolerance of X, *opposite direction*
  where all of it lies further away, else *undecided*.
- a number: *undecided* where the interval includes the null, *opposite direction* where the number lies on the null's other side,
  *agrees* where the interval includes it (or meets the published interval), give or take the tolerance, else *same direction*.
- *not measured*: without our number or a null, where a model of another kind stands in, or where the null is the end of what is possible.

What is undecided comes with the smallest effect that could have been seen: the distance from the null at which an interval as wide
would have decided.
"""

import re
from collections.abc import Iterable

import numpy as np
import pandas as pd

from cnslib.core.names import demand
from cnslib.stats.accuracy import TINY
from cnslib.stats.bootstrap import ANYWHERE, Range

AGREES, SAME, OPPOSITE = "agrees", "same direction", "opposite direction"
UNDECIDED, UNMEASURED = "undecided", "not measured"
WORDS = (AGREES, SAME, OPPOSITE, UNDECIDED, UNMEASURED)
SIDES = {"above": 1, "below": -1}
STATEMENT = re.compile(rf"({'|'.join(SIDES)}|about) (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?: \(.*\))?")  # in brackets where it stands
ACCEPTED = f"a number, or a number after {', '.join(SIDES)} or about"
LEVEL = "no direction to compare"
STAND_IN = "a model of another kind stands in"
CERTAIN = "the null is the end of what is possible"

Each = float | None | Iterable[float | None]  # one for all rows, or one per row


def word(confirms: bool, contradicts: bool, *, confirmed: str = SAME) -> str:
    """The verdict where a test can confirm or contradict a claim, or do neither."""
    return confirmed if confirms else OPPOSITE if contradicts else UNDECIDED


def read(published: float | str) -> tuple[str, float]:
    """The kind of a claim ("above", "about", "number"...) and its number, from its cell. ValueError for any other text."""
    if isinstance(published, str) and (words := STATEMENT.fullmatch(published)):
        return words[1], float(words[2])
    number = pd.to_numeric(published, errors="coerce")
    demand(not isinstance(published, str) or not np.isnan(number), "published", published, ACCEPTED)
    return "number", float(number)


def rule_of(kind: str, number: float, *, tolerance: float, null: float, within: Range, stand_in: bool) -> tuple[str, str]:
    """The kind of rule for a claim, "none" where nothing can be compared, and the rule in words."""
    if stand_in:
        return "none", STAND_IN
    if kind == "number" and (np.isnan(number) or np.isnan(null)):
        return "none", LEVEL
    if kind == "about" or (kind == "number" and abs(number - null) <= TINY):
        return "about", f"within {tolerance:g} of {number:g}"
    if not within[0] < (null if kind == "number" else number) < within[1]:
        return "none", CERTAIN
    if kind != "number":
        return kind, f"{kind} {number:g}"
    near = f"within {tolerance:g} of the interval" if tolerance else "in the interval"
    return kind, f"{near}, or side of {null:g}"


def verdict(kind: str, low: float, high: float, theirs: tuple[float, float, float], *, tolerance: float, null: float) -> str:
    """What our interval makes of a published number and its interval, by a kind of rule."""
    if kind == "none":
        return UNMEASURED
    if np.isnan(low) or np.isnan(high):
        return UNDECIDED
    number, their_low, their_high = theirs
    near = low - tolerance <= their_high + TINY and high + tolerance >= their_low - TINY
    if kind == "about":
        return word(low >= number - tolerance - TINY and high <= number + tolerance + TINY, not near, confirmed=AGREES)
    if kind == "number":
        side, place = np.sign(number - null), null
    else:
        side, place = SIDES[kind], number
    ahead, behind = (low - place, place - high) if side > 0 else (place - high, low - place)
    return word(ahead > TINY, behind > TINY, confirmed=AGREES if kind == "number" and near else SAME)


def beside(
    ours: pd.DataFrame, published, *, tolerance: Each = 0.0, null: Each = 0.0, within: Range = ANYWHERE, stand_in: Each = False
) -> pd.DataFrame:
    """Our numbers with what was published, the difference, the rule, the verdict and the smallest visible effect, behind our own columns.

    `ours` has a row per claim with its estimate (or ours), low and high; without these its numbers are exact. `published`, `tolerance`,
    `null` (None: no direction) and `stand_in` (a model of another kind) are one for all rows or one per row; `published` may be a table
    with the columns published, published_low and published_high. `within` is where such numbers can lie.
    """
    table = ours.rename(columns={"estimate": "ours"}).infer_objects()
    cells = published if isinstance(published, pd.DataFrame) else {"published": np.broadcast_to(np.asarray(published, object), len(table))}
    theirs = pd.DataFrame({name: list(cells[name]) for name in cells}).infer_objects()
    bounds = (theirs[name] if name in theirs else [np.nan] * len(table) for name in ("published_low", "published_high"))
    each = (np.broadcast_to(np.asarray(value, float), len(table)) for value in (tolerance, null, stand_in))
    sides = (table[side] if side in table else table["ours"] for side in ("low", "high"))
    rows = []
    for estimate, low, high, cell, their_low, their_high, near, zero, other in zip(
        table["ours"], *sides, theirs["published"], *bounds, *each, strict=True
    ):
        said, number = read(cell)
        kind, rule = rule_of(said, number, tolerance=near, null=zero, within=within, stand_in=bool(other))
        numbers = number, number if np.isnan(their_low) else their_low, number if np.isnan(their_high) else their_high
        outcome = UNMEASURED if pd.isna(estimate) else verdict(kind, low, high, numbers, tolerance=near, null=zero)
        smallest = max(estimate - low, high - estimate) + (near if kind == "about" else 0) if outcome == UNDECIDED else np.nan
        rows.append((estimate - (np.nan if said in SIDES else number), rule, outcome, smallest))
    judged = pd.DataFrame(rows, columns=["difference", "rule", "verdict", "smallest"])
    new = theirs.join(judged.astype({"difference": float, "smallest": float}))
    return table.drop(columns=new.columns, errors="ignore").assign(**{name: new[name].array for name in new})


def statements(ours: dict[str, dict], said: pd.DataFrame) -> pd.DataFrame:
    """Our records beside a list of claims (id, quantity, published, and null and tolerance where they are not 0), a row per line."""
    table = pd.DataFrame([{"quantity": line.quantity, **ours[line.id]} for line in said.itertuples()]).set_index("quantity")
    return beside(table, said["published"], **{name: said[name].fillna(0.0) for name in ("tolerance", "null") if name in said})
