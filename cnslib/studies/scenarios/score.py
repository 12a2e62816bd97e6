"""Top-1 accuracies per scenario with their resamples, and XIMAGENET-12's robustness score (section 4, Eqs. 1 to 3).

Every number is computed on the same resamples of objects, for all classifiers and both experiments at once: differences are paired.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float

from cnslib.core.names import UNSHIFTED, demand
from cnslib.core.settings.method import Bootstrap
from cnslib.stats import bootstrap, ranking

# How the score can be read: divisor n - ddof, and whether the inner row is measured from the mean of the cross row, as Eq. 2 says.
CONVENTIONS = {"Eqs. 1 to 3": (0, True), "as Table 2 is printed": (1, False)}
Rows = Float[np.ndarray, "*rows scenarios"]
Row = Float[np.ndarray, "*rows"]


@dataclass(frozen=True)
class Accuracies:
    """Share of objects classified correctly; row 0 is the sample itself, the others are its resamples."""

    samples: Float[np.ndarray, "resamples+1 models scenarios"]
    models: list[str]
    names: list[str]
    n: int
    confidence: float

    def of(self, *names: str) -> Float[np.ndarray, "resamples+1 models names"]:
        """The accuracies under some scenarios."""
        return self.samples[..., [self.names.index(name) for name in names]]

    @property
    def originals(self) -> Float[np.ndarray, "resamples+1 models"]:
        """Accuracy on original images: of the classifier that was trained on them, mu."""
        return self.of(UNSHIFTED)[..., 0]

    def drops(self, names: Iterable[str]) -> Float[np.ndarray, "resamples+1 models names"]:
        """Accuracy on originals minus accuracy under each scenario."""
        return self.originals[..., None] - self.of(*names)

    def record(self, values: Float[np.ndarray, "resamples+1 models"]) -> dict:
        """The mean of some values over the models as a record."""
        return bootstrap.record(values.mean(1), self.n, self.confidence)


def accuracies(predictions: pd.DataFrame, names: Iterable[str], *, settings: Bootstrap) -> Accuracies:
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
    return Accuracies(samples, models, names, len(wide), settings.confidence)


def table1(experiments: dict[str, Accuracies]) -> pd.DataFrame:
    """Top-1 accuracy per experiment, model and scenario with its interval: Table 1."""
    parts = []
    for experiment, found in experiments.items():
        keys = pd.MultiIndex.from_product([found.models, found.names], names=["model", "scenario"]).to_frame(index=False)
        parts.append(keys.assign(experiment=experiment, **bootstrap.estimates(found.samples, found.n, found.confidence)))
    return pd.concat(parts, ignore_index=True)[["experiment", "model", "scenario", "n", "estimate", "low", "high"]]


def losses(found: Accuracies, names: list[str]) -> pd.DataFrame:
    """Accuracy lost by each scenario, mean over models, with its interval, the largest first; p by Holm over the scenarios."""
    drops = found.drops(names).mean(1)
    p = bootstrap.holm(pd.Series(ranking.wald(drops)))
    table = pd.DataFrame({"scenario": names, **bootstrap.estimates(drops, found.n, found.confidence), "p_holm": p})
    return table.sort_values("estimate", ascending=False, ignore_index=True)


def variance(accuracy: Rows, *, mean: float | Row, ddof: int) -> Row:
    """Mean squared deviation of accuracies in [0, 1] from `mean` (mu), over n - ddof: Eqs. 1 and 2 with ddof 0."""
    return ((accuracy - np.asarray(mean)[..., None]) ** 2).sum(-1) / (accuracy.shape[-1] - ddof)


def score(cross: Rows, inner: Rows, *, mean_cross: float | Row, mean_inner: float | Row, ddof: int) -> Row:
    """The robustness score (Eq. 3): 1 minus the variances of both experiments. Eq. 2 wants the same mean in both."""
    return 1 - (variance(cross, mean=mean_cross, ddof=ddof) + variance(inner, mean=mean_inner, ddof=ddof))


def scores(ex1: Accuracies, ex2: Accuracies, names: Iterable[str]) -> pd.DataFrame:
    """The score of every model under each of CONVENTIONS with its interval, and how many others it significantly exceeds (paired).

    Where the inner row has a mean of its own, it is the accuracy of EX2's training on originals. Few objects scatter accuracies and
    enlarge both variances, and resamples do so again: so these are `settled`, and no bound is above 1. Percentiles alone cover 78 %.
    """
    names, parts = list(names), []
    for convention, (ddof, shared) in CONVENTIONS.items():
        mean = ex1.originals if shared else ex2.originals
        values = score(ex1.of(*names), ex2.of(*names), mean_cross=ex1.originals, mean_inner=mean, ddof=ddof)
        settled = bootstrap.settled(values)
        numbers = bootstrap.estimates(np.minimum(settled, 1), ex1.n, ex1.confidence)
        low, _ = bootstrap.bounds(settled[..., None] - settled[:, None], ex1.confidence, None)
        parts.append(pd.DataFrame({"model": ex1.models, "convention": convention, **numbers, "exceeds": (low > 0).sum(1)}))
    return pd.concat(parts, ignore_index=True)
