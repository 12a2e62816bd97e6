import dataclasses

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import torch
import xarray as xr
from golden_units import difference
from tiny_settings import TRAINED as SETTINGS

from cnslib.core import recipes, tables
from cnslib.stats import accuracy
from cnslib.studies.controlshift import datasets, results

RESAMPLED = dataclasses.replace(SETTINGS.bootstrap, resamples=200)
SCALES = [0.0, 1.0, 2.0, 3.0]


class Means:
    def features(self, pictures):
        return torch.from_numpy(pictures.mean((1, 2, 3)))[:, None]


def test_distances_are_those_of_brute_force_to_the_own_training_set_and_the_golden_ones(experiment):
    found = results.from_training(experiment.sets, SETTINGS, Means(), "truncation", ("truncation",))
    known, _ = experiment.examples("train_truncation")
    test = tables.pictures(datasets.evaluation_set(experiment.sets, SETTINGS, ("truncation",)), "test")
    flat = [pictures.reshape(len(pictures), -1) / 255 for pictures in (known, test)]
    brute = np.linalg.norm(flat[1][:, None] - flat[0][None], axis=-1).min(1)
    assert np.allclose(found["pixel"], brute, atol=1e-5)  # a^2 - 2ab + b^2 of 3,072 pixels leaves up to 1e-6 where a = b
    means = [pictures.mean((1, 2, 3)) for pictures in (known, test)]
    assert np.allclose(found["feature"], np.abs(means[1][:, None] - means[0][None]).min(1), atol=1e-5)
    assert not difference(recipes.NEIGHBOURS, found)


def test_the_slope_is_that_of_statsmodels():
    generator = np.random.default_rng(2)
    x, y = (xr.DataArray(generator.normal(size=(6, 9)), dims=["resample", "scale"]) for _ in range(2))
    expected = [sm.OLS(b, sm.add_constant(a)).fit().params[1] for a, b in zip(x.to_numpy(), y.to_numpy(), strict=True)]
    assert np.allclose(results.slope(x, y), expected)


@pytest.mark.parametrize(
    ("right", "steep", "explained"), [([20, 18, 16, 14], -0.1, 1.0), ([15] * 4, 0.0, np.nan), ([20, 10, 10, 20], 0.0, 0.0)]
)
def test_a_tenth_lost_per_unit_is_a_slope_of_minus_a_tenth_a_robust_model_has_none_and_a_bend_is_no_line(right, steep, explained):
    """20 images of one shift; at scale i the first `right[i]` of them are classified correctly, at a distance of i + 1."""
    rows = [
        {"model": "a", "shift": "overlap", "class": "bag", "seed": seed, "scale": scale, "top1": "bag" if seed <= count else "coat"}
        for scale, count in zip(SCALES, right, strict=True)
        for seed in range(1, 21)
    ]
    wrong, away = accuracy.wrong_predictions(pd.DataFrame(rows)), pd.DataFrame(rows).assign(pixel=lambda table: table["scale"] + 1)
    change = -accuracy.drop(accuracy.by_shift(wrong, RESAMPLED))
    far = results.distance(wrong, away, space="pixel", settings=RESAMPLED)
    row = accuracy.interval(results.slope(far, change)).iloc[0]
    assert row["estimate"] == pytest.approx(steep) and row["n"] == 20 and row["low"] <= row["estimate"] <= row["high"]
    assert results.linearity(far, change)["estimate"].iloc[0] == pytest.approx(explained, nan_ok=True)


def errors(curves: dict[str, dict[str, list[float]]]) -> xr.DataArray:
    """Error rates by shift, classifier and step, the same in every resample; the last group is the mean of the shifts."""
    values = np.array([list(own.values()) for own in curves.values()], float)
    values = np.broadcast_to(np.concatenate([values, values.mean(0, keepdims=True)]), (11, len(curves) + 1, *values.shape[1:]))
    labels = {"shift": [*curves, accuracy.ALL], "model": list(next(iter(curves.values()))), "scale": list(range(values.shape[-1]))}
    return xr.DataArray(
        values, labels | {"n": ("shift", [20] * len(values[0])), "confidence": 0.95}, ["resample", "shift", "model", "scale"]
    )


def steepness(found: xr.DataArray) -> xr.DataArray:
    return found.isel(scale=0, drop=True) - found.isel(scale=-1, drop=True)


SETS = {"standard": [0.1, 0.2, 0.3], "twice as many": [0.1, 0.2, 0.2], "full support": [0.1, 0.1, 0.1]}


def test_findings_are_differences_that_a_hand_can_take():
    mixer = {"mixer": [0.9, 0.9, 0.9], "mixer + RandAugment": [0.2, 0.9, 0.9]}  # the first has learned nothing
    curves = {"resnet20": [0.1, 0.2, 0.3], "vit": [0.1, 0.3, 0.5], "resnet20 + RandAugment": [0.1, 0.1, 0.2]}
    own = errors({"overlap": curves | mixer})
    found = results.findings(own, steepness(own), errors({"overlap": SETS}), least=0.2)
    expected = {"decline": 0.3, "augmented": 0.1, "baseline": 0.0, "augmentation": 0.1, "size": 1 / 3, "support": 0.1, "complete": 0.0}
    unknown = {"strongest_extend": np.nan, "strongest_overlap": np.nan}  # there is no truncation here
    values = {name: row["estimate"] for name, row in found.items()}
    assert values == pytest.approx(expected | unknown | {"bias": 0.2}, nan_ok=True)
    assert results.learned(own, 0.2) == [*curves, "mixer + RandAugment"]
    flat = errors({"overlap": SETS | {"standard": [0.1, 0.1, 0.1]}})  # nothing is lost, so there is nothing to share
    assert np.isnan(results.findings(own, steepness(own), flat, least=0.2)["size"]["estimate"])
