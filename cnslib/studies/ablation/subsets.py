"""How many classes a benchmark needs: its numbers on every subset of the classes (CNS-Bench supplement G.4)."""

import itertools
import math

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Bool, Float

from cnslib.core import seeds
from cnslib.core.names import demand
from cnslib.core.settings.method import SAME, Bootstrap
from cnslib.stats import bootstrap, ranking
from cnslib.stats.accuracy import TINY, trajectories

MEASURES = ("accuracy at scale 0", "accuracy drop", "rCE", "Kendall's tau with all classes")
Sums = tuple[Float[np.ndarray, "classes shifts models scales"], Float[np.ndarray, "classes shifts"]]
MOST = 1000  # subsets of one size; the 252 halves of ten classes are all taken, those of a hundred could not be


def sums(wrong: xr.DataArray) -> Sums:
    """Wrong predictions and trajectories of each class under each shift, added up."""
    (classes, number), (shifts, shift) = (np.unique(wrong[key], return_inverse=True) for key in ("class", "shift"))
    total = np.zeros([len(classes), len(shifts), *wrong.shape[1:]])
    count = np.zeros(total.shape[:2])
    np.add.at(total, (number, shift), wrong.to_numpy())
    np.add.at(count, (number, shift), 1)
    return total, count


def members(classes: int, count: int) -> Bool[np.ndarray, "subsets classes"]:
    """Every subset of this size, one row each, or `MOST` drawn ones if there are more. ValueError for a size that no subset has."""
    demand(1 <= count <= classes, "ablation.counts", count, f"1 to the {classes} classes")
    if math.comb(classes, count) > MOST:
        generator = np.random.default_rng(seeds.seed_of("subsets", classes, count))
        return generator.permuted(np.tile(np.arange(classes) < count, (MOST, 1)), axis=1)
    chosen = list(itertools.combinations(range(classes), count))
    rows = np.zeros((len(chosen), classes), bool)
    np.put_along_axis(rows, np.array(chosen), True, axis=1)
    return rows


def errors(total: Sums, chosen: Bool[np.ndarray, "subsets classes"]) -> Float[np.ndarray, "subsets models scales"]:
    """Error rate over the trajectories of each subset, all shifts pooled."""
    wrong = np.tensordot(chosen.astype(float), total[0].sum(1), 1)
    return wrong / (chosen @ total[1].sum(1))[:, None, None]


def relative_error(total: Sums, chosen: Bool[np.ndarray, "subsets classes"], reference: int) -> Float[np.ndarray, "subsets models"]:
    """rCE (Eq. 6) of every model on each subset: drops summed over the scales against the reference's, averaged over the shifts.

    A shift counts in a subset only if the reference loses something there; NaN where it loses nothing under any shift.
    """
    counts = np.tensordot(chosen.astype(float), total[1], 1)[..., None, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = np.tensordot(chosen.astype(float), total[0], 1) / counts
        drops = (rates - rates[..., :1]).sum(-1)
        below = drops[:, :, [reference]]
        ratio = np.where(below > TINY, drops / below, np.nan)
    defined = np.isfinite(ratio)
    summed = np.where(defined, ratio, 0).sum(1)
    return np.divide(summed, defined.sum(1), out=np.full(summed.shape, np.nan), where=defined.any(1))


def measures(wrong: xr.DataArray, counts: list[int], *, reference: str) -> pd.DataFrame:
    """Every subset's numbers: (classes, subset, measure, value); accuracy, drop and rCE are means over the models.

    The drop is that at the last scale. The order of the models is by accuracy over all scales above 0. rCE leaves the reference
    model out of its mean, where it is always 1.
    """
    total, classes = sums(wrong), np.unique(wrong["class"])
    place = wrong["model"].to_numpy().tolist().index(reference)
    whole = errors(total, members(len(classes), len(classes)))[..., 1:].mean(-1)
    parts = []
    for count in counts:
        chosen = members(len(classes), count)
        rates = errors(total, chosen)
        values = [1 - rates[..., 0].mean(1), (rates[..., -1] - rates[..., 0]).mean(1)]
        values.append(np.delete(relative_error(total, chosen, place), place, axis=1).mean(1))
        values.append(ranking.kendall(rates[..., 1:].mean(-1), whole))
        names = [" + ".join(classes[row]) for row in chosen]
        table = pd.DataFrame(dict(zip(MEASURES, values, strict=True))).assign(classes=count, subset=names)
        parts.append(table.melt(["classes", "subset"], var_name="measure"))
    return pd.concat(parts, ignore_index=True)


def spread(table: pd.DataFrame, *, confidence: float) -> pd.DataFrame:
    """Median and range of the middle `confidence` of the subsets: (classes, measure, n, estimate, low, high), n subsets.

    The range says how much the choice of classes matters. It is no confidence interval: subsets share their classes.
    """
    rows = []
    for (count, measure), values in table.dropna().groupby(["classes", "measure"], sort=False)["value"]:
        record = bootstrap.record(np.array([values.median(), *values]), len(values), confidence)
        rows.append({"classes": count, "measure": measure, **record})
    return pd.DataFrame(rows)


def steadier(wrong: xr.DataArray, count: int, *, settings: Bootstrap) -> dict:
    """Standard deviation over the subsets of the accuracy at scale 0 minus that of the drop at the last scale; above 0 where the
    drop depends less on the choice of classes, as Fig. 25 has it.

    The seeds are resampled, whatever the target: the choice of classes is what is measured.
    """
    classes, number = np.unique(wrong["class"], return_inverse=True)
    weights, units = bootstrap.resampling_weights(trajectories(wrong), settings=settings.of(SAME))
    weights = weights[:, units]
    start, end = (1 - wrong[..., place].mean("model").to_numpy() for place in (0, -1))
    chosen = members(len(classes), count).astype(float)
    own = np.eye(len(classes))[number]
    counts = (weights @ own) @ chosen.T
    first, last = ((weights * values) @ own @ chosen.T / counts for values in (start, end))
    gap = first.std(1) - (first - last).std(1)
    return bootstrap.record(gap, len(wrong), settings.confidence)
