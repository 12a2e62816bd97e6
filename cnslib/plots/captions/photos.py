"""Real classifiers on photographs under rendered shifts (notebook 14): captions, and sentences on what its figures show.

Tables are those of `stats` and `studies.photos`, their scale is the severity; `note` says what the intervals are about.
"""

import numpy as np
import pandas as pd

from cnslib.plots.captions.words import answered, certain, extremes, interval, listed
from cnslib.plots.figures import extent
from cnslib.stats.accuracy import ALL, NEVER


def samples(places: pd.DataFrame) -> str:
    """The caption of all cut-outs."""
    return f"{len(places)} cut-outs of {places['class'].nunique()} classes, each in its own scenery; not shifted"


def samples_seen(places: pd.DataFrame) -> str:
    """How many cut-outs the classes have."""
    counts = places["class"].value_counts()
    single = (counts == 1).sum()
    return f"{single} of {len(counts)} classes have a single cut-out; {counts.index[0]} has most, {counts.iloc[0]}."


def strips(rows: pd.DataFrame) -> str:
    """The caption of one object per shift."""
    finding = f"{rows['failed'].sum()} of these {len(rows)} objects are lost to {rows['model'].iloc[0]} on the way"
    return f"{finding}. One object per shift; columns: severity; frame: first severity at which the answer is wrong"


def strips_seen(rows: pd.DataFrame) -> str:
    """Under which shifts the objects shown are lost first, and under which never."""
    lost, kept = rows[rows["failed"]], rows[~rows["failed"]]["shift"]
    if lost.empty:
        return "None of the objects shown is lost."
    first = lost[lost["failure_point"] == lost["failure_point"].min()]
    early = f"First lost, at severity {first['failure_point'].iloc[0]:g}: the objects under {listed(first['shift'])}"
    return f"{early}. Never lost: {listed(kept)}. One object per shift shows what a failure looks like, not how hard the shift is."


def lost(fates: pd.DataFrame) -> pd.Series:
    """The share of the objects that fail above severity 0, mean over the classifiers, by shift."""
    own = fates[(fates["shift"] != ALL) & ~fates["scale"].isin([0.0, NEVER])]
    return own.groupby(["shift", "model"])["estimate"].sum().groupby("shift").mean()


def accuracy(fates: pd.DataFrame, counts: np.ndarray, *, note: str) -> str:
    """The caption of first failures and accuracy per shift."""
    share = lost(fates)
    most, least = (listed(level(share, end).index) for end in (share.max(), share.min()))
    finding = f"These classifiers lose another {share.max():.0%} of the objects under {most}, {share.min():.0%} under {least}"
    return f"{finding}. {extent(counts)} trajectories per shift; lines: {note}; dotted: no shift"


def level(values: pd.Series, end: float) -> pd.Series:
    """The values that are equal to one of them, up to rounding."""
    return values[np.isclose(values, end, rtol=0, atol=1e-9)]


def accuracy_seen(fates: pd.DataFrame) -> str:
    """What is lost before any shift, and by the median shift."""
    own = fates[(fates["shift"] != ALL) & (fates["scale"] == 0.0)]
    share = lost(fates)
    before = f"{own['estimate'].mean():.0%} of the objects are wrong without any shift, the same under all shifts"
    half = (share > 0.5).sum()
    return f"{before}. The median shift takes another {share.median():.0%}, and {half} of {len(share)} shifts take more than half."


def falls(steps: pd.DataFrame) -> str:
    """How many steps of the mean curve surely fall and surely rise."""
    rise, fall = certain(steps)
    return f"{fall} of {len(steps)} steps of the mean curve are falls, {rise} are rises"


def hardness(last: pd.DataFrame, *, note: str) -> str:
    """The caption of the mean accuracy under each shift at the last severity."""
    values = last.set_index("shift")["estimate"]
    ends = [
        f"{word} under {listed(level(values, end).index)} ({end:.0%})"
        for word, end in (("lowest", values.min()), ("highest", values.max()))
    ]
    finding = f"At the last severity accuracy is {' and '.join(ends)}"
    return f"{finding}. {extent(last['n'])} trajectories; lines: {note}; dotted: without a shift"


