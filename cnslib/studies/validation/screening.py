"""The out-of-class filter as an object of study (extends Table 2b and Fig. 3): rules by name, thresholds carried to other shifts.

A rule judges images; the benchmark keeps the trajectories whose images it keeps at all scales. What a rule does to the results is
measured against the labels.
"""

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from cnslib.core import tables
from cnslib.core.settings.method import Bootstrap, Filtering
from cnslib.method import filtering
from cnslib.method.filtering import DETECTORS, MEASURES, Rule
from cnslib.stats import accuracy, bootstrap, ranking
from cnslib.stats.accuracy import Outcomes, Shares

NAMES = {0: "0 of 4 (no filter)", 2: "2 of 4 (released code)", 3: "3 of 4 (paper's text)"}
NONE, RELEASED, TEXT = NAMES.values()
ALONE = "CLIP alone"
LABELS = "labels"  # keeps what the labels call in class, or partly so
RULES = {NAMES.get(k, f"{k} of 4"): Rule(DETECTORS, k) for k in range(len(DETECTORS) + 1)} | {ALONE: Rule(DETECTORS[:1], 1)}
SINGLES = {name: Rule((name,), 1) for name in DETECTORS}
FILTER = "filter of notebook 04"  # its vote, at its own thresholds
COMPARED = (NONE, RELEASED, TEXT, ALONE)
TITLES = {"tpr": "out of class, dropped (TPR)", "fpr": "in class, dropped (FPR)", "accuracy": "right verdicts"}


def verdicts(scores: pd.DataFrame, limits: dict[str, float], rules: dict[str, Rule] = RULES) -> pd.DataFrame:
    """Whether each rule keeps each image: one column per rule."""
    return pd.DataFrame({name: filtering.keeps(rule, scores, limits) for name, rule in rules.items()})


def by_filter(aligned: pd.DataFrame, labelled: pd.DataFrame, *, labels: int, settings: Filtering) -> pd.Series:
    """Whether the filter of notebook 04 keeps each labelled image: its thresholds come from the oracle's labels of all shifts.

    `aligned` are the alignments of all images with the oracle's probability of their class among so many `labels`.
    """
    scores = aligned.assign(oracle_ooc=filtering.out_of_class(aligned["class_probability"], labels=labels))
    limits = filtering.thresholds(filtering.labelled_images(scores), settings.recall)
    return filtering.keeps(filtering.rules(settings.passes)["ours"], labelled, limits)


def judged(labelled: pd.DataFrame, keep: pd.DataFrame, parts: dict[str, pd.Series], *, settings: Bootstrap) -> pd.DataFrame:
    """TPR, FPR and accuracy of every rule on some parts of the labelled images (Table 2b), with intervals."""
    rows = []
    for part, chosen in parts.items():
        for name in keep:
            found = filtering.quality(labelled[chosen], keep.loc[chosen, name], settings=settings)
            rows += [{"part": part, "rule": name, "measure": measure, **found[measure]} for measure in MEASURES]
    return pd.DataFrame(rows)


def advantage(labelled: pd.DataFrame, first: pd.Series, second: pd.Series, *, settings: Bootstrap) -> dict:
    """Accuracy of the first rule minus that of the second on the same images: a paired difference, as a record."""
    right = [(~keep == labelled["oracle_ooc"]).astype(float) for keep in (first, second)]
    return bootstrap.mean(right[0] - right[1], labelled, settings=settings)


def areas(labelled: pd.DataFrame, parts: dict[str, pd.Series], *, settings: Bootstrap) -> pd.DataFrame:
    """The area under each detector's ROC curve on some parts of the labelled images, with its interval.

    The same numbers as `filtering.areas`, for a thousand resamples in one product. No rows where all images are of one kind.
    """
    columns, rows = ["part", "detector", "n", "estimate", "low", "high"], []
    for part, chosen in parts.items():
        table = labelled[chosen]
        for name in DETECTORS if table["oracle_ooc"].nunique() == 2 else ():
            weights, units = bootstrap.resampling_weights(table, settings=settings)
            won, lots = concordance(table, name, units)
            values = np.einsum("rp,pq,rq->r", weights, won, weights) / (weights @ lots[0]) / (weights @ lots[1])
            rows.append({"part": part, "detector": name, **bootstrap.record(values, len(table), settings.confidence)})
    return pd.DataFrame(rows, columns=columns)


