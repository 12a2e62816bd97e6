"""How many classes a benchmark needs: its numbers on every subset of the classes (CNS-Bench supplement G.4, Fig. 25)."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from cnslib.core import seeds
from cnslib.core.names import demand
from cnslib.core.settings.method import SAME, Bootstrap
from cnslib.plots.captions import words
from cnslib.stats import bootstrap, ranking
from cnslib.stats.accuracy import TINY, Outcomes
from cnslib.stats.failure import first_failure

MEASURES = ("accuracy at scale 0", "accuracy drop", "rCE", "Kendall's tau with all classes")
MOST = 1000  # subsets of one size; the 252 halves of ten classes are all taken, those of a hundred could not be


@dataclass(frozen=True)
class Sums:
    """Wrong answers summed per class and shift, with how many trajectories there are."""

    classes: list[str]
    wrong: Float[np.ndarray, "classes shifts models scales"]
    count: Float[np.ndarray, "classes shifts"]


def sums(found: Outcomes) -> Sums:
    """Adds up the outcomes of each class under each shift."""
    number, classes = pd.factorize(found.trajectories["class"], sort=True)
    shift, shifts = pd.factorize(found.trajectories["shift"], sort=True)
    wrong = np.zeros([len(classes), len(shifts), *found.wrong.shape[1:]])
    count = np.zeros(wrong.shape[:2])
    np.add.at(wrong, (number, shift), found.wrong)
    np.add.at(count, (number, shift), 1)
    return Sums(list(classes), wrong, count)


def members(classes: int, count: int) -> Bool[np.ndarray, "subsets classes"]:
    """Every subset of this size, one row each, or `MOST` drawn ones if there are more. ValueError for a size that no subset has."""
    demand(1 <= count <= classes, "ablation.counts", count, f"1 to the {classes} classes")
    if math.comb(classes, count) > MOST:
        return drawn(classes, count)
    chosen = list(itertools.combinations(range(classes), count))
    rows = np.zeros((len(chosen), classes), bool)
    np.put_along_axis(rows, np.array(chosen), True, axis=1)
    return rows


def drawn(classes: int, count: int) -> Bool[np.ndarray, "subsets classes"]:
    """`MOST` subsets of this size, drawn with equal chances; the same for the same numbers."""
    generator = np.random.default_rng(seeds.seed_of("subsets", classes, count))
    return generator.permuted(np.tile(np.arange(classes) < count, (MOST, 1)), axis=1)


def errors(total: Sums, chosen: Bool[np.ndarray, "subsets classes"]) -> Float[np.ndarray, "subsets models scales"]:
    """Error rate over the trajectories of each subset, all shifts pooled."""
    wrong = np.tensordot(chosen.astype(float), total.wrong.sum(1), 1)
    return wrong / (chosen @ total.count.sum(1))[:, None, None]


def relative_error(total: Sums, chosen: Bool[np.ndarray, "subsets classes"], reference: int) -> Float[np.ndarray, "subsets models"]:
    """rCE (Eq. 6) of every model on each subset: drops summed over the scales against the reference's, averaged over the shifts.

    A shift counts in a subset only if the reference loses something there; NaN where it loses nothing under any shift.
    """
    counts = np.tensordot(chosen.astype(float), total.count, 1)[..., None, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = np.tensordot(chosen.astype(float), total.wrong, 1) / counts
        drops = (rates - rates[..., :1]).sum(-1)
        below = drops[:, :, [reference]]
        ratio = np.where(below > TINY, drops / below, np.nan)
    defined = np.isfinite(ratio)
    summed = np.where(defined, ratio, 0).sum(1)
    return np.divide(summed, defined.sum(1), out=np.full(summed.shape, np.nan), where=defined.any(1))


def measures(found: Outcomes, counts: list[int], *, reference: str) -> pd.DataFrame:
    """Every subset's numbers: (classes, subset, measure, value); accuracy, drop and rCE are means over the models.

    The drop is that at the last scale. The order of the models is by accuracy over all scales above 0. rCE leaves the reference
    model out of its mean, where it is always 1.
    """
    total, place = sums(found), found.models.index(reference)
    others = [i for i in range(len(found.models)) if i != place]
    whole = errors(total, members(len(total.classes), len(total.classes)))[..., 1:].mean(-1)
    parts = []
    for count in counts:
        chosen = members(len(total.classes), count)
        rates = errors(total, chosen)
        values = [1 - rates[..., 0].mean(1), (rates[..., -1] - rates[..., 0]).mean(1)]
        values.append(relative_error(total, chosen, place)[:, others].mean(1))
        values.append(ranking.kendall(rates[..., 1:].mean(-1), whole))
        names = [" + ".join(np.array(total.classes)[row]) for row in chosen]
        parts += [
            pd.DataFrame({"classes": count, "subset": names, "measure": name, "value": column})
            for name, column in zip(MEASURES, values, strict=True)
        ]
    return pd.concat(parts, ignore_index=True)


def spread(table: pd.DataFrame, *, confidence: float) -> pd.DataFrame:
    """Median and range of the middle `confidence` of the subsets: (classes, measure, n, estimate, low, high), n subsets.

    The range says how much the choice of classes matters. It is no confidence interval: subsets share their classes.
    """
    rows = []
    for (count, measure), part in table.groupby(["classes", "measure"], sort=False):
        values = part["value"].dropna().to_numpy()
        record = bootstrap.record(np.array([np.median(values), *values]), len(values), confidence) if len(values) else bootstrap.NOTHING
        rows.append({"classes": count, "measure": measure, **record})
    return pd.DataFrame(rows)


def cells(table: pd.DataFrame) -> pd.DataFrame:
    """The `spread` in words, a row per measure and a column per number of classes."""
    text = [words.interval(row) for _, row in table.iterrows()]
    return table.assign(text=text).pivot(index="measure", columns="classes", values="text").loc[list(MEASURES)]


def range_figure(table: pd.DataFrame) -> Figure:
    """One panel per measure with an axis of its own: median and range over the subsets against the number of classes."""
    figure, columns = plt.subplots(1, len(MEASURES), figsize=(2.4 * len(MEASURES), 2.3), layout="constrained")
    for axes, measure in zip(columns, MEASURES, strict=True):
        part = table[table["measure"] == measure]
        arms = np.abs(part[["low", "high"]].sub(part["estimate"], axis=0)).T
        axes.errorbar(part["classes"], part["estimate"], arms, fmt="o", markersize=4, elinewidth=1)
        axes.set(xlabel="classes", title=measure, xticks=part["classes"])
    return figure


def curves(found: Outcomes, counts: list[int], *, confidence: float) -> pd.DataFrame:
    """Fig. 25a: accuracy (mean over the models) at each scale, over the subsets of each size: (classes, scale, n, estimate, low, high)."""
    total = sums(found)
    table = {count: 1 - errors(total, members(len(total.classes), count)).mean(1) for count in counts}
    return ranges(table, found.scales, confidence=confidence)


def failures(found: Outcomes, counts: list[int], *, confidence: float) -> pd.DataFrame:
    """Fig. 25b: share of failure points at each scale among all failures (mean over the models), over the subsets of each size.

    Subsets without any failure do not count.
    """
    bins = np.arange(len(found.scales) + 1)
    reached = Outcomes(found.trajectories, found.models, [*found.scales, np.inf], first_failure(found.wrong)[..., None] == bins)
    total, table = sums(reached), {}
    for count in counts:
        shares = errors(total, members(len(total.classes), count)).mean(1)[:, :-1]
        whole = shares.sum(1, keepdims=True)
        table[count] = np.divide(shares, whole, out=np.full(shares.shape, np.nan), where=whole > 0)
    return ranges(table, found.scales, confidence=confidence)


def panels(sources: dict[str, Outcomes], counts: list[int], *, confidence: float) -> pd.DataFrame:
    """Fig. 25 for several sources of answers: their `curves` and `failures`, and `panel`, the name of each."""
    kinds = {"accuracy": curves, "failures": failures}
    parts = [
        make(found, counts, confidence=confidence).assign(panel=f"{name}: {kind}")
        for kind, make in kinds.items()
        for name, found in sources.items()
    ]
    return pd.concat(parts)


def ranges(values: dict[int, Float[np.ndarray, "subsets scales"]], scales: list[float], *, confidence: float) -> pd.DataFrame:
    """Median and middle range over the subsets at each scale."""
    parts = []
    for count, every in values.items():
        rows = every[np.isfinite(every).all(1)]
        columns = bootstrap.estimates(np.vstack([np.median(rows, axis=0), rows]), len(rows), confidence)
        parts.append(pd.DataFrame({"classes": f"{count:2d} classes", "scale": scales, **columns}))
    return pd.concat(parts, ignore_index=True)


def steadier(found: Outcomes, count: int, *, settings: Bootstrap) -> dict:
    """Standard deviation over the subsets of the accuracy at scale 0 minus that of the drop at the last scale; above 0 where the
    drop depends less on the choice of classes, as Fig. 25 has it.

    The seeds are resampled, whatever the target: the choice of classes is what is measured.
    """
    number, classes = pd.factorize(found.trajectories["class"], sort=True)
    weights, units = bootstrap.resampling_weights(found.trajectories, settings=settings.of(SAME))
    weights = weights[:, units]
    start, end = (1 - found.wrong[..., place].mean(1) for place in (0, -1))
    chosen = members(len(classes), count).astype(float)
    own = np.eye(len(classes))[number]
    counts = (weights @ own) @ chosen.T
    first, last = ((weights * values) @ own @ chosen.T / counts for values in (start, end))
    gap = first.std(1) - (first - last).std(1)
    return bootstrap.record(gap, len(found.trajectories), settings.confidence)
