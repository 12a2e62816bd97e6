"""What notebook 20 says in words: the findings that open its captions, and its answer, each from the numbers of a table."""

import math

import pandas as pd

from cnslib.core.settings.method import Bootstrap
from cnslib.plots.captions.words import interval
from cnslib.stats import bootstrap
from cnslib.studies.labels.staging import KINDS, OUT

NOBODY = "Nobody yet: as long as no people have answered, one model does, the oracle. Its two answers to a picture"
PEOPLE = "Two people, on the pair of shifts. Their two answers to a picture"


def lost(labelled: pd.DataFrame, *, settings: Bootstrap) -> pd.DataFrame:
    """The share of images that are out of class, scale by scale (scale, n, estimate, low, high)."""
    cases = labelled.assign(out=(labelled["kind"] == OUT).astype(float)).sort_values("scale", kind="stable")
    return bootstrap.means(cases, ["out"], ["scale"], settings=settings, statistic=bootstrap.rate).drop(columns="measure")


def stages_told(shares: pd.DataFrame) -> str:
    """The share that is out of class at the last scale and at the first, where stage (ii) leaves few to lose (as `lost`)."""
    first, last = shares.iloc[0], shares.iloc[-1]
    begun = f"{interval(first, '.0%')}" if first["estimate"] else "none"
    sorted_out = f"at scale {first['scale']:g}, where stage (ii) has dropped the weak ones, {begun}"
    return f"At scale {last['scale']:g} {interval(last, '.0%')} of the images are out of class; {sorted_out}"


def kinds_told(strongest: pd.DataFrame) -> str:
    """How many hard pictures of the largest scale got which label."""
    count = strongest["kind"].value_counts().reindex(KINDS, fill_value=0)
    return f"Of {len(strongest):,} hard pictures at the largest scale, " + ", ".join(f"{count[kind]:,} are {kind}" for kind in KINDS)


def agreed(record: dict) -> str:
    """What the kappa of two answers says: an agreement beyond chance, below it, or neither for certain."""
    if math.isnan(record["estimate"]):
        return f"leave no kappa, for all of the {record['n']:,} are alike"
    side = "beyond" if record["low"] > 0 else "less than" if record["high"] < 0 else "not surely beyond"
    return f"agree {side} chance: kappa {interval(record)}, n = {record['n']:,} pictures"


def answer(agreement: dict, shares: pd.DataFrame, *, people: bool) -> str:
    """The notebook's answer: who says it, how far two answers agree, and what the labels say along the scale."""
    return f"{PEOPLE if people else NOBODY} {agreed(agreement)}. {stages_told(shares)}."