def concordance(
    table: pd.DataFrame, name: str, units: Int[np.ndarray, "rows"]
) -> tuple[Float[np.ndarray, "units units"], Float[np.ndarray, "2 units"]]:
    """For each two units how often an out-of-class image of the first has the lower score than an image of the second.

    Ties count one half. Also the number of images of each kind per unit. The area under the curve is the share of pairs won.
    """
    score, outside = table[name].to_numpy(), table["oracle_ooc"].to_numpy()
    members = np.eye(units.max() + 1)[units]
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
    """Error rate per rule, model and scale over the trajectories that it keeps, all rules on the same resamples.

    The rules take the place of the shifts in the result. A rule that keeps nothing is NaN.
    """
    weights, units = bootstrap.resampling_weights(found.trajectories, settings=settings)
    weights = weights[:, units]
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
    return accuracy.tabulate(apart, errors, errors.bins, models=["mean over models"]).rename(columns={"shift": "rule"})


def agreement(errors: Shares, *, reference: str = LABELS) -> pd.DataFrame:
    """Kendall's tau-b between the order of the models under each rule and under the reference, at every scale; 1 is the same order."""
    same, rows = errors.samples[:, errors.groups.index(reference)], []
    for i, rule in enumerate(errors.groups):
        for j, scale in enumerate(errors.bins):
            sides = errors.samples[:, i, :, j], same[..., j]
            rows.append({"rule": rule, "scale": scale, **ranking.order_record(*sides, errors.n[i], errors.confidence)})
    return pd.DataFrame(rows)


def rocs(labelled: pd.DataFrame, parts: dict[str, pd.Series]) -> pd.DataFrame:
    """The ROC curves of all detectors on every part."""
    return pd.concat([filtering.roc(labelled[chosen]).assign(part=part) for part, chosen in parts.items()], ignore_index=True)


def votes_of(quality: pd.DataFrame, part: str) -> pd.DataFrame:
    """Where the votes of the released code and of the paper's text stand on one part (name, tpr, fpr)."""
    rows = quality[(quality["part"] == part) & quality["measure"].isin(["tpr", "fpr"]) & quality["rule"].isin([RELEASED, TEXT])]
    return rows.pivot(index="rule", columns="measure", values="estimate").dropna().rename_axis("name").reset_index()


def by_passes(quality: pd.DataFrame) -> pd.DataFrame:
    """The rules that count tests, with the number that must pass in the column passes."""
    rows = quality[~quality["rule"].isin([ALONE, FILTER])]
    return rows.assign(passes=rows["rule"].str[0].astype(int))


def above_alone(labelled: pd.DataFrame, keep: pd.DataFrame, parts: dict[str, pd.Series], *, settings: Bootstrap) -> dict:
    """Accuracy of both votes minus that of CLIP alone, as records by (vote, part)."""
    votes = {"vote, released code": RELEASED, "vote, paper's text": TEXT}
    cases = {(name, part): (how, chosen) for name, how in votes.items() for part, chosen in parts.items() if chosen.any()}
    return {
        key: advantage(labelled[chosen], keep.loc[chosen, how], keep.loc[chosen, ALONE], settings=settings)
        for key, (how, chosen) in cases.items()
    }


def tuned(labelled: pd.DataFrame, by_shift: dict[str, pd.Series], rules: dict[str, Rule], recall: float) -> pd.DataFrame:
    """What the rules keep where each shift has thresholds from its own labels."""
    parts = [verdicts(labelled[own], filtering.thresholds(labelled[own], recall), rules) for own in by_shift.values()]
    return pd.concat(parts).loc[labelled.index]


def mean_drops(errors: Shares) -> pd.DataFrame:
    """The accuracy drop under every rule, mean over the models."""
    drops = (errors.samples - errors.samples[..., :1]).mean(2, keepdims=True)
    return accuracy.tabulate(drops, errors, errors.bins, models=["mean"])


def distances(errors: Shares, rule: str, *, reference: str = LABELS) -> pd.DataFrame:
    """How much further from the labels the drop under a rule lies than that under CLIP alone and without a filter (Fig. 3's claims).

    At the last scale, mean over the models, on the same resamples; below 0 the rule comes closer.
    """
    drops = (errors.samples[..., -1] - errors.samples[..., 0]).mean(2)
    apart = dict(zip(errors.groups, np.abs(drops - drops[:, [errors.groups.index(reference)]]).T, strict=True))
    n, rows = errors.n[errors.groups.index(rule)], {}
    for claim, other in {"closer than CLIP alone": ALONE, "closer than no filter": NONE}.items():
        known = {f"distance of {rule}": apart[rule][0], "distance of the other": apart[other][0]}
        rows[claim] = known | bootstrap.record(apart[rule] - apart[other], n, errors.confidence)
    return pd.DataFrame(rows).T


def keyed(quality: pd.DataFrame) -> dict[str, dict]:
    """The quality of every rule on every part as records by "rule, part"."""
    return {f"{rule}, {part}": bootstrap.records(own, "measure") for (rule, part), own in quality.groupby(["rule", "part"])}
