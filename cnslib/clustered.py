"""Means over trajectories whose intervals resample whole (class, seed): what was drawn from one noise is not independent."""

import numpy as np
import pandas as pd

from cnslib import stats
from cnslib.config import Bootstrap
from cnslib.stats import CLUSTER, percentiles


def mean(values: pd.Series, rows: pd.DataFrame, *, settings: Bootstrap) -> dict:
    """The mean of one value per row as a record of n, estimate, low, high; `rows` say class and seed of each value.

    Rows without a value do not count. One cluster says nothing about others: then there is no interval.
    """
    known = values.notna().to_numpy()
    if not known.any():
        return {"n": 0, "estimate": np.nan, "low": np.nan, "high": np.nan}
    codes = rows[known].groupby(CLUSTER).ngroup().to_numpy()
    sums, counts = np.bincount(codes, weights=values[known].to_numpy(float)), np.bincount(codes)
    weights = stats.resampling_weights(len(counts), settings=settings)
    means = (weights @ sums) / (weights @ counts)
    low, high = percentiles(means[1:], settings.confidence) if len(counts) > 1 else (np.nan, np.nan)
    return {"n": len(codes), "estimate": float(means[0]), "low": float(low), "high": float(high)}


def means(table: pd.DataFrame, columns: list[str], by: list[str], *, settings: Bootstrap) -> pd.DataFrame:
    """A tidy table (by, measure, n, estimate, low, high): the mean of each column in each group, groups in order of appearance."""
    records = [
        {**dict(zip(by, key, strict=True)), "measure": column, **mean(part[column], part, settings=settings)}
        for column in columns
        for key, part in table.groupby(by, sort=False)
    ]
    return pd.DataFrame(records)


def judged(ours: dict[str, dict], said: pd.DataFrame) -> pd.DataFrame:
    """Our records beside what was published: n, ours, low, high, published, difference and verdict, one row per line of `said`.

    `said` has the columns id, quantity and published, which is a number, "above 0" or "below 0". Raises KeyError for a line that
    is not among ours.
    """
    rows = [{"quantity": line.quantity, **verdict(ours[line.id], str(line.published))} for line in said.itertuples()]
    return pd.DataFrame(rows).set_index("quantity")


def verdict(record: dict, published: str) -> dict:
    """One comparison: a number lies in our interval or not; a direction holds if the whole interval lies on its side of zero."""
    row = {"n": record["n"], "ours": record["estimate"], "low": record["low"], "high": record["high"], "published": published}
    low, high = record["low"], record["high"]
    if not (np.isfinite(low) and np.isfinite(high)):
        return row | {"difference": np.nan, "verdict": "nothing to judge"}
    if published in ("above 0", "below 0"):
        holds, opposite = (low > 0, high < 0) if published == "above 0" else (high < 0, low > 0)
        return row | {"difference": np.nan, "verdict": "holds" if holds else "opposite" if opposite else "undecided"}
    value = float(published)
    word = "agrees" if low <= value <= high else "higher" if low > value else "lower"
    return row | {"difference": record["estimate"] - value, "verdict": word}
