"""Dots with their intervals: rows of estimates, the paper's axes, its claims, and accuracy on the line (Figs. 22 to 24; Tables 3 to 5)."""

import textwrap

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cnslib.plots import figures
from cnslib.plots.palette import displayed, looks
from cnslib.stats import verdicts

COLOURS = dict(zip(verdicts.WORDS, (2, 0, 3, 7, None), strict=True))  # places in the colour-blind palette


def dots(
    axes: Axes,
    table: pd.DataFrame,
    *,
    y: str,
    label: str,
    hue: str | None = None,
    order: list[str] | None = None,
    reference: float | None = None,
) -> None:
    """An estimate per row with its interval, levels of `hue` side by side, and a vertical reference line (CE and rCE: 1).

    `order` is that of the rows from top to bottom, else by the estimate of the first level.
    """
    table = table if hue else table.assign(level="")
    levels = table.groupby(hue or "level", sort=False)
    order = order or next(iter(levels))[1].sort_values("estimate", na_position="first")[y].tolist()
    styles = looks([name for name, _ in levels]) if hue else {"": {"color": sns.color_palette("colorblind")[0], "marker": "o"}}
    for place, (name, look) in enumerate(styles.items()):
        part = levels.get_group(name).set_index(y).reindex(order)
        arms = part[["low", "high"]].sub(part["estimate"], axis=0).abs().T
        heights = np.arange(len(order)) + 0.6 / max(len(styles), 2) * (place - (len(styles) - 1) / 2)
        axes.errorbar(part["estimate"], heights, xerr=arms, linestyle="none", markersize=4, elinewidth=1, label=displayed(name), **look)
    if reference is not None:
        axes.axvline(reference, color="0.6", linewidth=0.8, linestyle=":", zorder=0)
    axes.set(xlabel=label, ylim=(len(order) - 0.5, -0.5))
    axes.set_yticks(range(len(order)), map(displayed, order))


def axis_panels(
    measures: dict[str, pd.DataFrame], members: dict[str, list[str]], *, references: dict[str, float], published: pd.DataFrame
) -> Figure:
    """The dots of every axis, a row of panels each as high as it has classifiers, and of every measure, a column of panels.

    `references` are the measures' dotted lines; `published` (axis, classifier, a column per measure that the paper has) the diamonds.
    """
    heights = [len(names) for names in members.values()]
    size, columns = (7, 1.8 + 0.22 * sum(heights)), len(measures)
    figure, grid = plt.subplots(len(members), columns, figsize=size, sharex="col", sharey="row", height_ratios=heights, squeeze=False)
    for row, axis in zip(grid, members, strict=True):
        theirs = published[published["axis"] == axis].set_index("classifier")
        for panel, (name, table) in zip(row, measures.items(), strict=True):
            of_axis = table[table["axis"] == axis]
            dots(panel, of_axis, y="model", order=of_axis["model"].tolist(), label=name, reference=references[name])
            if name in theirs:
                printed = theirs[name].reindex(of_axis["model"])
                panel.plot(printed, range(len(of_axis)), "D", markersize=4, markerfacecolor="none", color="0.35", zorder=3)
            panel.label_outer()
        row[0].set_title(axis)
    figure.tight_layout()
    return figure


def verdict_rows(axes: Axes, table: pd.DataFrame) -> None:
    """A forest plot of claims: each estimate with its interval, by family, in the colour of its verdict; above zero it is as claimed."""
    palette = sns.color_palette("colorblind")
    for row, claim in enumerate(table.itertuples()):
        colour, number = COLOURS[claim.verdict], list(COLOURS).index(claim.verdict)
        style: dict = {"color": "0.6" if colour is None else palette[colour], "marker": "oDXs."[number]}
        arms = np.abs([[claim.low - claim.estimate], [claim.high - claim.estimate]])
        axes.errorbar(claim.estimate, row, xerr=arms, linestyle="none", elinewidth=1, label=claim.verdict, **style)
    axes.axvline(0, color="0.6", linewidth=0.8, linestyle=":", zorder=0)
    axes.set(xlabel="estimate", ylim=(len(table) - 0.5, -0.5))
    axes.set_yticks(range(len(table)), [textwrap.fill(claim, 52) for claim in table["claim"]], fontsize="small")
    unique = dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True))
    axes.legend(unique.values(), unique, loc="lower left", bbox_to_anchor=(0, 1), ncols=len(unique))


def fitted_points(axes: Axes, table: pd.DataFrame, *, families: dict[str, list[str]]) -> None:
    """OOD against ID accuracy, a point per model in its family's colour with intervals, the line, and the diagonal of no loss (Fig. 23)."""
    for family, look in looks(families).items():
        values = table[table["model"].isin(families[family])]
        across, up = (
            np.clip([values[name] - values[f"{name}_low"], values[f"{name}_high"] - values[name]], 0, None).astype(float)
            for name in ("id", "ood")
        )
        axes.errorbar(
            values["id"],
            values["ood"],
            up,
            across,
            label=displayed(family),
            elinewidth=0.5,
            ecolor="0.8",
            markersize=5,
            linestyle="none",
            **look,
        )
    line = table.sort_values("id")
    axes.plot(line["id"], line["expected"], color="0.2", linewidth=1, zorder=1)
    axes.axline((0.4, 0.4), (0.6, 0.6), color="0.7", linewidth=0.8, linestyle=":", zorder=0)
    limits = [
        (values.min() - 0.15 * np.ptp(values) - 1e-3, values.max() + 0.15 * np.ptp(values) + 1e-3) for values in (table["id"], table["ood"])
    ]
    axes.set(xlabel="ID accuracy", ylabel="OOD accuracy", xlim=limits[0], ylim=limits[1])  # longer intervals are cut


def scatter_grid(table: pd.DataFrame, titles: dict[tuple[str, float], str], *, families: dict[str, list[str]]) -> Figure:
    """Panels of `fitted_points`, one per shift and scale, two in a row, with one legend."""
    rows = -(-len(titles) // 2)
    figure, grid = plt.subplots(rows, 2, figsize=(8, 3.4 * rows), squeeze=False, layout="constrained")
    for axes, ((shift, scale), title) in zip(grid.flat, titles.items(), strict=False):
        fitted_points(axes, table[(table["shift"] == shift) & (table["scale"] == scale)], families=families)
        axes.set_title(title)
    for axes in grid.flat[len(titles) :]:
        axes.set_visible(False)
    figures.legend(figure, grid.flat[:1])
    return figure
