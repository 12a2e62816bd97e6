"""Figures of accuracy on the line: models about a line, slopes with both intervals, tests as maps, gains as dots."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Bbox
from scipy.stats import norm

from cnslib.plots.palette import looks

INK = "0.3"  # of names beside points of many colours
TICKS = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995]


def fitted_points(axes: Axes, table: pd.DataFrame, *, families: dict[str, list[str]]) -> None:
    """OOD against ID accuracy, a point per model in its family's colour, with intervals, the line, and the diagonal of no loss (Fig. 23).

    Every family has its name beside its models, or a little further off at the end of a line.
    """
    if (table["axes"] == "probit").all():
        probit_axes(axes)
    fit_limits(axes, table)
    styles = looks(families)
    for family, models in families.items():
        own = table[table["model"].isin(models)]
        arms = ([own[name] - own[f"{name}_low"], own[f"{name}_high"] - own[name]] for name in ("id", "ood"))
        across, up = (np.clip(np.array(pair, float), 0, None) for pair in arms)
        look = {"markersize": 5, "linestyle": "none", **styles[family]}
        axes.errorbar(own["id"], own["ood"], up, across, label=family, elinewidth=0.5, ecolor="0.8", **look)
    line = table.sort_values("id")
    axes.plot(line["id"], line["expected"], color="0.2", linewidth=1, zorder=1)
    axes.axline((0.4, 0.4), (0.6, 0.6), color="0.7", linewidth=0.8, linestyle=":", zorder=0)
    axes.set(xlabel="ID accuracy", ylabel="OOD accuracy")
    name_families(axes, table, families)


def name_families(axes: Axes, table: pd.DataFrame, families: dict[str, list[str]]) -> None:
    """Writes each family's name in its colour beside the one of its models that is farthest from the line."""
    far = [table[table["model"].isin(models)].assign(family=family) for family, models in families.items()]
    chosen = [own.loc[(own["ood"] - own["expected"]).abs().idxmax()] for own in far if len(own)]
    place_names(axes, pd.DataFrame(chosen)[["family", "id", "ood"]], table[["id", "ood"]].to_numpy(), looks(families), steps=range(1, 7))


def place_names(axes: Axes, named: pd.DataFrame, points: np.ndarray, styles: dict[str, dict], *, steps: Sequence[int] = (1,)) -> None:
    """Writes names (columns: name, x, y) in the colours of `styles` near their points, where they lie over no other name or point.

    `steps` are the distances to try; a name that is more than one step away has a line to its point. One without room in any of nine
    directions at any distance is left out.
    """
    pixels, taken = axes.transData.transform(points), list[Bbox]()
    for name, x, y in named.itertuples(index=False):
        for step, across, up in itertools.product(steps, (1, -1, 0), (0, 1, -1)):
            text = near(axes, name, (x, y), (step * across, step * up), styles[name]["color"])
            text.get_window_extent()  # sets it in its place
            box, frame = Text.get_window_extent(text), axes.bbox.padded(2)  # of the name alone, without its line
            tips = [(box.y0 + box.y1) / 2] if step == 1 else [box.y0 - box.height, box.y1 + box.height]
            inside = all(map(frame.containsx, (box.x0, box.x1))) and all(map(frame.containsy, tips))
            if inside and not box.padded(2).count_contains(pixels) and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
            text.remove()


def near(axes: Axes, name: str, point: tuple[float, float], away: tuple[int, int], colour: str) -> Annotation:
    """A name so many steps right of and above a point, with a line to it unless it lies beside it."""
    across, up = away
    line = {"arrowstyle": "-", "color": colour, "linewidth": 0.6, "shrinkA": 1, "shrinkB": 3} if max(map(abs, away)) > 1 else None
    style: dict[str, Any] = {"fontsize": "x-small", "color": colour, "weight": "bold", "va": "center", "arrowprops": line}
    side = {1: "left", -1: "right", 0: "center"}[int(np.sign(across))]
    return axes.annotate(name, point, (6 * across, 7 * up), textcoords="offset points", ha=side, **style)


def named_points(axes: Axes, table: pd.DataFrame, *, x: str, y: str) -> None:
    """A point per model in its fixed look, with its name as far as there is room."""
    styles = looks(table["model"])
    for model, look in styles.items():
        own = table[table["model"] == model]
        axes.plot(own[x], own[y], linestyle="none", markersize=5, markerfacecolor="none", **look)  # one under another is seen
    axes.set(xlim=axes.get_xlim(), ylim=axes.get_ylim())  # names are placed in pixels
    place_names(axes, table[["model", x, y]], table[[x, y]].to_numpy(), {model: {"color": INK} for model in styles})


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


def scatter_grid(table: pd.DataFrame, titles: dict[tuple[str, float], str], *, families: dict[str, list[str]]) -> Figure:
    """Panels of `fitted_points` on linear axes, one per shift and scale, two in a row."""
    rows = -(-len(titles) // 2)
    figure, grid = plt.subplots(rows, 2, figsize=(8.4, 3.5 * rows), squeeze=False, layout="constrained")
    figure.draw_without_rendering()  # names are placed in pixels
    for axes, ((shift, scale), title) in zip(grid.flat, titles.items(), strict=False):
        fitted_points(axes, table[(table["shift"] == shift) & (table["scale"] == scale)], families=families)
        axes.set_title(title)
    for axes in grid.flat[len(titles) :]:
        axes.set_visible(False)
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
