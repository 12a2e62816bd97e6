"""Failure points: the distributions that go by that name (CNS-Bench section 3.3), and failures as survival data (our extension).

A failure between two scales of the grid is interval-censored: it lies above the last scale that was right and not above the first
that was wrong. A garment that is never missed is right-censored at the last scale.
"""

import itertools
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int
from scipy.stats import t

from cnslib.core import tables
from cnslib.core.settings.method import FEWEST, Bootstrap
from cnslib.stats import bootstrap
from cnslib.stats.accuracy import ALL, NEVER, Outcomes, Shares, outcomes, resample, tabulate, unanimous
from cnslib.stats.bootstrap import NIL, holm, record

LEAST_UNITS = 12  # with failures above scale 0: of simulated spreads of fewer, fewer than 92 in 100 intervals held the truth


def first_failure(wrong: Bool[np.ndarray, "*rows scales"]) -> Int[np.ndarray, "*rows"]:
    """Index of the smallest misclassified scale (Eq. 3, of the scales asked), scale 0 included; the number of scales where none is.

    What happens after the first failure does not matter: a model may recover at a larger scale.
    """
    return np.where(wrong.any(-1), wrong.argmax(-1), wrong.shape[-1])


def failure_points(predictions: pd.DataFrame, kept: pd.DataFrame | None = None) -> pd.DataFrame:
    """The failure point of every trajectory and model (Eq. 3), keyed by (model, shift, class, seed).

    A model that never fails is right-censored: `failure_point` is NaN and `failed` False.
    """
    found = outcomes(predictions, kept)
    index = first_failure(found.wrong)
    parts = [
        found.trajectories.assign(model=model, failure_point=np.array([*found.scales, np.nan])[column], failed=column < len(found.scales))
        for model, column in zip(found.models, index.T, strict=True)
    ]
    return pd.concat(parts, ignore_index=True)[["model", *tables.TRAJECTORY, "failure_point", "failed"]]


def failure_shares(found: Outcomes, *, settings: Bootstrap) -> Shares:
    """Share of trajectories whose first failure is at each scale, and that never fail (section 3.3); they add up to 1."""
    bins = np.arange(len(found.scales) + 1)
    reached = first_failure(found.wrong)[..., None] == bins
    return resample(found, reached, [*found.scales, NEVER], settings=settings)


def failure_distribution(failures: Shares) -> pd.DataFrame:
    """Share of all trajectories that fail first at each scale, or never (Fig. 8; N counts trajectories, not failures)."""
    return unanimous(tabulate(failures.samples, failures, failures.bins), failures.confidence)


def intervals(found: Outcomes) -> pd.DataFrame:
    """Where each failure lies: above `after` and not above `until`; `after` is -inf for a failure at scale 0, `until` inf for none."""
    edges = np.array([-np.inf, *found.scales, np.inf])
    index = first_failure(found.wrong)
    parts = [
        found.trajectories.assign(model=model, after=edges[column], until=edges[column + 1])
        for model, column in zip(found.models, index.T, strict=True)
    ]
    return pd.concat(parts, ignore_index=True)


def kinds(table: pd.DataFrame) -> pd.DataFrame:
    """What is known of each failure: "at scale 0" (before any shift), "between scales" (interval-censored), "never" (right-censored)."""
    names = np.select([np.isinf(table["after"]), np.isinf(table["until"])], ["at scale 0", "never"], "between scales")
    return table.assign(kind=names)


def curves(failures: Shares) -> pd.DataFrame:
    """Kaplan-Meier estimate: share of trajectories without failure up to and including each scale, with clustered intervals.

    All trajectories are observed at every scale, so the product-limit estimate is one minus the failures so far.
    """
    return unanimous(tabulate(1 - failures.samples[..., :-1].cumsum(-1), failures, failures.bins[:-1]), failures.confidence)


