"""One classifier among the others (notebook 16): captions, and sentences on what its figures show."""

import pandas as pd

from cnslib.plots.captions.words import certain, enough, interval, listed
from cnslib.plots.figures import extent


def asked(pictures: int, kept: int, others: list[str]) -> str:
    """What the classifier is asked about, and beside whom."""
    return f"{pictures:,} pictures, {kept} kept trajectories, {len(others)} others: {', '.join(others)}"


def overview_seen(summary: pd.DataFrame, drops: pd.DataFrame, name: str) -> str:
    """The places of the classifier in its summary, and the shift that costs it most, of those with enough trajectories."""
    rows = summary.dropna(subset=["place"])
    places = listed(f"{row['place']:.0f} of {row['of']:.0f} by {row['quantity']}" for _, row in rows.iterrows())
    own = enough(drops[(drops["model"] == name) & (drops["scale"] == drops["scale"].max())])
    worst = own.loc[own["estimate"].idxmax()]
    return f"Its places: {places}. By the last scale {worst['shift']} costs {name} most accuracy, {interval(worst)}."


def shifts(lost: pd.DataFrame, *, note: str) -> str:
    """The caption of the paired difference of drops per shift, with minus without the blur."""
    hurt, spared = certain(lost)
    finding = f"The blur surely protects against {spared} of {len(lost)} shifts and surely hurts under {hurt}"
    return f"{finding}. {extent(lost['n'])} trajectories per shift; lines: {note}, paired; dotted: no difference"


def shifts_seen(lost: pd.DataFrame) -> str:
    """Which shifts those are."""
    spared, hurt = lost[lost["high"] < 0]["shift"], lost[lost["low"] > 0]["shift"]
    best = lost.loc[lost["estimate"].idxmin()]
    text = f"It surely protects against: {listed(spared)}; it surely makes worse: {listed(hurt)}"
    return f"{text}. The difference is most in its favour under {best['shift']}, {interval(best, '+.2f')}."


def answer(gain: pd.DataFrame, summary: pd.DataFrame, lost: pd.DataFrame, *, name: str, plain: str) -> str:
    """The answer of the page; `gain` holds the paired differences by scale."""
    end = gain.iloc[-1]
    word = "more accurate than" if end["low"] > 0 else "less accurate than" if end["high"] < 0 else "not to be told from"
    place = summary.set_index("quantity").loc[f"accuracy at scale {end.name:g}"]
    difference = f"{end['estimate']:+.3f}, {end['low']:+.3f} to {end['high']:+.3f}"
    there = f"number {place['place']:.0f} of {place['of']:.0f} there"
    hurt, spared = certain(lost)
    sentence = f"At scale {end.name:g} {name} is {word} {plain} ({difference}) and {there}"
    return f"**{sentence}; against {spared} of {len(lost)} shifts the blur protects, {hurt} it makes worse.**"
