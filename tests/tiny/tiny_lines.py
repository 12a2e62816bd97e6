"""Accuracies of models on a line, about one, and simulated from abilities."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import xarray as xr
from scipy.stats import norm

from cnslib.core.settings.method import Bootstrap
from cnslib.stats import line
from cnslib.stats.accuracy import ALL, by_shift

SCALES = [0.0, 0.5, 1.0]
SETTINGS = Bootstrap(200, 0.95, 1, "same classes")
ID = np.array([0.5, 0.6, 0.7, 0.75, 0.8, 0.9])


def array(draws: np.ndarray, scales: list[float], n: int) -> xr.DataArray:
    """Errors of one shift (and all shifts) from accuracies [resamples + 1, models, scales]."""
    labels = {"shift": ["heavy snow", ALL], "n": ("shift", [n, n]), "model": list("abcdefgh"[: draws.shape[1]]), "scale": scales}
    return xr.DataArray(1 - np.stack([draws, draws], 1), labels | {"confidence": 0.95}, ["resample", "shift", "model", "scale"])


def shares(accuracy: np.ndarray, scales: list[float] = SCALES, n: int = 400) -> xr.DataArray:
    """Errors of one shift (and all shifts) from accuracies [models, scales], with two resamples like the sample."""
    return array(np.stack([accuracy] * 3), scales, n)


def catalog(accuracy: np.ndarray, n: int = 400) -> xr.DataArray:
    return shares(np.asarray(accuracy)[:, None], [0.0], n)


def between(sample: tuple[np.ndarray, np.ndarray], resample: tuple[np.ndarray, np.ndarray]) -> xr.Dataset:
    """Points of two draws, each the catalog's accuracies and those [models, scales]: one is the sample, the other both resamples."""
    start, ood = (np.stack([own, other, other]) for own, other in zip(sample, resample, strict=True))
    return line.points(array(ood, SCALES, 400), array(start[..., None], [0.0], 400))


def reflections(table: Callable[[xr.Dataset], pd.DataFrame], *, within: tuple[float, float]) -> list[tuple[pd.Series, pd.Series]]:
    """The lower and the upper bounds of a table, each beside what they are when resamples are reflected at the estimate, by hand.

    Both resamples are the same draw: a bound lies as far on the one side of the estimate as their value does on the other.
    """
    sample, resample = ((rng.uniform(0.3, 0.8, 8), rng.uniform(0.3, 0.8, (8, 3))) for rng in map(np.random.default_rng, (1, 2)))
    found, other = table(between(sample, resample)), table(between(resample, resample))
    own, turned = found["estimate"], (2 * found["estimate"] - other["estimate"]).clip(*within)
    return [(found["low"], np.minimum(turned, own)), (found["high"], np.maximum(turned, own))]


def scattered(seed: int, models: int = 8, axes: str = "linear") -> xr.Dataset:
    """Models about a line, the catalog's accuracies and those of three scales drawn at random."""
    rng = np.random.default_rng(seed)
    start = rng.uniform(0.4, 0.95, models)
    ood = (start[:, None] * [0.9, 0.8, 0.6] + rng.normal(0, 0.04, (models, 3))).clip(0.01, 0.99)
    return line.points(shares(ood), catalog(start), axes=axes)


def answered(rng: np.random.Generator, strength: np.ndarray, *, images: int, seed: int) -> xr.DataArray:
    """Errors of models of a known strength on images of one class: an image is right for a model if its strength beats the difficulty."""
    difficulty = rng.normal(0, 0.75, (images, 1)) + rng.normal(0, 0.66, (images, len(strength)))
    keys = {"shift": "heavy snow", "class": "bag", "seed": range(images)}
    labels = {name: ("trajectory", np.broadcast_to(own, images)) for name, own in keys.items()}
    labels |= {"model": [f"m{i:02d}" for i in range(len(strength))], "scale": [0.0]}
    wrong = xr.DataArray((difficulty > strength)[..., None], labels, ["trajectory", "model", "scale"])
    return by_shift(wrong, replace(SETTINGS, seed=seed))


def simulated(rng: np.random.Generator, *, models: int = 12, seeds: int = 100) -> tuple[xr.DataArray, xr.DataArray, np.ndarray, np.ndarray]:
    """Benchmark and catalog of models with known accuracies."""
    ability = np.linspace(0, 1.8, models)
    moved = ability + 0.2 * np.cos(np.arange(models) * 2.4)  # each model stands a little off the line
    errors = answered(rng, moved - 1, images=seeds, seed=1)
    return errors, answered(rng, ability, images=600, seed=2), norm.cdf(ability), norm.cdf(moved - 1)
