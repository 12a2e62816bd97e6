"""Curves of estimates with their intervals along a scale, each drawn from a tidy table into an Axes (CNS-Bench, Figs. 6 to 12, 20)."""

import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from cnslib.plots.dots import dots
from cnslib.plots.palette import MARKERS, displayed
from cnslib.plots.palette import looks as fixed_looks
from cnslib.stats.accuracy import ALL

GREY, INK = "0.8", "0.45"  # of curves and of names in the background


def estimate_lines(
    axes: Axes,
    table: pd.DataFrame,
    *,
    label: str,
    x: str = "scale",
    hue: str = "model",
    along: str | None = None,
    level: float | None = None,
    limits: tuple[float, float] | None = None,
) -> None:
    """Curves of an estimate, which `label` names, with its interval as a band, one per level of `hue` (Fig. 6).

    `along` names the scale, `level` is a line of reference (dotted unless it is zero), `limits` are those of the estimate.
    """
    for name, look in fixed_looks(table[hue].unique()).items():
        part = table[table[hue] == name].sort_values(x)
        axes.plot(part[x], part["estimate"], markersize=3.5, linewidth=1.2, label=displayed(name), **look)
        axes.fill_between(part[x], part["low"], part["high"], color=look["color"], alpha=0.12, linewidth=0)
    axes.set(xlabel=along or x, ylabel=label)
    if level is not None:
        width, style, colour = (0.8, ":", "0.5") if level else (0.6, "-", "0.7")
        axes.axhline(level, color=colour, linewidth=width, linestyle=style, zorder=0)
    if limits:
        axes.set_ylim(limits)


def rank_lines(axes: Axes, table: pd.DataFrame, *, along: str = "slider scale") -> None:
    """Rank along the scale, which `along` names, one curve per model, rank 1 on top (Fig. 7)."""
    estimate_lines(axes, table, label="rank", along=along, limits=(table["high"].max() + 0.5, 0.5))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))  # there is no rank 1.5


def bump_lines(axes: Axes, table: pd.DataFrame, *, shown: list[str]) -> None:
    """Ranks of all models along the scale, rank 1 on top, every name at its own end; those `shown` in colour, the others grey (Fig. 7).

    The bars behind the last scale are the intervals of the ranks of those shown.
    """
    last, count = table["scale"].max(), table["model"].nunique()
    ends = table[table["scale"] == last].sort_values(["estimate", "model"]).set_index("model")
    styles = fixed_looks(ends.index)
    for place, (model, end) in enumerate(ends.iterrows(), start=1):
        strong = model in shown
        part, colour = table[table["model"] == model].sort_values("scale"), styles[model]["color"] if strong else GREY
        axes.plot(part["scale"], part["estimate"], color=colour, linewidth=2 if strong else 0.8, zorder=2 + strong, clip_on=False)
        axes.plot([last, 1.17 * last], [end["estimate"], place], color=colour, linewidth=0.6, clip_on=False, zorder=1)
        style = {"color": colour, "fontsize": "small"} if strong else {"color": INK, "fontsize": "x-small"}
        axes.text(1.18 * last, place, displayed(model), va="center", **style)
        if strong:
            right = last * (1.03 + 0.08 * shown.index(model) / len(shown))
            axes.vlines(right, end["low"], end["high"], color=colour, linewidth=1.4)
    axes.set(xlabel="slider scale", ylabel="rank", xlim=(table["scale"].min(), 1.12 * last), ylim=(count + 0.5, 0.5))
    axes.set_xticks(sorted(table["scale"].unique()))
    axes.set_yticks([1, *range(5, count + 1, 5)])


