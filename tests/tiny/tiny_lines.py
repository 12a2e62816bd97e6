"""Accuracies of models on a line, about one, and simulated from abilities."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.stats import norm

from cnslib.core.settings.analyses import Line
from cnslib.core.settings.method import Bootstrap
from cnslib.stats import line
from cnslib.stats.accuracy import ALL, Shares
from cnslib.stats.bootstrap import resampling_weights

SCALES = [0.0, 0.5, 1.0]
FAMILIES = {"resnet": ["a", "b", "c"], "vit": ["d", "e"]}
SETTINGS = Line(Bootstrap(200, 0.95, 1, "same classes"), "catalog", FAMILIES, ["resnet"], ["vit"], [])
ID = np.array([0.5, 0.6, 0.7, 0.75, 0.8, 0.9])


def shares(accuracy: np.ndarray, scales: list[float] = SCALES, n: int = 400) -> Shares:
    """Errors of one shift (and all shifts) from accuracies [models, scales], with two resamples like the sample."""
    samples = np.broadcast_to(1 - np.asarray(accuracy), (3, 2, *np.shape(accuracy)))
    return Shares(samples, ["heavy snow", ALL], np.array([n, n]), list("abcdefgh"[: len(accuracy)]), scales, 0.95)


def catalog(accuracy: np.ndarray, n: int = 400) -> Shares:
    return shares(np.asarray(accuracy)[:, None], [0.0], n)


def between(sample: tuple[np.ndarray, np.ndarray], resample: tuple[np.ndarray, np.ndarray]) -> line.Points:
    """Points of two draws, each the catalog's accuracies and those [models, scales]: one is the sample, the other both resamples."""
    pairs = zip(sample, resample, (catalog(sample[0]), shares(sample[1])), strict=True)
    start, errors = (
        replace(plain, samples=1 - np.stack([own, other, other]).reshape(3, 1, len(own), -1).repeat(2, 1)) for own, other, plain in pairs
    )
    return line.points(errors, start)


def reflections(table: Callable[[line.Points], pd.DataFrame], *, within: tuple[float, float]) -> list[tuple[pd.Series, pd.Series]]:
    """The lower and the upper bounds of a table, each beside what they are when resamples are reflected at the estimate, by hand.

    Both resamples are the same draw: a bound lies as far on the one side of the estimate as their value does on the other.
    """
    sample, resample = ((rng.uniform(0.3, 0.8, 8), rng.uniform(0.3, 0.8, (8, 3))) for rng in map(np.random.default_rng, (1, 2)))
    found, other = table(between(sample, resample)), table(between(resample, resample))
    own, turned = found["estimate"], (2 * found["estimate"] - other["estimate"]).clip(*within)
    return [(found["low"], np.minimum(turned, own)), (found["high"], np.maximum(turned, own))]


def scattered(seed: int, models: int = 8, axes: str = "linear") -> line.Points:
    """Models about a line, the catalog's accuracies and those of three scales drawn at random."""
    rng = np.random.default_rng(seed)
    start = rng.uniform(0.4, 0.95, models)
    ood = (start[:, None] * [0.9, 0.8, 0.6] + rng.normal(0, 0.04, (models, 3))).clip(0.01, 0.99)
    return line.points(shares(ood), catalog(start), axes=axes)


def images(number: int) -> pd.DataFrame:
    """Images of one class, each with a seed of its own."""
    return pd.DataFrame({"class": "bag", "seed": range(number)})


def simulated(rng: np.random.Generator, *, models: int = 12, seeds: int = 100) -> tuple[Shares, Shares, np.ndarray, np.ndarray]:
    """Benchmark and catalog of models with known accuracies: every image is right for a model if ability beats difficulty."""
    ability = np.linspace(0, 1.8, models)
    moved = ability + 0.2 * np.cos(np.arange(models) * 2.4)  # each model stands a little off the line
    parts = []
    for number, strength, draw in ((seeds, moved - 1, 1), (600, ability, 2)):
        difficulty = rng.normal(0, 0.75, (number, 1)) + rng.normal(0, 0.66, (number, models))
        weights = resampling_weights(images(number), settings=replace(SETTINGS.bootstrap, seed=draw))[0]
        samples = np.repeat((weights @ (difficulty > strength) / weights.sum(1, keepdims=True))[:, None, :, None], 2, 1)
        parts.append(Shares(samples, ["heavy snow", ALL], np.array([number] * 2), [f"m{i:02d}" for i in range(models)], [0.0], 0.95))
    return *parts, norm.cdf(ability), norm.cdf(moved - 1)
