"""Continuous failure points (notebook 10): captions, and sentences on what its figures show.

Tables are those of `studies.bisection`; `note` says what the intervals are about.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from cnslib.plots.captions.words import answered, extremes, interval, listed
from cnslib.plots.figures import extent

FIRST = "bisected point is the first failure"  # rows of the table of scanned trajectories
MONOTONE = "at most one flip, right at scale 0"
HIDDEN = "never on the grid, but between its scales"


def closeup(shown: pd.DataFrame) -> str:
    """The caption of two classifiers in one cell of the grid; `shown` as `continuous.showcase` gives it."""
    row = shown.iloc[0]
    cell = f"between scale {row['left']:g} and {row['right']:g}"
    points = listed(f"{model} at {until:g}" for model, until in zip(shown["model"], shown["until"], strict=True))
    key = f"{row['shift']}: {row['class']}, seed {row['seed']}"
    return f"The grid sees one failure {cell}; bisected, {points}. {key}; above 0 the answer is right; numbers: rounds; dashed: bisected"


def closeup_seen(shown: pd.DataFrame) -> str:
    """How far apart the two failures are, in a cell of which width."""
    apart, width = shown["until"].max() - shown["until"].min(), (shown["right"] - shown["left"]).iloc[0]
    if len(shown) < 2:
        return "No two classifiers fail in the same cell here, so only one is shown."
    return f"The two failures lie {apart:.2f} of the slider's unit apart, {apart / width:.0%} of the cell in which the grid puts both."


def last_survival(table: pd.DataFrame, by: str) -> pd.Series:
    """The share of trajectories without a failure up to the last scale."""
    return table[table["scale"] == table["scale"].max()].drop_duplicates(by).set_index(by)["estimate"]


def survival(table: pd.DataFrame, by: str, counts: pd.Series, *, of: str, note: str) -> str:
    """The caption of bisected survival per shift or classifier; `of` says what the curves are means over or taken from."""
    most, least = extremes(last_survival(table, by), ".0%")
    finding = f"At the last scale {most} has the most trajectories without failure, {least} the fewest"
    bare = table.loc[table["low"].isna(), by].unique()
    band = f"band: {note}{f', none under {listed(bare)}, of too few seeds' if len(bare) else ''}"
    return f"{finding} ({of}). {extent(counts)} trajectories; {band}; grey: where the grid leaves survival open"


def survival_seen(table: pd.DataFrame, by: str) -> str:
    """How tall the grey boxes are: what the grid leaves open inside a cell."""
    own = table[table["grid"]].sort_values("scale")
    loss = -own.groupby(by)["estimate"].diff()
    tallest = own.loc[loss.idxmax()]
    text = f"The tallest grey box ends at scale {tallest['scale']:g} of {tallest[by]}: {loss.max():.0%} of the trajectories fail inside"
    return f"{text} that cell, and the grid cannot say where. On average a box holds {loss.mean():.1%} of the trajectories."


def wide(table: pd.DataFrame, readings: list[str]) -> pd.DataFrame:
    """Means with their intervals as text, a row per classifier and a column per reading."""
    text = table.assign(text=[interval(row, ".3f") for _, row in table.iterrows()])
    return text.pivot(index="model", columns="reading", values="text")[readings]


def told_seen(apart: dict[str, tuple[int, int]]) -> str:
    """How many pairs of classifiers every reading tells apart (told, pairs), the grid first, and whether the finest, the last, helped."""
    (grid, pairs), (finest, _) = next(iter(apart.values())), list(apart.values())[-1]
    said = listed(f"{told} ({name})" for name, (told, _) in apart.items())
    text = f"Of {pairs} pairs of classifiers, each by itself, {said} are told apart"
    helped = f"a finer scale told {finest - grid} more apart" if finest > grid else "a finer scale did not help"
    return f"{text}. The {list(apart)[-1]} reading leaves {pairs - finest} open; {helped}."


def guess_seen(guess: dict[str, dict]) -> str:
    """Whether the zero of the margin lies nearer to the failure than the middle of the cell; `guess` as `continuous.guess_errors`."""
    gain = guess["difference"]
    if gain["low"] > 0:
        return f"Yes: the zero of the margin is nearer by {interval(gain)} of the slider's unit."
    if gain["high"] < 0:
        return f"No: the middle of the cell is nearer, and the difference is {interval(gain)} of the slider's unit."
    return f"Undecided: the difference is {interval(gain)} of the slider's unit."


def scans(share: dict[str, dict], trajectories: int, step: float) -> str:
    """The caption of the scanned trajectories."""
    first = share[FIRST]
    finding = f"{first['estimate']:.0%} of {first['n']} bisected points are the first failure"
    return f"{finding}. {trajectories} trajectories at every {step:g} of the scale; black: bisected failure points; white: the grid"


def scans_seen(share: dict[str, dict]) -> str:
    """Monotone and hidden trajectories in words."""
    monotone, hidden = share[MONOTONE], share[HIDDEN]
    never = f"{interval(hidden, '.0%')} of the {hidden['n']} that never fail on the grid fail between its scales"
    rows = f"{monotone['n']} rows that are right at scale 0"
    return f"{interval(monotone, '.0%')} of {rows} flip at most once. {never if hidden['n'] else 'All fail on the grid'}."


def finest(cost: pd.DataFrame) -> pd.Series:
    """Pictures by method at the finest resolution."""
    return cost[cost["resolution"] == cost["resolution"].min()].set_index("method")["images"]


def cost(table: pd.DataFrame, *, trajectories: int, classifiers: int, brackets: int) -> str:
    """The caption of the pictures that are needed."""
    images = finest(table)
    finding = f"At the finest resolution bisection needs {images['shared']:,} pictures and a uniform grid {images['uniform']:,}"
    return f"{finding}. n = {trajectories} trajectories, {classifiers} classifiers, {brackets} brackets; scans not counted"


def cost_seen(table: pd.DataFrame) -> str:
    """The saving as a quotient, at the coarsest and at the finest resolution."""
    images = table.pivot(index="resolution", columns="method", values="images").sort_index(ascending=False)
    saved = images["uniform"] / images["shared"]
    coarse, fine = (f"{value:.1f} times at resolution {step:g}" for step, value in saved.iloc[[0, -1]].items())
    text = f"A uniform grid costs {coarse} and {fine} what bisection costs"
    return f"{text}: the finer the scale, the more it saves." if saved.is_monotonic_increasing else f"{text}."


def known(record: Mapping[Any, Any] | pd.Series, form: str = ".2f") -> str:
    """A number with its interval, or with a note that there is none."""
    return f"{record['estimate']:{form}} (too few seeds for an interval)" if pd.isna(record["low"]) else interval(record, form)


def answer(late: pd.Series, first: dict, tau: dict, cost: pd.DataFrame, resolution: float) -> str:
    """The answer of the page: delay, pictures, order and first failures."""
    images = finest(cost)
    delay = f"On average a classifier fails {known(late)} of the slider's unit below the scale that the grid reports"
    count = f"bisection finds the place to 1/{1 / resolution:g} with {images['shared']:,} pictures, an even grid of that step with"
    order = f"The grid's order of the classifiers agrees with the bisected one to Kendall's tau {known(tau)}"
    scanned = f"where we drew everything, {known(first, '.0%')} of {first['n']} bisected points are the first failure"
    return answered(f"{delay}; {count} {images['uniform']:,}. {order}; {scanned}.")
