"""Errors on images without a shift that no training has seen: from the answers to each image, or from published accuracies."""

from pathlib import Path

import numpy as np
import pandas as pd

from cnslib import stats, tables
from cnslib.config import Bootstrap
from cnslib.stats import ALL, Shares

GROUP = "catalog"
SUMMARY = "heldout.csv"  # model, n, accuracy: where answers to single images are not known


def shares(folder: Path, *, settings: Bootstrap) -> Shares:
    """Error rates on the held-out images of an evaluation's folder, with resamples of (class, seed).

    Where only accuracies are known (`SUMMARY`), the resamples are binomial: the images are independent, and which of them two
    classifiers share is lost. Raises FileNotFoundError where there is neither, ValueError as `stats.outcomes` does.
    """
    files = sorted((folder / "heldout").glob("*.parquet"))
    if not files and (folder / SUMMARY).exists():
        return from_accuracies(pd.read_csv(folder / SUMMARY), settings=settings)
    answers = tables.read_answers(files)
    return stats.error_shares(stats.outcomes(answers.assign(shift=GROUP)), settings=settings)


def from_accuracies(table: pd.DataFrame, *, settings: Bootstrap) -> Shares:
    """Error rates from accuracies (model, n, accuracy), which share one n; the same seed gives the same resamples."""
    table = table.sort_values("model", ignore_index=True)
    n, errors = int(table["n"].iloc[0]), 1 - table["accuracy"].to_numpy()
    drawn = np.random.default_rng(settings.seed).binomial(n, errors, (settings.resamples, len(table))) / n
    samples = np.vstack([errors, drawn])[:, None, :, None].repeat(2, axis=1)
    return Shares(samples, [GROUP, ALL], np.array([n, n]), table["model"].tolist(), [0.0], settings.confidence)


def spread(found: Shares, models: list[str]) -> Shares:
    """The same for all of `models`, in their order; one whose accuracy is not known has NaN."""
    if found.models == models:
        return found
    samples = np.full((*found.samples.shape[:2], len(models), 1), np.nan)
    for place, name in enumerate(models):
        if name in found.models:
            samples[:, :, place] = found.samples[:, :, found.models.index(name)]
    return Shares(samples, found.groups, found.n, models, found.bins, found.confidence)
