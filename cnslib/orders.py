"""The order of the classifiers on two benchmarks: errors, ranks and agreement side by side (CNS-Bench supplement D, Figs. 16, 17)."""

from dataclasses import replace

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.stats import rankdata

from cnslib import ranking, stats
from cnslib.config import UNSHIFTED
from cnslib.stats import Shares


def common(predictions: pd.DataFrame) -> pd.DataFrame:
    """The rows of the severities that all corruptions have: ImageNet-C's five, and the originals."""
    severities = [set(part["scale"]) for name, part in predictions.groupby("shift", observed=True) if name != UNSHIFTED]
    return predictions[predictions["scale"].isin({0.0, *set.intersection(*severities)})]


def corruption_error(errors: Shares, *, reference: str) -> pd.DataFrame:
    """CE of ImageNet-C: errors summed over its severities, without the originals, divided by the reference model's sum."""
    shifted = replace(errors, samples=errors.samples[..., 1:], bins=errors.bins[1:])
    return stats.corruption_error(shifted, reference=reference)


def mean_errors(errors: Shares) -> Float[np.ndarray, "resamples+1 models"]:
    """Error rate of every model averaged over the shifts and over the scales above 0, in every resample."""
    return errors.samples[:, :-1, :, 1:].mean((1, 3))


def rank_changes(first: Shares, second: Shares) -> pd.DataFrame:
    """Rank of each model by mean error on the first and on the second benchmark, and the change with its interval; 1 is best.

    The two have no pictures in common, so their resamples are drawn independently. Raises ValueError for different models.
    """
    if first.models != second.models:
        raise ValueError(f"rank changes: models {first.models} and {second.models} differ; accepted: the same models")
    one, other = (rankdata(mean_errors(errors), axis=1) for errors in (first, second))
    low, high = stats.percentiles((other - one)[1:], first.confidence)
    ranks = {"first": one[0], "second": other[0], "estimate": (other - one)[0], "low": low, "high": high}
    return pd.DataFrame({"model": first.models, "n": min(first.n[-1], second.n[-1]), **ranks})


def rank_agreement(first: Shares, second: Shares) -> dict:
    """Kendall's tau-b between the orders of the models by mean error on two benchmarks, as a record."""
    tau = ranking.kendall(mean_errors(first), mean_errors(second))
    low, high = stats.percentiles(tau[1:], first.confidence)
    return {"n": int(min(first.n[-1], second.n[-1])), "estimate": float(tau[0]), "low": float(low), "high": float(high)}
