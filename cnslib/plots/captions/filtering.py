"""The out-of-class filter (notebook 04): captions, what is labelled, and the answer of the page.

Records are those of `method.filtering`; rates are of dropping out-of-class images, the positive class.
"""

import pandas as pd

from cnslib.plots.captions.words import interval


def labels(outside: pd.Series, labelled: int, shifted: int) -> str:
    """How many images are labelled and out of class, and which shifts have none; `outside` counts the latter by shift."""
    without = ", ".join(outside.index[outside == 0]) or "none"
    first = f"{labelled} of {shifted} shifted images are labelled, {outside.sum()} of them out of class."
    return f"{first} Shifts without a single out-of-class image: {without}."


def answer(ours: dict[str, dict], baseline: dict[str, dict]) -> str:
    """The answer of the page: what the vote removes of the bad and of the good images, and what CLIP alone does; records by measure."""
    if not ours["tpr"]["n"]:
        return "**No labelled image is out of class, so the filter drops nothing.**"
    bad, good = (f"{interval(ours[rate], '.1%')} of {ours[rate]['n']}" for rate in ("tpr", "fpr"))
    alone = f"CLIP alone removes {baseline['tpr']['estimate']:.1%} and {baseline['fpr']['estimate']:.1%}."
    return f"**The vote removes {bad} out-of-class images, and with them {good} good ones. {alone}**"


def roc(outside: pd.Series, recall: float) -> str:
    """The caption of the ROC curves; `outside` tells of every labelled image whether it is out of class."""
    return f"{outside.sum():,} of {len(outside):,} images out of class; grey: recall {recall:.0%}"


def outcomes(images: int) -> str:
    """The caption of what happens to the images of a shift and scale."""
    return f"n = {images} images per shift and scale; out of class: caught, missed; in class: lost"


def gallery(scale: float) -> str:
    """The caption of the pictures by outcome."""
    return f"scale {scale:g}; kept and lost: in class; missed and caught: out of class"
