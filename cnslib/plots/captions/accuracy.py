"""Accuracy along the scale (notebook 06): captions, and sentences on what its figures show.

Tables are those of `stats.accuracy` and `stats.failure`; `note` says what the intervals are about.
"""

import pandas as pd

from cnslib.plots.captions.words import chance, extremes, interval, listed
from cnslib.plots.figures import extent
from cnslib.stats.accuracy import ALL, LEAST_TRAJECTORIES, NEVER


def by_shift(table: pd.DataFrame, hardest: pd.DataFrame, *, note: str) -> str:
    """The caption of accuracy per shift."""
    worst = hardest.iloc[0]
    finding = f"Most is lost under {worst['shift']}, {worst['estimate']:.2f} of accuracy in the mean of all classifiers"
    return f"{finding}. {extent(table['n'])} trajectories per shift; bands: {note}; dotted: guessing"


def by_shift_seen(table: pd.DataFrame, hardest: pd.DataFrame) -> str:
    """How the drops spread over the shifts, and how many curves rise at the first step."""
    worst, mildest = (hardest.iloc[place] for place in (0, -1))
    ends = f"from {interval(worst)} under {worst['shift']} to {interval(mildest)} under {mildest['shift']}"
    first, second = (table[table["scale"] == scale]["estimate"].to_numpy() for scale in sorted(table["scale"].unique())[:2])
    rises = f"{(second > first).sum()} of {len(first)} curves rise at the first step"
    untested = "; which of them do so by chance is not tested" if (second > first).any() else ""
    return f"At the last scale the mean drop goes {ends}. {rises}{untested}."


def drop(falls: pd.DataFrame, three: list[str], last: float, *, note: str) -> str:
    """The caption of the drop under three shifts; `falls` is the table of `accuracy.hardest`."""
    own = falls.set_index("shift").loc[three]
    worst, mildest = (f"{own['estimate'].iloc[place]:.2f} under {three[place]}" for place in (0, -1))
    enough = f"of shifts with {LEAST_TRAJECTORIES} trajectories or more, the hardest, the mildest and one between"
    finding = f"At scale {last:g} accuracy is lower by {worst} and by {mildest}, mean of all classifiers: {enough}"
    return f"{finding}. {extent(own['n'])} trajectories per shift; bands: {note}"


def drop_seen(drops: pd.DataFrame, hardest: pd.DataFrame) -> str:
    """Who loses most and least over all shifts, and how sure the hardest shift is the hardest."""
    own = drops[(drops["shift"] == ALL) & (drops["scale"] == drops["scale"].max())]
    most, least = extremes(own.set_index("model")["estimate"])
    top = hardest.iloc[0]
    sure = f"The hardest shift is {top['shift']}, with probability {chance(top['probability'])}"
    return f"Over all shifts and at the last scale {most} loses most accuracy and {least} least. {sure}."


def failures(few: pd.DataFrame, three: list[str], *, note: str) -> str:
    """The caption of the failure points; `few` holds three shifts and the classifiers shown."""
    said = [f"{share:.0%} under {shift}" for shift, share in under(few)[three].items()]
    finding = f"Trajectories on which the shift itself makes these classifiers fail: {listed(said)}"
    return f"{finding}. {extent(few['n'])} trajectories per shift; {note} in the csv"


def under(table: pd.DataFrame) -> pd.Series:
    """The share of trajectories that fail above the first scale, mean over the classifiers, by shift."""
    first = min(scale for scale in table["scale"] if scale != NEVER)
    own = table[(table["scale"] != first) & (table["scale"] != NEVER)]
    return own.groupby(["shift", "model"])["estimate"].sum().groupby("shift").mean()


def failures_seen(table: pd.DataFrame) -> str:
    """What happens to all trajectories: lost before any shift, under one, or never; mean over all classifiers."""
    own = table[table["shift"] == ALL]
    first = min(scale for scale in own["scale"] if scale != NEVER)
    before, never = (own[own["scale"] == scale]["estimate"].mean() for scale in (first, NEVER))
    shares = f"{before:.0%} of the trajectories are wrong before any shift, {under(own)[ALL]:.0%} fail under one"
    return f"Over all shifts and classifiers {shares} and {never:.0%} never."


def strips(lost: pd.DataFrame) -> str:
    """The caption of the strips."""
    late = lost["failed"] & (lost["failure_point"] > 0)
    finding = f"{late.sum()} of {len(lost)} garments shown are known without the shift and lost under it"
    return f"{finding}. One trajectory per shift; columns: slider scale; frame: failure point of the classifier named"


def strips_seen(lost: pd.DataFrame) -> str:
    """Where the failure points of the strips lie."""
    own = lost[lost["failed"]]
    if own.empty:
        return "None of the garments shown is ever missed."
    early, late = (own.loc[own["failure_point"].agg(which)] for which in ("idxmin", "idxmax"))
    ends = [f"{row['failure_point']:g} (so {row['model']} under {row['shift']})" for row in (early, late)]
    first = f"The failure points of these garments go from scale {ends[0]} to {ends[1]}"
    return f"{first}. Judge for yourself whether the garment is still there."


def errors(means: dict[str, pd.DataFrame], trajectories: int, *, reference: str, note: str) -> str:
    """The caption of CE and rCE; `means` by model."""
    worst, best = extremes(means["CE"]["estimate"])
    counted = f"n = {trajectories} trajectories; lines: {note}, none where an interval has no end; dotted: {reference}"
    return f"CE is lowest for {best} and highest for {worst}. {counted}"


def errors_seen(means: dict[str, pd.DataFrame]) -> str:
    """How far the two orders agree, and who moves most places between them."""
    ranks = pd.DataFrame({name: table["estimate"].rank() for name, table in means.items()}).dropna()
    if len(ranks) < 2:
        return "rCE is not known for enough classifiers to compare the two orders."
    tau = ranks["CE"].corr(ranks["rCE"], "kendall")
    moved = ranks["rCE"] - ranks["CE"]
    name = moved.abs().idxmax()
    if not moved[name]:
        return f"The two orders agree by Kendall's tau {tau:.2f}: nobody changes places."
    places = f"{name} moves most, from place {ranks.loc[name, 'CE']:g} by CE to {ranks.loc[name, 'rCE']:g} by rCE"
    return f"The two orders agree by Kendall's tau {tau:.2f}. {places}."


def answer(ends: pd.DataFrame, wide: pd.DataFrame, alike: pd.DataFrame, hardest: pd.DataFrame, models: int) -> str:
    """The answer of the page: accuracy at the first and the last scale (rows in this order), for other classes, with every shift alike."""
    said, last = [interval(row) for _, row in ends.iterrows()], ends.index[-1]
    text = f"Averaged over {models} classifiers, accuracy falls from {said[0]} to {said[1]} at scale {last}"
    same = " to ".join(f"{value:.2f}" for value in alike["estimate"])
    others = f"for other classes {wide.loc[last, 'low']:.2f} to {wide.loc[last, 'high']:.2f}; with every shift alike from {same}"
    top = hardest.iloc[0]
    first = f"{top['shift']} costs most here and is the hardest shift with probability {chance(top['probability'])}"
    return f"**{text} ({others}); {first}.**"


def pool(taught: list[str], own: int, models: int) -> str:
    """How many classifiers are left without those of the generator's pool."""
    return f"without {listed(taught) if taught else 'any'}: {own} of {models} classifiers"
