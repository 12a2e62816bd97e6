"""Failure points: the distributions that go by that name (CNS-Bench section 3.3), and failures as survival data (our extension).

A failure is interval-censored between the last scale that was right and the first that was wrong, or right-censored at the last scale.
"""

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Bool, Float, Int
from scipy.stats import t

from cnslib.core.settings.method import FEWEST, Bootstrap
from cnslib.core.tables import TRAJECTORY
from cnslib.stats.accuracy import NEVER, interval, trajectories
from cnslib.stats.bootstrap import NIL, as_record, holm, jackknifed, units_of


def first_failure(wrong: xr.DataArray | Bool[np.ndarray, "*rows scales"]) -> Int[np.ndarray, "*rows"]:
    """Index of the smallest misclassified scale (Eq. 3), scale 0 included; the number of scales where there is none."""
    values = np.asarray(wrong)
    return np.where(values.any(-1), values.argmax(-1), values.shape[-1])


def failure_points(wrong: xr.DataArray) -> pd.DataFrame:
    """The failure point of every model and trajectory (Eq. 3; NaN: none), whether it `failed`, and the scale before it, `after`."""
    index = first_failure(wrong).T
    edges = np.array([-np.inf, *wrong["scale"].to_numpy(), np.nan])
    table = pd.concat([trajectories(wrong).assign(model=model) for model in wrong["model"].to_numpy()], ignore_index=True)
    table = table.assign(failure_point=edges[index + 1].ravel(), failed=(index < wrong.sizes["scale"]).ravel(), after=edges[index].ravel())
    return table[["model", *TRAJECTORY, "failure_point", "failed", "after"]]


def first_failures(wrong: xr.DataArray) -> xr.DataArray:
    """Which scale is the first failure, NEVER among them: bool [trajectory, model, scale]; `by_shift` makes shares that add up to 1."""
    bins = pd.Index([*wrong["scale"].to_numpy(), NEVER], dtype=object)
    labels = {name: wrong[name] for name in [*TRAJECTORY, "model"]} | {"scale": bins}
    return xr.DataArray(first_failure(wrong)[..., None] == np.arange(len(bins)), labels, ["trajectory", "model", "scale"])


def coarser(failures: xr.DataArray, scales: Sequence[float]) -> xr.DataArray:
    """The same shares of first failures on fewer of their scales, the last among them: each counts at the next of these."""
    by_then = failures.isel(scale=slice(-1)).cumsum("scale", skipna=False).sel(scale=list(scales))
    return xr.concat([by_then.isel(scale=[0]), by_then.diff("scale"), failures.isel(scale=[-1])], "scale")


def failure_distribution(failures: xr.DataArray) -> pd.DataFrame:
    """Share of all trajectories that fail first at each scale, or never (Fig. 8; n counts trajectories, not failures)."""
    return interval(failures, share=True)


def curves(failures: xr.DataArray) -> pd.DataFrame:
    """Kaplan-Meier estimate: share of trajectories without failure up to and including each scale (all are observed at every scale)."""
    failed = failures.isel(scale=slice(-1)).cumsum("scale", skipna=False)
    return interval(1 - failed.assign_coords(scale=failed["scale"].astype(float)), share=True)


def median_scale(failures: xr.DataArray) -> pd.DataFrame:
    """The first scale by which at least half of the trajectories have failed; infinite where more than half never do."""
    scales = np.array([*failures["scale"].to_numpy()[:-1], np.inf], float)
    reached = (failures.isel(scale=slice(-1)).cumsum("scale", skipna=False) >= 0.5 - NIL).to_numpy()
    values = failures.isel(scale=0, drop=True).copy(data=scales[first_failure(reached)]).where(failures.notnull().all("scale"))
    tail = (1 - failures["confidence"].item()) / 2
    low, high = np.nanquantile(values[1:].to_numpy(), [tail, 1 - tail], axis=0, method="inverted_cdf")
    return interval(values).assign(low=low.ravel(), high=high.ravel())


