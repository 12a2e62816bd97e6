"""Figures of the axes: curves in an axis' own order, measures beside the paper's, and the list of verdicts."""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from cnslib.plots import MARKERS

COLOURS = {"holds": 2, "opposite": 3, "undecided": 7, "not measured here": None}  # places in the colour-blind palette


def looks(order: list[str], *, ordered: bool) -> dict[str, dict]:
    """Colour and marker by place on the axis: a scale from light to dark where the order means size, else distinct colours."""
    palette = sns.color_palette("crest", len(order)) if ordered else sns.color_palette("colorblind")
    return {name: {"color": palette[i % len(palette)], "marker": MARKERS[i % len(MARKERS)]} for i, name in enumerate(order)}


def axis_lines(axes: Axes, table: pd.DataFrame, *, order: list[str], ordered: bool) -> None:
    """Accuracy drop against the slider scale, one curve per classifier in the axis' order (Figs. 9 to 12).

    Bands of many classifiers would hide each other, so intervals are drawn for the last scale alone, side by side at the right.
    """
    for place, (name, look) in enumerate(looks(order, ordered=ordered).items()):
        part = table[table["model"] == name].sort_values("scale")
        axes.plot(part["scale"], part["estimate"], markersize=3.5, linewidth=1.2, label=name, **look)
        end = part.iloc[-1]
        right = end["scale"] * (1.06 + 0.2 * place / len(order))
        axes.vlines(right, end["low"], end["high"], color=look["color"], linewidth=1.4)
    axes.axhline(0, color="0.7", linewidth=0.6, zorder=0)
    axes.set(xlabel="slider scale", ylabel="accuracy drop", xticks=sorted(table["scale"].unique())[::2])


def axis_dots(axes: Axes, table: pd.DataFrame, *, label: str, reference: float, published: pd.Series | None = None) -> None:
    """An estimate with its interval per classifier, top to bottom in the order of the rows; diamonds mark the paper's counterparts."""
    places = np.arange(len(table))
    arms = np.abs(table[["low", "high"]].sub(table["estimate"], axis=0)).T
    color = sns.color_palette("colorblind")[0]
    axes.errorbar(table["estimate"], places, xerr=arms, fmt="o", markersize=4, color=color, elinewidth=1)
    if published is not None:
        axes.plot(published.reindex(table["model"]), places, "D", markersize=4, markerfacecolor="none", color="0.35", zorder=3)
    axes.axvline(reference, color="0.6", linewidth=0.8, linestyle=":", zorder=0)
    axes.set(xlabel=label, ylim=(len(table) - 0.5, -0.5))
    axes.set_yticks(places, table["model"])


def verdict_rows(axes: Axes, table: pd.DataFrame) -> None:
    """Every claim in a row, by family, with a mark below its verdict, its estimate and its interval.

    A hollow circle marks the verdict by average drop, for the claims that are about rCE.
    """
    words, palette = list(COLOURS), sns.color_palette("colorblind")
    for row, claim in enumerate(table.itertuples()):
        color = "0.8" if COLOURS[claim.verdict] is None else palette[COLOURS[claim.verdict]]
        axes.axhline(row, color="0.93", linewidth=0.6, zorder=0)
        axes.plot(words.index(claim.verdict), row, "oXs."[words.index(claim.verdict)], color=color, markersize=6)
        if claim.drop_verdict:
            axes.plot(words.index(claim.drop_verdict) + 0.25, row, "o", color="0.35", markerfacecolor="none", markersize=5)
    axes.set(xlim=(-0.5, len(words) - 0.5), ylim=(len(table) - 0.5, -0.5))
    axes.set_xticks(range(len(words)), [word.replace("not ", "not\n").replace(" here", "\nhere") for word in words], fontsize="small")
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(table)), table["claim"], fontsize="small")
    axes.tick_params(length=0)
    sns.despine(ax=axes, left=True, bottom=True)
    verdict_numbers(axes, table)


def verdict_numbers(axes: Axes, table: pd.DataFrame) -> None:
    """Right of the verdicts: estimate and interval of every claim, and the name of each family at its first claim."""
    families = table["family"].where(table["family"] != table["family"].shift(), "")
    numbers = table[["estimate", "low", "high"]].round(3) + 0.0  # no negative zero
    for row, (family, values) in enumerate(zip(families, numbers.to_numpy(), strict=True)):
        text = "" if np.isnan(values[0]) else "{:.3f} ({:.3f} to {:.3f})".format(*values)
        for words, right, weight in ((text, 4, "normal"), (family, 108, "bold")):
            kind, place = ("axes fraction", "data"), (right, 0)
            axes.annotate(words, (1, row), place, kind, "offset points", va="center", fontsize="small", weight=weight)
        if family:
            axes.axhline(row - 0.5, color="0.5", linewidth=0.6)
