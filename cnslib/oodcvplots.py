"""Figures of the OOD-CV comparison: curves against horizontal lines (Fig. 5), label maps, severities of equal accuracy."""

import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cnslib import plots


def against_reference(curves: pd.DataFrame, lines: pd.DataFrame, *, models: list[str], shifts: list[str]) -> Figure:
    """Accuracy over the slider scale beside the reference's one accuracy, each with its band; a row per classifier (Fig. 5).

    The column `images` of the curves names the sets of generated images, each of which has a curve.
    """
    size = 2.3 * len(shifts), 1.9 * len(models)
    figure, grid = plt.subplots(len(models), len(shifts), sharex=True, sharey=True, squeeze=False, figsize=size, layout="constrained")
    for model, row in zip(models, grid, strict=True):
        for shift, axes in zip(shifts, row, strict=True):
            curve, line = (table[(table["shift"] == shift) & (table["model"] == model)] for table in (curves, lines))
            one_panel(axes, curve.sort_values(["images", "scale"]), line.iloc[0])
            axes.set_title(f"{model}: {shift}")
    for axes in grid[-1]:
        axes.set_xlabel("slider scale")
    for axes in grid[:, 0]:
        axes.set_ylabel("accuracy")
    handles, names = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside right center")
    return figure


def one_panel(axes: Axes, curves: pd.DataFrame, line: pd.Series) -> None:
    """A curve with its band for each set of images, and one horizontal line with its own."""
    blue, orange, green, *_ = sns.color_palette("colorblind")
    for (name, curve), colour, marker in zip(curves.groupby("images", sort=False), (blue, green), "os", strict=False):
        axes.plot(curve["scale"], curve["estimate"], marker=marker, color=colour, markersize=3.5, linewidth=1.2, label=name)
        axes.fill_between(curve["scale"], curve["low"], curve["high"], color=colour, alpha=0.12, linewidth=0)
    axes.axhline(line["estimate"], color=orange, linewidth=1.2, linestyle="--", label="reference")
    axes.axhspan(line["low"], line["high"], color=orange, alpha=0.15, linewidth=0)
    axes.set(ylim=(-0.03, 1.03))


def label_map(axes: Axes, table: pd.DataFrame, *, labels: list[str]) -> None:
    """Shares of labels (columns) per true weather (rows), written with their number of pictures."""
    found = list(table["truth"].unique())
    rows = [*(name for name in labels if name in found), *(name for name in found if name not in labels)]
    wide = table.pivot(index="truth", columns="label", values="estimate").reindex(index=rows, columns=labels)
    counts = table.drop_duplicates("truth").set_index("truth")["n"]
    sns.heatmap(wide, annot=True, fmt=".2f", vmin=0, vmax=1, cmap="crest", cbar=False, ax=axes)
    axes.tick_params(axis="x", rotation=20)
    axes.set_yticks(axes.get_yticks(), [f"{name} (n = {counts[name]})" for name in wide.index], rotation=0)
    axes.set(xlabel="label by CLIP", ylabel="")


def label_lines(axes: Axes, table: pd.DataFrame) -> None:
    """Share of generated images that get the label of their shift, over the slider scale."""
    plots.estimate_lines(axes, table, x="scale", hue="shift", label="labelled as asked")
    axes.set(xlabel="slider scale", ylim=(-0.03, 1.03))
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


def severity_lines(axes: Axes, table: pd.DataFrame) -> None:
    """The rendered severity of equal accuracy over the slider scale, one curve per way of comparing."""
    plots.estimate_lines(axes, table, x="scale", hue="compared", label="severity of equal accuracy")
    axes.set(xlabel="slider scale", ylim=(-0.05, 1.05))
