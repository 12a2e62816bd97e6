import numpy as np
import pandas as pd
import pytest
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm
from tiny_settings import resampled

from cnslib.studies import retraining


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
