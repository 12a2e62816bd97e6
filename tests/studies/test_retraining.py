import numpy as np
import pandas as pd
import pytest
import timm
import torch
from golden_units import difference
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm
from tiny_settings import resampled
from tiny_sliders import CLASSES, SETTINGS, SHIFTS

from cnslib.core import recipes, tables
from cnslib.core.settings.method import Generation
from cnslib.method import generation
from cnslib.models.classifiers import Classifier
from cnslib.studies import retraining

DRAWN = Generation(4, 3.0, [0.0, 1.0], [3.0], 0.75, "", 0, 0)


def crossed(generator, *, classes: int, trainings: int, seeds: int, deviations: tuple[float, float, float, float]) -> np.ndarray:
    """Values with known deviations between classes, trainings, seeds and of the rest."""
    shapes = (classes, 1, 1), (classes, trainings, 1), (classes, 1, seeds), (classes, trainings, seeds)
    return sum(size * generator.normal(size=shape) for size, shape in zip(deviations, shapes, strict=True))


def test_one_class_has_the_mean_squares_of_a_two_way_analysis_of_variance():
    values = np.random.default_rng(1).normal(size=(1, 4, 6))
    rows = pd.DataFrame(list(np.ndindex(4, 6)), columns=["training", "seed"]).assign(value=values.ravel())
    squares = anova_lm(ols("value ~ C(training) + C(seed)", rows).fit())["mean_sq"]
    both = retraining.components(np.concatenate([values, values + 3]))  # two classes alike but for their mean
    assert both["rest"] == pytest.approx(squares["Residual"])
    assert both["training"] == pytest.approx((squares["C(training)"] - squares["Residual"]) / 6)
    assert both["seed"] == pytest.approx((squares["C(seed)"] - squares["Residual"]) / 4)
    shared = both["training"] / 4 + both["seed"] / 6 + both["rest"] / 24
    assert both["class"] == pytest.approx(3**2 / 2 - shared)


def test_known_deviations_are_found_again():
    wanted = (0.4, 0.3, 0.2, 0.1)
    values = crossed(np.random.default_rng(2), classes=400, trainings=4, seeds=10, deviations=wanted)
    table = retraining.deviations(values, settings=resampled(200)).set_index("part")
    assert table["estimate"].to_numpy() == pytest.approx(wanted, abs=0.02)
    assert ((table["low"] <= table["estimate"]) & (table["estimate"] <= table["high"])).all()


def test_sliders_that_all_draw_the_same_add_nothing():
    values = crossed(np.random.default_rng(3), classes=8, trainings=1, seeds=10, deviations=(0.4, 0, 0.2, 0)).repeat(4, axis=1)
    table = retraining.deviations(values, settings=resampled(50)).set_index("part")
    assert table.loc[["training", "rest"], ["estimate", "low", "high"]].to_numpy() == pytest.approx(0, abs=1e-6)
    assert np.isnan(list(retraining.components(values[:, :1]).values())).all()


def test_every_training_is_predicted_once_and_the_tiny_unit_is_the_golden_one(in_place, pipe, origin, tmp_path):
    torch.manual_seed(0)
    network = timm.create_model("resnet10t", num_classes=2).eval()
    shape = {"input_size": (3, 32, 32), "mean": (0.5,) * 3, "std": (0.25,) * 3, "interpolation": "bicubic", "crop_pct": 1.0}
    classifier = Classifier("one", "one", CLASSES, network, timm.data.create_transform(**shape), {}, 1, "cpu")
    sampler = generation.Sampler(pipe, settings=DRAWN, mode=generation.SAMPLING_MODES["exact"])
    grid = {"scales": [0.0, 1.0, 2.0], "seeds": 2}
    how = {"settings": SETTINGS, "recipe": "paper", "origin": origin, "folder": tmp_path}
    found = retraining.predict(sampler, [classifier], [2, 3], SHIFTS[:1], CLASSES, **grid, **how)
    wanted = {(2 + n, SHIFTS[0], name, seed, scale) for n in (0, 1) for name in CLASSES for seed in (1, 2) for scale in (1.0, 2.0)}
    tables.complete(found, wanted, ["training", *tables.KEY], "predictions")
    assert not difference(recipes.RETRAINED, found)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")}
    again = retraining.predict(sampler, [classifier], [2, 3], SHIFTS[:1], CLASSES, **grid, **how)
    assert again.equals(found) and {path: path.stat().st_mtime_ns for path in files} == files
