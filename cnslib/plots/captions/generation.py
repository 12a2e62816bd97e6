"""Images along a slider (notebook 03): captions, what the choice of the guidance says, and the answer of the page."""

from collections.abc import Iterable

import pandas as pd

from cnslib.plots.captions.words import answered, extremes
from cnslib.plots.figures import extent


def guidance(images: int, *, confidence: float) -> str:
    """The caption of accuracy and distance by guidance."""
    return f"n = {images} images each; {confidence:.0%} intervals: Wilson, and jackknife over seeds"


def choice(best: float, used: float) -> str:
    """Whether the guidance that is used is the one that the rule finds."""
    said = "as the rule says" if best == used else f"but the rule takes {best}, and params.yaml should say so"
    return f"The benchmark is drawn at guidance **{used}**, {said}."


def change(counts: Iterable[int], *, confidence: float) -> str:
    """The caption of how far the knob moves a picture; `counts` are the numbers of classes."""
    return f"{extent(counts)} classes per shift; bands: {confidence:.0%} t intervals over classes"


def change_seen(table: pd.DataFrame) -> str:
    """How many curves rise in every step, and which shift moves pixels most and least (shift, scale, estimate)."""
    by_scale = table.pivot(index="shift", columns="scale", values="estimate")
    rising = (by_scale.diff(axis=1).iloc[:, 1:] > 0).all(axis=1)
    most, least = extremes(by_scale.iloc[:, -1], ".0f")
    first = f"{rising.sum()} of {len(rising)} curves rise in every step"
    return f"{first}. At scale {by_scale.columns[-1]:g} pixels change most under {most} and least under {least}."


def answer(total: int, trajectories: int, recognised: dict, *, scale: float, change: float) -> str:
    """The answer of the page: where pictures start, how far they move, and how many there are."""
    first = f"They begin with an unshifted garment, which the text-image encoder names in {recognised['estimate']:.0%} of the cases"
    moved = f"at scale {scale} they differ from it by {change:.0f} of 255 grey levels on average"
    shared = "which share their unshifted ones"
    return answered(f"{first}; {moved}. There are {total:,} images in {trajectories:,} trajectories, {shared}.")
