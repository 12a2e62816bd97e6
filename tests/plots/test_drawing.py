import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from cnslib.plots import curves, dots, figures
from cnslib.stats import verdicts
from cnslib.stats.accuracy import ALL


@pytest.fixture(autouse=True)
def axes():
    figures.use_style()
    yield plt.subplots()[1]
    plt.close("all")


def estimates(**columns) -> pd.DataFrame:
    table = pd.DataFrame(columns)
    return table.assign(n=40, low=table["estimate"] - 0.1, high=table["estimate"] + 0.1)


def ticks(axes) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]


CURVES = estimates(model=["vit", "vit", "alexnet", "alexnet"], shift=ALL, scale=[0.0, 1.0] * 2, estimate=[0.1, 0.4, 0.2, 0.5])
SLOPES = [{"models_low": 0.5, "low": 0.8, "estimate": 1.0, "high": 1.2, "models_high": 1.5, "scale": scale} for scale in (0.0, 1.0)]
SLOPES = pd.concat([pd.DataFrame(SLOPES).assign(axes=kind) for kind in ("linear", "probit")])
CLAIMS = estimates(claim=[*"abcde"], family=["x"] * 2 + ["y"] * 3, verdict=verdicts.WORDS, estimate=[0.1, 0.1, -0.1, 0.0, np.nan])
KINDS = {  # what is drawn, and some of the points that must be in the picture
    "curves": (lambda axes: curves.estimate_lines(axes, CURVES, label="drop", level=0), {(0.0, 0.1), (1.0, 0.4), (1.0, 0.5)}),
    "ranks": (lambda axes: curves.rank_lines(axes, CURVES), {(0.0, 0.2), (1.0, 0.4)}),
    "slopes": (lambda axes: curves.slope_lines(axes, SLOPES), {(0.0, 1.0), (1.0, 1.0)}),
    "dots": (lambda axes: dots.dots(axes, CURVES[::2], y="model", label="rCE", reference=1), {(0.1, 0), (0.2, 1), (1, 0)}),
    "verdicts": (lambda axes: dots.verdict_rows(axes, CLAIMS), {(0.1, 0), (0.1, 1), (-0.1, 2), (0.0, 3)}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_draws_the_points_of_its_table(axes, kind):
    draw, points = KINDS[kind]
    draw(axes)
    drawn = {(round(float(x), 6), round(float(y), 6)) for line in axes.lines for x, y in zip(*line.get_data(), strict=True)}
    assert points <= drawn
    if kind == "dots":  # the smallest on top
        assert ticks(axes) == ["ViT", "AlexNet"] and axes.yaxis_inverted()
    if kind in ("curves", "ranks"):  # the bands are the intervals
        heights = np.concatenate([band.get_paths()[0].vertices[:, 1] for band in axes.collections])
        assert {0.0, 0.2, 0.3, 0.6} <= set(heights.round(6))
    if kind == "slopes":  # images inside of models
        models, images = (band.get_paths()[0].vertices[:, 1] for band in axes.collections)
        assert (models.min(), models.max(), images.min(), images.max()) == (0.5, 1.5, 0.8, 1.2)
