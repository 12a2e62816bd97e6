"""Figures of accuracy on the line: models about a line, slopes with both intervals, tests as maps, gains as dots."""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import norm

from cnslib.plots.figures import looks

NAMED = 3  # models farthest from a line that carry their names in the panel
TICKS = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995]


def fitted_points(axes: Axes, table: pd.DataFrame) -> None:
    """OOD against ID accuracy, a marker per model with intervals, the line, and the dotted diagonal of no loss (Fig. 23)."""
    if (table["axes"] == "probit").all():
        probit_axes(axes)
    fit_limits(axes, table)
    for model, look in looks(table["model"]).items():
        row = table[table["model"] == model].iloc[0]
        across, up = (np.clip([[row[name] - row[f"{name}_low"]], [row[f"{name}_high"] - row[name]]], 0, None) for name in ("id", "ood"))
        axes.errorbar(
            row["id"], row["ood"], up, across, elinewidth=0.5, ecolor="0.75", markersize=4.5, linestyle="none", label=model, **look
        )
    line = table.sort_values("id")
    axes.plot(line["id"], line["expected"], color="0.2", linewidth=1, zorder=1)
    axes.axline((0.4, 0.4), (0.6, 0.6), color="0.7", linewidth=0.8, linestyle=":", zorder=0)
    axes.set(xlabel="ID accuracy", ylabel="OOD accuracy")
    name_outliers(axes, table)


def name_outliers(axes: Axes, table: pd.DataFrame) -> None:
    """Writes the names of the models farthest from the line beside their markers, but no name over another one or its marker."""
    taken: list[np.ndarray] = []
    order = (table["ood"] - table["expected"]).abs().sort_values(ascending=False).index[:NAMED]
    for row in table.loc[order].itertuples():
        place = axes.transAxes.inverted().transform(axes.transData.transform((row.id, row.ood)))
        above = row.ood > row.expected
        if all((abs(place - other) > (0.4, 0.08)).any() for other in taken):
            side = "right" if above and place[0] > 0.4 else "left"  # a name keeps off the line, and inside the axes
            offset = (-3 if side == "right" else 3, 3 if above else -3)
            text = axes.annotate(row.model, (row.id, row.ood), offset, textcoords="offset points", fontsize="x-small", color="0.3")
            text.set(ha=side, va="bottom" if above else "top")
            others = table.loc[table["model"] != row.model, ["id", "ood"]].to_numpy()
            if text.get_window_extent().padded(4).count_contains(axes.transData.transform(others)):
                text.remove()
            else:
                taken.append(place)


def probit_axes(axes: Axes) -> None:
    """Scales both axes by the normal distribution's quantiles; their ticks stay accuracies."""
    axes.set_xscale("function", functions=(norm.ppf, norm.cdf))
    axes.set_yscale("function", functions=(norm.ppf, norm.cdf))


def fit_limits(axes: Axes, table: pd.DataFrame) -> None:
    """Ends both axes a little beyond the points, whatever their scale, and cuts longer intervals there; three ticks at least."""
    for name, axis, limit in (("id", axes.xaxis, axes.set_xlim), ("ood", axes.yaxis, axes.set_ylim)):
        scale = axis.get_transform()
        low, high = scale.transform(table[name].agg(["min", "max"]).to_numpy())
        margin = 0.15 * (high - low) + 1e-3
        ends = scale.inverted().transform(np.array([low - margin, high + margin]))
        limit(float(ends[0]), float(ends[1]))
        if axis.get_scale() != "linear":
            ticks = [tick for tick in TICKS if ends[0] <= tick <= ends[1]]
            axis.set_major_locator(plt.FixedLocator(ticks if len(ticks) > 2 else plt.MaxNLocator(4).tick_values(*ends)))
            axis.set_major_formatter(plt.FormatStrFormatter("%g"))


def scatter_grid(table: pd.DataFrame, titles: dict[tuple[str, float], str]) -> Figure:
    """Panels of `fitted_points`: a row per kind of axes, a column per shift and scale, one legend for all."""
    kinds = list(table["axes"].unique())
    figure, grid = plt.subplots(len(kinds), len(titles), figsize=(2.7 * len(titles), 2.6 * len(kinds)), squeeze=False)
    for (row, column), axes in np.ndenumerate(grid):
        (shift, scale), title = list(titles.items())[column]
        fitted_points(axes, table[(table["axes"] == kinds[row]) & (table["shift"] == shift) & (table["scale"] == scale)])
        axes.set_title(title if row == 0 else "")
        axes.set(xlabel="ID accuracy" if row == len(kinds) - 1 else "", ylabel=f"OOD accuracy, {kinds[row]}" if column == 0 else "")
    handles, names = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="center left", bbox_to_anchor=(1, 0.5))
    figure.tight_layout()
    return figure


def slope_lines(axes: Axes, table: pd.DataFrame) -> None:
    """Slope against the slider scale: dark band for other images, light band for other models; the probit slope as a line (Fig. 20)."""
    colour, other = sns.color_palette("colorblind")[:2]
    linear, probit = (table[table["axes"] == kind].sort_values("scale") for kind in ("linear", "probit"))
    axes.fill_between(linear["scale"], linear["models_low"], linear["models_high"], color=colour, alpha=0.15, linewidth=0, label="models")
    axes.fill_between(linear["scale"], linear["low"], linear["high"], color=colour, alpha=0.35, linewidth=0, label="images")
    axes.plot(linear["scale"], linear["estimate"], "o-", color=colour, markersize=3, linewidth=1.2, label="slope")
    axes.plot(probit["scale"], probit["estimate"], "--", color=other, linewidth=1.2, label="slope, probit axes")
    axes.axhline(1, color="0.6", linewidth=0.8, linestyle=":", zorder=0)
    axes.axhline(0, color="0.6", linewidth=0.6, zorder=0)
    axes.set(xlabel="slider scale", ylabel="slope")