def axis_lines(axes: Axes, table: pd.DataFrame, *, order: list[str]) -> None:
    """Accuracy drop against the slider scale, one curve per classifier of an axis (Figs. 9 to 12); intervals at the last scale alone."""
    for place, (name, look) in enumerate(fixed_looks(order).items()):
        part = table[table["model"] == name].sort_values("scale")
        axes.plot(part["scale"], part["estimate"], markersize=3.5, linewidth=1.2, label=displayed(name), **look)
        end = part.iloc[-1]
        axes.vlines(end["scale"] * (1.06 + 0.2 * place / len(order)), end["low"], end["high"], color=look["color"], linewidth=1.4)
    axes.axhline(0, color="0.7", linewidth=0.6, zorder=0)
    axes.set(xlabel="slider scale", ylabel="accuracy drop", xticks=sorted(table["scale"].unique())[::2])


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


def roc_curves(axes: Axes, table: pd.DataFrame, *, hue: str, points: pd.DataFrame) -> None:
    """ROC curves (columns fpr, tpr and `hue`) with the diagonal of guessing, and operating points (name, fpr, tpr) on top."""
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=0.8, linestyle=":", zorder=0)
    for name, look in fixed_looks(table[hue].unique()).items():
        part = table[table[hue] == name].sort_values(["fpr", "tpr"])
        axes.plot(part["fpr"], part["tpr"], color=look["color"], linewidth=1.3, label=displayed(name))
    for marker, row in zip(MARKERS, points.itertuples(), strict=False):
        axes.plot(
            row.fpr, row.tpr, marker, color="0.15", markersize=5, linestyle="none", label=displayed(row.name), clip_on=False, zorder=3
        )
    axes.set(xlabel="false positive rate", ylabel="true positive rate", xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")


def one_among_others(results: dict[str, pd.DataFrame], name: str) -> Figure:
    """Accuracy, rank and survival of one model along the scale, and its drop per shift, with the others in grey.

    `results` has a table (model, shift, scale, n, estimate, low, high) for each; alone, a classifier has no rank.
    """
    layout = ConstrainedLayoutEngine(wspace=0.1)  # names of curves end well before the shifts begin
    figure, grid = plt.subplots(2, 2, figsize=(9, 6.5), layout=layout)
    titles = {"accuracy": "accuracy", "rank": "rank (1 is best)", "survival": "share without failure so far"}
    for axes, (kind, title) in zip(grid.flat, titles.items(), strict=False):
        axes.set_visible(kind in results)
        if kind in results:
            curve_among_others(axes, results[kind][results[kind]["shift"] == ALL], name)
            axes.set(title=title, ylabel="")
    if "rank" in results:
        grid[0, 1].set_ylim(results["rank"]["model"].nunique() + 0.5, 0.5)
    drops = results["drop"][results["drop"]["shift"] != ALL].query("scale == scale.max()")
    drops_of_model, others = drops[drops["model"] == name].sort_values("estimate", ascending=False), drops[drops["model"] != name]
    grid[1, 1].plot(
        others["estimate"], others["shift"].map(drops_of_model["shift"].tolist().index), "o", color=GREY, markersize=3, zorder=0
    )
    dots(grid[1, 1], drops_of_model, y="shift", order=drops_of_model["shift"].tolist(), label="", reference=0)
    grid[1, 1].set_title(f"accuracy drop at scale {drops['scale'].max():g}")
    return figure


def curve_among_others(axes: Axes, table: pd.DataFrame, name: str) -> None:
    """One curve per model against the scale: the others grey, the named one in colour with its band; first and last are named."""
    others = table[table["model"] != name]
    for _, part in others.groupby("model"):
        axes.plot(part["scale"], part["estimate"], color=GREY, linewidth=0.8, zorder=0)
    estimate_lines(axes, table[table["model"] == name], label="", along="slider scale")
    ends = others[others["scale"] == others["scale"].max()].set_index("model")["estimate"]
    for end in dict.fromkeys([ends.idxmax(), ends.idxmin()] if len(ends) else []):
        axes.annotate(
            displayed(end), (1, ends[end]), (3, 0), ("axes fraction", "data"), "offset points", va="center", fontsize="x-small", color=INK
        )
