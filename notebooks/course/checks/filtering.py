"""Lesson 4, cleaning generated data: the exercises on filters and on what they do to a result."""

import numpy as np
import pandas as pd
from checks.exercises import Exercise, Sheet
from cnslib.core import tables
from cnslib.core.settings.method import Bootstrap
from cnslib.method import filtering
from cnslib.stats import bootstrap

LESSON = "4_filtering"
PASSES = 2


def joined(scores: pd.DataFrame, answers: pd.DataFrame, model: str) -> pd.DataFrame:
    """The scores with what one classifier said of each image (`right`); the unshifted image stands under every shift."""
    own = answers[answers["model"] == model].astype({"shift": str, "class": str, "top1": str})
    rows = tables.trajectories(own.assign(right=own["class"] == own["top1"])[[*tables.KEY, "right"]], sorted(scores["shift"].unique()))
    return scores.merge(rows, on=tables.KEY, validate="one_to_one")


def sheet(table: pd.DataFrame, *, detector: str, recall: float) -> Sheet:
    """The exercises on images with detector scores, `class_probability`, their label `oracle_ooc` and a classifier's `right`.

    As in the benchmark, thresholds and rates are of the shifted images whose trajectory starts in class.
    """
    labelled = filtering.labelled_images(table)
    limits = filtering.thresholds(labelled, recall)
    keep = filtering.keeps(filtering.rules(PASSES)["ours"], table, limits)
    exercises = {
        "threshold": threshold(labelled[detector], labelled["oracle_ooc"], recall),
        "fpr": false_positives(labelled[detector] <= limits[detector], labelled["oracle_ooc"]),
        "vote": vote(labelled, limits),
        "trajectories": trajectories(table, keep),
        "bias": bias(table, keep),
    }
    return Sheet(LESSON, exercises)


def threshold(scores: pd.Series, outside: pd.Series, recall: float) -> Exercise:
    """The threshold of one detector that finds a wanted share of the out-of-class images."""
    return Exercise(
        np.quantile(scores[outside], recall, method="inverted_cdf"),
        {
            "all": np.quantile(scores, recall),
            "good": np.quantile(scores[~outside], recall),
            "rest": np.quantile(scores[outside], 1 - recall),
        },
        tolerance=0.003,
    )


def false_positives(dropped: pd.Series, outside: pd.Series) -> Exercise:
    """The share of good images that a filter drops."""
    return Exercise(
        dropped[~outside].mean(),
        {
            "precision": (~outside)[dropped].mean(),
            "all": dropped.mean(),
            "stay": (~dropped)[~outside].mean(),
            "tpr": dropped[outside].mean(),
        },
    )


def vote(table: pd.DataFrame, limits: dict[str, float]) -> Exercise:
    """The share of images that two of four tests keep."""
    passed = sum((table[name] > limit).astype(int) for name, limit in limits.items())
    return Exercise(
        (passed >= PASSES).mean(),
        {"alarms": (passed > PASSES).mean(), "dropped": (passed < PASSES).mean(), "exactly": (passed == PASSES).mean()},
    )


def trajectories(table: pd.DataFrame, keep: pd.Series) -> Exercise:
    """The share of trajectories that start in class and are kept at all scales."""
    keys = [table[key] for key in tables.TRAJECTORY]
    groups, started = keep.groupby(keys), filtering.started_in_class(table).groupby(keys).first()
    whole = groups.all()
    return Exercise(
        (whole & started).mean(),
        {
            "images": keep.mean(),
            "any": groups.any().mean(),
            "lost": 1 - (whole & started).mean(),
            "unstarted": whole.mean(),
            "started": whole[started].mean(),
        },
    )


def easier(table: pd.DataFrame, keep: pd.Series, *, settings: Bootstrap) -> dict:
    """What the exercise `bias` asks, as a record; `n` counts the different unshifted pictures, which open a trajectory of each shift."""
    zero = table[filtering.started_in_class(table) & (table["scale"] == table["scale"].min())]
    drawn, units = bootstrap.resampling_weights(zero, settings=settings)
    weights, right, whole = drawn[:, units], zero["right"].to_numpy(float), filtering.whole(table, keep)[zero.index].to_numpy(float)
    gain = weights @ (right * whole) / (weights @ whole) - weights @ right / weights.sum(axis=1)
    return bootstrap.record(gain, len(zero[["class", "seed"]].drop_duplicates()), settings.confidence)


def bias(table: pd.DataFrame, keep: pd.Series) -> Exercise:
    """How much easier the unshifted images of kept trajectories are than those of all that start in class."""
    first = table[table["scale"] == table["scale"].min()]
    whole, started = filtering.whole(table, keep), filtering.started_in_class(table)
    zero, last = (table[started & (table["scale"] == scale)] for scale in (table["scale"].min(), table["scale"].max()))
    gain = {name: float(part.loc[whole, "right"].mean() - part["right"].mean()) for name, part in {"zero": zero, "last": last}.items()}
    return Exercise(
        gain["zero"],
        {
            "last": gain["last"],
            "sign": -gain["zero"],
            "all": (zero.loc[whole, "right"].mean() - first["right"].mean()),
            "unstarted": (first.loc[whole, "right"].mean() - first["right"].mean()),
            "single": (zero.loc[keep.loc[zero.index], "right"].mean() - zero["right"].mean()),
        },
        tolerance=0.0002,
    )