def maps(table: pd.DataFrame, *, alpha: float) -> Figure:
    """R, R without the images' noise (`free`) with its lower bound, and corrected p value per shift and scale (Figs. 21, 22)."""
    order = list(table["shift"].unique())
    columns = ["r", "free", "free_low", "p_holm"]
    r, free, low, p = (table.pivot(index="shift", columns="scale", values=name).loc[order] for name in columns)
    bound = low.map(" ({:.2f})".format).replace(" (nan)", " (?)")
    small = p.map(lambda value: "<.001" if value < 0.001 else f"{value:.3f}")
    drawn = {
        "R": (r, r.map("{:.2f}".format)),
        "R without the images' noise (lower bound)": (free, free.map("{:.2f}".format) + bound),
        f"p of the slope, Holm; red: below {alpha:g}": ((p < alpha) * 0.8, small),
    }
    figure, grid = plt.subplots(1, 3, figsize=(14, 1 + 0.27 * len(order)), sharey=True, width_ratios=[1, 1.6, 1])
    for axes, (title, (values, text)) in zip(grid, drawn.items(), strict=True):
        sns.heatmap(values, ax=axes, annot=text, fmt="", vmin=-1, vmax=1, cmap="vlag", annot_kws={"size": 8}, cbar=False)
        axes.set(title=title, ylabel="", xlabel="slider scale")
    figure.tight_layout()
    return figure


def gain_panels(table: pd.DataFrame, *, by: str) -> Figure:
    """Panels of `gain_dots`, one per level of `by`, the models in the order of their gain in the first."""
    levels = list(table[by].unique())
    order = table[(table[by] == levels[0]) & (table["axes"] == table["axes"].iloc[0])].sort_values("estimate")["model"].tolist()
    size = (3.6 * len(levels), 0.9 + 0.2 * len(order))
    figure, grid = plt.subplots(1, len(levels), figsize=size, sharex=True, sharey=True, squeeze=False)
    for axes, level in zip(grid.flat, levels, strict=True):
        gain_dots(axes, table[table[by] == level], order=order)
        axes.set_title(level)
    figure.tight_layout()
    grid.flat[-1].legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def gain_dots(axes: Axes, table: pd.DataFrame, *, order: list[str]) -> None:
    """Mean gain per model with its interval, a colour and a marker per kind of axes (Fig. 24)."""
    kinds = list(table["axes"].unique())
    for i, kind in enumerate(kinds):
        own = table[table["axes"] == kind].set_index("model").loc[order]
        height = np.arange(len(order)) + 0.3 * (i - (len(kinds) - 1) / 2)
        arms = np.clip([own["estimate"] - own["low"], own["high"] - own["estimate"]], 0, None)
        colour = sns.color_palette("colorblind")[i]
        axes.errorbar(own["estimate"], height, xerr=arms, fmt="osD"[i], color=colour, markersize=3.5, elinewidth=1, label=f"{kind} axes")
    axes.set_yticks(range(len(order)), order)
    axes.axvline(0, color="0.6", linewidth=0.8, linestyle=":", zorder=0)
    axes.set(xlabel="accuracy above the line")


def size_bars(axes: Axes, table: pd.DataFrame) -> None:
    """Partial correlation of size against the slider scale with its interval, families side by side."""
    names = list(table["family"].unique())
    styles = looks(names)
    for i, name in enumerate(names):
        own = table[table["family"] == name].sort_values("scale")
        place = own["scale"] + 0.09 * (i - (len(names) - 1) / 2)
        arms = np.clip([own["estimate"] - own["low"], own["high"] - own["estimate"]], 0, None)
        axes.errorbar(place, own["estimate"], yerr=arms, linestyle="none", markersize=4, elinewidth=1, label=name, **styles[name])
    axes.axhline(0, color="0.6", linewidth=0.8, linestyle=":", zorder=0)
    axes.set(xlabel="slider scale", ylabel="partial correlation of size", ylim=(-1.05, 1.05))
    if names:
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


def gain_map(table: pd.DataFrame, *, order: list[str]) -> Figure:
    """Gain per model and shift; the number stands where its interval leaves out zero."""
    shifts = list(table["shift"].unique())
    grid, low, high = (table.pivot(index="model", columns="shift", values=name).loc[order, shifts] for name in ("estimate", "low", "high"))
    figure, axes = plt.subplots(figsize=(3 + 0.42 * len(shifts), 1.6 + 0.21 * len(order)))
    limit = table["estimate"].abs().max()
    text = grid.map("{:+.2f}".format).where((low > 0) | (high < 0), "")
    settings = {"cmap": "vlag", "vmin": -limit, "vmax": limit, "annot_kws": {"size": 7}, "cbar_kws": {"label": "accuracy above the line"}}
    sns.heatmap(grid, ax=axes, annot=text, fmt="", **settings)
    axes.set(xlabel="", ylabel="")
    figure.tight_layout()
    return figure
