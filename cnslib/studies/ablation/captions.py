"""Captions and sentences of notebook 24: what its figures show, with the numbers of their tables. `note` says what intervals are about."""

import pandas as pd

from cnslib.core import tables
from cnslib.plots.captions.words import interval, listed
from cnslib.plots.figures import extent
from cnslib.stats.accuracy import ALL
from cnslib.stats.verdicts import AGREES, OPPOSITE, SAME
from cnslib.studies.ablation.subsets import MEASURES

Trajectory = tuple[str, str, int]


def classes(spread: pd.DataFrame, *, confidence: float) -> str:
    """The caption of the ranges over subsets."""
    count = spread["classes"].min()
    own = spread[spread["classes"] == count].set_index("measure")
    wide = [f"{name} {row['low']:.2f} to {row['high']:.2f}" for name, row in own.loc[list(MEASURES[:2])].iterrows()]
    counted = f"{extent(spread['n'])} subsets; bars: middle {confidence:.0%} of the subsets"
    return f"With {count} classes: {' and '.join(wide)}. {counted}"


def steady_seen(record: dict, half: int) -> str:
    """Which of accuracy and drop depends more on the choice of classes."""
    spread = f"their standard deviations over subsets of {half} classes differ by {interval(record, '.3f')}"
    if record["low"] > 0:
        return f"The accuracy at scale 0 depends more on the choice of classes than the drop: {spread}."
    if record["high"] < 0:
        return f"The drop depends more on the choice of classes than the accuracy at scale 0: {spread}."
    return f"Whether accuracy or drop depends more on the choice of classes is undecided: {spread}."


def strips(looks: pd.DataFrame, key: Trajectory, reference: str) -> str:
    """The caption of one trajectory by every sampler."""
    own = looks[(looks[tables.TRAJECTORY] == list(key)).all(axis=1)]
    end = own[(own["scale"] == own["scale"].max()) & (own["sampler"] != reference)]
    far = [f"{row.sampler} {row.change:.1f}" for row in end.sort_values("change").itertuples()]
    shift, name, seed = key
    return f"Grey levels from {reference} at the last scale: {', '.join(far)}. {shift}: {name}, seed {seed}; columns: slider scale"


def accuracy(curve: pd.DataFrame, *, note: str) -> str:
    """The caption of the samplers' curves."""
    own = curve[(curve["shift"] == ALL) & (curve["scale"] == curve["scale"].max())].sort_values("estimate")
    ends = [f"{row['estimate']:.2f} by {row['sampler']}" for _, row in own.iloc[[0, -1]].iterrows()]
    return f"At the last scale accuracy is {ends[0]} and {ends[1]}, the others between. {extent(curve['n'])} {note}"


def difference(gap: pd.DataFrame, reference: str, *, note: str) -> str:
    """The caption of the paired differences, which are counted over all shifts together."""
    own = gap[gap["shift"] == ALL]
    sure = ((own["low"] > 0) | (own["high"] < 0)).groupby(own["sampler"], sort=False).sum()
    each = [f"{name} at {count} of {own['scale'].nunique()} scales" for name, count in sure.items()]
    return f"Over all shifts, accuracy differs surely from that by {reference} for {listed(each)}. {extent(gap['n'])} {note}"


def subsets(table: pd.DataFrame, *, confidence: float) -> str:
    """The caption of Fig. 25's counterpart."""
    few = min(table["classes"], key=lambda name: int(name.split()[0]))
    last = table[(table["classes"] == few) & (table["scale"] == table["scale"].max())].set_index("panel")
    wide = [f"{panel} {row['low']:.2f} to {row['high']:.2f}" for panel, row in last.iterrows()]
    counted = f"{extent(table['n'])} subsets; bands: middle {confidence:.0%} of them; failures: share of all failure points"
    return f"With {few.strip()}, at the last scale: {', '.join(wide)}. {counted}"


def orders_seen(orders: dict[str, dict], other: str, *, confidence: float) -> str:
    """The least tau of a sampler, and beside it, untested, what other garments do to the order: an interval and a range are two things."""
    own = {name: record["estimate"] for name, record in orders.items() if name != other}
    worst = min(own, key=lambda name: own[name])
    text = f"The least tau of a sampler is {interval(orders[worst])} ({worst})"
    if not orders[other]["n"]:
        return f"{text}; there are too few seeds to say what other garments change."
    return f"{text}. Between two sets of other seeds, by the same sampler, it is {pairs_range(orders[other], confidence)}."


def pairs_range(record: dict, confidence: float) -> str:
    """A mean over pairs of seed sets with the range of their middle share, which is no interval of the mean."""
    between = f"{record['low']:.2f} to {record['high']:.2f}"
    return f"{record['estimate']:.2f} on average, and {between} in the middle {confidence:.0%} of {record['n']} pairs of seed sets"


def answer(claims: pd.DataFrame, orders: dict[str, dict], steps: tuple[int, int], names: tuple[str, str], *, confidence: float) -> str:
    """The notebook's answer; `claims` by id, `steps` of benchmark and reference, `names` of the benchmark's sampler and of chance."""
    few, other = (orders[name] for name in names)
    said = {SAME: "misjudge the accuracy more than its drop", OPPOSITE: "misjudge the drop more than the accuracy"}
    classes = f"Fewer classes {said.get(claims.loc['steady', 'verdict'], 'misjudge both, which of them more is undecided')}"
    step = f"the drop in accuracy changes by {interval(claims.loc['few'].rename({'ours': 'estimate'}), '+.3f')}"
    chance = pairs_range(other, confidence) if other["n"] else "not measured for want of seeds"
    order = f"Kendall's tau of the classifiers' order with that of {steps[1]} steps is {interval(few)}"
    order = f"{order}; by other garments alone it is {chance}"
    return f"{classes}. In {steps[0]} steps instead of {steps[1]} {step}, {kept(claims.loc['few'])}. {order}."


def kept(claim: pd.Series) -> str:
    """What the verdict on a claim of no difference says."""
    small = claim["rule"].split()[1]
    words = {AGREES: f"no more than the {small} that we count as none", OPPOSITE: f"more than the {small} that we count as none"}
    return words.get(claim["verdict"], f"and it is undecided whether this exceeds {small}, which we count as none")
