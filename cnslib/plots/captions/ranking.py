"""The order of the classifiers (notebook 07): captions, and sentences on what its figures show.

Tables are those of `stats.ranking`; `note` says what the intervals are about.
"""

import pandas as pd

from cnslib.plots.captions.words import extremes, interval, listed, numbered
from cnslib.plots.figures import extent
from cnslib.stats.accuracy import ALL

SURE = 0.95  # probability from which a change of places counts as nearly certain


def ends(agreement: pd.DataFrame) -> pd.Series:
    """Tau of the order at the last scale with that at the first, by shift."""
    return agreement[agreement["scale"] == agreement["scale"].max()].set_index("shift")["estimate"]


def titles(agreement: pd.DataFrame, moving: str) -> dict[str, str]:
    """Titles of the panels of ranks: all shifts, and the one under which the order changes most."""
    return {shift: f"{shift}, tau {ends(agreement)[shift]:.2f}" for shift in (ALL, moving)}


def ranks(agreement: pd.DataFrame, moving: str, sizes: dict[str, int], *, note: str) -> str:
    """The caption of the ranks along the scale."""
    tau = ends(agreement)
    first, last = agreement["scale"].min(), agreement["scale"].max()
    two = f"{tau[ALL]:.2f}, under {moving} by {tau[moving]:.2f}"
    finding = f"The order at scale {last:g} agrees with that at scale {first:g} by tau {two}"
    return f"{finding}. n = {sizes[ALL]} and {sizes[moving]} trajectories; bars: {note}, paired, of those in colour"


def ranks_seen(table: pd.DataFrame) -> str:
    """Who rises and who falls most over all shifts, and how wide a rank's interval is at the last scale."""
    own = table[table["shift"] == ALL]
    by_scale = own.pivot(index="model", columns="scale", values="estimate")
    first, last = by_scale.iloc[:, 0], by_scale.iloc[:, -1]
    gained = first - last
    up, down = gained.idxmax(), gained.idxmin()
    places = [f"{name} from place {first[name]:g} to {last[name]:g}" for name in (up, down)]
    final = own[own["scale"] == own["scale"].max()]
    width = (final["high"] - final["low"]).median()
    return (
        f"Over all shifts {places[0]} gains most and {places[1]} loses most. The median interval of a last rank is {width:.0f} places wide."
    )


def probability(flips: pd.DataFrame) -> tuple[int, int, int]:
    """How many pairs change places nearly surely, keep them nearly surely, and stay open."""
    value = flips["probability"]
    sure, safe = int((value > SURE).sum()), int((value < 1 - SURE).sum())
    return sure, safe, len(flips) - sure - safe


def flips(table: pd.DataFrame, trajectories: int) -> str:
    """The caption of the probabilities of a change of places, between the first and the last scale."""
    sure, safe, _ = probability(table)
    finding = f"{sure} of {len(table)} pairs change places nearly surely, and {safe} keep theirs"
    order = f"order at scale {table['scale'].iloc[0]:g} against scale {table['other_scale'].iloc[0]:g}, all shifts"
    return f"{finding}. n = {trajectories} trajectories; {order}"


def flips_seen(table: pd.DataFrame) -> str:
    """Who changes places with the largest number of others, and how many pairs nobody can order."""
    sure = table[table["probability"] > SURE]
    text = f"{probability(table)[2]} of {len(table)} pairs stay open: their order changes in {1 - SURE:.0%} to {SURE:.0%} of the resamples"
    counts = pd.concat([sure["first"], sure["second"]]).value_counts()
    if counts.empty:
        return f"{text}. No pair surely changes places."
    most = counts[counts == counts.iloc[0]].sort_index().index
    others = f"{counts.iloc[0]} other{'s' if counts.iloc[0] > 1 else ''}"
    return f"{text}. Nearly surely {listed(most)} change{'s' if len(most) == 1 else ''} places with {others}, more than the rest."


def agreement(fading: pd.Series, models: int, counts: pd.Series, *, note: str) -> str:
    """The caption of tau along the scale; `fading` as `ranking.fading` gives it."""
    least, most = extremes(fading)
    finding = f"By the last scale the old order fades most under {most} and least under {least} (tau)"
    return f"{finding}. {models} classifiers; {extent(counts)} trajectories; bands: {note}, paired"


def agreement_seen(table: pd.DataFrame) -> str:
    """Tau over all shifts with its interval, and how many shifts turn the order round or leave it open."""
    last = table[table["scale"] == table["scale"].max()]
    pooled, single = last[last["shift"] == ALL].iloc[0], last[last["shift"] != ALL]
    above = (single["low"] > 0).sum()
    text = f"Over all shifts tau with the order at scale 0 is {interval(pooled)} at the last scale"
    return f"{text}. Under {above} of {len(single)} shifts the old order surely remains in part (the interval of tau lies above 0)."


def paper_seen(table: pd.DataFrame) -> str:
    """At how many scales the published tau lies above our whole interval, and at how many below it; a row per scale."""
    above, below = (table["published"] > table["high"]).sum(), (table["published"] < table["low"]).sum()
    text = f"Of {numbered(len(table), 'scale')}, the published tau lies above our whole interval at {above or 'none'}"
    text = f"{text} and below it at {below or 'none'}"
    if above and below:
        return f"{text}: our order fades faster at the first and lasts longer at the second."
    said = "where it lies above, our order fades faster" if above else "where it lies below, our order lasts longer"
    return f"{text}: {said if above or below else 'neither order surely fades faster'}."


def told_seen(told: pd.DataFrame) -> str:
    """How many pairs the corrected test tells apart at both ends of the scale; `told` as `ranking.told_apart` gives it."""
    first, last = told.index[0], told.index[-1]
    pairs, own = told["pairs"].iloc[0], told["paired, Holm"]
    text = f"After Holm's correction the paired test tells {own[first]} of {pairs} pairs apart at scale {first:g}"
    return f"{text} and {own[last]} at scale {last:g}; the order of the others is not known."


def left_out(taught: list[str]) -> str:
    """Who does not count as independent."""
    return f"without the generator's pool: {listed(taught)} left out"


def kinds(taught: int) -> list[str]:
    """Names of the three ways to form an order: by all classifiers, without those of the generator's pool, every shift alike."""
    return ["all classifiers", f"without the generator's pool ({taught})", "every shift alike"]


def answer(table: pd.DataFrame, wide: dict, alone: pd.Series, flips: pd.DataFrame) -> str:
    """The answer of the page: tau for other pictures and other classes, without the generator's pool, and the pairs."""
    first, last = table["scale"].min(), table["scale"].max()
    end = table[(table["shift"] == ALL) & (table["scale"] == last)].iloc[0]
    sure, safe, still = probability(flips)
    value = f"{end['estimate']:.2f} ({end['low']:.2f} to {end['high']:.2f}; for other classes {wide['low']:.2f} to {wide['high']:.2f})"
    lead = "No, it changes" if end["high"] < 1 else "A change is not certain"
    agree = f"Kendall's tau of the order at scale {last:g} with that at scale {first:g} is {value}"
    agree = f"{agree}, {interval(alone)} without the classifiers of the generator's pool"
    certain = (
        f"each pair by itself, {sure} of {len(flips)} change places in over {SURE:.0%} of the resamples, {safe} keep their order as surely"
    )
    return f"**{lead}: {agree}; {certain}, and the other {still} stay open.**"
