"""Figures from tidy tables into an Axes, and one `save` that writes picture and numbers, byte-identical for equal inputs."""

from collections.abc import Callable, Iterable
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from jaxtyping import UInt8
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from cnslib import units

FIXED = {"png": {"Software": None}, "pdf": {"CreationDate": None, "Producer": None, "Creator": None}}  # no date, no version
MARKERS = "osD^vPX"


def use_style() -> None:
    """The look of every figure: seaborn ticks, a colour-blind palette, small type, 72 dpi on screen."""
    sns.set_theme(context="paper", style="ticks", palette="colorblind")
    mpl.rcParams.update({"figure.dpi": 72, "savefig.dpi": 150, "savefig.bbox": "tight", "pdf.fonttype": 42, "axes.spines.top": False})
    mpl.rcParams.update({"axes.spines.right": False, "legend.frameon": False, "axes.titlesize": "medium", "axes.titlelocation": "left"})


def save(figure: Figure, stem: Path, data: pd.DataFrame) -> None:
    """Writes <stem>.png, <stem>.pdf and <stem>.csv, the plotted numbers at six digits and then sorted by their columns."""
    for kind, metadata in FIXED.items():
        with units.atomic(stem.with_name(f"{stem.name}.{kind}")) as partial:
            figure.savefig(partial, format=kind, metadata=metadata)
    text = shortened(data).sort_values(list(data.columns)).to_csv(index=False, float_format="%.6g", lineterminator="\n")
    units.write_bytes(stem.with_name(f"{stem.name}.csv"), text.encode())


def shortened(data: pd.DataFrame) -> pd.DataFrame:
    """The numbers as they are written: rows that differ in the twelfth digit, which is another one elsewhere, keep their order."""
    return data.assign(**{name: [float(f"{value:.6g}") for value in data[name]] for name in data.select_dtypes("floating")})


def looks(names: Iterable[str]) -> dict[str, dict]:
    """Colour and marker of each name, the same in every panel; names are told apart in grey print too."""
    palette = sns.color_palette("colorblind")
    return {name: {"color": palette[i % 10], "marker": MARKERS[i % 7]} for i, name in enumerate(sorted(names))}


def caption(figure: Figure, text: str) -> None:
    """A line below everything drawn so far: what n counts, and what the intervals are."""
    figure.draw_without_rendering()  # a layout engine places its axes when it draws
    bottom = figure.get_tightbbox().y0 - 0.06  # inches
    figure.text(0.01, bottom / figure.get_figheight(), text, ha="left", va="top", fontsize="small", color="0.35")


def extent(counts: Iterable[int]) -> str:
    """Smallest and largest of some counts in words: "n = 40" or "n = 31 to 40"."""
    low, high = min(counts), max(counts)
    return f"n = {low:,}" if low == high else f"n = {low:,} to {high:,}"


def estimate_lines(axes: Axes, table: pd.DataFrame, *, x: str, hue: str, label: str, named: bool = False) -> None:
    """Curves of an estimate with its interval as a band, one per level of `hue`; `named` at their right end (Fig. 6)."""
    ends = {}
    for name, look in looks(table[hue].unique()).items():
        part = table[table[hue] == name].sort_values(x)
        axes.plot(part[x], part["estimate"], markersize=3.5, linewidth=1.2, label=name, **look)
        axes.fill_between(part[x], part["low"], part["high"], color=look["color"], alpha=0.12, linewidth=0)
        ends[name] = part["estimate"].iloc[-1]
    axes.set(xlabel=x, ylabel=label)
    if named:
        label_ends(axes, ends)


def label_ends(axes: Axes, ends: dict[str, float]) -> None:
    """Writes names right of the axes, moved apart where they would overlap, each with a line to the end of its curve."""
    names = sorted(ends, key=lambda name: ends[name])
    low, high = axes.get_ylim()
    wanted = np.array([ends[name] for name in names])
    steps = np.arange(len(names)) * (high - low) * 10 / (axes.bbox.height * 72 / axes.figure.dpi)
    placed = np.maximum.accumulate(wanted - steps) + steps
    placed += (wanted - placed).mean()
    for name, height in zip(names, placed, strict=True):
        across = axes.get_yaxis_transform()
        axes.plot([1, 1.05], [ends[name], height], color=looks(names)[name]["color"], linewidth=0.8, transform=across, clip_on=False)
        axes.annotate(name, (1.05, height), (3, 0), across, "offset points", va="center", color="0.2")
    axes.set_ylim(low, high)


