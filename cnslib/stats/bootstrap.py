"""Resamples of what was drawn together, and every number as a record of n, estimate, low and high.

`Bootstrap.target` names what an interval would draw again, a unit:

- "same classes": other seeds. All classes of a seed start from one noise, so a seed is one unit, with all classes, shifts and models.
- "other objects": other objects of the same classes, where seeds only number them: (class, seed) is a unit, drawn within its class.
- "other classes": a class is one unit, with all of its seeds.

Units are weighted at random (Bayesian bootstrap, Rubin 1981), so that no shift or class is lost; the weights vary so much more that means
of few units have the width of a t interval. Row 0 of an array of samples is the sample itself. The last functions are about the largest or
the least of several `Values`: a band holds all of them at once.
"""

import functools
from collections.abc import Callable
from typing import SupportsFloat

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int
from scipy.stats import norm, spearmanr, t
from statsmodels.stats.proportion import proportion_confint
from statsmodels.stats.weightstats import DescrStatsW

from cnslib.core.settings.method import FEWEST, OBJECTS, OTHER, SAME, Bootstrap, Target

CLUSTER = ["class", "seed"]
Range = tuple[float, float]
CORRELATION, SHARE, ANYWHERE = (-1.0, 1.0), (0.0, 1.0), (-np.inf, np.inf)  # of reflected intervals
Values = Float[np.ndarray, "resamples+1 some all any"]  # "in some group, for all members, in any place"
HUGE = 1e3  # beyond it a ratio stems from a denominator near zero, and its bound is not reported
RECORD = ["n", "estimate", "low", "high"]
NOTHING = {"n": 0, "estimate": np.nan, "low": np.nan, "high": np.nan}  # the record of what was not measured
EXACT = 2.0**20  # weights are multiples of its inverse, so that sums of weighted counts are exact in any order
NIL = 1e-12  # differences up to this are rounding
EDGE = 1e-9  # of correlations, so that their z is finite
LEAST = 0.05  # of the concentration, which t quantiles of fewer units would take below zero


def units_of(rows: pd.DataFrame, target: Target) -> tuple[Int[np.ndarray, "rows"], Int[np.ndarray, "rows"]]:
    """The unit of each row (class, seed), numbered in sorted order, and the number of the stratum in which it is drawn.

    Objects are drawn within their class. Classes with a single object are one stratum (collapsed strata: Cochran 1977, section 5A.12); a
    class that is the only such one joins the class with the fewest others.
    """
    key = {SAME: ["seed"], OTHER: ["class"], OBJECTS: CLUSTER}[target]
    units = rows.groupby(key, observed=True).ngroup().to_numpy()
    if target != OBJECTS:
        return units, np.zeros(len(rows), int)
    objects = rows.drop_duplicates(CLUSTER)["class"].value_counts().sort_index()
    alone = objects[objects == 1].index
    joined = [objects[objects > 1].idxmin()] if len(alone) == 1 < len(objects) else []
    classes = rows.groupby("class", observed=True).ngroup()
    return units, pd.factorize(np.where(rows["class"].isin([*alone, *joined]), -1, classes), sort=True)[0]


def resampling_weights(rows: pd.DataFrame, *, settings: Bootstrap) -> tuple[np.ndarray, np.ndarray]:
    """How much each unit of `rows` (class, seed) counts, [resamples + 1, units], mean 1 (NaN of a single unit); the unit of each row."""
    units, strata = units_of(rows, settings.target)
    owner = np.zeros(units.max(initial=-1) + 1, int)
    owner[units] = strata
    return weights_of(tuple(owner.tolist()), settings), units


@functools.lru_cache(maxsize=8)
def weights_of(owner: tuple[int, ...], settings: Bootstrap) -> Float[np.ndarray, "resamples+1 units"]:
    """Dirichlet weights with mean 1 within each stratum, under which a mean spreads as Student's t asks; drawn once, so read-only."""
    owners = np.array(owner, int)
    sizes = np.bincount(owners)
    freedom = int((sizes - 1).sum())
    weights = np.full((settings.resamples + 1, len(owners)), np.nan)
    weights[0] = 1
    generator = np.random.default_rng(settings.seed)
    for stratum, size in enumerate(sizes if freedom else []):
        shape = max(((size - 1) / widening(freedom, settings.confidence) ** 2 - 1) / size, LEAST)
        drawn = generator.standard_gamma(shape, (settings.resamples, size))
        weights[1:, owners == stratum] = np.rint(drawn / drawn.sum(1, keepdims=True) * size * EXACT) / EXACT
    weights.setflags(write=False)
    return weights


@functools.cache
def widening(freedom: int, confidence: float) -> float:
    """How much longer a t interval is than a normal one."""
    return float(t.ppf((1 + confidence) / 2, freedom) / norm.ppf((1 + confidence) / 2))