def median_scale(failures: Shares) -> pd.DataFrame:
    """The scale by which half of the trajectories have failed: the first grid scale with a share of survivors of at most one half.

    The median itself lies between that scale and the one before it. Infinite where more than half never fail; a bound that is
    infinite is reported as such, since never is an answer here. Resamples without a trajectory of the shift are left out.
    """
    scales = np.array([*failures.bins[:-1], np.inf])
    failed = failures.samples[..., :-1].cumsum(-1) >= 0.5 - 1e-12
    reached = np.where(failed.any(-1), failed.argmax(-1), len(scales) - 1)
    values = np.where(np.isnan(failures.samples).any(-1), np.nan, scales[reached])
    tail = (1 - failures.confidence) / 2
    quantile = np.nanquantile if np.isnan(values).any() else np.quantile  # the former takes a column at a time
    low, high = quantile(values[1:], [tail, 1 - tail], axis=0, method="inverted_cdf")
    index = pd.MultiIndex.from_product([failures.groups, failures.models], names=["shift", "model"])
    table = pd.DataFrame({"estimate": values[0].ravel(), "low": low.ravel(), "high": high.ravel()}, index=index).reset_index()
    table.insert(2, "n", np.repeat(failures.n, len(failures.models)))
    return table


def log_rank(found: Outcomes, *, settings: Bootstrap) -> pd.DataFrame:
    """Log-rank tests between all pairs of models, stratified by shift, with Holm's correction: `excess` failures of the first, p.

    The numerator is that of the textbook, failures of the first model less what its share of those still at risk would make. Its
    variance is not: trajectories of one unit are not independent, and both models see the same ones. Each unit (`stats.bootstrap`)
    contributes a part of the numerator that changes its sign when the two models change places in it, so that under equal models the
    parts scatter about zero, and a t test asks whether they do. NaN where the parts of all units are equal, as of two models that
    never fail, or with a single unit: they do not tell how much they scatter.
    """
    units, _ = bootstrap.units_of(found.trajectories, settings.target)
    parts = unit_scores(found, units)
    count = len(parts)
    excess, spread = parts.sum(0), parts.std(0, ddof=1) if count > 1 else np.full(parts.shape[1], np.nan)
    p = 2 * t.sf(np.abs(excess) / (np.where(spread > NIL, spread, np.nan) * np.sqrt(count)), count - 1)
    names, (first, second) = np.array(found.models, object), np.triu_indices(len(found.models), 1)
    table = pd.DataFrame({"first": names[first], "second": names[second], "n": len(found.trajectories), "excess": excess, "p": p})
    return table.assign(p_holm=holm(table["p"]))


def unit_scores(found: Outcomes, units: Int[np.ndarray, "trajectories"]) -> Float[np.ndarray, "units pairs"]:
    """Each unit's part of the log-rank numerator of every pair of models: they add up to observed less expected failures."""
    index, grid = first_failure(found.wrong)[..., None], np.arange(len(found.scales))
    failed, at_risk = (by_unit(hits, found, units) for hits in (index == grid, index >= grid))
    return np.stack([pair_scores(failed[:, :, pair], at_risk[:, :, pair]) for pair in pairs_of(len(found.models))], axis=1)


def by_unit(
    hits: Bool[np.ndarray, "trajectories models bins"], found: Outcomes, units: Int[np.ndarray, "trajectories"]
) -> Float[np.ndarray, "units shifts models bins"]:
    """How many trajectories of each unit under each shift are hits; 0 where it has none."""
    shift, shifts = pd.factorize(found.trajectories["shift"], sort=True)
    cells, shape = units * len(shifts) + shift, (units.max() + 1, len(shifts))
    order = np.argsort(cells, kind="stable")
    known, starts = np.unique(cells[order], return_index=True)
    sums = np.zeros([int(np.prod(shape)), *hits.shape[1:]])
    sums[known] = np.add.reduceat(hits[order].astype(float), starts, axis=0)
    return sums.reshape(*shape, *hits.shape[1:])


def pairs_of(count: int) -> list[list[int]]:
    """The pairs of models, as places."""
    return [list(pair) for pair in itertools.combinations(range(count), 2)]


def pair_scores(
    failed: Float[np.ndarray, "units shifts 2 scales"], at_risk: Float[np.ndarray, "units shifts 2 scales"]
) -> Float[np.ndarray, "units"]:
    """The parts of one pair: half the difference of failures less what the hazard of both together makes of those at risk."""
    total, alive = failed.sum((0, 2)), at_risk.sum((0, 2))
    hazard = np.divide(total, alive, out=np.zeros_like(total), where=alive > 0)
    apart = (failed - hazard[:, None] * at_risk)[:, :, 0] - (failed - hazard[:, None] * at_risk)[:, :, 1]
    return apart.sum((1, 2)) / 2