def log_rank(wrong: xr.DataArray, *, settings: Bootstrap) -> pd.DataFrame:
    """Log-rank tests between all pairs of models, stratified by shift, with Holm's correction: `excess` failures of the first, p.

    The numerator is the textbook's. Its variance is clustered: each unit (`stats.bootstrap`) contributes a part that changes its sign when
    the models change places, and a t test asks whether the parts scatter about zero. NaN where all are equal, or with a single unit.
    """
    index, grid = first_failure(wrong)[..., None], np.arange(wrong.sizes["scale"])
    failed, at_risk = (unit_counts(hits, wrong, settings=settings) for hits in (index == grid, index >= grid))
    pairs = list(itertools.combinations(range(wrong.sizes["model"]), 2))
    parts = np.stack([pair_scores(failed[:, :, list(pair)], at_risk[:, :, list(pair)]) for pair in pairs], axis=1)
    count = len(parts)
    excess, spread = parts.sum(0), parts.std(0, ddof=1) if count > 1 else np.full(parts.shape[1], np.nan)
    p = 2 * t.sf(np.abs(excess) / (np.where(spread > NIL, spread, np.nan) * np.sqrt(count)), count - 1)
    first, second = wrong["model"].to_numpy()[np.transpose(pairs)]
    table = pd.DataFrame({"first": first, "second": second, "n": len(wrong), "excess": excess, "p": p})
    return table.assign(p_holm=holm(table["p"]))


def unit_counts(hits: Bool[np.ndarray, "trajectories models bins"], wrong: xr.DataArray, *, settings: Bootstrap) -> np.ndarray:
    """How many trajectories of each unit under each shift are hits, [units, shifts, models, bins]; 0 where it has none."""
    units, _ = units_of(trajectories(wrong), settings.target)
    shift, shifts = pd.factorize(wrong["shift"].to_numpy(), sort=True)
    counts = np.zeros((units.max() + 1, len(shifts), *hits.shape[1:]))
    np.add.at(counts, (units, shift), hits)
    return counts


def pair_scores(failed: Float[np.ndarray, "units shifts 2 scales"], at_risk: Float[np.ndarray, "units shifts 2 scales"]) -> np.ndarray:
    """Each unit's part of one pair's numerator: half the difference of failures less what the hazard of both makes of those at risk."""
    total, alive = failed.sum((0, 2)), at_risk.sum((0, 2))
    hazard = np.divide(total, alive, out=np.zeros_like(total), where=alive > 0)
    beyond = failed - hazard[:, None] * at_risk
    return (beyond[:, :, 0] - beyond[:, :, 1]).sum((1, 2)) / 2


def recovers(wrong: xr.DataArray) -> xr.DataArray:
    """Whether a model is right again after it was wrong, so that its trajectory is not monotone: bool [trajectory, model]."""
    values = wrong.to_numpy()
    return wrong.isel(scale=0, drop=True).copy(data=(values[..., :-1] & ~values[..., 1:]).any(-1))


def deviation(counts: Float[np.ndarray, "*rest scales"], scales: Sequence[float] | np.ndarray) -> Float[np.ndarray, "*rest"]:
    """The standard deviation (n - 1) of so many failure points at each scale; NaN of fewer than two."""
    total, places = counts.sum(-1), np.array(scales, dtype=float)
    whole = np.rint(total)
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = counts @ places**2 / total - (counts @ places / total) ** 2
        return np.sqrt(np.where(whole > 1, variance.clip(0) * whole / (whole - 1), np.nan))


def more_abrupt(wrong: xr.DataArray, first: str, second: str, *, settings: Bootstrap) -> dict:
    """Spread of the failure points under the second shift minus that under the first, mean of the models, as a record.

    Positive where models fail more abruptly under the first shift; a model that hardly fails under one is left out. The interval is the
    jackknife's over the units with a failure, paired.
    """
    later = first_failure(wrong)[..., None] == np.arange(1, wrong.sizes["scale"])
    shifts, n = np.unique(wrong["shift"].to_numpy(), return_counts=True)
    pair = [shifts.tolist().index(name) for name in (first, second)]
    counts = unit_counts(later, wrong, settings=settings)[:, pair]
    left = deviation(np.concatenate([counts.sum(0)[None], counts.sum(0) - counts]), wrong["scale"].to_numpy()[1:])  # units + 1
    values = xr.DataArray(left[:, 1] - left[:, 0], dims=["unit", "model"]).mean("model").to_numpy()
    has = counts.any((1, 2, 3))
    low, high = jackknifed(values[np.append(True, has)], settings.confidence) if has.sum() >= FEWEST else (np.nan, np.nan)
    return as_record(n[pair].sum(), values[0], low, high)


def most_divided(wrong: xr.DataArray) -> xr.DataArray:
    """Of the trajectories that most classifiers get right at scale 0, the one whose failure points spread most; the first of equals."""
    first = first_failure(wrong)
    right = (first > 0).sum(1)
    return wrong.isel(trajectory=[int(np.argmax(np.where(right == right.max(), first.std(1), -1)))])
