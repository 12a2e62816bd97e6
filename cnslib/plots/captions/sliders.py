"""Sliders and their health (notebook 02): a caption, and the answer of the page."""

from collections.abc import Iterable

from cnslib.plots.figures import extent


def health(counts: Iterable[int]) -> str:
    """The caption of alignment and structure; `counts` are the numbers of sliders."""
    return f"{extent(counts)} sliders per shift; bands: 95 % bootstrap over sliders"


def answer(rising: dict, kept: dict, scale: float) -> str:
    """The answer of the page: the share of steps that raise the alignment, and the structure that is kept at the last scale."""
    word = "Yes, in" if rising["low"] > 0.5 else "Not reliably: only in"
    bounds = f"95 % interval {rising['low']:.0%} to {rising['high']:.0%}"
    first = f"{word} {rising['estimate']:.0%} of the steps over {rising['n']} sliders ({bounds})"
    return f"**{first}; at scale {scale} the features keep a cosine of {kept['estimate']:.2f} with the unshifted picture.**"