def recovers(wrong: Bool[np.ndarray, "trajectories models scales"]) -> Bool[np.ndarray, "trajectories models"]:
    """Whether a model is right again after it was wrong."""
    return (wrong[..., :-1] & ~wrong[..., 1:]).any(-1)


def recovered(found: Outcomes, *, settings: Bootstrap) -> pd.DataFrame:
    """Share of trajectories on which a model is right again after its first failure, per shift and model: those are not monotone."""
    shares = resample(found, recovers(found.wrong)[..., None], [0], settings=settings)
    return unanimous(tabulate(shares.samples, shares, [0]), shares.confidence).drop(columns="scale")


def deviations(failures: Shares) -> Float[np.ndarray, "resamples+1 groups models"]:
    """Standard deviation of the failure points above scale 0, in slider units (n - 1); NaN for a model with fewer than two of them."""
    return deviation(failures.samples[..., 1:-1] * failures.n[:, None, None], failures.bins[1:-1])


def deviation(counts: Float[np.ndarray, "*rest scales"], scales: list[float]) -> Float[np.ndarray, "*rest"]:
    """The standard deviation of so many failure points at each scale; NaN of fewer than two."""
    total, places = counts.sum(-1), np.array(scales, dtype=float)
    whole = np.rint(total)
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = counts @ places**2 / total - (counts @ places / total) ** 2
        return np.sqrt(np.where(whole > 1, variance.clip(0) * whole / (whole - 1), np.nan))


@dataclass(frozen=True)
class Spreads:
    """Spreads of the failure points above scale 0, of all units (row 0) and without each in turn, and the units that have some."""

    left: Float[np.ndarray, "units+1 groups models"]
    has: Bool[np.ndarray, "units groups models"]
    groups: list[str]
    models: list[str]
    n: Int[np.ndarray, "groups"]  # trajectories
    confidence: float


def spreads(found: Outcomes, *, settings: Bootstrap) -> Spreads:
    """The `deviation` of the failure points above scale 0 per shift, for all of them, and model, with those that the jackknife needs.

    A unit is one as in `stats.bootstrap`. Strata are not told apart, which errs on the wide side.
    """
    units, _ = bootstrap.units_of(found.trajectories, settings.target)
    later = first_failure(found.wrong)[..., None] == np.arange(1, len(found.scales))
    by_shift = by_unit(later, found, units)
    counts = np.concatenate([by_shift, by_shift.sum(1, keepdims=True)], 1)
    left = np.concatenate([counts.sum(0)[None], counts.sum(0) - counts])
    sizes = found.trajectories["shift"].value_counts().sort_index()
    n = np.array([*sizes, sizes.sum()])
    return Spreads(deviation(left, found.scales[1:]), counts.sum(-1) > 0, [*sizes.index, ALL], found.models, n, settings.confidence)


def spread(found: Outcomes, *, settings: Bootstrap) -> pd.DataFrame:
    """Spread of the failure points above scale 0 in slider units, per shift and model: 0 is a step at one scale, larger is gradual.

    Its interval is that of the jackknife on the logarithm: percentiles of few failures are too short, for a resample that has lost the
    rare ones has lost its spread and its doubt about it. None where fewer than `LEAST_UNITS` have a failure, or where all lie at one scale.
    """
    own = spreads(found, settings=settings)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(own.left)
        logs[1:][~own.has] = np.nan
        low, high = np.exp(bootstrap.jackknifed(logs, own.confidence))
    told = (own.has.sum(0) >= LEAST_UNITS) & np.isfinite(logs[0])
    keys = pd.MultiIndex.from_product([own.groups, own.models], names=["shift", "model"]).to_frame(index=False)
    bounds = {"low": np.where(told, low, np.nan).ravel(), "high": np.where(told, high, np.nan).ravel()}
    return keys.assign(n=np.repeat(own.n, len(own.models)), estimate=own.left[0].ravel(), **bounds)


