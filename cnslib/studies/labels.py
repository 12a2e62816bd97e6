"""The labelled set of CNS-Bench (section I.1), two answers to each image, and the out-of-class filter against it (Table 2b, Fig. 3)."""

from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
import xarray as xr
from jaxtyping import Bool, Float

from cnslib.core import recipes, tables, units, workers
from cnslib.core.names import UNSHIFTED, demand
from cnslib.core.settings.method import Bootstrap
from cnslib.data import annotations, artifacts
from cnslib.method.filtering import DETECTORS, Rule
from cnslib.models.encoders import Oracle
from cnslib.stats import accuracy, bootstrap

CLASS, PARTIAL, NOT = annotations.ANSWERS
IN, PARTLY, OUT = KINDS = annotations.KINDS
ANNOTATORS = annotations.ANNOTATORS
DROPPED, EASY, HARD = "dropped", "easy", "hard"  # in stage (ii), in stage (iii), for annotators
STAGE = {"stage": pa.Column(str, pa.Check.isin([EASY, HARD])), "kind": pa.Column(str, pa.Check.isin(KINDS))}
schema = tables.schema(tables.KEY, {**tables.IDENTITY, **STAGE, "out_of_class": pa.Column(bool)})
mirrored_schema = tables.schema(tables.KEY, {**tables.IDENTITY, "mirrored_probability": pa.Column(float, pa.Check.in_range(0, 1))})


def hits(predictions: pd.DataFrame, shifts: list[str], models: list[str]) -> pd.DataFrame:
    """Whether each of some classifiers is right: a column per classifier, an image per row, scale 0 under every shift."""
    for name in models:
        demand(name in set(predictions["model"]), "labels.expert and labels.peers", name, "classifiers of evaluation.classifiers")
    rows = tables.trajectories(predictions[predictions["model"].isin(models)], shifts).astype(dict.fromkeys(tables.TEXTS, str))
    return rows.assign(right=rows["top1"] == rows["class"]).pivot(index=tables.KEY, columns="model", values="right")


def recognised_by_expert(unshifted: pd.DataFrame, right: pd.DataFrame, expert: str) -> Bool[np.ndarray, "rows"]:
    """Whether the expert is right about each unshifted image. ValueError where it never is: no seed would pass stage (ii)."""
    recognised = right.loc[pd.MultiIndex.from_frame(unshifted[tables.KEY]), expert].to_numpy(bool)
    demand(
        bool(recognised.any()),
        f"labels.expert, which knows none of {len(recognised)} unshifted images",
        expert,
        "a classifier that knows some",
    )
    return recognised


def staged(aligned: pd.DataFrame, right: pd.DataFrame, *, cut: float, expert: str, peers: list[str]) -> pd.Series:
    """The stage that decides about each image: "dropped" in (ii), "easy" in (iii), "hard" for the annotators in (iv).

    A seed stays if the expert knows its unshifted image and the text alignment reaches the cut. A shifted image is easy, and in class, if
    the same holds for it and one of the peers knows it too.
    """
    recognised = right.loc[pd.MultiIndex.from_frame(aligned[tables.KEY])].set_axis(aligned.index)
    good = recognised[expert] & (aligned["clip_class"] >= cut)
    starts = (good & (aligned["scale"] == 0)).groupby([aligned[key] for key in tables.TRAJECTORY]).transform("any")
    return pd.Series(np.select([~starts, good & recognised[peers].any(axis=1)], [DROPPED, EASY], HARD), index=aligned.index)


def mirrored(images: Path, shifts: list[str], *, oracle: Oracle, folder: Path) -> pd.Series:
    """The oracle's probability of the class of each generated image turned round from left to right, by key, scale 0 unshifted."""
    contents = {name: units.verified(images / units.file_of(name)) for name in (UNSHIFTED, *shifts)}
    stamps = {name: recipes.MIRRORED.stamp(name, content, oracle.digest, oracle.labels) for name, content in contents.items()}

    def rows(name: str) -> pd.DataFrame:
        parts = artifacts.batches(images, name)
        return pd.concat([part[tables.KEY].assign(mirrored_probability=mirrored_probability(part, oracle)) for part in parts])

    probabilities = workers.stored(stamps, rows, mirrored_schema, folder=folder, device=oracle.device)
    return probabilities.set_index(tables.KEY)["mirrored_probability"]


