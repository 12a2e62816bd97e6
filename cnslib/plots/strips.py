"""One trajectory close up: its pictures, and under them who is right at each scale, or how sure each classifier is of the class."""

import numpy as np
import pandas as pd
from jaxtyping import UInt8
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cnslib.plots import palette
from cnslib.plots.sheets import ABSENT

RIGHT, WRONG = palette.look(0)["color"], palette.look(1)["color"]
Grid = UInt8[np.ndarray, "1 scales height width 3"]


def frames(grid: Grid | None, scales: list[float], *, height: float) -> tuple[Figure, Axes]:
    """The strip of one trajectory above an axes of that height in inches, whose x is the place of a scale; a sentence without pictures."""
    ratios = [0.85, height]
    figure, (top, axes) = plt.subplots(
        2, 1, figsize=(0.85 * len(scales) + 1.2, sum(ratios)), height_ratios=ratios, sharex=True, layout="constrained"
    )
    for place, picture in enumerate([] if grid is None else grid[0]):
        top.imshow(picture, extent=(place - 0.48, place + 0.48, 0, 0.96), interpolation="none")
    if grid is None:
        top.text(0.5, 0.5, ABSENT, ha="center", va="center", wrap=True, transform=top.transAxes)
    top.set(xlim=(-0.5, len(scales) - 0.5), ylim=(0, 0.96), aspect="auto")
    top.set_axis_off()
    axes.set_xticks(range(len(scales)), [f"{scale:g}" for scale in scales])
    axes.set_xlabel("slider scale")
    return figure, axes


def answered(grid: Grid | None, table: pd.DataFrame) -> Figure:
    """Which classifier is right at which scale (model, scale, right, failure_point), who fails first on top; rings are failure points."""
    scales = sorted(table["scale"].unique())
    ordered = table.sort_values(["failure_point", "model"], na_position="last")
    models = list(dict.fromkeys(ordered["model"]))
    figure, axes = frames(grid, scales, height=0.4 + 0.17 * len(models))
    x, y = table["scale"].map(scales.index), table["model"].map(models.index)
    right, first = table["right"].to_numpy(), (table["scale"] == table["failure_point"]).to_numpy()
    axes.scatter(x[right], y[right], s=26, marker="o", color=RIGHT, label="right")
    axes.scatter(x[~right], y[~right], s=26, marker="x", color=WRONG, label="wrong")
    axes.scatter(x[first], y[first], s=90, marker="o", facecolors="none", edgecolors="0.2", label="failure point")
    axes.set_yticks(range(len(models)), models, fontsize="small")
    axes.set_ylim(len(models) - 0.4, -0.6)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def sure(grid: Grid | None, table: pd.DataFrame) -> Figure:
    """The probability that classifiers give the true class at each scale (model, scale, probability), a curve each."""
    scales = sorted(table["scale"].unique())
    figure, axes = frames(grid, scales, height=2.2)
    for model, look in palette.looks(table["model"].unique()).items():
        own = table[table["model"] == model].sort_values("scale")
        axes.plot(own["scale"].map(scales.index), own["probability"], markersize=4, linewidth=1.4, label=model, **look)
    axes.set(ylabel="probability of the true class", ylim=(-0.03, 1.03))
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure
