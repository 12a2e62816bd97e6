"""Sliders and their health (notebook 02): captions, sentences on what its figures show, and the answer of the page."""

from collections.abc import Iterable

import pandas as pd

from cnslib.plots.captions.words import extremes, listed
from cnslib.plots.figures import extent

ALWAYS = 0.75  # a rise in fewer of the steps to some scale is no plain yes
NAMED = 6  # equal steps, at most, that a sentence names
RISES = "the alignment with the shift rises in"


def health(counts: Iterable[int], *, confidence: float) -> str:
    """The caption of alignment and structure; `counts` are the numbers of sliders."""
    measures = "alignment: cosine with the caption of the shift minus that with the plain one; structure: cosine with scale 0"
    return f"{measures}. {extent(counts)} sliders per shift; bands: {confidence:.0%} t intervals over sliders"


def health_seen(measured: pd.DataFrame) -> str:
    """Under which shifts the alignment rises most and least, and the structure falls most (measure, shift, scale, estimate)."""
    ends = measured.pivot(index=["measure", "shift"], columns="scale", values="estimate")
    change = ends.iloc[:, -1] - ends.iloc[:, 0]
    most, least = extremes(change["alignment"])
    _, broken = extremes(change["structure"])
    last = measured["scale"].max()
    rise = f"From scale 0 to {last:g} the alignment changes most under {most} and least under {least}"
    return f"{rise}; the structure falls most under {broken}."


def loss(remaining: pd.DataFrame) -> str:
    """The caption of what is left of the way (a row per iteration, a column per shift, empty where a shift has ended).

    Shifts are compared at the last iteration that all of them have.
    """
    length = remaining.notna().sum()
    most, least = extremes(remaining.dropna().iloc[-1])
    text = f"After {length.min()} iterations the sliders of {most} have most of the way to go, those of {least} least"
    text = f"{text}. Running means over five iterations"
    longer = length[length > length.min()]
    told = "; ".join(f"{shift}: {count}" for shift, count in longer.items())
    return f"{text}; {length.min()} iterations, but {told}" if len(longer) else f"{text}; {length.min()} iterations"


def steps_seen(steps: pd.DataFrame) -> str:
    """How often the alignment rises in the steps to each scale, and where least (shift, scale, rises)."""
    by_scale = steps.groupby("scale")["rises"].mean()
    each = listed(f"{value:.0%} ({scale:g})" for scale, value in by_scale.items())
    return f"Share of the steps in which the alignment rises, by the scale reached: {each}. {fewest(steps)}."


def fewest(steps: pd.DataFrame) -> str:
    """The steps in which the alignment rises least often: all of the equal ones by name, or how many they are where they are many."""
    own = steps.groupby(["scale", "shift"])["rises"].mean()
    low = own[own == own.min()]
    if len(low) > NAMED:
        return f"The least share of a shift and a step, {own.min():.0%}, is that of {len(low)} of {len(own)}"
    places = [f"to {scale:g} under {listed(part.index.get_level_values('shift'))}" for scale, part in low.groupby("scale")]
    return f"Least often it does in the step {' and '.join(places)} ({own.min():.0%})"


def pilot(best: pd.DataFrame, used: pd.Series) -> str:
    """Whether the sliders take what the pilot's rule takes; `best` has the rule's eta of each shift, `used` that of the sliders."""
    if best.empty:
        return "No pilot was asked for: every shift has the eta of the parameter file."
    apart = [f"{row.shift} ({eta:g} instead of {row.eta:g})" for row, eta in zip(best.itertuples(), used, strict=True) if eta != row.eta]
    said = f"all but {', '.join(apart)}" if apart else "all"
    short = best[best["shortfall"] > 0]
    missed = f" No candidate meets every bound for {listed(short['shift'])}." if len(short) else ""
    return f"Of {len(best)} shifts, {said} have the eta that the rule takes.{missed}"


def pilot_seen(seen: pd.DataFrame, used: dict[str, float]) -> str:
    """What share of its last reading the oracle gives in the middle of the scales, at the eta that each shift uses (`pilot.readings`)."""
    mean = seen[seen["eta"] == seen["shift"].map(used)].groupby(["shift", "scale"])["asked"].mean().unstack("scale")
    if mean.empty:
        return "No pilot has read the etas in use."
    middle = mean.columns[len(mean.columns) // 2]
    high, low = extremes(mean[middle] / mean.iloc[:, -1], ".0%")
    text = f"At the eta in use, how much of the reading at scale {mean.columns[-1]:g} is there at scale {middle:g}?"
    return f"{text} Least under {low} and most under {high}."


def pilot_curves(counts: Iterable[int], *, note: str) -> str:
    """The caption of what the oracle reads along the scale; `counts` are the numbers of trajectories, `note` says what intervals are."""
    return f"{extent(counts)} trajectories per shift and eta; bands: {note}"


def answer(rising: dict, steps: pd.DataFrame, kept: dict, scale: float, *, confidence: float) -> str:
    """The answer of the page: the share of steps that raise the alignment, of all and by scale, and the structure that is kept."""
    by_scale = steps.groupby("scale")["rises"].mean()
    always = "Yes" if by_scale.min() > ALWAYS else "Mostly"
    word = f"{always}: {RISES}" if rising["low"] > 0.5 else f"Not reliably: {RISES} only"
    ends = f"{by_scale.max():.0%} of those to {by_scale.idxmax():g} and {by_scale.min():.0%} of those to {by_scale.idxmin():g}"
    bounds = f"{confidence:.0%} interval {rising['low']:.0%} to {rising['high']:.0%}"
    first = f"{word} {rising['estimate']:.0%} of the steps of {rising['n']} sliders ({bounds}), {ends}"
    return f"**{first}; at scale {scale} the features keep a cosine of {kept['estimate']:.2f} with the unshifted picture.**"