def panels(table: pd.DataFrame, draw: Callable, *, by: str = "shift", columns: int = 4, **settings) -> Figure:
    """One panel per level of `by`, all with the same axes, drawn by a function of this module; one legend for all."""
    levels = list(table[by].unique())
    columns = min(columns, len(levels))
    rows = -(-len(levels) // columns)
    figure, grid = plt.subplots(rows, columns, figsize=(2.3 * columns, 2.1 * rows), sharex=True, sharey=True, squeeze=False)
    for place, (axes, level) in enumerate(zip(grid.flat, levels, strict=False)):
        draw(axes, table[table[by] == level], **settings)
        lowest, leftmost = place + columns >= len(levels), place % columns == 0
        axes.set(title=level, xlabel=axes.get_xlabel() if lowest else "", ylabel=axes.get_ylabel() if leftmost else "")
        axes.tick_params(labelbottom=lowest, labelleft=leftmost)  # also above an empty place, where label_outer shows none
    for axes in grid.flat[len(levels) :]:
        axes.set_visible(False)
    handles, names = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="center left", bbox_to_anchor=(1, 0.5))
    figure.tight_layout()
    return figure


def drop_lines(axes: Axes, table: pd.DataFrame, *, named: bool = False) -> None:
    """Accuracy drop against the slider scale, one curve per model (Fig. 6)."""
    estimate_lines(axes, table, x="scale", hue="model", label="accuracy drop", named=named)
    axes.set_xlabel("slider scale")
    axes.axhline(0, color="0.7", linewidth=0.6, zorder=0)


def accuracy_lines(axes: Axes, table: pd.DataFrame, *, chance: float) -> None:
    """Accuracy against the slider scale, one curve per model; the dotted line is the share that guessing gets right."""
    estimate_lines(axes, table, x="scale", hue="model", label="accuracy")
    axes.set_xlabel("slider scale")
    axes.axhline(chance, color="0.5", linewidth=0.8, linestyle=":", zorder=0)


def rank_lines(axes: Axes, table: pd.DataFrame) -> None:
    """Rank against the slider scale, one curve per model, rank 1 on top (Fig. 7)."""
    estimate_lines(axes, table, x="scale", hue="model", label="rank")
    axes.set(xlabel="slider scale", ylim=(table["high"].max() + 0.5, 0.5))


def survival_lines(axes: Axes, table: pd.DataFrame) -> None:
    """Share of trajectories without failure so far against the slider scale, one curve per model."""
    estimate_lines(axes, table, x="scale", hue="model", label="share without failure")
    axes.set(xlabel="slider scale", ylim=(-0.03, 1.03))


def ruler_lines(axes: Axes, table: pd.DataFrame) -> None:
    """Readings against the true severity, one curve per ruler; a reading that says what it sees lies on the dotted line."""
    estimate_lines(axes, table, x="scale", hue="ruler", label="reading")
    axes.plot([0, 1], [0, 1], color="0.5", linewidth=0.8, linestyle=":", zorder=0)
    axes.set(xlabel="true severity")


def progress_lines(axes: Axes, table: pd.DataFrame) -> None:
    """Share of the rise against the slider scale, one curve per ruler; a slider that means what it says is on the dotted line."""
    estimate_lines(axes, table, x="scale", hue="ruler", label="share of the rise")
    axes.plot([0, table["scale"].max()], [0, 1], color="0.5", linewidth=0.8, linestyle=":", zorder=0)
    axes.set(xlabel="slider scale", ylim=(-0.05, 1.05))


def step_dots(axes: Axes, table: pd.DataFrame, *, rows: list[str]) -> None:
    """Scales of equal perceived steps with intervals, a row of dots per shift; on a straight slider they lie on the vertical lines."""
    for place, shift in enumerate(rows):
        part = table[table["shift"] == shift].sort_values("step")
        arms = np.abs(part[["low", "high"]].sub(part["estimate"], axis=0)).T
        axes.errorbar(part["estimate"], [place] * len(part), xerr=arms, fmt="o", markersize=3.5, elinewidth=1.6, alpha=0.8)
    end, steps = table["estimate"].max(), table["step"].max()
    for line in np.linspace(0, end, steps + 1) if end > 0 else []:
        axes.axvline(line, color="0.75", linewidth=0.7, zorder=0)
    axes.set_yticks(range(len(rows)), rows)
    axes.set(xlabel="slider scale", ylim=(len(rows) - 0.5, -0.5))


def failure_bars(axes: Axes, table: pd.DataFrame) -> None:
    """Share of trajectories whose first failure is at each scale, bars per model with intervals (Fig. 8)."""
    styles = looks(table["model"].unique())
    places = {scale: i for i, scale in enumerate(dict.fromkeys(table["scale"]))}
    width = 0.8 / len(styles)
    for i, (name, look) in enumerate(styles.items()):
        part = table[table["model"] == name]
        x = part["scale"].map(places) + (i - (len(styles) - 1) / 2) * width
        arms = np.abs(part[["low", "high"]].sub(part["estimate"], axis=0)).T
        axes.bar(x, part["estimate"], width, color=look["color"], label=name)
        axes.errorbar(x, part["estimate"], arms, fmt="none", ecolor="0.3", elinewidth=0.6)
    axes.set_xticks(list(places.values()), [str(scale) for scale in places])
    axes.set(xlabel="failure point (scale)", ylabel="share of trajectories")


