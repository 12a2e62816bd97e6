"""Learned words (notebook 01): captions, and sentences on what its figures show."""

import pandas as pd

from cnslib.plots.captions.words import answered, certain, interval, listed
from cnslib.plots.figures import extent

NO_LOSSES = "The tokens were given, not learned here, so there are no losses."


def loss(smooth: pd.DataFrame) -> str:
    """The caption of the losses (step, class, loss)."""
    share = changes(smooth)
    if share.empty:
        return NO_LOSSES
    finding = f"The loss of {(share < 0).sum()} of {len(share)} words is lower in the last tenth of the steps than in the first"
    return f"{finding}. {smooth['step'].nunique()} steps; running means over a tenth of them"


def changes(smooth: pd.DataFrame) -> pd.Series:
    """Last minus first known loss as a share of the first, by class."""
    by_step = smooth.dropna().pivot(index="class", columns="step", values="loss").dropna(axis=1)
    if by_step.empty:
        return pd.Series(dtype=float)
    return by_step.iloc[:, -1] / by_step.iloc[:, 0] - 1


def loss_seen(smooth: pd.DataFrame) -> str:
    """The words whose loss changes most and least, and the mean of all."""
    share = changes(smooth)
    if share.empty:
        return NO_LOSSES
    ends = f"{share.min():+.0%} ({share.idxmin()}) to {share.max():+.0%} ({share.idxmax()})"
    return f"From the first tenth to the last, the loss of a word changes by {ends}, on average by {share.mean():+.0%}."


def frechet(shown: pd.DataFrame, improved: dict, *, confidence: float) -> str:
    """The caption of the distances by class."""
    finding = f"By token {count(improved)} of {improved['n']} classes come closer to the catalog than by name"
    lines = f"lines: {confidence:.0%} jackknife intervals over seeds; crosses: the floor"
    return f"{finding}. {extent(shown['n'])} images per class and prompt; {lines}"


def count(share: dict) -> int:
    """How many of the n cases of a share it is that count."""
    return round(share["estimate"] * share["n"])


def frechet_seen(table: pd.DataFrame, floors: pd.DataFrame) -> str:
    """For how many classes the change is certain, where it is largest, and how far above the floor the tokens still are.

    `table` is that of `inversion.frechet_table`; the row of all classes together does not count.
    """
    by_prompt = {prompt: own.set_index("class").drop("all", errors="ignore") for prompt, own in table.groupby("prompt")}
    change, above = by_prompt["difference"], by_prompt["in_star"]["estimate"] - floors.set_index("class")["estimate"]
    farther, closer = certain(change)
    ends = " to ".join(f"{value:+.3f} ({name})" for name, value in change["estimate"].sort_values().iloc[[0, -1]].items())
    first = f"By token, the distance changes by {ends}; the whole interval is below zero for {closer} of {len(change)} classes"
    return f"{first} and above it for {farther}. On average the tokens' images are {above.mean():.3f} above the floor of real scenes."


def samples(classes: int, count: int) -> str:
    """The caption of the sheet of scenes and drawn images."""
    return f"{count} held-out scenes of each of {classes} classes, and {count} images each by name and by token, from the same noise"


def samples_seen(accuracy: dict[str, dict]) -> str:
    """How many of all drawn images the judge names."""
    parts = [
        f"{interval(accuracy[prompt], '.0%')} of those asked for {how}" for prompt, how in (("text", "by name"), ("in_star", "by token"))
    ]
    return f"Of all drawn images the catalog's classifier names {listed(parts)}."


def nearest(near: pd.DataFrame, record: dict) -> str:
    """The caption of the learned scenes that are nearest to the images by token; `record` is the share nearer to these."""
    share, own = interval(record, ".0%"), near[near["prompt"] == "in_star"]
    finding = f"The learned scene is nearer than a held-out one for {share} of the images by token; without copying, expect half"
    return f"{finding}. n = {record['n']} images; distance: median {own['learned'].median():.3f}"


def nearest_seen(near: pd.DataFrame) -> str:
    """The smallest distance of an image by token, where a copy would be, and how far the same image lies from the held-out scenes."""
    own = near[near["prompt"] == "in_star"]
    low = own.loc[own["learned"].idxmin()]
    text = f"Of the images by token one of the class {low['class']} is the nearest to a learned scene, at distance {low['learned']:.3f}"
    return f"{text}; its nearest held-out scene, which nobody learned from, lies at {low['heldout']:.3f}."


def answer(gain: dict, nearer: dict, change: pd.DataFrame) -> str:
    """The answer of the page: differences of accuracy and of distance, by token minus by name, and how many classes come closer.

    `change` has the difference of distance of every class.

    Only what a whole interval says is said for certain.
    """
    closer = sided(nearer, below="Over all classes they come closer", above="Over all classes they move away", else_="It is open")
    farther, nearby = certain(change)
    named = sided(gain, below="A catalog classifier names fewer of them", above="A catalog classifier names more of them", else_=OPEN)
    more, less = (interval(record, "+.3f") for record in (gain, nearer))
    classes = f"Of {len(change)} classes {nearby} surely come closer and {farther} surely move away"
    return answered(f"{closer}: with a learned word the Frechet distance changes by {less}. {classes}. {named}: accuracy {more}.")


OPEN = "Whether a catalog classifier names more of them is open"


def sided(record: dict, *, below: str, above: str, else_: str) -> str:
    """One of three texts: the whole interval lies below zero, above it, or neither."""
    return below if record["high"] < 0 else above if record["low"] > 0 else else_
