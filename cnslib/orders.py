"""The order of the classifiers on two benchmarks: errors, ranks and agreement side by side (CNS-Bench supplement D, Figs. 16, 17)."""

from dataclasses import replace

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.stats import rankdata

from cnslib import clustered, ranking, stats
from cnslib.config import UNSHIFTED
from cnslib.stats import Shares, over_images


def common(predictions: pd.DataFrame) -> pd.DataFrame:
    """The rows of the severities that all corruptions have: ImageNet-C's five, and the originals."""
    severities = [set(part["scale"]) for name, part in predictions.groupby("shift", observed=True) if name != UNSHIFTED]
    return predictions[predictions["scale"].isin({0.0, *set.intersection(*severities)})]


def corruption_error(errors: Shares, *, reference: str) -> pd.DataFrame:
    """CE of ImageNet-C: errors summed over its severities, without the originals, divided by the reference model's sum."""
    shifted = replace(errors, samples=errors.samples[..., 1:], bins=errors.bins[1:])
    return stats.corruption_error(shifted, reference=reference)


def mean_errors(errors: Shares, *, shift: str | None = None) -> Float[np.ndarray, "resamples+1 models"]:
    """Error rate of every model averaged over the scales above 0 of one shift, or of all shifts, in every resample.

    A shift that a resample does not contain does not count there.
    """
    chosen = errors.samples[:, :-1] if shift is None else errors.samples[:, [errors.groups.index(shift)]]
    return np.nanmean(chosen[..., 1:], axis=(1, 3))


def rank_changes(first: Shares, second: Shares) -> pd.DataFrame:
    """Rank of each model by mean error on the first and on the second benchmark, and the change with its interval; 1 is best.

    The two have no pictures in common, so their resamples must be independent. Raises ValueError for different models.
    """
    require_same(first, second)
    one, other = (rankdata(mean_errors(errors), axis=1) for errors in (first, second))
    columns = clustered.estimates(other - one, min(first.n[-1], second.n[-1]), first.confidence)
    return pd.DataFrame({"model": first.models, "n": columns.pop("n"), "first": one[0], "second": other[0], **columns})


def require_same(first: Shares, second: Shares) -> None:
    """Raises ValueError unless two benchmarks have the same models."""
    if first.models != second.models:
        raise ValueError(f"orders: models {first.models} and {second.models}; accepted: the same models in both benchmarks")


def rank_agreement(first: Shares, second: Shares, *, shift: str | None = None) -> dict:
    """Kendall's tau-b between the orders of the models by mean error on two benchmarks, as a record; `shift` is one of the second's."""
    require_same(first, second)
    tau = ranking.kendall(mean_errors(first), mean_errors(second, shift=shift))
    return clustered.record(tau, min(first.n[-1], second.n[-1]), first.confidence)


def originals_agreement(errors: Shares) -> dict:
    """The same between the order at scale 0 and that by mean error of one benchmark, paired."""
    return over_images(ranking.kendall(errors.samples[:, -1, :, 0], mean_errors(errors)), errors)


def order_changes(errors: Shares) -> pd.DataFrame:
    """For each pair of models how probable it is that their order by mean error is not the same under all shifts.

    The largest probability over pairs of shifts; a resample in which the two are tied under one of them counts one half.
    """
    first, second = np.triu_indices(len(errors.models), 1)
    by_shift = [mean_errors(errors, shift=shift) for shift in errors.groups[:-1]]
    sign = np.stack([np.sign(values[1:, second] - values[1:, first]) for values in by_shift])
    changed = [((1 - sign[i] * sign[j]) / 2).mean(0) for i, j in zip(*np.triu_indices(len(sign), 1), strict=True)]
    names = {"first": np.array(errors.models, object)[first], "second": np.array(errors.models, object)[second]}
    return pd.DataFrame({**names, "n": errors.n[0], "probability": np.max(changed, axis=0)})
