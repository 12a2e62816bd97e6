"""Trajectories one by one: the steps in which a reading rises; and the one on which classifiers differ most, who is right, how sure."""

import dataclasses

import numpy as np
import pandas as pd

from cnslib.core import tables
from cnslib.core.names import UNSHIFTED
from cnslib.stats.accuracy import Outcomes
from cnslib.stats.failure import first_failure


def most_divided(found: Outcomes) -> Outcomes:
    """The trajectory on which the failure points of the classifiers spread most, by their standard deviation; the first of equals.

    Only trajectories that as many classifiers as possible get right at scale 0 are asked: a failure there says nothing of the shift.
    """
    first = first_failure(found.wrong)
    known = (first > 0).sum(1)
    row = int(np.argmax(np.where(known == known.max(), first.std(1), -1)))
    return dataclasses.replace(found, trajectories=found.trajectories.iloc[[row]].reset_index(drop=True), wrong=found.wrong[[row]])


def rises(table: pd.DataFrame, reading: str) -> pd.DataFrame:
    """One row per step between neighbouring scales of a trajectory, at its upper scale: whether the reading rises.

    Steps from or to a picture without a reading are left out.
    """
    table = table.sort_values(tables.KEY)
    rise = table.groupby(tables.TRAJECTORY, sort=False)[reading].diff()
    return table[tables.KEY].assign(rises=rise > 0)[rise.notna()]


def along(one: Outcomes) -> pd.DataFrame:
    """Each classifier at each scale of one trajectory: its key, model, scale, right, failure_point (NaN where there is none)."""
    shift, name, seed = one.trajectories[tables.TRAJECTORY].iloc[0]
    points = np.array([*one.scales, np.nan])[first_failure(one.wrong)[0]]
    rows = [
        (shift, name, seed, model, scale, not one.wrong[0, i, j], points[i])
        for i, model in enumerate(one.models)
        for j, scale in enumerate(one.scales)
    ]
    return pd.DataFrame(rows, columns=[*tables.TRAJECTORY, "model", "scale", "right", "failure_point"])


def named(one: Outcomes) -> str:
    """A trajectory in words."""
    shift, name, seed = one.trajectories[tables.TRAJECTORY].iloc[0]
    return f"{name} in {shift}, seed {seed}"


def division(one: Outcomes) -> str:
    """When the classifiers fail on one trajectory, in a sentence."""
    first, count = first_failure(one.wrong)[0], len(one.scales)
    middle = int(((first > 0) & (first < count)).sum())
    kinds = f"{int((first == 0).sum())} without any shift, {middle} under it, {int((first == count).sum())} never"
    scales = len(set(first) - {count})
    where = "one scale" if scales == 1 else f"{scales} different scales"
    return f"On this one garment ({named(one)}) the {len(one.models)} classifiers fail at {where}: {kinds}"


def certainty(predictions: pd.DataFrame, one: Outcomes) -> pd.DataFrame:
    """What classifiers give the true class along one trajectory: shift, class, seed, model, scale, probability."""
    shift, name, seed = one.trajectories[tables.TRAJECTORY].iloc[0]
    own = predictions[(predictions["class"] == name) & (predictions["seed"] == seed) & predictions["shift"].isin([shift, UNSHIFTED])]
    table = own.assign(shift=shift)[[*tables.TRAJECTORY, "model", "scale", "probability"]]
    return table.sort_values(["model", "scale"], ignore_index=True)


def leaders(table: pd.DataFrame, one: Outcomes) -> str:
    """Who is surest of the class at both ends of one trajectory, in a sentence; `table` is that of `certainty`."""
    if table["probability"].isna().all():
        return f"The answers to {named(one)} tell no probabilities"
    ends = [table[table["scale"] == scale].set_index("model")["probability"] for scale in (one.scales[0], one.scales[-1])]
    said = [f"{own.idxmax()} ({own.max():.2f})" for own in ends]
    start, end = one.scales[0], one.scales[-1]
    return f"On this one garment ({named(one)}) {said[0]} is surest of the class at scale {start:g} and {said[1]} at scale {end:g}"