def hardness_seen(last: pd.DataFrame, start: float) -> str:
    """The three hardest shifts and those level with them, and how many surely cost half of the accuracy without a shift."""
    three = last[last["estimate"] <= last["estimate"].nsmallest(3).iloc[-1] + 1e-9].sort_values("estimate", kind="stable")
    names = listed(f"{row['shift']}, {interval(row, '.0%')}" for _, row in three.iterrows())
    half = (last["high"] < start / 2).sum()
    return f"The hardest {len(three)}: {names}. {half} of {len(last)} shifts surely cost more than half of the accuracy of {start:.0%}."


def ratios(average: pd.DataFrame, *, reference: str, note: str) -> str:
    """The caption of CE and rCE; `average` holds the means over the shifts."""
    own = average[average["measure"] == "CE"].set_index("model")["estimate"]
    worst, best = extremes(own)
    return f"By CE {best} is best and {worst} worst. {extent(average['n'])} trajectories; lines: {note}; dotted: {reference}"


def ratios_seen(average: pd.DataFrame, reference: str) -> str:
    """Which classifiers are surely better than the reference, by each measure."""
    parts = []
    for measure, part in average[average["model"] != reference].groupby("measure", sort=False):
        better = part[part["high"] < 1]["model"]
        parts.append(f"by {measure}: {listed(better)}")
    return f"Surely better than {reference}, {'; '.join(parts)}."


def ranks(table: pd.DataFrame, count: int, *, note: str) -> str:
    """The caption of the ranks along the severity, all shifts together."""
    own = table[(table["shift"] == ALL) & (table["scale"] == table["scale"].max())].sort_values("estimate")
    places = listed(f"{row['model']} ({row['estimate']:g})" for _, row in own.iterrows())
    return f"Ranks at the last severity: {places}. n = {count:,} trajectories; bands: {note}"


def ranks_seen(pairs: pd.DataFrame, confidence: float) -> str:
    """How many comparisons of two classifiers at one severity are decided after Holm's correction."""
    alpha = 1 - confidence
    decided = (pairs["p_holm"] < alpha).sum()
    return f"{decided} of {len(pairs)} comparisons of two classifiers at one severity are decided (Holm's p below {alpha:.2g})."


def answer(top: pd.Series, mean: pd.DataFrame, median: pd.DataFrame, classifiers: int) -> str:
    """The answer of the page; `median` holds the shifts' median failures of the best classifier, which names the row `top`.

    `mean` has the mean accuracy at every severity (column scale), in their order.
    """
    broken = median[np.isfinite(median["estimate"])].sort_values("estimate")
    fall = f"from {mean['estimate'].iloc[0]:.0%} to {mean['estimate'].iloc[-1]:.0%} on the mean of {len(median)} shifts"
    named = f"{top.name} names {interval(top, '.0%')} of the unshifted photographs right"
    first = f"{named}; the accuracy of {classifiers} classifiers falls {fall}"
    where = ", ".join(f"{row.shift} at {row.estimate:g}" for row in broken.itertuples()) or "no shift"
    lost = f"Half of the objects are lost to {top.name} under {len(broken)} of {len(median)} shifts: {where}"
    return answered(f"{by_snow(median, str(top.name), mean['scale'].tolist())}{first}. {lost}.")


def by_snow(median: pd.DataFrame, model: str, severities: list[float]) -> str:
    """Between which severities of snow a classifier comes to fail on half of the objects; nothing where no shift is snow."""
    snow = median[median["shift"].str.endswith("snow")]["estimate"]
    if snow.empty:
        return ""
    if not np.isfinite(snow.iloc[0]):
        return f"No severity of snow makes {model} fail on half of the objects. "
    before = [severity for severity in severities if severity < snow.iloc[0]]
    if not before:
        return f"{model} fails on half of the objects without any snow. "
    return f"From somewhere between severity {before[-1]:g} and {snow.iloc[0]:g} of snow on {model} fails on half of the objects. "
