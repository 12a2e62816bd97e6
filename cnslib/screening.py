"""The out-of-class filter as an object of study: rules by name, thresholds carried to other shifts, what a rule does to the results.

Extends CNS-Bench Table 2b and Fig. 3. A rule judges images; the benchmark keeps the trajectories whose images it keeps at all scales.
"""

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from cnslib import clustered, filtering, ranking, stats, tables
from cnslib.alignment import DETECTORS
from cnslib.config import Bootstrap
from cnslib.filtering import MEASURES, PAIR, Rule
from cnslib.stats import Outcomes, Shares

NAMES = {0: "0 of 4 (no filter)", 2: "2 of 4 (released code)", 3: "3 of 4 (paper's text)"}
NONE, RELEASED, TEXT = NAMES.values()
ALONE = "CLIP alone"
LABELS = "labels"  # keeps what the labels call in class, or partly so
RULES = {NAMES.get(k, f"{k} of 4"): Rule(DETECTORS, k) for k in range(len(DETECTORS) + 1)} | {ALONE: Rule(DETECTORS[:1], 1)}
SINGLES = {name: Rule((name,), 1) for name in DETECTORS}
COMPARED = (NONE, RELEASED, TEXT, ALONE)


def verdicts(scores: pd.DataFrame, limits: dict[str, float], rules: dict[str, Rule] = RULES) -> pd.DataFrame:
    """Whether each rule keeps each image: one column per rule."""
    return pd.DataFrame({name: filtering.keeps(rule, scores, limits) for name, rule in rules.items()})


def judged(labelled: pd.DataFrame, keep: pd.DataFrame, parts: dict[str, pd.Series], *, settings: Bootstrap) -> pd.DataFrame:
    """TPR, FPR and accuracy of every rule on some parts of the labelled images (Table 2b), with intervals over (class, seed)."""
    rows = []
    for part, chosen in parts.items():
        for name in keep:
            found = filtering.quality(labelled[chosen], keep.loc[chosen, name], settings=settings)
            rows += [{"part": part, "rule": name, "measure": measure, **found[measure]} for measure in MEASURES]
    return pd.DataFrame(rows)


def advantage(labelled: pd.DataFrame, first: pd.Series, second: pd.Series, *, settings: Bootstrap) -> dict:
    """Accuracy of the first rule minus that of the second on the same images: a paired difference over (class, seed), as a record."""
    right = [(~keep == labelled["oracle_ooc"]).astype(float) for keep in (first, second)]
    return clustered.mean(right[0] - right[1], labelled, settings=settings)


def areas(labelled: pd.DataFrame, parts: dict[str, pd.Series], *, settings: Bootstrap) -> pd.DataFrame:
    """The area under each detector's ROC curve on some parts of the labelled images, with an interval over (class, seed).

    The same numbers as `filtering.areas`, for a thousand resamples in one product. No rows where all images are of one kind.
    """
    columns, rows = ["part", "detector", "n", "estimate", "low", "high"], []
    for part, chosen in parts.items():
        table = labelled[chosen]
        for name in DETECTORS if table["oracle_ooc"].nunique() == 2 else ():
            won, lots = concordance(table, name)
            weights = clustered.resampling_weights(len(won), settings=settings)
            with np.errstate(invalid="ignore"):  # a resample may miss one kind
                values = np.einsum("rp,pq,rq->r", weights, won, weights) / (weights @ lots[0]) / (weights @ lots[1])
            rows.append({"part": part, "detector": name, **clustered.record(values, len(table), settings.confidence)})
    return pd.DataFrame(rows, columns=columns)


def concordance(table: pd.DataFrame, name: str) -> tuple[Float[np.ndarray, "clusters clusters"], Float[np.ndarray, "2 clusters"]]:
    """For each two clusters how often an out-of-class image of the first has the lower score than an image of the second.

    Ties count one half. Also the number of images of each kind per cluster. The area under the curve is the share of pairs won.
    """
    score, outside, cluster = table[name].to_numpy(), table["oracle_ooc"].to_numpy(), table.groupby(PAIR).ngroup().to_numpy()
    members = np.eye(cluster.max() + 1)[cluster]
    difference = score[~outside] - score[outside][:, None]
    won = members[outside].T @ (0.5 * (np.sign(difference) + 1)) @ members[~outside]
    return won, np.stack([members[outside].sum(0), members[~outside].sum(0)])


def whole(found: Outcomes, scores: pd.DataFrame, keep: pd.DataFrame) -> Bool[np.ndarray, "rules trajectories"]:
    """Whether each rule keeps each trajectory at all of its scales; trajectories that were not scored count as not kept."""
    zero = scores["scale"] == 0
    index = pd.MultiIndex.from_frame(found.trajectories)
    kept = [
        filtering.whole(scores, keep[name])[zero].set_axis(pd.MultiIndex.from_frame(scores.loc[zero, tables.TRAJECTORY])) for name in keep
    ]
    return np.stack([row.reindex(index, fill_value=False).to_numpy(bool) for row in kept])


def screened(found: Outcomes, kept: Bool[np.ndarray, "rules trajectories"], names: list[str], *, settings: Bootstrap) -> Shares:
    """Error rate per rule, model and scale over the trajectories that it keeps, all rules on the same resamples of (class, seed).

    The rules take the place of the shifts in the result. A rule that keeps nothing of a resample is NaN there.
    """
    cluster = found.trajectories.groupby(clustered.CLUSTER).ngroup().to_numpy()
    weights = clustered.resampling_weights(cluster.max() + 1, settings=settings)[:, cluster]
    sums = np.stack([np.tensordot(weights[:, row], found.wrong[row].astype(float), 1) for row in kept], 1)
    counts = np.stack([weights[:, row].sum(1) for row in kept], 1)
    with np.errstate(invalid="ignore"):
        shares = sums / counts[..., None, None]
    return Shares(shares, list(names), counts[0].astype(int), found.models, found.scales, settings.confidence)


def excess(errors: Shares, *, reference: str = LABELS) -> pd.DataFrame:
    """Accuracy drop under each rule minus that under the reference, averaged over the models, at every scale (Fig. 3).

    Negative where the rule removes images that are hard but in class, positive where it leaves images that have lost their class.
    """
    drops = (errors.samples - errors.samples[..., :1]).mean(2, keepdims=True)
    apart = drops - drops[:, [errors.groups.index(reference)]]
    return stats.tabulate(apart, errors, errors.bins, models=["mean over models"]).rename(columns={"shift": "rule"})


def agreement(errors: Shares, *, reference: str = LABELS) -> pd.DataFrame:
    """Kendall's tau-b between the order of the models under each rule and under the reference, at every scale; 1 is the same order."""
    by_scale = np.moveaxis(errors.samples, [1, 2], [0, -1])
    same = by_scale[errors.groups.index(reference)]
    tau = np.stack([ranking.kendall(group, same) for group in by_scale], axis=1)
    table = stats.tabulate(tau[:, :, None], errors, errors.bins, models=["order"])
    return table.drop(columns="model").rename(columns={"shift": "rule"})
