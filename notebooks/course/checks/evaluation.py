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


def predictions(
    classifiers: list[Classifier], chosen: tuple[pd.DataFrame, torch.Tensor], shifts: list[str], severity: float
) -> pd.DataFrame:
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
    exercises = {
        "accuracy": accuracy(first, table.loc[table["shift"] == UNSHIFTED, "right"].mean()),
        "drop": drop(first, second),
        "interval": interval(int(before.sum()), n),
        "lost": lost(before, after),
        "hardest": hardest(before, after),
    }
    return Sheet(LESSON, exercises)


def accuracy(value: float, over_models: float) -> Exercise:
    """The accuracy of one classifier on pictures without a shift."""
    return Exercise(value, {"error": 1 - value, "percent": 100 * value, "pooled": over_models})


def drop(before: float, after: float) -> Exercise:
    """The accuracy drop under a shift, absolute."""
    return Exercise(before - after, {"sign": after - before, "after": after, "relative": (before - after) / before})


def interval(hits: int, n: int) -> Exercise:
    """Wilson's interval of an accuracy."""
    low, high = proportion_confint(hits, n, 0.05, "wilson")
    share = hits / n
    deviation, error = np.sqrt(share * (1 - share)), np.sqrt(share * (1 - share) / n)
    return Exercise(
        np.array([low, high]),
        {
            "spread": share + np.array([-1, 1]) * 1.96 * deviation,
            "one_error": share + np.array([-1, 1]) * error,
            "normal": np.array(proportion_confint(hits, n, 0.05, "normal")),
            "error": np.array([1 - high, 1 - low]),
        },
    )


def lost(before: pd.Series, after: pd.Series) -> Exercise:
    """How many garments a shift makes wrong."""
    return Exercise(
        (before & ~after).sum(),
        {"difference": before.sum() - after.sum(), "wrong": (~after).sum(), "mended": (~before & after).sum()},
        tolerance=0.5,
    )


def hardest(before: pd.Series, after: pd.Series) -> Exercise:
    """What each class loses, and which loses most."""
    means = pd.DataFrame({"before": before, "after": after}).groupby("class").mean()
    loss = means["before"] - means["after"]
    return Exercise(
        loss,
        {"after": means["after"], "sign": -loss, "relative": loss / means["before"]},
        praise=f"It is largest for {loss.idxmax()}. A mean over the classes would not have told you.",
    )