def mirrored_probability(rows: pd.DataFrame, oracle: Oracle) -> Float[np.ndarray, "rows"]:
    """The oracle's probability of each row's class when it sees the row's `image` turned round from left to right."""
    if rows.empty:
        return np.zeros(0)
    pictures = np.ascontiguousarray(tables.pictures(rows, "images to label")[:, :, ::-1])
    places = np.array([oracle.labels.index(name) for name in rows["class"]])
    return np.take_along_axis(oracle.class_probability(pictures).double().numpy(), places[:, None], 1)[:, 0]


def oracle_labels(rows: pd.DataFrame, mirrored: Float[np.ndarray, "rows"], *, chance: float) -> pd.DataFrame:
    """Both "annotators" where no people answer: the oracle on each picture (`class_probability`), and on its mirror image.

    "class" from a probability of one half, "not class" below chance, "partial class properties" in between.
    """
    views = zip(ANNOTATORS, (rows["class_probability"].to_numpy(), mirrored), strict=True)
    return pd.DataFrame({who: np.select([view >= 0.5, view < chance], [CLASS, NOT], PARTIAL) for who, view in views}, index=rows.index)


def kappa(rows: pd.DataFrame, answers: pd.DataFrame, *, settings: Bootstrap) -> dict:
    """Cohen's kappa of the two annotators with its interval, as a record; no number where all answers are alike."""
    if answers.empty or answers[ANNOTATORS].stack().nunique() == 1:
        return bootstrap.NOTHING | {"n": len(answers)}
    weights, unit = bootstrap.resampling_weights(rows, settings=settings)
    first, second = (answers[who].map(annotations.ANSWERS.index).to_numpy() for who in ANNOTATORS)
    counts = np.zeros((weights.shape[1], 3, 3))
    np.add.at(counts, (unit, first, second), 1)
    table = np.tensordot(weights, counts, 1)
    total, agreed = table.sum((1, 2)), table.trace(axis1=1, axis2=2)
    chance = (table.sum(2) * table.sum(1)).sum(1) / total
    with np.errstate(invalid="ignore"):  # a resample of nothing but one answer
        return bootstrap.record(1 - (total - agreed) / (total - chance), len(answers), settings.confidence)


# What a filter does to the labelled set (Table 2b, Fig. 3, section J).

NAMES = {0: "0 of 4 (no filter)", 2: "2 of 4 (released code)", 3: "3 of 4 (paper's text)"}
NONE, RELEASED, TEXT = NAMES.values()
ALONE = "CLIP alone"
LABELS = "labels"  # keeps what the labels call in class, or partly so
FILTER = "filter of notebook 04"  # its vote, at its own thresholds
RULES = {NAMES.get(k, f"{k} of 4"): Rule(DETECTORS, k) for k in range(len(DETECTORS) + 1)} | {ALONE: Rule(DETECTORS[:1], 1)}
SINGLES = {name: Rule((name,), 1) for name in DETECTORS}


def screened(wrong: xr.DataArray, scores: pd.DataFrame, keep: pd.DataFrame, *, settings: Bootstrap) -> xr.DataArray:
    """Error rates over the trajectories that each rule keeps at all scales, [resample, rule, model, scale], on the same resamples.

    Trajectories without scores count as not kept; a rule that keeps nothing is NaN.
    """
    whole = keep.groupby([scores[key] for key in tables.TRAJECTORY]).all()
    kept = whole.reindex(pd.MultiIndex.from_frame(accuracy.trajectories(wrong)), fill_value=False).to_numpy(bool).T
    weights, units = bootstrap.resampling_weights(accuracy.trajectories(wrong), settings=settings)
    weights, values = weights[:, units], wrong.to_numpy().astype(float)
    with np.errstate(invalid="ignore"):
        rates = [np.tensordot(weights[:, rows], values[rows], 1) / weights[:, rows].sum(1)[:, None, None] for rows in kept]
    labels = {"rule": list(keep), "n": ("rule", kept.sum(1)), "model": wrong["model"], "scale": wrong["scale"]}
    return xr.DataArray(np.stack(rates, 1), labels | {"confidence": settings.confidence}, ["resample", "rule", "model", "scale"])


def study_sample(rows: pd.DataFrame, size: int, seed: int) -> pd.DataFrame:
    """A seeded sample in which every (shift, scale) has its proportional number of images, up to one (section J).

    Of rows in random order within their stratum every N/n-th is taken from a random start; all where there are no more.
    """
    rng = np.random.default_rng(seed)
    shuffled = rows.sort_values(tables.KEY).iloc[rng.permutation(len(rows))].sort_values(["shift", "scale"], kind="stable")
    count = min(size, len(rows))
    places = ((np.arange(count) + rng.uniform()) * len(rows) / max(count, 1)).astype(int)
    return shuffled.iloc[places].sort_values(tables.KEY)
