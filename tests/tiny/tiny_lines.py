from collections.abc import Callable

import numpy as np
import pandas as pd
import xarray as xr

from cnslib.stats import line
from cnslib.stats.accuracy import ALL

SCALES = [0.0, 0.5, 1.0]
ID = np.array([0.5, 0.6, 0.7, 0.75, 0.8, 0.9])


def array(draws: np.ndarray, scales: list[float], n: int) -> xr.DataArray:
    labels = {"shift": ["heavy snow", ALL], "n": ("shift", [n, n]), "model": list("abcdefgh"[: draws.shape[1]]), "scale": scales}
    return xr.DataArray(1 - np.stack([draws, draws], 1), labels | {"confidence": 0.95}, ["resample", "shift", "model", "scale"])


def shares(accuracy: np.ndarray, scales: list[float] = SCALES, n: int = 400) -> xr.DataArray:
    return array(np.stack([accuracy] * 3), scales, n)


def catalog(accuracy: np.ndarray, n: int = 400) -> xr.DataArray:
    return shares(np.asarray(accuracy)[:, None], [0.0], n)


def between(sample: tuple[np.ndarray, np.ndarray], resample: tuple[np.ndarray, np.ndarray]) -> xr.Dataset:
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
    rng = np.random.default_rng(seed)
    start = rng.uniform(0.4, 0.95, models)
    ood = (start[:, None] * [0.9, 0.8, 0.6] + rng.normal(0, 0.04, (models, 3))).clip(0.01, 0.99)
    return line.points(shares(ood), catalog(start), axes=axes)
