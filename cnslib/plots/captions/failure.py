"""Failure points as survival data (notebook 09): captions, and sentences on what its figures show.

Tables are those of `stats.failure`; `note` says what the intervals are about.
"""

import pandas as pd

from cnslib.plots.captions.words import answered, extremes, interval
from cnslib.plots.figures import extent
from cnslib.stats.accuracy import ALL
from cnslib.stats.failure import FATES


def ends(survival: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Survival of scale 0 and of the last scale over all shifts, by model."""
    own = survival[survival["shift"] == ALL].pivot(index="model", columns="scale", values="estimate")
    return own.iloc[:, 0], own.iloc[:, -1]


def survival(table: pd.DataFrame, counts: pd.Series, *, note: str) -> str:
    """The caption of the survival curves."""
    known, kept = (share.mean() for share in ends(table))
    finding = f"Of all trajectories {known:.0%} survive scale 0 and {kept:.0%} the last, mean of all classifiers"
    return f"{finding}. {extent(counts)} trajectories; bands: {note}"


def survival_seen(table: pd.DataFrame) -> str:
    """Under which shifts most and least is lost, and which classifiers survive longest, all from scale 0 on."""
    by_scale = table.pivot(index=["shift", "model"], columns="scale", values="estimate")
    lost = by_scale.iloc[:, 0] - by_scale.iloc[:, -1]
    worst, mildest = extremes(lost.drop(ALL).groupby("shift").mean(), ".0%")
    most, least = extremes(lost[ALL], ".0%")
    return (
        f"From scale 0 to the last, most trajectories are lost under {worst} and fewest under {mildest}; {most} loses most, {least} least."
    )


def median_seen(table: pd.DataFrame) -> str:
    """How often the median is infinite, and where it is reached first; `table` is that of `failure.median_scale`."""
    own = table[table["shift"] != ALL]
    never = (own["estimate"] == float("inf")).sum()
    text = f"In {never} of {len(own)} pairs of a classifier and a shift more than half of the trajectories never fail up to the last scale"
    reached = own[(own["estimate"] > 0) & (own["estimate"] < float("inf"))]
    if reached.empty:
        return f"{text}."
    first = reached[reached["estimate"] == reached["estimate"].min()]
    most = first.loc[first["n"].idxmax()]
    where = f"{f'{len(first)} pairs, among them' if len(first) > 1 else 'one pair:'} {most['model']} under {most['shift']}"
    return f"{text}. The earliest median is scale {most['estimate']:g}, in {where}."


def definitions(table: pd.DataFrame, count: int, *, note: str) -> str:
    """The caption of the five definitions (columns definition, model, scale, estimate)."""
    last = table["scale"].max()
    means = table[table["scale"] == last].groupby("definition")["estimate"].mean()
    ends = [f"{means[name]:.2f} by the definition called {name}" for name in (means.idxmax(), means.idxmin())]
    finding = f"At scale {last:g} the mean bar is {ends[0]} and {ends[1]}"
    return f"{finding}. n = {count} trajectories; lines: {note}"


def definitions_seen(table: pd.DataFrame) -> str:
    """What the bars of one classifier add up to, over all trajectories and over its failures."""
    sums = table.groupby(["definition", "model"])["estimate"].sum()
    own = sums["over trajectories"]
    fail = f"from {own.min():.2f} ({own.idxmin()}) to {own.max():.2f} ({own.idxmax()}), the share that fails at all, scale 0 included"
    return f"Over trajectories the bars of a classifier add up to values {fail}. Per model they add up to 1 and hide that share."


def answer(fate: dict[str, dict], told: tuple[int, int], again: pd.Series, last: float) -> str:
    """The answer of the page: what becomes of trajectories, pairs told apart, and how many recover (share per model)."""
    before, under, never = (interval(fate[name], ".0%") for name in FATES)
    text = f"Averaged over the classifiers, {never} of the trajectories do not fail up to the last scale, {last:g}"
    text = f"{text}; {under} fail under the shift, and {before} before any shift"
    apart = f"{told[0]} of {told[1]} pairs of classifiers are told apart by where they fail"
    again = f"depending on the classifier {again.min():.0%} to {again.max():.0%} of the trajectories are right again after a failure"
    return answered(f"{text}. {apart}, and {again}.")
