"""How close drawn images come to the catalog: Frechet distance, accuracy, nearest real images (CNS-Bench section 4.1, Table 2a)."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int, UInt8
from scipy import stats
from sklearn.neighbors import NearestNeighbors

from cnslib import encoders
from cnslib.classifiers import Classifier
from cnslib.samples import WORDS


def frechet_distance(sample: Float[np.ndarray, "n features"], reference: Float[np.ndarray, "m features"]) -> float:
    """Frechet distance of the Gaussians with the two sets' means and covariances (Heusel et al. 2017).

    |mean difference|^2 + tr(S1) + tr(S2) - 2 tr((S1 S2)^(1/2)), nothing shrunk or projected. The last trace is the sum of the
    singular values of R1 R2^T, where S = R^T R: exact also for sets smaller than their dimension, whose covariances are singular
    and for which a matrix root is unstable. The estimate is too large by about 1 / n, so compare sets of equal size only.
    Raises ValueError for a set of fewer than two rows.
    """
    if min(len(sample), len(reference)) < 2:
        raise ValueError(f"Frechet distance: sets of {len(sample)} and {len(reference)} rows; accepted: at least 2")
    first, second = (root_covariance(features.astype(np.float64)) for features in (sample, reference))
    gap = np.square(sample.mean(axis=0, dtype=np.float64) - reference.mean(axis=0, dtype=np.float64)).sum()
    overlap = np.linalg.svd(first @ second.T, compute_uv=False).sum()
    return float(max(gap + np.square(first).sum() + np.square(second).sum() - 2 * overlap, 0.0))


def root_covariance(features: Float[np.ndarray, "n features"]) -> Float[np.ndarray, "k features"]:
    """R of the covariance S = R^T R, from the triangular factor of the centred rows."""
    return np.linalg.qr(features - features.mean(axis=0), mode="r") / np.sqrt(len(features) - 1)


def distance(
    features: Float[np.ndarray, "n features"], seeds: Int[np.ndarray, "n"], reference: Float[np.ndarray, "m features"]
) -> Float[np.ndarray, "values"]:
    """The Frechet distance of all rows to the reference, followed by its values without each seed in turn."""
    return left_out(lambda rows: frechet_distance(features[rows], reference), seeds)


def nearest(features: Float[np.ndarray, "n features"], reference: Float[np.ndarray, "m features"]) -> tuple[np.ndarray, np.ndarray]:
    """For every row the place of its nearest reference and its distance, 1 - cosine. ValueError for an empty reference."""
    if not len(reference):
        raise ValueError("nearest images: the reference is empty; accepted: at least one image")
    away, place = NearestNeighbors(n_neighbors=1, algorithm="brute", metric="cosine").fit(reference).kneighbors(features)
    return place[:, 0], away[:, 0]


def neighbours(
    drawn: pd.DataFrame, features: Float[np.ndarray, "rows features"], sides: dict[str, dict[str, Float[np.ndarray, "m features"]]]
) -> pd.DataFrame:
    """Nearest real images of every drawn one within its class: `<side>` is the distance and `<side>_place` the image.

    `sides` holds reference features by side and class, such as the scenes learned from and held-out ones.
    """
    table = drawn[["prompt", "class", "seed"]].copy()
    for side, known in sides.items():
        for name, rows in table.groupby("class", sort=False).groups.items():
            place, away = nearest(features[rows], known[name])
            table.loc[rows, side], table.loc[rows, f"{side}_place"] = away, place
        table[f"{side}_place"] = table[f"{side}_place"].astype(int)
    return table


def nearer(table: pd.DataFrame, side: str, other: str) -> dict:
    """Share of images that lie nearer to `side` than to `other`, ties as a half, with a jackknife interval over the seeds.

    With as many references on both sides it is one half where nothing is learned by heart.
    """
    score = (1 + np.sign(table[other] - table[side]).to_numpy()) / 2
    return jackknife(left_out(lambda rows: score[rows].mean(), table["seed"].to_numpy()), len(table))


def left_out(statistic: Callable[[np.ndarray], float], seeds: Int[np.ndarray, "rows"]) -> Float[np.ndarray, "values"]:
    """A statistic of all rows (given as a mask), followed by its values without each seed in turn."""
    return np.array([statistic(np.ones(len(seeds), bool)), *(statistic(seeds != seed) for seed in np.unique(seeds))])


def named(judge: Classifier, pictures: UInt8[np.ndarray, "rows height width 3"], classes: list[str]) -> Bool[np.ndarray, "rows"]:
    """Whether the judge's first choice is each picture's class."""
    parts = [judge.logits(pictures[start : start + encoders.BATCH]) for start in range(0, len(pictures), encoders.BATCH)]
    return np.array([judge.labels[i] for i in torch.cat(parts).argmax(dim=1)]) == np.array(classes)


def jackknife(values: Float[np.ndarray, "values"], n: int, *, confidence: float = 0.95) -> dict:
    """A record of the first value; its t interval is from the others, each without one seed (Efron and Tibshirani 1993, ch. 11).

    The bootstrap would not do: repeated rows look like a smaller sample, and the distance grows with that.
    """
    estimate, others = values[0], values[1:]
    half = np.sqrt((len(others) - 1) * others.var()) * stats.t.ppf((1 + confidence) / 2, len(others) - 1)
    return {"n": n, "estimate": estimate, "low": estimate - half, "high": estimate + half}


def frechet_table(
    drawn: pd.DataFrame, features: Float[np.ndarray, "rows features"], references: dict[str, Float[np.ndarray, "m features"]]
) -> pd.DataFrame:
    """Frechet distance of the drawn images to the references of their class, and of all classes ("all"); see `compare`."""
    known, seeds = {"all": np.concatenate(list(references.values()))} | references, drawn["seed"].to_numpy()
    table = compare(drawn, list(references), lambda name, rows: distance(features[rows], seeds[rows], known[name]))
    return bounded(table, highest=None)


def accuracy_table(drawn: pd.DataFrame, correct: Bool[np.ndarray, "rows"]) -> pd.DataFrame:
    """Share of drawn images whose class the judge names, by class and of all classes ("all"); see `compare`."""
    classes, seeds = list(dict.fromkeys(drawn["class"])), drawn["seed"].to_numpy()
    table = compare(drawn, classes, lambda name, rows: left_out(lambda some: correct[rows][some].mean(), seeds[rows]))
    return bounded(table, highest=1.0)


def bounded(table: pd.DataFrame, *, highest: float | None) -> pd.DataFrame:
    """The table with the intervals of the prompts, not of their difference, cut to what is possible: 0 to `highest`."""
    prompts = table["prompt"] != "difference"
    table.loc[prompts, ["low", "high"]] = table.loc[prompts, ["low", "high"]].clip(0, highest)
    return table


def compare(drawn: pd.DataFrame, classes: list[str], values: Callable[[str, np.ndarray], np.ndarray]) -> pd.DataFrame:
    """One row per class and prompt, and one for the difference IN* minus text, which is paired by seed.

    `values` gives a statistic of (class, mask of its rows), followed by its values without each seed.
    """
    found = []
    for name in ["all", *classes]:
        rows = {prompt: ((drawn["prompt"] == prompt) & ((drawn["class"] == name) | (name == "all"))).to_numpy() for prompt in WORDS}
        cases = {prompt: values(name, own) for prompt, own in rows.items()}
        cases["difference"] = cases["in_star"] - cases["text"]
        found += [{"class": name, "prompt": prompt, **jackknife(case, int(rows["text"].sum()))} for prompt, case in cases.items()]
    return pd.DataFrame(found)
