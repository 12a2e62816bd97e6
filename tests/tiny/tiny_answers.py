"""Answers of classifiers written as words, one letter per scale, and what is estimated from them."""

import itertools

import numpy as np
import pandas as pd
import xarray as xr
from tiny_settings import resampled

from cnslib.core import tables
from cnslib.core.settings.method import Bootstrap
from cnslib.stats import accuracy

SETTINGS = resampled(300)
SCALES = [0.0, 0.5, 1.0]
HAND = {"alexnet": ["..x", ".xx", ".xx"], "resnet": ["..x", ".x.", "..."]}  # one word per trajectory, x: misclassified


def predictions(words: dict[str, list[str]], shift: str = "heavy snow", scales: list[float] = SCALES) -> pd.DataFrame:
    rows = [
        (model, shift, "bag", seed, scale, "coat" if letter == "x" else "bag")
        for model, own in words.items()
        for seed, word in enumerate(own, start=1)
        for scale, letter in zip(scales, word, strict=True)
    ]
    return pd.DataFrame(rows, columns=["model", "shift", "class", "seed", "scale", "top1"])


def falling(accuracies: list[float], trajectories: int = 1000) -> list[str]:
    right = [round(a * trajectories) for a in accuracies]
    return ["".join("." if i < count else "x" for count in right) for i in range(trajectories)]


def estimates(table: pd.DataFrame, **chosen: str) -> list[float]:
    for key, value in chosen.items():
        table = table[table[key] == value]
    return table["estimate"].tolist()


def errors(table: pd.DataFrame, settings: Bootstrap = SETTINGS) -> xr.DataArray:
    return accuracy.by_shift(accuracy.wrong_predictions(table), settings)


def random_predictions(seed: int, *, shifts: tuple[str, ...] = ("heavy fog", "heavy snow"), trajectories: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    parts = []
    for shift in shifts:
        letters = rng.random((2, trajectories, 3)) < np.array([0.1, 0.3, 0.5])
        words = {m: ["".join(".x"[int(v)] for v in row) for row in own] for m, own in zip(("alexnet", "resnet"), letters, strict=True)}
        parts.append(predictions(words, shift))
    return pd.concat(parts)


def wrong_array(rows: pd.DataFrame, models: list[str], scales: list[float], wrong: np.ndarray) -> xr.DataArray:
    """Wrong predictions [trajectory, model, scale] of these trajectories (shift, class, seed)."""
    keys = {key: ("trajectory", rows[key].to_numpy()) for key in tables.TRAJECTORY}
    return xr.DataArray(np.asarray(wrong), keys | {"model": models, "scale": scales}, ["trajectory", "model", "scale"])


def random_outcomes(*, classes: int = 4, seeds: int = 5, models: int = 3) -> xr.DataArray:
    generator = np.random.default_rng(0)
    names = [f"class {i}" for i in range(classes)]
    rows = pd.DataFrame(itertools.product(["heavy fog", "heavy snow"], names, range(1, seeds + 1)), columns=tables.TRAJECTORY)
    wrong = generator.random((len(rows), models, 4)) < np.linspace(0.1, 0.7, 4)
    return wrong_array(rows, [f"m{i}" for i in range(models)], [0.0, 1.0, 2.0, 3.0], wrong)
