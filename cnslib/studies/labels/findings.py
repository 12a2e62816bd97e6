"""What notebook 20 says in words: the findings that open its captions, and its answer, each from the numbers of a table."""

import math

import pandas as pd

from cnslib.plots.captions.words import interval
from cnslib.studies.labels.staging import HARD, KINDS, OUT


def stages_told(counted: pd.DataFrame) -> str:
    """How the share that is out of class changes from the first scale to the last (images by scale, a column per kind)."""
    shares = counted[OUT] / counted.sum(axis=1)
    return (
        f"{shares.iloc[0]:.0%} of the images at scale {counted.index[0]:g} are out of class, {shares.iloc[-1]:.0%} at {counted.index[-1]:g}"
    )


def kinds_told(strongest: pd.DataFrame) -> str:
    """How many hard pictures of the largest scale got which label."""
    count = strongest["kind"].value_counts().reindex(KINDS, fill_value=0)
    return f"Of {len(strongest)} hard pictures at the largest scale, " + ", ".join(f"{count[kind]} are {kind}" for kind in KINDS)


def agreed(record: dict) -> str:
    """The kappa of two answers in words."""
    return "no kappa" if math.isnan(record["estimate"]) else f"kappa {interval(record)}"


def answer(labelled: pd.DataFrame, agreement: dict[str, dict], counted: pd.DataFrame, source: str) -> str:
    """The notebook's answer: how many images were asked about, how far two answers agree, and what the labels say along the scale."""
    asked = int((labelled["stage"] == HARD).sum())
    parts = [f"{agreed(record)} on {record['n']:,} pictures ({name})" for name, record in agreement.items()]
    first = f"Of {len(labelled):,} images {asked:,} are worth a look, and two answers agree with {' and '.join(parts)}"
    return f"{first}. {stages_told(counted)} ({source})."
