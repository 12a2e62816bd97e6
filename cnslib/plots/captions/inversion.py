"""Learned words (notebook 01): captions, and sentences on what its figures show."""

import pandas as pd

from cnslib.plots.captions.words import interval, listed
from cnslib.plots.figures import extent

NO_LOSSES = "The tokens were given, not learned here, so there are no losses."


def loss(smooth: pd.DataFrame) -> str:
    """The caption of the losses (step, class, loss)."""
    change = changes(smooth)
    if change.empty:
        return NO_LOSSES
    finding = f"The loss of {(change < 0).sum()} of {len(change)} words is lower at the end than at the start"
    return f"{finding}, on average by {-change.mean():.4f}. {smooth['step'].nunique()} steps; running means over a tenth of them"


def changes(smooth: pd.DataFrame) -> pd.Series:
    """Last minus first loss, by class."""
    by_step = smooth.dropna().pivot(index="class", columns="step", values="loss").dropna(axis=1)
    if by_step.empty:
        return pd.Series(dtype=float)
    return by_step.iloc[:, -1] - by_step.iloc[:, 0]


def loss_seen(smooth: pd.DataFrame) -> str:
    """The words that change most and least, as shares of their first loss."""
    if changes(smooth).empty:
        return NO_LOSSES
    first = smooth[smooth["step"] == smooth["step"].min()].set_index("class")["loss"]
    share = changes(smooth) / first
    return f"From first to last, the loss changes by {share.min():+.0%} ({share.idxmin()}) to {share.max():+.0%} ({share.idxmax()})."


def frechet(shown: pd.DataFrame, improved: dict) -> str:
    """The caption of the distances by class."""
    finding = f"By token {improved['estimate']:.0%} of {improved['n']} classes come closer to the catalog than by name"
    return f"{finding}. {extent(shown['n'])} images per class and prompt; lines: 95% jackknife intervals over seeds; crosses: the floor"


def frechet_seen(shown: pd.DataFrame, floors: pd.DataFrame) -> str:
    """Which class gains most, and how far above the floor the tokens still are."""
    wide = shown.pivot(index="class", columns="prompt", values="estimate")
    gain = (wide["text"] - wide["in_star"]).sort_values()
    above = (wide["in_star"] - floors.set_index("class")["estimate"]).mean()
    ends = f"{gain.index[-1]} comes closer most ({gain.iloc[-1]:+.3f}), {gain.index[0]} least ({gain.iloc[0]:+.3f})"
    return f"By token, {ends}. On average the tokens' images are still {above:.3f} above the floor of real scenes."


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
    """The caption of the nearest learned scenes."""
    finding = (
        f"The learned scene is nearer than a held-out one for {interval(record, '.0%')} of the images by token; half would be no copying"
    )
    return f"{finding}. n = {record['n']} images; distance: median {near['learned'].median():.3f}"


def nearest_seen(near: pd.DataFrame) -> str:
    """The smallest distance, where a copy would be."""
    own = near[near["prompt"] == "in_star"]
    low = own.loc[own["learned"].idxmin()]
    heldout = own["heldout"].min()
    text = f"The nearest pair of all is a {low['class']} at distance {low['learned']:.3f}"
    return f"{text}; the nearest held-out scene, which nobody learned from, lies at {heldout:.3f}."


def answer(gain: dict, nearer: dict, improved: dict) -> str:
    """The answer of the page: differences of accuracy and of distance, by token minus by name, and how many classes come closer."""
    verb = "brings" if nearer["estimate"] < 0 < gain["estimate"] else "does not bring"
    more, less = (interval(record, "+.3f") for record in (gain, nearer))
    first = f"A learned word {verb} the garments closer to the catalog: accuracy {more}, Frechet distance {less}"
    return f"**{first}; {improved['estimate']:.0%} of {improved['n']} classes come closer (n = {gain['n']} images per prompt).**"
