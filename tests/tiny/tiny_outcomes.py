"""Arrays of wrong predictions: known ones, and random ones."""

import itertools

import numpy as np
import pandas as pd
import xarray as xr

from cnslib.core import tables


def wrong_array(rows: pd.DataFrame, models: list[str], scales: list[float], wrong: np.ndarray) -> xr.DataArray:
    """Wrong predictions [trajectory, model, scale] of these trajectories (shift, class, seed)."""
    keys = {key: ("trajectory", rows[key].to_numpy()) for key in tables.TRAJECTORY}
    return xr.DataArray(np.asarray(wrong), keys | {"model": models, "scale": scales}, ["trajectory", "model", "scale"])


def random_outcomes(*, classes: int = 4, seeds: int = 5, models: int = 3) -> xr.DataArray:
    """Predictions that are wrong at random, the more often the larger the scale."""
    generator = np.random.default_rng(0)
    names = [f"class {i}" for i in range(classes)]
    rows = pd.DataFrame(itertools.product(["heavy fog", "heavy snow"], names, range(1, seeds + 1)), columns=tables.TRAJECTORY)
    wrong = generator.random((len(rows), models, 4)) < np.linspace(0.1, 0.7, 4)
    return wrong_array(rows, [f"m{i}" for i in range(models)], [0.0, 1.0, 2.0, 3.0], wrong)
