"""Accuracy on the line (notebook 11): captions, and sentences on what its figures show.

Tables are those of `stats.line` and `stats.size`; `note` says what the intervals are about.
"""

import pandas as pd

from cnslib.plots.captions.words import answered, certain, enough, extremes, interval, listed
from cnslib.plots.figures import extent
from cnslib.stats.accuracy import ALL
from cnslib.stats.line import LINES, NONE

NOISE = " (the noise of accuracy without a shift favours size and is not taken out of this number)"


def classifiers(models: list[str], families: dict[str, list[str]]) -> str:
    """How many classifiers there are, and who is named in a family but was not evaluated."""
    missing = sorted({name for members in families.values() for name in members} - set(models))
    return f"{len(models)} classifiers; in the families but not evaluated: {listed(missing)}"


def pooled(slopes: pd.DataFrame) -> pd.DataFrame:
    """The lines over all shifts, a row per scale in order."""
    return slopes[slopes["shift"] == ALL].sort_values("scale").set_index("scale", drop=False)


def scatter(slopes: pd.DataFrame, points: pd.DataFrame, *, note: str) -> str:
    """The caption of the points about their lines."""
    ends = [f"{row['r']:.2f} at scale {row['scale']:g}" for _, row in pooled(slopes).iloc[[0, -1]].iterrows()]
    counted = f"{points['model'].nunique()} classifiers, {extent(points['n'])} trajectories"
    bars = f"bars: {note}, cut at the frame; dotted: no loss"
    return f"R of accuracy with and without a shift is {' and '.join(ends)}. {counted}; {bars}"


def scatter_seen(slopes: pd.DataFrame, panels: dict[tuple[str, float], str]) -> str:
    """R of all panels in words, with the interval of other classifiers for all shifts together."""
    first, last = (row for _, row in pooled(slopes).iloc[[0, -1]].iterrows())
    single = slopes.set_index(["shift", "scale"])["r"]
    *_, high, low = panels
    ends = [f"R = {row['r']:.2f} ({row['r_low']:.2f} to {row['r_high']:.2f} for other classifiers)" for row in (first, last)]
    shifts = f"Of the shifts shown R is largest under {high[0]} ({single[high]:.2f})"
    text = (
        f"Over all shifts {followed(first)} at scale {first['scale']:g}: {ends[0]}; at scale {last['scale']:g} {followed(last)}: {ends[1]}."
    )
    return f"{text} {shifts} and smallest under {low[0]} ({single[low]:.2f})."


def followed(row: pd.Series) -> str:
    """What the interval of R says about other classifiers."""
    if row["r_low"] > 0:
        return "the better classifiers stay better"
    return "the better classifiers tend to be the worse" if row["r_high"] < 0 else "no relation is certain"


def slopes(table: pd.DataFrame, counts: pd.Series, *, note: str) -> str:
    """The caption of the slopes; `table` of linear axes."""
    first, last = (row for _, row in pooled(table).iloc[[0, -1]].iterrows())
    ends = f"from {first['estimate']:.2f} at scale {first['scale']:g} to {last['estimate']:.2f} at scale {last['scale']:g}"
    bands = f"dark: other images, {note}, the line drawn anew; light: other classifiers, least squares"
    return f"Over all shifts the slope goes {ends}. {first['models']} classifiers, {extent(counts)} trajectories; {bands}"


def slopes_seen(linear: pd.DataFrame, probit: pd.DataFrame) -> str:
    """The last slope against 1, with both intervals, and what becomes of the growth on probit axes."""
    last = pooled(linear).iloc[-1]
    both = f"{interval(last)} for other images, {last['models_low']:.2f} to {last['models_high']:.2f} for other classifiers"
    ends = [f"from {own['estimate'].iloc[0]:.2f} to {own['estimate'].iloc[-1]:.2f}" for own in (pooled(linear), pooled(probit))]
    grown = f"The slope goes {ends[0]} on linear axes and {ends[1]} on probit axes"
    return f"At scale {last['scale']:g} the slope over all shifts is {both}: {effect(last)}. {grown}."


def effect(row: pd.Series) -> str:
    """What the interval of a slope (other images) says of the difference that these classifiers have without a shift.

    The slope says how much of it is left. How far apart they stand under the shift, it does not say.
    """
    if row["high"] < 0:
        return "the shift turns their order round"
    if row["low"] > 1:
        return "the shift spreads these classifiers"
    if row["low"] > 0 and row["high"] < 1:
        return "less than their difference without a shift remains"
    return "how much of their difference without a shift remains is not certain"


