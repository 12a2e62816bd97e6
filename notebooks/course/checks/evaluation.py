"""Lesson 1, why evaluate outside the training distribution: answers to rendered garments, and the exercises on them."""

import numpy as np
import pandas as pd
import torch
from checks.exercises import Exercise, Sheet
from cnslib.core.names import UNSHIFTED
from cnslib.models.classifiers import Classifier
from cnslib.world import scenes
from statsmodels.stats.proportion import proportion_confint

LESSON = "1_evaluation"


def garments(pool: scenes.Garments, classes: list[str], count: int) -> tuple[pd.DataFrame, torch.Tensor]:
    """The first `count` garments of each class: a table (class, seed), and their grey pictures."""
    rows = {name: np.flatnonzero(pool.labels == scenes.CLASSES.index(name))[:count] for name in classes}
    table = pd.DataFrame([(name, seed) for name, found in rows.items() for seed in range(len(found))], columns=["class", "seed"])
    return table, pool.grey[np.concatenate(list(rows.values()))]


def pictures(chosen: tuple[pd.DataFrame, torch.Tensor], shift: str, severity: float) -> np.ndarray:
    """Catalog scenes of some garments under one shift, or "unshifted", uint8; a garment has one pose and background in all of them."""
    table, grey = chosen
    keys = [("course", *key) for key in table[["class", "seed"]].itertuples(index=False, name=None)]
    amounts = torch.full([len(table)], severity)
    return scenes.to_uint8(scenes.render(grey, keys, style="catalog", shift=[shift] * len(table), severity=amounts)).numpy()


def answers(classifiers: list[Classifier], chosen: tuple[pd.DataFrame, torch.Tensor], shifts: list[str], severity: float) -> pd.DataFrame:
    """What each classifier says to every garment, without a shift and under each: model, shift, class, seed, top1, right."""
    parts = []
    for shift in (UNSHIFTED, *shifts):
        shown = pictures(chosen, shift, severity)
        for model in classifiers:
            top = model.logits(shown).argmax(1).tolist()
            parts.append(chosen[0].assign(model=model.name, shift=shift, top1=[model.labels[i] for i in top]))
    table = pd.concat(parts, ignore_index=True)
    return table.assign(right=table["class"] == table["top1"])[["model", "shift", "class", "seed", "top1", "right"]]


def sheet(table: pd.DataFrame, model: str, shift: str) -> Sheet:
    """The exercises on the answers of one classifier to one shift."""
    own = table[table["model"] == model].pivot(index=["class", "seed"], columns="shift", values="right")
    before, after = own[UNSHIFTED], own[shift]
    first, second, n = before.mean(), after.mean(), len(own)
    return Sheet(
        LESSON,
        {
            "accuracy": accuracy(first, table.loc[table["shift"] == UNSHIFTED, "right"].mean()),
            "drop": drop(first, second),
            "interval": interval(int(before.sum()), n),
            "lost": lost(before, after),
            "hardest": hardest(before, after),
        },
    )


def accuracy(value: float, over_models: float) -> Exercise:
    """The accuracy of one classifier on pictures without a shift."""
    return Exercise(
        value,
        (
            "Accuracy is the share of right answers. Choose the rows of one model and of the pictures without a shift first.",
            "The column `right` holds true and false; its mean is the share.",
        ),
        {
            "That is the error, one minus the accuracy.": 1 - value,
            "That is in percent. This course counts shares from 0 to 1.": 100 * value,
            "That is the mean over all models. Choose the rows of one model.": over_models,
        },
    )


def drop(before: float, after: float) -> Exercise:
    """The accuracy drop under a shift, absolute."""
    return Exercise(
        before - after,
        (
            "The drop is absolute: accuracy without the shift, minus accuracy under it.",
            "Compute the accuracy twice, on the same garments, and subtract.",
        ),
        {
            "The sign is turned round. A loss is a positive drop.": after - before,
            "That is the accuracy under the shift, not what was lost.": after,
            "That is relative to the accuracy without a shift. The papers' drop is absolute: a plain difference.": (before - after)
            / before,
        },
        praise="Say *points*, not *percent*, when you speak of such a difference.",
    )


def interval(hits: int, n: int) -> Exercise:
    """Wilson's interval of an accuracy."""
    low, high = proportion_confint(hits, n, 0.05, "wilson")
    share = hits / n
    deviation, error = np.sqrt(share * (1 - share)), np.sqrt(share * (1 - share) / n)
    return Exercise(
        np.array([low, high]),
        (
            "`proportion_confint(hits, n, method=...)` of statsmodels has it.",
            'The method is "wilson"; hits is the number of right answers.',
        ),
        {
            "That is the share plus and minus the spread of single answers. The mean of n answers is surer: divide by the root of n.": (
                share + np.array([-1, 1]) * 1.96 * deviation
            ),
            "That is one standard error to each side, an interval of 68 %. For 95 % take Wilson's interval.": (
                share + np.array([-1, 1]) * error
            ),
            "That is the normal interval, which `proportion_confint` gives by default. It is too short near 0 and 1: ask for Wilson's.": (
                np.array(proportion_confint(hits, n, 0.05, "normal"))
            ),
            "That is the interval of the error. Count the right answers.": np.array([1 - high, 1 - low]),
        },
        praise="Another test set of this size would give another accuracy; the interval says how much that may be.",
    )


def lost(before: pd.Series, after: pd.Series) -> Exercise:
    """How many garments a shift makes wrong."""
    return Exercise(
        float((before & ~after).sum()),
        (
            "Compare garment by garment: right without the shift *and* wrong under it.",
            "Pivot to one row per garment and one column per shift.",
        ),
        {
            "That is the difference of two counts. Some garments are won while others are lost, and the difference hides both.": (
                float(before.sum() - after.sum())
            ),
            "Those are all wrong answers under the shift. Some of these garments were wrong before.": float((~after).sum()),
            "Those are the garments that the shift mended. Turn both conditions round.": float((~before & after).sum()),
        },
        tolerance=0.5,
        praise="Compare it with the drop times the number of garments.",
    )


def hardest(before: pd.Series, after: pd.Series) -> Exercise:
    """What each class loses, and which loses most."""
    means = pd.DataFrame({"before": before, "after": after}).groupby("class").mean()
    loss = means["before"] - means["after"]
    return Exercise(
        loss,
        (
            "Pivot to one row per garment, take the mean of each class with `groupby`, then subtract the two columns.",
            "The answer is a Series with the classes as its labels; do not sort or round it.",
        ),
        {
            "Those are the accuracies under the shift. But how accurate was each class before? The drop compares the two.": means["after"],
            "The sign is turned round. A loss is a positive drop.": -loss,
            "Those are relative to the accuracy without a shift. The drop is absolute: a plain difference.": loss / means["before"],
        },
        praise=f"It is largest for {' and '.join(largest(loss))}. A mean over the classes would not have told you.",
    )


def largest(values: pd.Series) -> tuple[str, ...]:
    """The labels of the largest value, all of them where several share it."""
    return tuple(values.index[values >= values.max() - 1e-9])
