"""What classifiers answer, before anything is averaged: accuracy on two sets of pictures, margins, and a vote of the bare pixels.

Tables of predictions have a row per model and picture: top1, class, margin and probability of the true class (`tables.predictions`).
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from sklearn.neighbors import KNeighborsClassifier
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from cnslib.core import tables
from cnslib.stats import bootstrap

Pictures = tuple[np.ndarray, np.ndarray]  # bytes [n, height, width], and the number of each one's class


def exams(sets: dict[str, pd.DataFrame], *, confidence: float) -> pd.DataFrame:
    """Accuracy of every model on several sets of pictures (exam, model, n, estimate, low, high), Wilson intervals."""
    marked = pd.concat(
        [predictions.assign(exam=exam, right=predictions["top1"] == predictions["class"]) for exam, predictions in sets.items()]
    )
    groups = marked.groupby(["exam", "model"])["right"]
    shares = {key: bootstrap.independent_share(part, confidence=confidence) for key, part in groups}
    return pd.DataFrame(shares).T.rename_axis(["exam", "model"]).reset_index()


def cost(first: pd.DataFrame, second: pd.DataFrame, *, confidence: float) -> pd.DataFrame:
    """Accuracy on the first set minus that on the second, by model (rows of `exams`), smallest first, with Newcombe's interval."""
    hits = [(table["n"] * table["estimate"]).round().astype(int) for table in (first, second)]
    sides = hits[0], first["n"], hits[1], second["n"]
    low, high = confint_proportions_2indep(*sides, method="newcomb", alpha=1 - confidence)
    return pd.DataFrame({"cost": first["estimate"] - second["estimate"], "low": low, "high": high}).sort_values("cost")


def before_the_flip(predictions: pd.DataFrame) -> pd.Series:
    """What is left of the margin at scale 0 at the last scale before the answer turns wrong, a value per trajectory and model.

    Of those that are right at scale 0 and at the next scale, and wrong later: where the second answer is wrong, nothing lies between.
    """
    wide = predictions.pivot(index=["model", *tables.TRAJECTORY], columns="scale", values="margin")
    margin, wrong = wide.to_numpy(), predictions.pivot(index=["model", *tables.TRAJECTORY], columns="scale", values="wrong").to_numpy()
    late = wrong.any(axis=1) & ~wrong[:, :2].any(axis=1)
    before = margin[late, wrong[late].argmax(axis=1) - 1]
    return pd.Series(before / margin[late, 0], index=wide.index[late], name="left")


def neighbour_accuracy(references: Pictures, queries: Pictures, *, classes: Sequence[str], confidence: float) -> pd.DataFrame:
    """The five most similar known pictures vote on each one asked about: share of right votes per class with its Wilson interval.

    `taken for` is the most frequent wrong label, and `how often` its share. Bytes have whole distances: the votes are the same on every
    machine.
    """
    pixels = [pictures.reshape(len(pictures), -1).astype(float) for pictures, _ in (references, queries)]
    vote = KNeighborsClassifier(5, algorithm="brute").fit(pixels[0], references[1])
    numbers = np.unique(queries[1])
    votes = pd.crosstab(queries[1], vote.predict(pixels[1])).reindex(index=numbers, columns=numbers, fill_value=0)
    votes = votes.set_axis(np.array(classes)[numbers]).set_axis(np.array(classes)[numbers], axis=1)
    n, right, wrong = votes.sum(axis=1), np.diag(votes), votes.mask(np.eye(len(votes), dtype=bool), -1)
    low, high = proportion_confint(right, n, alpha=1 - confidence, method="wilson")
    table = pd.DataFrame({"n": n, "estimate": right / n, "low": low, "high": high})
    table["taken for"], table["how often"] = wrong.idxmax(axis=1), wrong.max(axis=1) / n
    return table.rename_axis("class").reset_index()
