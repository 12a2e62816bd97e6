"""Top-1 accuracies per scenario with their resamples, and XIMAGENET-12's robustness score (section 4, Eqs. 1 to 3).

Accuracies are labelled arrays [resample, model, scenario], entry 0 of "resample" the estimate; all come from the same resamples of
objects, for all classifiers and both experiments at once, so differences are paired.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float

from cnslib.core.names import UNSHIFTED, demand
from cnslib.core.settings.method import Bootstrap
from cnslib.stats import accuracy, bootstrap, ranking

# How the score can be read: divisor n - ddof, and whether the inner row is measured from the mean of the cross row, as Eq. 2 says.
CONVENTIONS = {"Eqs. 1 to 3": (0, True), "as Table 2 is printed": (1, False)}
Rows = Float[np.ndarray, "*rows scenarios"]
Row = Float[np.ndarray, "*rows"]


def accuracies(predictions: pd.DataFrame, names: Iterable[str], *, settings: Bootstrap) -> xr.DataArray:
    """Accuracy of every model under every scenario at severity 1, and on originals. ValueError where a prediction is missing."""
    names = list(names)
    rows = predictions[predictions["shift"].isin(names) & ((predictions["scale"] == 1) | (predictions["shift"] == UNSHIFTED))]
    marked = rows.assign(right=(rows["top1"] == rows["class"]).astype(float))
    wide = marked.pivot(index=["class", "seed"], columns=["model", "shift"], values="right").sort_index()
    models = sorted(set(rows["model"]))
    wide = wide.reindex(columns=pd.MultiIndex.from_product([models, names]))
    missing = int(wide.isna().sum().sum())
    demand(missing == 0, "missing predictions", missing, "one for every model, scenario and object")
    weights, units = bootstrap.resampling_weights(wide.index.to_frame(index=False), settings=settings)
    weights = weights[:, units]
    samples = (weights @ wide.to_numpy() / weights.sum(1, keepdims=True)).reshape(len(weights), len(models), len(names))
    labels = {"model": models, "scenario": names, "n": len(wide), "confidence": settings.confidence}
    return xr.DataArray(samples, labels, ["resample", "model", "scenario"])


def originals(found: xr.DataArray) -> xr.DataArray:
    """Accuracy on original images: of the classifier that was trained on them, mu."""
    return found.sel(scenario=UNSHIFTED, drop=True)


def losses(found: xr.DataArray, names: Iterable[str]) -> pd.DataFrame:
    """Accuracy lost by each scenario, mean over models, with its interval, the largest first; p by Holm over the scenarios."""
    drops = (originals(found) - found.sel(scenario=list(names))).mean("model").transpose("resample", "scenario")
    table = accuracy.interval(drops).assign(p_holm=bootstrap.holm(pd.Series(ranking.wald(drops.to_numpy()))))
    return table.sort_values("estimate", ascending=False, ignore_index=True)


def variance(accuracy: Rows, *, mean: float | Row, ddof: int) -> Row:
    """Mean squared deviation of accuracies in [0, 1] from `mean` (mu), over n - ddof: Eqs. 1 and 2 with ddof 0."""
    return ((accuracy - np.asarray(mean)[..., None]) ** 2).sum(-1) / (accuracy.shape[-1] - ddof)


def score(cross: Rows, inner: Rows, *, mean_cross: float | Row, mean_inner: float | Row, ddof: int) -> Row:
    """The robustness score (Eq. 3): 1 minus the variances of both experiments. Eq. 2 wants the same mean in both."""
    return 1 - (variance(cross, mean=mean_cross, ddof=ddof) + variance(inner, mean=mean_inner, ddof=ddof))


def scores(ex1: xr.DataArray, ex2: xr.DataArray, names: Iterable[str]) -> pd.DataFrame:
    """The score of every model under each of CONVENTIONS with its interval, and how many others it significantly exceeds (paired).

    Where the inner row has a mean of its own, it is the accuracy of EX2's training on originals. Few objects scatter accuracies and
    enlarge both variances, and resamples do so again: so these are `settled`, and no bound is above 1. Percentiles alone cover 78 %.
    """
    parts, confidence = [], ex1["confidence"].item()
    rows = [found.sel(scenario=list(names)).to_numpy() for found in (ex1, ex2)]
    mean, own = (originals(found).to_numpy() for found in (ex1, ex2))
    for convention, (ddof, shared) in CONVENTIONS.items():
        settled = bootstrap.settled(score(*rows, mean_cross=mean, mean_inner=mean if shared else own, ddof=ddof))
        numbers = bootstrap.estimates(np.minimum(settled, 1), ex1["n"].item(), confidence)
        low, _ = bootstrap.bounds(settled[..., None] - settled[:, None], confidence, None)
        parts.append(pd.DataFrame({"model": ex1["model"], "convention": convention, **numbers, "exceeds": (low > 0).sum(1)}))
    return pd.concat(parts, ignore_index=True)
