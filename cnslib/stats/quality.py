"""How well classes can be told apart by their bare pixels, before any network is trained (notebook 00)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from sklearn.neighbors import KNeighborsClassifier
from statsmodels.stats.proportion import proportion_confint

Pictures = tuple[np.ndarray, np.ndarray]  # bytes [n, height, width], and the number of each one's class


def told_apart(known: Pictures, asked: Pictures, *, classes: Sequence[str], confidence: float) -> pd.DataFrame:
    """The five most similar known pictures vote on each one asked about: share of right votes per class with its Wilson interval.

    `taken for` is the most frequent wrong label, and `how often` its share. Bytes have whole distances: the votes are the same on every
    machine.
    """
    pixels = [pictures.reshape(len(pictures), -1).astype(float) for pictures, _ in (known, asked)]
    vote = KNeighborsClassifier(5, algorithm="brute").fit(pixels[0], known[1])
    numbers = np.unique(asked[1])
    votes = pd.crosstab(asked[1], vote.predict(pixels[1])).reindex(index=numbers, columns=numbers, fill_value=0)
    votes = votes.set_axis(np.array(classes)[numbers]).set_axis(np.array(classes)[numbers], axis=1)
    n, right, wrong = votes.sum(axis=1), np.diag(votes), votes.mask(np.eye(len(votes), dtype=bool), -1)
    low, high = proportion_confint(right, n, alpha=1 - confidence, method="wilson")
    table = pd.DataFrame({"n": n, "estimate": right / n, "low": low, "high": high})
    table["taken for"], table["how often"] = wrong.idxmax(axis=1), wrong.max(axis=1) / n
    return table.rename_axis("class").reset_index()
