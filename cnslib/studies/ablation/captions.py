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
    """The caption of the paired differences."""
    own = gap[gap["shift"] == ALL]
    sure = ((own["low"] > 0) | (own["high"] < 0)).groupby(own["sampler"], sort=False).sum()
    each = [f"{name} at {count} of {own['scale'].nunique()} scales" for name, count in sure.items()]
    return f"Accuracy differs surely from that by {reference} for {listed(each)}. {extent(gap['n'])} {note}"


def subsets(table: pd.DataFrame, *, confidence: float) -> str:
    """The caption of Fig. 25's counterpart."""
    few = min(table["classes"], key=lambda name: int(name.split()[0]))
    last = table[(table["classes"] == few) & (table["scale"] == table["scale"].max())].set_index("panel")
    wide = [f"{panel} {row['low']:.2f} to {row['high']:.2f}" for panel, row in last.iterrows()]
    counted = f"{extent(table['n'])} subsets; bands: middle {confidence:.0%} of them; failures: share of all failure points"
    return f"With {few.strip()}, at the last scale: {', '.join(wide)}. {counted}"


def orders_seen(orders: dict[str, dict], other: str) -> str:
    """Whether samplers disorder the classifiers more than other garments do."""
    own = {name: record["estimate"] for name, record in orders.items() if name != other}
    worst = min(own, key=lambda name: own[name])
    if not orders[other]["n"]:
        return f"The least tau of a sampler is {own[worst]:.2f} ({worst}); there are too few seeds to say what other garments change."
    chance = f"that of other garments by the same sampler {interval(orders[other])}"
    text = f"The least tau of a sampler is {interval(orders[worst])} ({worst}), {chance}"
    apart = orders[worst]["low"] > orders[other]["high"] or orders[worst]["high"] < orders[other]["low"]
    overlapping = "The intervals overlap: no sampler is known to disorder the classifiers less or more"
    word = "The intervals do not overlap" if apart else overlapping
    return f"{text}. {word}."


def answer(claims: pd.DataFrame, orders: dict[str, dict], steps: tuple[int, int], names: tuple[str, str]) -> str:
    """The notebook's answer; `claims` by id, `steps` of benchmark and reference, `names` of the benchmark's sampler and of chance."""
    few, other = (orders[name] for name in names)
    said = {SAME: "misjudge the accuracy more than its drop", OPPOSITE: "misjudge the drop more than the accuracy"}
    classes = f"Fewer classes {said.get(claims.loc['steady', 'verdict'], 'misjudge both, which of them more is undecided')}"
    step = f"the drop in accuracy changes by {interval(claims.loc['few'].rename({'ours': 'estimate'}), '+.3f')}"
    chance = interval(other) if other["n"] else "not measured for want of seeds"
    order = f"Kendall's tau of the classifiers' order with that of {steps[1]} steps is {interval(few)}"
    order = f"{order}; by other garments alone it is {chance}"
    return f"{classes}. In {steps[0]} steps instead of {steps[1]} {step}, {kept(claims.loc['few'])}. {order}."


def kept(claim: pd.Series) -> str:
    """What the verdict on a claim of no difference says."""
    small = claim["rule"].split()[1]
    words = {AGREES: f"no more than the {small} that count as none", OPPOSITE: "more than counts as none"}
    return words.get(claim["verdict"], f"and whether that is more than the {small} that count as none is undecided")