def tests(table: pd.DataFrame, counts: pd.Series, *, alpha: float) -> str:
    """The caption of the map of tests."""
    single = table[table["shift"] != ALL]
    finding = f"{(single['p_holm'] < alpha).sum()} of {len(single)} lines of a shift and scale rise or fall for certain (bold)"
    small = "small: R without the images' noise; p values after Holm, which take the classifiers as independent"
    return f"{finding}. {single['models'].iloc[0]} classifiers, {extent(counts)} trajectories; {small}"


def tests_seen(table: pd.DataFrame, *, alpha: float) -> str:
    """How many lines rise and fall surely, where R is largest, and what the noise of the images hides."""
    single = table[table["shift"] != ALL]
    sure = single[single["p_holm"] < alpha]
    rise, fall = (sure["r"] > 0).sum(), (sure["r"] < 0).sum()
    top = single.loc[enough(single)["r"].idxmax()]
    largest = f"R is largest under {top['shift']} at scale {top['scale']:g}: {top['r']:.2f}"
    known = single.dropna(subset=["free"])
    added = (known["free"].abs() - known["r"].abs()).mean()
    noise = f"Without the images' noise R is farther from zero by {added:.2f} on average" if len(known) else "The noise hides all of R"
    return f"{rise} lines surely rise, {fall} surely fall, and {len(single) - len(sure)} are undecided. {largest}. {noise}."


def gain(gains: pd.DataFrame, *, note: str) -> str:
    """The caption of the mean gains."""
    above, below = extremes(over_all(gains)["estimate"], "+.2f")
    text = f"Farthest above the line of all stands {above}, farthest below {below}"
    return f"{text}. {extent(gains['n'])} trajectories; bars: {note}, the line drawn anew"


def over_all(gains: pd.DataFrame) -> pd.DataFrame:
    """Gains over the line of all classifiers, on linear axes, by model."""
    return gains[(gains["line"] == LINES[0]) & (gains["axes"] == "linear")].set_index("model")


def gain_seen(gains: pd.DataFrame, pool: list[str]) -> str:
    """Who stands surely above and below the line, and where those of the generator's pool stand."""
    own = over_all(gains)
    above, below = certain(own)
    text = f"{above} of {len(own)} classifiers stand surely above the line of all, {below} surely below"
    taught = own.reindex(pool).dropna(subset=["estimate"])
    familiar = listed(f"{name} {interval(row, '+.2f')}" for name, row in taught.iterrows())
    return f"{text}. Those of the generator's pool: {familiar}."


def gain_map(table: pd.DataFrame, counts: pd.Series, *, note: str) -> str:
    """The caption of the gains by shift at one scale."""
    own = enough(table)
    above, below = (own.loc[place] for place in (own["estimate"].idxmax(), own["estimate"].idxmin()))
    ends = [f"{row['model']} under {row['shift']} ({row['estimate']:+.2f})" for row in (above, below)]
    finding = f"At scale {above['scale']:g} the farthest above the line is {ends[0]}, the farthest below {ends[1]}"
    return f"{finding}. Line of all classifiers, linear axes; {extent(counts)} trajectories; {note}; a number: its interval leaves out zero"


def gain_map_seen(table: pd.DataFrame, *, confidence: float) -> str:
    """How many fields are certain and how many would be by chance, and who changes sides."""
    single = table[table["shift"] != ALL]
    sides = single.groupby("model").agg({"high": "min", "low": "max"})
    both = int(((sides["high"] < 0) & (sides["low"] > 0)).sum())
    chance = f"chance alone would give about {(1 - confidence) * len(single):.0f}"
    text = f"{sum(certain(single))} of {len(single)} fields of single shifts have a number; {chance}"
    return f"{text}. {both} of {len(sides)} classifiers have a number above zero under one shift and one below zero under another."


def left_out(at_last: pd.DataFrame, models: int, *, note: str) -> str:
    """The caption of the slopes without one family; `at_last` of all shifts at one scale."""
    jump = largest_jump(at_last)
    finding = f"Without {jump['left_out']} the slope changes most, by {jump['change_estimate']:+.2f}"
    return f"{finding}. {models} classifiers in all, n = {at_last['n'].max()} trajectories; {note}; dotted: all"


