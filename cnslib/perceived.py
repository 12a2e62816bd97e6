"""Accuracy on perceived axes: curves, and the orders of classifiers and shifts, against what a ruler reads instead of the scale.

The maps come from `cnslib.calibration`. They and the errors must be about the same trajectories and settings: then their resamples
are paired. The nominal scale is a ruler among the others, the one that reads itself.
"""

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from cnslib import clustered, ranking
from cnslib.calibration import position, read
from cnslib.stats import TINY, Shares

NOMINAL = "scale"
POINTS = 101  # severities at which two shifts are compared


def on_axis(errors: Shares, maps: Shares, *, ruler: str, points: int = 11) -> pd.DataFrame:
    """Mean accuracy of the models against perceived severity, per shift, at equally spaced severities of the shift's own range.

    A severity that a resample's map does not reach is left out there.
    """
    fitted = maps.samples[:, :, maps.models.index(ruler)]
    severity = np.linspace(fitted[0, :, 0], fitted[0, :, -1], points, axis=-1)
    accuracy = read(1 - errors.samples[:, :-1].mean(2), position(fitted, np.broadcast_to(severity, (len(fitted), *severity.shape))))
    columns = clustered.estimates(accuracy, maps.n.repeat(points), maps.confidence)
    return pd.DataFrame({"shift": np.repeat(maps.groups, points), "severity": severity.ravel(), **columns})


def curves(errors: Shares, maps: Shares, moving: Bool[np.ndarray, "shifts rulers"]) -> pd.DataFrame:
    """`on_axis` for every ruler; NaN for a shift whose reading does not rise (`moving`), since it has no axis."""
    parts = []
    for ruler, own in zip(maps.models, moving.T, strict=True):
        table = on_axis(errors, maps, ruler=ruler).assign(ruler=ruler)
        table.loc[~table["shift"].isin(np.array(maps.groups)[own]), ["estimate", "low", "high"]] = np.nan
        parts.append(table)
    return pd.concat(parts, ignore_index=True)


def over_axis(errors: Shares, maps: Shares) -> Float[np.ndarray, "resamples+1 shifts rulers models"]:
    """Accuracy of each model averaged along each ruler's axis, the area under its curve by the range; NaN where a map is flat."""
    right = 1 - errors.samples[:, :-1]
    middles = (right[..., 1:] + right[..., :-1]) / 2
    span = maps.samples[..., -1:] - maps.samples[..., :1]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(span > TINY, np.diff(maps.samples) / span, np.nan) @ middles.swapaxes(-1, -2)


def hardness(
    errors: Shares, maps: Shares, *, ruler: str, shifts: Bool[np.ndarray, "shifts"]
) -> Float[np.ndarray, "resamples+1 chosen_shifts"]:
    """How much more accuracy each shift costs than the others at equal severity: mean difference in drop, pair by pair.

    Two shifts are compared at the severities that both reach. Drops are averaged over the models. NaN where a shift shares no
    severity with any other.
    """
    fitted = maps.samples[:, shifts, maps.models.index(ruler)]
    drops = (errors.samples - errors.samples[..., :1])[:, :-1][:, shifts].mean(2)
    grid = np.broadcast_to(np.linspace(fitted[0].min(), fitted[0].max(), POINTS), (*fitted.shape[:2], POINTS))
    drop = read(drops, position(fitted, grid))
    seen, known = (~np.isnan(drop)).astype(float), np.nan_to_num(drop)
    with np.errstate(invalid="ignore", divide="ignore"):
        gaps = (known @ seen.swapaxes(1, 2) - seen @ known.swapaxes(1, 2)) / (seen @ seen.swapaxes(1, 2))
        others = ~np.isnan(gaps) & ~np.eye(shifts.sum(), dtype=bool)
        return np.where(others, gaps, 0).sum(2) / others.sum(2)


def comparable(errors: Shares, maps: Shares, *, ruler: str, shifts: Bool[np.ndarray, "shifts"]) -> Bool[np.ndarray, "shifts"]:
    """Those of the shifts whose range on the ruler's axis overlaps with that of another; the rest have no hardness."""
    found = shifts.copy()
    found[shifts] = ~np.isnan(hardness(errors, maps, ruler=ruler, shifts=shifts)[0])
    return found


def on_axes(errors: Shares, maps: Shares, moving: Bool[np.ndarray, "shifts rulers"]) -> dict[tuple[str, str], tuple[np.ndarray, ...]]:
    """What is ordered on each ruler's axis, beside the same on the nominal axis: mean accuracy of classifiers, hardness of shifts.

    By (what, ruler): the values on the nominal axis, on the ruler's, and the shifts used. Only shifts whose reading rises (`moving`)
    have an axis, and only `comparable` ones a hardness; both sides are formed on them. A ruler without enough of them is left out:
    one for the classifiers, two for the shifts.
    """
    accuracy, nominal = over_axis(errors, maps), maps.models.index(NOMINAL)
    found = {}
    for k, ruler in enumerate(maps.models):
        own = moving[:, k]
        if own.any():
            found["classifiers", ruler] = (*(accuracy[:, own, place].mean(1) for place in (nominal, k)), own)
        if own.sum() > 1 and (used := comparable(errors, maps, ruler=ruler, shifts=own)).sum() > 1:
            found["shifts", ruler] = (*(hardness(errors, maps, ruler=name, shifts=used) for name in (NOMINAL, ruler)), used)
    return dict(sorted(found.items(), key=lambda item: item[0][0]))


def orders(errors: Shares, maps: Shares, moving: Bool[np.ndarray, "shifts rulers"]) -> pd.DataFrame:
    """Kendall's tau between the order on the nominal axis and on each ruler's, of the classifiers and of the shifts.

    `items` counts what is ordered, `shifts` the shifts that have an axis, n their trajectories.
    """
    rows = []
    for (what, ruler), (nominal, own, used) in on_axes(errors, maps, moving).items():
        tau = ranking.kendall(nominal.round(9), own.round(9))  # rounding residues are no order
        key = {"ruler": ruler, "order": what, "items": own.shape[1], "shifts": used.sum()}
        rows.append({**key, **clustered.record(tau, maps.n[used].sum(), maps.confidence)})
    return pd.DataFrame(rows, columns=["ruler", "order", "items", "shifts", "n", "estimate", "low", "high"])


def standings(errors: Shares, maps: Shares, moving: Bool[np.ndarray, "shifts rulers"]) -> pd.DataFrame:
    """What `orders` compares, on each ruler's own axis: mean accuracy of every classifier and hardness of every shift."""
    parts = []
    for (what, ruler), (_, own, used) in on_axes(errors, maps, moving).items():
        names, n = (errors.models, maps.n[used].sum()) if what == "classifiers" else (np.array(maps.groups)[used], maps.n[used])
        columns = {"name": names, **clustered.estimates(own, n, maps.confidence)}
        parts.append(pd.DataFrame({"order": what, "ruler": ruler, **columns}))
    return pd.concat(parts, ignore_index=True)
