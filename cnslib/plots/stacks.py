"""Where trajectories end, as bars stacked to 100 % (wrong before any shift, first wrong at some scale, never; Fig. 8)."""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from cnslib.plots import dots, palette
from cnslib.stats.accuracy import NEVER

BEFORE, AFTER = "0.45", "0.92"  # greys of what the shift does not decide: wrong before it, never wrong
LEAST = 0.08  # of a share that has room for its number


def failure_stacks(axes: Axes, table: pd.DataFrame, *, y: str = "model", rows: list[str] | None = None, unit: str = "scale") -> None:
    """One bar per level of `y`, from left to right: wrong at scale 0, first wrong at each later scale, never wrong.

    The columns are `y`, scale (NEVER is a level of it) and estimate; `rows` is the order from top to bottom, else the fixed one.
    """
    rows = palette.ordered(table[y]) if rows is None else rows
    bins = [scale for scale in dict.fromkeys(table["scale"]) if scale != NEVER]
    colours = [BEFORE, *sns.color_palette("flare_r", max(len(bins) - 1, 1))[: len(bins) - 1], AFTER]
    titles = [f"already at {unit} {bins[0]:g}", *[f"at {scale:g}" for scale in bins[1:]], NEVER]
    left = np.zeros(len(rows))
    for scale, colour, title in zip([*bins, NEVER], colours, titles, strict=True):
        width = table[table["scale"] == scale].set_index(y)["estimate"].reindex(rows).to_numpy(float)
        bars = axes.barh(range(len(rows)), width, left=left, color=colour, height=0.82, edgecolor="white", linewidth=0.6, label=title)
        if colour in (BEFORE, AFTER):
            shares = [f"{share:.0%}" if share >= LEAST else "" for share in width]
            axes.bar_label(bars, shares, label_type="center", fontsize="x-small", color="white" if colour == BEFORE else "0.25")
        left = left + np.nan_to_num(width)
    axes.set_yticks(range(len(rows)), map(palette.displayed, rows))
    axes.set(xlim=(0, 1), ylim=(len(rows) - 0.5, -0.5), xlabel="share of trajectories, by where they fail first")
    axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.tick_params(axis="y", length=0)
    sns.despine(ax=axes, left=True)


def stack_panels(table: pd.DataFrame, shifts: list[str]) -> Figure:
    """Panels of `failure_stacks` side by side, one per shift, with one legend above them."""
    size = (0.9 + 2.6 * len(shifts), 1.1 + 0.24 * table["model"].nunique())
    figure, grid = plt.subplots(1, len(shifts), figsize=size, sharey=True, squeeze=False, layout="constrained")
    for axes, shift in zip(grid.flat, shifts, strict=True):
        failure_stacks(axes, table[table["shift"] == shift])
        axes.set_title(shift)
        axes.set_xlabel(axes.get_xlabel() if axes is grid[0, len(shifts) // 2] else "")
    handles, names = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper left", ncols=len(names), fontsize="small", columnspacing=1, handlelength=1)
    return figure


def survivors(failures: pd.DataFrame) -> list[str]:
    """The scenarios of a failure distribution (scenario, model, scale, estimate), those that fewest trajectories survive first."""
    never = failures[failures["scale"] == NEVER].groupby("scenario", sort=False)["estimate"].mean()
    return list(never.sort_values(kind="stable").index)


def stacks_and_dots(
    failures: pd.DataFrame, table: pd.DataFrame, *, rows: list[str], label: str, reference: float, things: str = "trajectories"
) -> Figure:
    """One row per scenario: on the left where trajectories fail first, mean over the models, on the right an estimate per model.

    `failures` has the columns scenario, model, scale and estimate, `table` scenario, model, estimate, low and high; `rows` is the
    order from top to bottom, the dotted line on the right is the reference, and `things` are what fails.
    """
    stacks = failures.groupby(["scenario", "scale"], sort=False)["estimate"].mean().reset_index()
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 1 + 0.27 * len(rows)), sharey=True, width_ratios=[1.3, 1], layout="constrained")
    failure_stacks(left, stacks, y="scenario", rows=rows, unit="severity")
    left.set_xlabel(f"share of {things}, by where they fail first")
    dots.dots(right, table, y="scenario", hue="model", order=rows, label=label, reference=reference)
    right.tick_params(axis="y", length=0)
    for axes in (left, right):
        axes.legend(
            loc="lower left", bbox_to_anchor=(0, 1), ncols=6, fontsize="x-small", columnspacing=0.8, handlelength=1, handletextpad=0.4
        )
    return figure
