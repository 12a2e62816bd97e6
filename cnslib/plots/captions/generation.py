"""Images along a slider (notebook 03): captions, what the choice of the guidance says, and the answer of the page."""

from collections.abc import Iterable

from cnslib.plots.figures import extent


def guidance(images: int) -> str:
    """The caption of accuracy and distance by guidance."""
    return f"n = {images} images each; 95 % intervals: Wilson, and jackknife over seeds"


def choice(best: float, used: float) -> str:
    """Whether the guidance that is used is the one that the rule finds."""
    said = "still the best" if best == used else f"not the best any more: {best} is, and params.yaml should say so"
    return f"The benchmark is drawn at guidance **{used}**, which is {said}."


def change(counts: Iterable[int]) -> str:
    """The caption of how far the knob moves a picture; `counts` are the numbers of classes."""
    return f"{extent(counts)} classes per shift; bands: 95 % bootstrap over classes"


def answer(total: int, trajectories: int, recognised: dict, *, scale: float, change: float) -> str:
    """The answer of the page: images, the share of unshifted ones that is recognised, and their mean change at the last scale."""
    first = f"{total} images in {trajectories} trajectories; {recognised['estimate']:.0%} of the unshifted ones are recognised"
    return f"**{first}, and at scale {scale} a picture differs from its unshifted one by {change:.0f} of 255 grey levels on average.**"