def estimate_dots(axes: Axes, table: pd.DataFrame, *, y: str, label: str, reference: float) -> None:
    """An estimate per row with its interval, ordered by size, beside a vertical reference line (CE and rCE: 1)."""
    ordered = table.sort_values("estimate", ascending=False)
    arms = np.abs(ordered[["low", "high"]].sub(ordered["estimate"], axis=0)).T
    axes.errorbar(ordered["estimate"], ordered[y], xerr=arms, fmt="o", markersize=4, color=sns.color_palette("colorblind")[0], elinewidth=1)
    axes.axvline(reference, color="0.6", linewidth=0.8, linestyle=":", zorder=0)
    axes.margins(y=0.5 / max(1, len(ordered) - 1))  # half a row
    axes.set(xlabel=label)


def estimate_pairs(axes: Axes, table: pd.DataFrame, *, y: str, hue: str, label: str) -> None:
    """Two estimates per row with their intervals, side by side; rows are ordered by the first level of `hue`."""
    first, *_ = levels = list(table[hue].unique())
    order = table[table[hue] == first].sort_values("estimate")[y].tolist()
    for offset, (name, look) in zip((0.16, -0.16), looks(levels).items(), strict=True):
        part = table[table[hue] == name].set_index(y).loc[order]
        arms = np.abs(part[["low", "high"]].sub(part["estimate"], axis=0)).T
        places = np.arange(len(order)) + offset
        axes.errorbar(part["estimate"], places, xerr=arms, fmt="none", ecolor=look["color"], elinewidth=1)
        axes.plot(part["estimate"], places, linestyle="", markersize=4, label=name, **look)
    axes.set_yticks(np.arange(len(order)), order)
    axes.set(xlabel=label)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2)


def roc_curves(axes: Axes, table: pd.DataFrame, *, hue: str, points: pd.DataFrame) -> None:
    """ROC curves (columns fpr, tpr and `hue`) with the diagonal of guessing, and operating points (name, fpr, tpr) on top."""
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=0.8, linestyle=":", zorder=0)
    for name, look in looks(table[hue].unique()).items():
        part = table[table[hue] == name].sort_values(["fpr", "tpr"])
        axes.plot(part["fpr"], part["tpr"], color=look["color"], linewidth=1.3, label=name)
    for marker, row in zip(MARKERS, points.itertuples(), strict=False):
        axes.plot(row.fpr, row.tpr, marker, color="0.15", markersize=5, linestyle="none", label=row.name, clip_on=False, zorder=3)
    axes.set(xlabel="false positive rate", ylabel="true positive rate", xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
    axes.legend(loc="lower right", fontsize="small")


def contact_sheet(axes: Axes, pictures: UInt8[np.ndarray, "rows columns height width 3"], *, rows: list[str], columns: list[str]) -> None:
    """A grid of pictures with the rows' and columns' names at its rim; strips of growing scale are its rows (Fig. 34)."""
    height, width = pictures.shape[2:4]
    padded = np.pad(pictures, ((0, 0), (0, 0), (1, 1), (1, 1), (0, 0)), constant_values=255)
    axes.imshow(padded.transpose(0, 2, 1, 3, 4).reshape(len(rows) * (height + 2), len(columns) * (width + 2), 3), interpolation="none")
    axes.set_yticks((np.arange(len(rows)) + 0.5) * (height + 2), rows)
    axes.set_xticks((np.arange(len(columns)) + 0.5) * (width + 2), columns)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    sns.despine(ax=axes, left=True, bottom=True)


def frame_picture(axes: Axes, pictures: UInt8[np.ndarray, "rows columns height width 3"], *, row: int, column: int) -> None:
    """Draws a frame around one picture of a contact sheet, such as the first that a classifier gets wrong."""
    height, width = (side + 2 for side in pictures.shape[2:4])
    corner = (column * width - 0.5, row * height - 0.5)
    axes.add_patch(Rectangle(corner, width, height, fill=False, edgecolor=sns.color_palette("colorblind")[3], linewidth=1.8, clip_on=False))


def show_image(image) -> None:
    """Shows one image tensor [3, height, width] in [0, 1] at twice its size."""
    picture = image.detach().permute(1, 2, 0).clamp(0, 1).numpy()
    figure = plt.figure(figsize=(picture.shape[1] / 36, picture.shape[0] / 36))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.imshow(picture, interpolation="none")
    axes.set_axis_off()