def more_abrupt(found: Outcomes, first: str, second: str, *, settings: Bootstrap) -> dict:
    """Spread under the second shift minus that under the first, averaged over the models, as a record with its paired interval.

    Positive where models fail more abruptly under the first shift. The interval is the jackknife's, as that of `spread`; a mean of
    models needs fewer units with a failure, `FEWEST`.
    """
    own = spreads(found, settings=settings)
    places = [own.groups.index(shift) for shift in (first, second)]
    apart = own.left[:, places[1]] - own.left[:, places[0]]
    values = pd.DataFrame(apart).mean(axis=1).to_numpy()  # leaves out a model that hardly fails under one of them
    has = own.has[:, places].any((1, 2))
    low, high = bootstrap.jackknifed(values[np.append(True, has)], own.confidence) if has.sum() >= FEWEST else (np.nan, np.nan)
    return {"n": int(own.n[places].sum()), "estimate": float(values[0]), "low": float(low), "high": float(high)}


def definitions(failures: Shares, errors: Shares) -> dict[str, pd.DataFrame]:
    """The failure point distributions that the papers call by one name, each under its own.

    "over trajectories": first failures at a scale over all trajectories (section 3.3 and the released code); "per model": over this
    model's failures, so that a model's bars add up to 1 (Figs. 13 and 25); "pooled": over the failures of all models together
    (earlier submission); "cumulative": running sum of "per model"; "error count": all failures at a scale, first or not, over all
    trajectories (section 3.3 read to the letter). NaN for a model that never fails.
    """
    first = failures.samples[..., :-1]
    with np.errstate(invalid="ignore"):
        per_model = first / first.sum(-1, keepdims=True)
        pooled = first / first.sum((2, 3), keepdims=True)
    named = {"over trajectories": first, "per model": per_model, "pooled": pooled, "cumulative": per_model.cumsum(-1)}
    return {name: tabulate(values, failures, errors.bins) for name, values in {**named, "error count": errors.samples}.items()}


def fates(found: Outcomes, points: pd.DataFrame, never: pd.DataFrame) -> pd.DataFrame:
    """How many trajectories of every model fail at the first scale, fail later, and recover, with the share that never fails.

    `points` are the `failure_points`, `never` the rows of the distribution for NEVER by model.
    """
    counts = points.groupby("model")["failed"].agg(failed="sum", trajectories="size").assign(recovered=recovers(found.wrong).sum(0))
    begun = points[points["failure_point"] == found.scales[0]].groupby("model").size().reindex(counts.index, fill_value=0)
    counts.insert(0, "failed at scale 0", begun)
    counts.insert(1, "failed later", counts.pop("failed") - begun)
    return counts.join(never[["estimate", "low", "high"]].add_prefix("never: "))


def examples(points: pd.DataFrame, *, seed: int) -> pd.DataFrame:
    """One failure point per shift, drawn by lot: of a trajectory that was right at scale 0 and lost later, where there is one."""
    shuffled = points.sample(frac=1, random_state=seed).assign(late=points["failure_point"] > 0)
    return shuffled.sort_values("late", ascending=False, kind="stable").drop_duplicates("shift").sort_values("shift")


FATES = ("before any shift", "under one", "never")


def mean_fates(failures: Shares) -> dict[str, dict]:
    """Shares of the trajectories that fail at the first scale, at a later one, or never (`FATES`), mean of the models, as records."""
    shares = failures.samples[:, -1].mean(1)
    values = (shares[:, 0], shares[:, 1:-1].sum(1), shares[:, -1])
    return {name: record(own, failures.n[-1], failures.confidence) for name, own in zip(FATES, values, strict=True)}


def abruptness(found: Outcomes, claims: list[tuple[str, str, str]], *, settings: Bootstrap) -> pd.DataFrame:
    """Claims (first shift, second shift, source) that one shift fails models more abruptly than another, where both were evaluated."""
    known = [claim for claim in claims if set(claim[:2]) <= set(found.trajectories["shift"])]
    named = {f"{a} more abrupt than {b}": (source, more_abrupt(found, a, b, settings=settings)) for a, b, source in known}
    rows = [{"claim": claim, "source": source, **record} for claim, (source, record) in named.items()]
    return pd.DataFrame(rows, columns=["claim", "source", "n", "estimate", "low", "high"])


def of_all_shifts(named: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """The `definitions` over all shifts in one table, told apart by the column `definition`."""
    return pd.concat([part[part["shift"] == ALL].assign(definition=name) for name, part in named.items()])
