"""Sliders and their health (notebook 02): a caption, and the answer of the page."""

from collections.abc import Iterable

import pandas as pd

from cnslib.plots.figures import extent


def health(counts: Iterable[int]) -> str:
    """The caption of alignment and structure; `counts` are the numbers of sliders."""
    return f"{extent(counts)} sliders per shift; bands: 95 % bootstrap over sliders"


def pilot(best: pd.DataFrame, used: pd.Series) -> str:
    """Whether the sliders take what the pilot's rule takes; `best` has the rule's eta of each shift, `used` that of the sliders."""
    if best.empty:
        return "No pilot was asked for: every shift has the eta of the parameter file."
    apart = [f"{row.shift} ({eta:g} instead of {row.eta:g})" for row, eta in zip(best.itertuples(), used, strict=True) if eta != row.eta]
    said = f"all but {', '.join(apart)}" if apart else "all"
    short = best[best["shortfall"] > 0]
    missed = f" No candidate meets every bound for {', '.join(short['shift'])}." if len(short) else ""
    return f"Of {len(best)} shifts, {said} have the eta that the rule takes.{missed}"


def pilot_curves(counts: Iterable[int]) -> str:
    """The caption of what the oracle reads along the scale; `counts` are the numbers of trajectories."""
    return f"{extent(counts)} trajectories per shift and eta; bands: 95 % bootstrap over trajectories"


def answer(rising: dict, kept: dict, scale: float) -> str:
    """The answer of the page: the share of steps that raise the alignment, and the structure that is kept at the last scale."""
    word = "Yes, in" if rising["low"] > 0.5 else "Not reliably: only in"
    bounds = f"95 % interval {rising['low']:.0%} to {rising['high']:.0%}"
    first = f"{word} {rising['estimate']:.0%} of the steps over {rising['n']} sliders ({bounds})"
    return f"**{first}; at scale {scale} the features keep a cosine of {kept['estimate']:.2f} with the unshifted picture.**"