def percentiles(resamples: np.ndarray, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """The percentile interval along the first axis; bounds are order statistics, NaN where infinite. NaN resamples do not count."""
    ordered = np.sort(resamples, axis=0)  # NaN last
    count = (~np.isnan(ordered)).sum(0, keepdims=True)
    tail = (1 - confidence) / 2
    low = np.take_along_axis(ordered, np.ceil(count * tail - 1).clip(0).astype(int), 0)[0]
    high = np.take_along_axis(ordered, np.ceil(count * (1 - tail) - 1).clip(0).astype(int), 0)[0]
    return np.where(np.isinf(low), np.nan, low), np.where(np.isinf(high), np.nan, high)


def bounds(samples: np.ndarray, confidence: float, within: Range | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The percentile interval, or the reflected one of a number `within` a range; either holds the sample itself.

    The reflected interval (the basic bootstrap) is for numbers that noise drives one way, such as a spread.
    """
    low, high = percentiles(samples[1:], confidence)
    estimate = samples[0]
    if within is None:
        return np.minimum(low, estimate), np.maximum(high, estimate)
    return np.clip(np.minimum(2 * estimate - high, estimate), *within), np.clip(np.maximum(2 * estimate - low, estimate), *within)


def record(samples: Float[np.ndarray, "resamples+1"], n: int, confidence: float, *, within: Range | None = None) -> dict:
    """One number with its `bounds` as a record."""
    low, high = bounds(np.asarray(samples), confidence, within)
    return as_record(n, samples[0], low, high)


def as_record(n: int, estimate: SupportsFloat, low: SupportsFloat, high: SupportsFloat) -> dict:
    """A record of plain numbers."""
    return {"n": int(n), "estimate": float(estimate), "low": float(low), "high": float(high)}


def joined(samples: Float[np.ndarray, "resamples+1"], n: int, confidence: float, *, within: Range = CORRELATION) -> dict:
    """A number that noise may drive either way, such as a correlation: the percentile and the reflected interval joined, as a record."""
    sides = (bounds(np.asarray(samples), confidence, reflected) for reflected in (None, within))
    lows, highs = zip(*sides, strict=True)
    return as_record(n, samples[0], min(lows), max(highs))


def mean(values: pd.Series, rows: pd.DataFrame, *, settings: Bootstrap) -> dict:
    """The mean of one value per row as a record; `rows` say class and seed of each value. Of fewer than `FEWEST` units: jackknife."""
    known = values.notna().to_numpy()
    if not known.any():
        return dict(NOTHING)
    units, strata = units_of(rows[known], settings.target)
    sums, counts = np.bincount(units, weights=values[known].to_numpy(float)), np.bincount(units)
    few = len(sums) - strata.max() < FEWEST
    weights = 1 - np.eye(len(sums) + 1, len(sums), -1) if few else resampling_weights(rows[known], settings=settings)[0]
    with np.errstate(invalid="ignore"):  # nothing is left without the only unit
        means = (weights @ sums) / (weights @ counts)
    low, high = (jackknifed if few else bounds)(means, settings.confidence)
    return as_record(len(units), means[0], low, high)


def jackknifed(values: Float[np.ndarray, "units+1 *columns"], confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """The t interval of the jackknife along the first axis (Efron and Tibshirani 1993, ch. 11): row 0 is of all units, others lack one."""
    known = ~np.isnan(values[1:])
    count = known.sum(0)
    others = np.where(known, values[1:], 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        away = np.where(known, others - others.sum(0) / count, 0)
        half = np.sqrt((count - 1) / count * (away**2).sum(0)) * t.ppf((1 + confidence) / 2, count - 1)
    return values[0] - half, values[0] + half


def too_few(sums: Float[np.ndarray, "units *columns"], confidence: float) -> Bool[np.ndarray, "*columns"] | np.bool_:
    """Whether a difference, given as the sums (or means) of the units, comes from so few of them that they cannot tell a side.

    Where some units do not differ and all others lie on one side, every resample does, too: a sign test of those that differ decides. A
    unit without any row is NaN and does not count.
    """
    sides = np.sign(np.where(np.abs(sums) > NIL, sums, 0.0))
    count = np.abs(sides).sum(0)
    return (count < (~np.isnan(sums)).sum(0)) & (np.abs(sides.sum(0)) == count) & (2 * 0.5**count > 1 - confidence)


def rate(values: pd.Series | np.ndarray, rows: pd.DataFrame, *, settings: Bootstrap) -> dict:
    """The share of ones among ones and zeros as a record; where all are alike, with Wilson's interval for as many units."""
    values = pd.Series(np.asarray(values, float))
    record, known = mean(values, rows, settings=settings), values.notna().to_numpy()
    if known.any() and record["estimate"] in (0.0, 1.0):
        count = int(units_of(rows[known], settings.target)[0].max()) + 1
        return counted(round(record["estimate"] * count), count, confidence=settings.confidence) | {"n": record["n"]}
    return as_record(record["n"], record["estimate"], *np.clip([record["low"], record["high"]], *SHARE))


def independent_share(hits: Bool[np.ndarray, "n"], *, confidence: float) -> dict:
    """A share of independent cases with its Wilson interval, as a record."""
    return counted(int(np.sum(hits)), len(hits), confidence=confidence)


def counted(hits: int, n: int, *, confidence: float) -> dict:
    """The same of `hits` among `n` cases; `NOTHING` for none."""
    return as_record(n, hits / n, *proportion_confint(hits, n, alpha=1 - confidence, method="wilson")) if n else dict(NOTHING)


def independent_mean(values: Float[np.ndarray, "n"], *, confidence: float) -> dict:
    """A mean over independent values with its t interval, as a record; no interval for a single one."""
    low, high = DescrStatsW(values).tconfint_mean(1 - confidence) if len(values) > 1 else (np.nan, np.nan)
    return as_record(len(values), np.mean(values), low, high)


def independent_rank_correlation(first: Float[np.ndarray, "n"], second: Float[np.ndarray, "n"], *, confidence: float) -> dict:
    """Spearman's correlation over independent cases with Fisher's z interval (Bonett and Wright 2000), as a record; none below four."""
    n, rho = len(first), float(spearmanr(first, second).statistic)
    if n < 4 or np.isnan(rho):
        return as_record(n, rho, np.nan, np.nan)
    half = norm.ppf((1 + confidence) / 2) * np.sqrt((1 + rho**2 / 2) / (n - 3))
    place = np.arctanh(np.clip(rho, -1 + EDGE, 1 - EDGE))
    return as_record(n, rho, min(np.tanh(place - half), rho), max(np.tanh(place + half), rho))


def records(table: pd.DataFrame, key: str, *keys: str) -> dict[str, dict]:
    """The rows of a results table as metrics records, by the values of one column and then of further ones."""
    if keys:
        return {level: records(part, *keys) for level, part in table.groupby(key)}
    return table.set_index(key, verify_integrity=True)[RECORD].to_dict("index")


def means(table: pd.DataFrame, columns: list[str], by: list[str], *, settings: Bootstrap, statistic: Callable = mean) -> pd.DataFrame:
    """A tidy table (by, measure, n, estimate, low, high): `mean` (`difference`, `rate`) of each column by group."""
    rows = []
    for column in columns:
        for key, part in table.groupby(by, sort=False):
            rows.append(dict(zip(by, key, strict=True)) | {"measure": column, **statistic(part[column], part, settings=settings)})
    return pd.DataFrame(rows)


def holm(p: pd.Series) -> Float[np.ndarray, "tests"]:
    """Holm's correction of the p values that exist; statsmodels' takes half a second to collect garbage where torch is loaded."""
    ordered = p.dropna().sort_values()
    corrected = np.maximum.accumulate(ordered.to_numpy(float) * np.arange(len(ordered), 0, -1)).clip(max=1)
    return pd.Series(corrected, ordered.index).reindex(p.index).to_numpy()


def combine(values: Float[np.ndarray, "*rows some all any"]) -> Float[np.ndarray, "*rows"]:
    """The number that a claim is about: in some group, for all of its members, in any of their places, the largest such value."""
    return values.max(-1).min(-1).max(-1)


def standard_error(values: Values) -> Float[np.ndarray, "some all any"]:
    """Standard error of every value: half the width of the middle 68 % of its resamples."""
    quantile = np.nanquantile if np.isnan(values).any() else np.quantile  # the former takes four times as long
    low, high = quantile(values[1:], [0.1587, 0.8413], axis=0)
    return np.where(high > low, (high - low) / 2, np.nanstd(values[1:], axis=0))


def band(values: Values) -> tuple[Float[np.ndarray, "resamples"], Float[np.ndarray, "resamples"]]:
    """Lower and upper bounds of a claim's number, from the narrowest to the widest simultaneous band around its values.

    A band is as wide, in standard errors, as one resample lies away from the sample in its worst place; the band of a share c of all
    resamples holds all true values with confidence c.
    """
    sample, resamples, width = values[0], values[1:], standard_error(values)
    away = np.abs(resamples - sample)
    score = np.divide(away, width, out=np.zeros_like(away), where=width > 0)
    reach = np.sort(np.nan_to_num(score, nan=np.inf).reshape(len(score), -1).max(-1))[:, None, None, None]
    return combine(sample - reach * width), combine(sample + reach * width)


def placed(lows: Float[np.ndarray, "resamples"], highs: Float[np.ndarray, "resamples"], confidence: float) -> tuple[float, float]:
    """The bounds of the band with this confidence; NaN for one that stems from a denominator near zero."""
    place = int(np.ceil(confidence * len(lows))) - 1
    low, high = (float(bound) if abs(bound) < HUGE else np.nan for bound in (lows[place], highs[place]))
    return low, high


def joint_bounds(values: Values, confidence: float) -> tuple[float, float]:
    """The interval of a claim's number, from the band that holds all of its values at once; NaN without a value."""
    if np.isnan(values[0]).any() or np.isnan(values[1:]).all():
        return np.nan, np.nan
    return placed(*band(values), confidence)
