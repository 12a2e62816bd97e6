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
    return Sheet(
        LESSON,
        {
            "threshold": threshold(labelled[detector], labelled["oracle_ooc"], recall),
            "fpr": false_positives(labelled[detector] <= limits[detector], labelled["oracle_ooc"]),
            "vote": vote(labelled, limits),
            "trajectories": trajectories(table, keep),
            "bias": bias(table, keep),
        },
    )


def threshold(scores: pd.Series, outside: pd.Series, recall: float) -> Exercise:
    """The threshold of one detector that finds a wanted share of the out-of-class images."""
    return Exercise(
        float(np.quantile(scores[outside], recall, method="inverted_cdf")),
        (
            "Low scores raise the alarm. Of the out-of-class images alone, take the value below which the wanted share lies.",
            "`.quantile(...)` of the column, in the out-of-class rows of `labelled` alone.",
        ),
        {
            "That is the quantile of all images. The threshold comes from the images that should be found.": float(
                np.quantile(scores, recall)
            ),
            "That is the quantile of the good images. The threshold comes from the out-of-class ones.": (
                float(np.quantile(scores[~outside], recall))
            ),
            "That finds only the rest of the share: low scores raise the alarm, so the wanted share lies *below* the threshold.": (
                float(np.quantile(scores[outside], 1 - recall))
            ),
        },
        tolerance=0.003,
    )


def false_positives(dropped: pd.Series, outside: pd.Series) -> Exercise:
    """The share of good images that a filter drops."""
    return Exercise(
        float(dropped[~outside].mean()),
        (
            "Of the images in `labelled` that are *not* out of class, which share does the filter drop?",
            'Take `labelled[~labelled["oracle_ooc"]]`, and the mean of `clip_class` at or below its limit.',
        ),
        {
            "That is the share of the dropped images that were good. FPR is the share of the good images that were dropped.": (
                float((~outside)[dropped].mean())
            ),
            "That is the share of all images that is dropped.": float(dropped.mean()),
            "Those are the good images that stay. FPR counts the lost ones.": float((~dropped)[~outside].mean()),
            "That is the share of the out-of-class images that is found: the TPR.": float(dropped[outside].mean()),
        },
        praise="This is the price of the threshold.",
    )


def vote(table: pd.DataFrame, limits: dict[str, float]) -> Exercise:
    """The share of images that two of four tests keep."""
    passed = sum((table[name] > limit).astype(int) for name, limit in limits.items())
    return Exercise(
        float((passed >= PASSES).mean()),
        (
            "Count for each image in `labelled` how many of the four scores lie above their threshold; keep those with at least 2.",
            "`sum(labelled[name] > limit for name, limit in limits.items())` counts the passed tests.",
        ),
        {
            "You dropped an image at two alarms, so three tests must pass. The paper's text says so; its code keeps with two.": (
                float((passed > PASSES).mean())
            ),
            "That is the share of dropped images.": float((passed < PASSES).mean()),
            "Exactly two is too strict: an image that passes three or four tests stays, too.": float((passed == PASSES).mean()),
        },
        praise='"Drop if two fire" and "keep if two pass" differ by one vote, and by many images. A paper should say which one it means.',
    )


def trajectories(table: pd.DataFrame, keep: pd.Series) -> Exercise:
    """The share of trajectories that start in class and are kept at all scales."""
    keys = [table[key] for key in tables.TRAJECTORY]
    groups, started = keep.groupby(keys), filtering.started_in_class(table).groupby(keys).first()
    whole = groups.all()
    return Exercise(
        float((whole & started).mean()),
        (
            "A trajectory is a (shift, class, seed). It stays only if *all* of its images stay: group, then `all`.",
            "It must also start in class: `started`. The share is of *all* trajectories.",
        ),
        {
            "That is the share of images. One lost image takes its whole trajectory along.": float(keep.mean()),
            "Those have at least one image left. A failure point needs every scale.": float(groups.any().mean()),
            "Those are the trajectories that are lost.": float(1 - (whole & started).mean()),
            "Some of these never start in class, and `started` leaves them out.": float(whole.mean()),
            "That is a share of the trajectories that start in class. The share of *all* is asked.": float(whole[started].mean()),
        },
        praise="Whole trajectories are expensive. But a failure point cannot be found on half of one.",
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
        (
            "Take the rows of scale 0 that are `started`. Accuracy on kept trajectories, minus accuracy on all of them.",
            'Kept for good is `keep.groupby([...]).transform("all")`, as in exercise 4; do not round the difference.',
        ),
        {
            "That is at the largest scale. Look at scale 0, where nothing has been shifted.": gain["last"],
            "The sign is turned round: kept minus all.": -gain["zero"],
            "You compared with all trajectories. Those that do not start in class belong on neither side: use `started` on both.": (
                float(zero.loc[whole, "right"].mean() - first["right"].mean())
            ),
            "You kept trajectories that do not start in class. They belong on neither side: use `started` on both.": (
                float(first.loc[whole, "right"].mean() - first["right"].mean())
            ),
            "You kept single images. At scale 0 the two reference tests pass them all. The benchmark keeps whole trajectories.": (
                float(zero.loc[keep.loc[zero.index], "right"].mean() - zero["right"].mean())
            ),
        },
        tolerance=0.0002,
        praise="The images at scale 0 have no shift at all, and yet the filter chooses among them by what happens later.",
    )
