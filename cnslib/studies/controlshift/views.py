"""What notebook 30 shows of the shifted data sets (Control+Shift Figs. 2 and 7 to 9): strips, intensities, and sentences on them."""

import numpy as np
import pandas as pd
from jaxtyping import UInt8
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cnslib.core import tables
from cnslib.plots import sheets
from cnslib.plots.captions.words import interval, listed
from cnslib.stats import bootstrap
from cnslib.stats.accuracy import TINY


def axis(kind: str) -> str:
    """What the steps of a shift are set to."""
    return "R" if kind == "truncation" else "theta in degrees"


def sheet(pictures: UInt8[np.ndarray, "classes steps side side 3"], strength: pd.DataFrame, *, rows: list[str]) -> tuple[Figure, str]:
    """A contact sheet of one shift, a row per class and a column per step, and what its columns are headed with."""
    figure, axes = plt.subplots(figsize=(0.75 * pictures.shape[1] + 1, 0.62 * len(pictures)))
    sheets.contact_sheet(axes, pictures, rows=rows, columns=[f"{value:g}" for value in strength["set_to"]])
    return figure, axis(strength["shift"].iloc[0])


def intensity_panel(axes: Axes, strength: pd.DataFrame, few: pd.DataFrame, *, kind: str) -> None:
    """Intensity of one shift by what its steps are set to: counted with intervals, exact, and dotted that of few dimensions."""
    arms = np.abs(strength[["low", "high"]].sub(strength["estimate"], axis=0)).T
    axes.errorbar(strength["set_to"], strength["estimate"], arms, fmt="o", markersize=4)
    axes.plot(strength["set_to"], strength["exact"])
    axes.plot(few["set_to"], few["exact"], linestyle=":")
    axes.set(title=kind, xlabel=axis(kind), ylim=(-0.03, 1.03))


def by_step(table: pd.DataFrame) -> dict[str, dict]:
    """The rows of a table (shift, scale, n, estimate, low, high) as records, by shift and step."""
    steps = table.assign(step=table["scale"].map("step {:.0f}".format))
    return {kind: bootstrap.records(part, "step") for kind, part in steps.groupby("shift")}


def change_words(changed: pd.DataFrame) -> str:
    """Which shift has changed its pictures least and most at its last step (as `change`)."""
    last = changed[changed["scale"] == changed["scale"].max()].set_index("shift")["estimate"].sort_values()
    least, most = (f"{kind} ({last[kind]:.0f} grey levels)" for kind in (last.index[0], last.index[-1]))
    return f"At the last step {least} has changed the pictures least and {most} most"


def strip_words(changed: pd.DataFrame, kind: str) -> str:
    """By how much a shift has changed its pictures at the last step."""
    last = changed[changed["scale"] == changed["scale"].max()].set_index("shift").loc[kind]
    said = f"{last['estimate']:.0f} grey levels of 255 ({last['low']:.0f} to {last['high']:.0f})"
    return f"By the last step {kind} has changed a picture by {said} on average"


def intensity_words(strength: pd.DataFrame, size: int) -> str:
    """The intensity of every shift at its first and at its last step, in a latent space of this size (as `strength`)."""
    said = []
    for kind, own in strength.groupby("shift", sort=False):
        exact = own.sort_values("scale")["exact"].to_numpy()
        said.append(f"{exact[1]:.2f} and {exact[-1]:.2f} ({kind})")
    return f"In {size:,} dimensions the intensity at the first and at the last step is {', '.join(said)}"


def agreement_words(strength: pd.DataFrame, confidence: float) -> str:
    """In how many cases the closed form lies in the interval of the counted share."""
    held = int(((strength["exact"] >= strength["low"] - TINY) & (strength["exact"] <= strength["high"] + TINY)).sum())
    chance = (
        f"{confidence:.0%} intervals leave out {1 - confidence:.0%} of the truths by chance, and the steps of a shift share their draws"
    )
    return f"The closed form lies in the interval of the count in {held} of {len(strength)} cases; {chance}."


def headline(changed: pd.DataFrame) -> str:
    """By how much the pictures have changed at the last step of every shift, the largest first."""
    last = changed[changed["scale"] == changed["scale"].max()].set_index("shift").sort_values("estimate", ascending=False)
    first, *others = [(interval(row, ".0f"), kind) for kind, row in last.iterrows()]
    said = [f"{first[0]} of 255 grey levels under {first[1]}", *(f"{amount} under {kind}" for amount, kind in others)]
    return f"By its last step it changes a picture on average by {listed(said)}"


def redrawn(stored: pd.DataFrame, again: pd.DataFrame) -> str:
    """How many pictures of one class were drawn alike twice, and by how much the others differ at most."""
    both = stored.merge(again, on=tables.KEY, suffixes=("", "_again"))
    pairs = zip(both["image"], both["image_again"], strict=True)
    away = [int(np.abs(tables.decode(one, "image").astype(int) - tables.decode(other, "image")).max()) for one, other in pairs]
    same = sum(one == other for one, other in zip(both["image"], both["image_again"], strict=True))
    return f"{same} of {len(both)} images are the same bytes; the largest difference of a pixel is {max(away)} of 255"