def largest_jump(at_last: pd.DataFrame) -> pd.Series:
    """The family whose absence changes the slope most."""
    others = at_last[at_last["left_out"] != NONE]
    return others.loc[others["change_estimate"].abs().idxmax()]


def left_out_seen(at_last: pd.DataFrame) -> str:
    """The largest jump with its paired interval, and how far all the slopes reach."""
    jump, others = largest_jump(at_last), at_last[at_last["left_out"] != NONE]
    by = interval({name: jump[f"change_{name}"] for name in ("estimate", "low", "high")}, "+.2f")
    reach = f"from {others['estimate'].min():.2f} to {others['estimate'].max():.2f}"
    return f"Leaving out one family gives slopes {reach}. The largest change is that without {jump['left_out']}: {by}."


def size(partial: pd.DataFrame, *, note: str) -> str:
    """The caption of the partial correlations over all shifts."""
    own = partial[partial["shift"] == ALL]
    if own.empty:
        return "No family has enough sizes"
    last = own[own["scale"] == own["scale"].max()]
    values = listed(f"{row['estimate']:.2f} ({row['family']})" for _, row in last.iterrows())
    finding = f"At equal ID accuracy, size and OOD accuracy correlate by {values} at the last scale"
    counted = f"n = {own['n'].max()} trajectories of all shifts; size: logarithm of the number of weights"
    return f"{finding}. {counted}; bars: {note}; with the noise of ID accuracy, so too short"


def size_seen(partial: pd.DataFrame) -> str:
    """How many of the partial correlations over all shifts leave out zero; the noise of ID accuracy keeps that from being certain."""
    above, below = certain(own := partial[partial["shift"] == ALL])
    if above + below == 0:
        return "No bar leaves out zero: no effect of size is certain here."
    counts = f"Bars above zero: {above} of {len(own)}; below zero: {below}; with zero inside: {len(own) - above - below}"
    return f"{counts}. All have the noise of ID accuracy in them, and such intervals hold the truth too rarely."


def partial_seen(correlation: pd.DataFrame) -> str:
    """In which families size correlates with OOD accuracy for certain, at equal ID accuracy and without noise."""
    above, below = (listed(correlation.loc[side, "family"]) for side in (correlation["low"] > 0, correlation["high"] < 0))
    if above == below == "none":
        return "Without noise no family has a partial correlation that surely differs from zero."
    return f"Without noise the partial correlation is surely above zero in {above} and surely below zero in {below} of the families."


def off_the_line(gains: pd.DataFrame) -> str:
    """Whether anything but accuracy without a shift tells classifiers apart: those surely above and below the line of all."""
    own = over_all(gains)
    above, below = certain(own)
    lead = "Yes" if above + below else "Not for certain"
    return f"{lead}: by accuracy under the shifts {above} of {len(own)} classifiers stand surely above the line and {below} surely below it"


def sized(rest: pd.DataFrame, correlation: pd.DataFrame) -> str:
    """What twice the weights change above the line of the supervised classifiers, and what is left without noise; "" of no family."""
    if rest.empty:
        return ""
    changes = [f"by {interval(row, '+.3f')} in {row['family']}" for _, row in rest.iterrows()]
    above = "Measured from the line of the supervised classifiers, twice the weights change accuracy under the shifts"
    return f" {above} {listed(changes)}{NOISE}. {partial_seen(correlation)}"


def answer(
    at_last: pd.Series,
    alone: float,
    certain_lines: tuple[int, int],
    sizes: tuple[pd.DataFrame, pd.DataFrame],
    gains: pd.DataFrame,
) -> str:
    """The answer of the page: who stands off the line, R at the last scale, alone without the generator's pool, tests and size.

    `sizes` are the gains per doubling and the partial correlations without noise.
    """
    verb = "follows" if at_last["r_low"] > 0 else "runs against" if at_last["r_high"] < 0 else "cannot be said to follow"
    r = f"R = {at_last['r']:.2f} ({at_last['r_low']:.2f} to {at_last['r_high']:.2f} for other classifiers like these)"
    lines = f"{certain_lines[0]} of {certain_lines[1]} lines of single shifts and scales are significant after Holm's correction"
    text = f"At scale {at_last['scale']:g} accuracy under the shifts {verb} accuracy without one: {r}"
    text = f"{off_the_line(gains)}. {text}, {alone:.2f} without those of the generator's pool; {lines}."
    return answered(f"{text}{sized(*sizes)}")
