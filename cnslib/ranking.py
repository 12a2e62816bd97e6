"""Rankings with intervals: ranks, ties and changes of order, on the paired resamples of cnslib.stats (CNS-Bench section 5.3, Figs. 7, 11).

Every resample ranks all classifiers on the same garments, so a rank's interval and the chance that two classifiers change places
know that the classifiers share their images.
"""

import itertools

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.stats import rankdata
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from cnslib.stats import ALL, Shares, percentiles, tabulate

ONE_SIGMA = 0.6827  # coverage of the paper's intervals


def ranks(errors: Shares) -> pd.DataFrame:
    """Rank of every model by accuracy per shift and scale, 1 is best; equal accuracies share their mean rank."""
    ranked = rankdata(errors.samples, axis=2, nan_policy="propagate")
    return tabulate(ranked, errors, errors.bins)


def pairs(errors: Shares, *, shift: str = ALL) -> pd.DataFrame:
    """Accuracy of the first minus that of the second model at every scale, with p value (two-sided, bootstrap) and Holm's correction.

    The correction runs over all pairs of one scale. A p value cannot fall below 2 / (resamples + 1).
    """
    group = errors.groups.index(shift)
    rows = []
    for (i, first), (j, second) in itertools.combinations(enumerate(errors.models), 2):
        difference = errors.samples[:, group, j] - errors.samples[:, group, i]
        low, high = percentiles(difference[1:], errors.confidence)
        columns = {"estimate": difference[0], "low": low, "high": high, "p": two_sided(difference[1:])}
        rows.append(pd.DataFrame({"first": first, "second": second, "scale": errors.bins, "n": errors.n[group], **columns}))
    table = pd.concat(rows, ignore_index=True)
    table["p_holm"] = table.groupby("scale")["p"].transform(lambda p: multipletests(p, method="holm")[1])
    return table


def two_sided(resamples: Float[np.ndarray, "resamples scales"]) -> Float[np.ndarray, "scales"]:
    """Twice the smaller share of resamples on either side of zero; the sample itself counts once, so it is never 0."""
    count = len(resamples) + 1
    below, above = (((side <= 0).sum(0) + 1) / count for side in (resamples, -resamples))
    return np.minimum(1, 2 * np.minimum(below, above))


def flips(errors: Shares, *, shift: str = ALL) -> pd.DataFrame:
    """For each pair of models and each pair of scales, how probable it is that their order is not the same at both.

    A resample in which the two are tied at one of the scales counts one half. `flipped` tells what the sample itself shows.
    """
    group = errors.groups.index(shift)
    rows = []
    for (i, first), (j, second) in itertools.combinations(enumerate(errors.models), 2):
        sign = np.sign(errors.samples[:, group, j] - errors.samples[:, group, i])
        for a, b in itertools.combinations(range(len(errors.bins)), 2):
            changed = (1 - sign[:, a] * sign[:, b]) / 2
            keys = {"first": first, "second": second, "scale": errors.bins[a], "other_scale": errors.bins[b]}
            rows.append({**keys, "n": errors.n[group], "flipped": changed[0] == 1, "probability": np.nanmean(changed[1:])})
    return pd.DataFrame(rows)


def overlap(errors: Shares, *, shift: str = ALL) -> pd.DataFrame:
    """The paper's rule beside ours: two models tie at a scale when their one-sigma binomial intervals overlap (Fig. 7).

    The rule takes images as independent and the two models as unpaired; `pairs` does neither.
    """
    group = errors.groups.index(shift)
    n = int(errors.n[group])
    right = np.rint((1 - errors.samples[0, group]) * n)
    low, high = proportion_confint(right, n, alpha=1 - ONE_SIGMA, method="normal")
    rows = []
    for (i, first), (j, second) in itertools.combinations(enumerate(errors.models), 2):
        tied = (low[i] <= high[j]) & (low[j] <= high[i])
        rows.append(pd.DataFrame({"first": first, "second": second, "scale": errors.bins, "n": n, "tied": tied}))
    return pd.concat(rows, ignore_index=True)


def agreement(errors: Shares) -> pd.DataFrame:
    """Kendall's tau-b between the order of the models at scale 0 and at each scale, per shift; 1 is the same order, -1 the reverse.

    NaN where all models are tied at one of the two scales.
    """
    by_scale = np.moveaxis(errors.samples, 2, -1)
    return tabulate(kendall(by_scale, by_scale[:, :, :1])[:, :, None], errors, errors.bins, models=["order"]).drop(columns="model")


def kendall(first: Float[np.ndarray, "*rows items"], second: Float[np.ndarray, "*rows items"]) -> Float[np.ndarray, "*rows"]:
    """Kendall's tau-b of two orders of the same items, row by row; NaN where all are tied in one of them, or one is not a number."""
    i, j = np.triu_indices(first.shape[-1], 1)
    signs, others = (np.sign(values[..., j] - values[..., i]) for values in (first, second))
    with np.errstate(invalid="ignore"):
        return (signs * others).sum(-1) / np.sqrt((signs**2).sum(-1) * (others**2).sum(-1))
