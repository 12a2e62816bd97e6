"""Figures of severity calibration: a panel per ruler, side by side, all with the same rows.

Tables have a column `ruler`; `titles` gives the panels' order, and their titles.
"""

from collections.abc import Mapping, Sequence

import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from cnslib.plots.curves import estimate_dots, highlighted_lines, step_dots


def dot_panels(
    table: pd.DataFrame, *, y: str, label: str, reference: float, columns: int, width: float = 10, sharex: bool = False
) -> Figure:
    """`estimate_dots` of every ruler, in the order of the table; `columns` is the number of panels, a surplus one stays empty."""
    size = (width, 0.9 + 0.2 * table[y].nunique())
    figure, panels = plt.subplots(1, columns, figsize=size, sharex=sharex, sharey=True, layout="constrained")
    for axes, (ruler, part) in zip(panels, table.groupby("ruler", sort=False), strict=False):
        estimate_dots(axes, part, y=y, label=label, reference=reference)
        axes.set_title(ruler)
    return figure


def slider_maps(table: pd.DataFrame, *, rulers: Sequence[str]) -> Figure:
    """The share of rising steps of every slider, a field per shift and class; white where steps rise as often as they fall."""
    size = (10, 1.6 + 0.2 * table["shift"].nunique())
    figure, panels = plt.subplots(1, len(rulers), figsize=size, sharey=True, layout="constrained")
    look = {"vmin": 0, "vmax": 1, "center": 0.5, "cmap": "vlag_r", "cbar_kws": {"label": "rising steps"}}
    for axes, ruler in zip(panels, rulers, strict=True):
        grid = table[table["ruler"] == ruler].pivot(index="shift", columns="class", values="estimate")
        sns.heatmap(grid, ax=axes, cbar=axes is panels[-1], **look)
        axes.set(title=ruler, xlabel="", ylabel="")
    return figure


def step_panels(table: pd.DataFrame, *, rulers: Sequence[str], rows: list[str]) -> Figure:
    """`step_dots` of every ruler."""
    size = (10, 1.0 + 0.22 * len(rows))
    figure, panels = plt.subplots(1, len(rulers), figsize=size, sharey=True, layout="constrained")
    for axes, ruler in zip(panels, rulers, strict=True):
        step_dots(axes, table[table["ruler"] == ruler], rows=rows)
        axes.set_title(ruler)
    return figure


def accuracy_panels(table: pd.DataFrame, *, rulers: Sequence[str], titles: Mapping[str, str], shown: list[str]) -> Figure:
    """Accuracy against what each of up to five rulers reads, a curve per shift, those `shown` in colour; the legend in the sixth panel."""
    figure, panels = plt.subplots(2, 3, figsize=(9, 5), sharey=True, layout="constrained")
    for axes, ruler in zip(panels.flat, rulers, strict=False):
        highlighted_lines(axes, table[table["ruler"] == ruler], x="severity", hue="shift", shown=shown, label="accuracy")
        axes.set(title=titles.get(ruler, "slider scale"), xlabel=ruler)
    panels.flat[-1].set_axis_off()
    panels.flat[-1].legend(*panels.flat[0].get_legend_handles_labels(), loc="center")
    return figure
