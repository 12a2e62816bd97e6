"""Resamples of whole (class, seed), and every number as a record of n, estimate, low and high.

What was drawn from one noise is not independent, so intervals resample whole clusters. Row 0 of an array of samples is the sample
itself, the others are its resamples.
"""

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int
from statsmodels.stats.proportion import proportion_confint
from statsmodels.stats.weightstats import DescrStatsW

from cnslib.core.settings.method import Bootstrap

CLUSTER = ["class", "seed"]
NOTHING = {"n": 0, "estimate": np.nan, "low": np.nan, "high": np.nan}  # the record of what was not measured


def resampling_weights(clusters: int, *, settings: Bootstrap) -> Float[np.ndarray, "resamples+1 clusters"]:
    """How often each cluster occurs: once in row 0, the sample itself, and as drawn with replacement in the others."""
    drawn = np.random.default_rng(settings.seed).multinomial(clusters, np.full(clusters, 1 / clusters), settings.resamples)
    return np.vstack([np.ones(clusters), drawn])


def percentiles(resamples: np.ndarray, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """The interval of the percentile bootstrap along the first axis; bounds are order statistics, so no inf - inf between two of them.

    NaN resamples do not count; where all are NaN or a bound is infinite it is NaN.
    """
    tail = (1 - confidence) / 2
    ordered = np.sort(resamples, axis=0)  # NaN last
    count = (~np.isnan(ordered)).sum(0, keepdims=True)
    places = (np.ceil(count * share - 1).clip(0).astype(int) for share in (tail, 1 - tail))
    low, high = (np.take_along_axis(ordered, place, 0)[0] for place in places)
    return np.where(np.isinf(low), np.nan, low), np.where(np.isinf(high), np.nan, high)


def estimates(samples: Float[np.ndarray, "resamples+1 *columns"], n: int | np.ndarray, confidence: float) -> dict:
    """Numbers with their percentile intervals as the columns n, estimate, low, high of a table, flattened."""
    low, high = percentiles(samples[1:], confidence)
    return {"n": n, "estimate": np.ravel(samples[0]), "low": np.ravel(low), "high": np.ravel(high)}


def record(samples: Float[np.ndarray, "resamples+1"], n: int, confidence: float) -> dict:
    """One number with its percentile interval as a record."""
    low, high = percentiles(np.asarray(samples[1:]), confidence)
    return {"n": int(n), "estimate": float(samples[0]), "low": float(low), "high": float(high)}


def mean(values: pd.Series, rows: pd.DataFrame, *, settings: Bootstrap) -> dict:
    """The mean of one value per row as a record; `rows` say class and seed of each value.

    Rows without a value do not count. One cluster says nothing about others: then there is no interval.
    """
    known = values.notna().to_numpy()
    if not known.any():
        return dict(NOTHING)
    codes = rows[known].groupby(CLUSTER).ngroup().to_numpy()
    found = over_clusters(values[known].to_numpy(float), codes, settings=settings)
    return found if codes.any() else found | {"low": np.nan, "high": np.nan}


def clustered_share(hits: Bool[np.ndarray, "n"], clusters: Int[np.ndarray, "n"], *, settings: Bootstrap) -> dict:
    """A share of cases that come in clusters, with the percentile bootstrap interval over clusters, as a record."""
    return over_clusters(np.asarray(hits, float), pd.factorize(np.asarray(clusters))[0], settings=settings)


def over_clusters(values: Float[np.ndarray, "n"], codes: Int[np.ndarray, "n"], *, settings: Bootstrap) -> dict:
    """The mean of values whose clusters are numbered from 0, as a record."""
    sums, counts = np.bincount(codes, weights=values), np.bincount(codes)
    weights = resampling_weights(len(counts), settings=settings)
    return record((weights @ sums) / (weights @ counts), len(codes), settings.confidence)


def independent_share(hits: Bool[np.ndarray, "n"], *, confidence: float) -> dict:
    """A share of independent cases with its Wilson interval, as a record."""
    return counted(int(np.sum(hits)), len(hits), confidence=confidence)


def counted(hits: int, n: int, *, confidence: float) -> dict:
    """The same of `hits` among `n` cases."""
    low, high = proportion_confint(hits, n, alpha=1 - confidence, method="wilson")
    return {"n": n, "estimate": hits / n, "low": float(low), "high": float(high)}


def independent_mean(values: Float[np.ndarray, "n"], *, confidence: float) -> dict:
    """A mean over independent values with its t interval, as a record; no interval for a single one."""
    low, high = DescrStatsW(values).tconfint_mean(1 - confidence) if len(values) > 1 else (np.nan, np.nan)
    return {"n": len(values), "estimate": float(np.mean(values)), "low": float(low), "high": float(high)}


def records(table: pd.DataFrame, key: str) -> dict[str, dict]:
    """The rows of a results table as metrics records, by the values of one column."""
    columns = ["n", "estimate", "low", "high"]
    return table.set_index(key, verify_integrity=True)[columns].to_dict("index")


def means(table: pd.DataFrame, columns: list[str], by: list[str], *, settings: Bootstrap) -> pd.DataFrame:
    """A tidy table (by, measure, n, estimate, low, high): the mean of each column in each group, groups in order of appearance."""
    records = [
        {**dict(zip(by, key, strict=True)), "measure": column, **mean(part[column], part, settings=settings)}
        for column in columns
        for key, part in table.groupby(by, sort=False)
    ]
    return pd.DataFrame(records)
