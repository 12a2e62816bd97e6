"""Figures of continuous failure points: a close-up of one trajectory, maps of scanned ones, survival between the grid's scales, cost."""

import numpy as np
import pandas as pd
import seaborn as sns
from jaxtyping import UInt8
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import ConnectionPatch, Rectangle

from cnslib.core import tables
from cnslib.plots import figures, palette

GREY = "0.55"
SIDE = 0.46  # half the width of a picture in a film, in places


def closeup(whole: dict[float, np.ndarray], cell: dict[float, np.ndarray], lines: pd.DataFrame, failures: dict[str, float]) -> Figure:
    """A trajectory on the grid, the pictures inside one of its cells, and below them the margins of the models in this cell.

    `whole` and `cell` map scales to pictures; `lines` has model, scale, margin and round (0 on the grid, otherwise when bisection
    asked); `failures` maps each model to its bisected failure point, whose picture and place are marked in the model's colour.
    """
    heights = {"height_ratios": [1.2, 0.85, 1.9], "hspace": 0.42}
    figure, (top, middle, bottom) = plt.subplots(3, 1, figsize=(7.5, 5.6), gridspec_kw=heights)
    film(top, whole)
    film(middle, cell)
    mark_pictures(middle, list(cell), failures)
    for model, look in palette.looks(failures).items():
        margin_line(bottom, lines[lines["model"] == model], failures[model], look=look)
    bottom.axhline(0, color=GREY, linewidth=0.8)
    bottom.set(xlabel="slider scale", ylabel="logit margin", xlim=widened(min(cell), max(cell), 0.03))
    figures.label_ends(bottom)
    fan_out(figure, top, middle, list(whole), list(cell))
    join(figure, middle, bottom, list(cell))
    return figure


def film(axes: Axes, pictures: dict[float, UInt8[np.ndarray, "height width 3"]]) -> None:
    """Pictures side by side, one place wide, with their scales above."""
    for place, (scale, picture) in enumerate(pictures.items()):
        axes.imshow(picture, extent=(place - SIDE, place + SIDE, -SIDE, SIDE), interpolation="none", zorder=2)
        above(axes, f"{scale:.5f}".rstrip("0").rstrip("."), (place, SIDE), color="0.15")
    axes.set(xlim=(-0.5, len(pictures) - 0.5), ylim=(-0.5, 0.5), aspect="equal")
    axes.set_axis_off()


def above(axes: Axes, text: str, place: tuple[float, float], *, color, ha: str = "center") -> None:
    """A small text just above a place in the data."""
    axes.annotate(text, place, (0, 4), textcoords="offset points", ha=ha, fontsize="small", color=color)


def mark_pictures(axes: Axes, scales: list[float], failures: dict[str, float]) -> None:
    """A frame around the picture of each failure point, inside the frame of another model that fails at the same one."""
    framed: list[float] = []
    for model, look in palette.looks(failures).items():
        failure = failures[model]
        if failure in scales:
            side = 2 * (SIDE - 0.05 * framed.count(failure))
            corner = (scales.index(failure) - side / 2, -side / 2)
            axes.add_patch(Rectangle(corner, side, side, fill=False, edgecolor=look["color"], linewidth=2, zorder=3))
            framed.append(failure)


def margin_line(axes: Axes, line: pd.DataFrame, failure: float, *, look: dict) -> None:
    """The margin of one model along the cell, each point with the round that asked for it, and its failure point as a line."""
    ordered = line.sort_values("scale")
    axes.plot(ordered["scale"], ordered["margin"], markersize=4, linewidth=1.2, **look)
    for row in ordered[ordered["round"] > 0].itertuples():
        side = "left" if row.scale == failure else "center"  # beside the line of the failure point, not on it
        above(axes, f" {row.round:.0f}", (row.scale, row.margin), color=look["color"], ha=side)
    if np.isfinite(failure):
        axes.axvline(failure, color=look["color"], linewidth=1, linestyle="--", zorder=0)


def fan_out(figure: Figure, top: Axes, below: Axes, whole: list[float], cell: list[float]) -> None:
    """Lines from the two pictures of the grid that bound the cell to the first and last picture of its close-up."""
    for scale, end in ((cell[0], 0), (cell[-1], len(cell) - 1)):
        link(figure, (top, (whole.index(scale), -SIDE)), (below, (end, SIDE + 0.3)), color=GREY, linestyle=":")


def join(figure: Figure, top: Axes, below: Axes, scales: list[float]) -> None:
    """Thin lines from each picture to its scale on the axis of the plot below."""
    rim = below.get_ylim()[1]
    for place, scale in enumerate(scales):
        link(figure, (top, (place, -SIDE)), (below, (scale, rim)), color="0.8", linestyle="-")


def link(figure: Figure, start: tuple[Axes, tuple], end: tuple[Axes, tuple], *, color: str, linestyle: str) -> None:
    """A line between places of two axes, which may lie outside of them."""
    (upper, first), (lower, last) = start, end
    line = ConnectionPatch(first, last, "data", "data", axesA=upper, axesB=lower, color=color, linestyle=linestyle, linewidth=0.8)
    line.set_annotation_clip(False)
    figure.add_artist(line)


def widened(low: float, high: float, share: float) -> tuple[float, float]:
    """A range with some air on both sides."""
    air = (high - low) * share
    return low - air, high + air


def scan_maps(scan: pd.DataFrame, points: pd.DataFrame, *, grid: list[float], limit: float, columns: int = 3) -> Figure:
    """One map per scanned trajectory: a row per model, the scale from left to right, blue where right and red where wrong.

    The shade is the logit margin, cut off at `limit`; black bars are the bisected failure points, white lines the scales of the grid.
    """
    groups = list(scan.groupby(tables.TRAJECTORY))
    columns = min(columns, len(groups))
    rows, height = -(-len(groups) // columns), 0.5 + 0.16 * scan["model"].nunique()
    figure, places = plt.subplots(
        rows, columns, figsize=(2.6 * columns, rows * height + 0.5), squeeze=False, sharey=True, layout="constrained"
    )
    for axes, (key, part) in zip(places.flat, groups, strict=False):
        margins = part.pivot(index="model", columns="scale", values="margin")
        own = points.set_index(tables.TRAJECTORY).sort_index().loc[[key]].set_index("model")["until"]
        image = scan_map(axes, margins, own.reindex(margins.index), limit=limit)
        axes.vlines(grid, *axes.get_ylim(), color="white", linewidth=0.6, zorder=1)
        axes.set_title("{}: {} {}".format(*key), fontsize="small")
    for axes in places.flat[len(groups) :]:
        axes.set_visible(False)
    for axes in places.flat[max(0, len(groups) - columns) : len(groups)]:
        axes.set_xlabel("slider scale")
    figure.colorbar(image, ax=places, shrink=min(1, 2 / rows), label="logit margin (above 0: right)", extend="both")
    return figure


def scan_map(axes: Axes, margins: pd.DataFrame, until: pd.Series, *, limit: float):
    """The margins of all models (rows) along the scale (columns), the first model on top, with the bisected points; the image."""
    edges, rims = cell_edges(margins.columns.to_numpy()), np.arange(len(margins) + 1)
    image = axes.pcolormesh(edges, rims, margins, cmap=two_sided(), vmin=-limit, vmax=limit, rasterized=True)
    for row, scale in enumerate(until):
        if 0 < scale < np.inf:
            axes.plot([scale, scale], [row + 0.08, row + 0.92], color="black", linewidth=1.5, solid_capstyle="butt", zorder=2)
    axes.set_xticks(range(int(edges[-1]) + 1))
    axes.set_yticks(rims[:-1] + 0.5, margins.index, fontsize="small")
    axes.set_ylim(len(margins), 0)
    axes.tick_params(length=0)
    sns.despine(ax=axes, left=True, bottom=True)
    return image


def two_sided() -> ListedColormap:
    """Red to blue without the pale middle, so that even a small margin shows its sign."""
    shades = sns.color_palette("vlag_r", 256)
    return ListedColormap([*shades[:100], *shades[156:]])


def cell_edges(scales: np.ndarray) -> np.ndarray:
    """Borders half-way between scales, the outer ones at the ends."""
    return np.concatenate([scales[:1], (scales[:-1] + scales[1:]) / 2, scales[-1:]])


def survival_boxes(axes: Axes, table: pd.DataFrame) -> None:
    """What the grid knows of a survival curve (a box between each two scales) and the continuous curve with its band.

    The table has scale, estimate, low, high and grid (True at the grid's reading of a scale of the grid).
    """
    coarse, fine = (table[table["grid"] == flag].sort_values("scale") for flag in (True, False))
    scales, shares = coarse["scale"].to_numpy(), coarse["estimate"].to_numpy()
    for left, right, high, low in zip(scales[:-1], scales[1:], shares[:-1], shares[1:], strict=True):
        axes.add_patch(Rectangle((left, low), right - left, high - low, facecolor="0.8", edgecolor="none", zorder=0))
    axes.step(scales, shares, where="post", color=GREY, linewidth=1, label="grid")
    axes.plot(scales, shares, "o", color=GREY, markersize=3)
    color = sns.color_palette("colorblind")[0]
    axes.fill_between(fine["scale"], fine["low"], fine["high"], step="post", color=color, alpha=0.1, linewidth=0)
    axes.step(fine["scale"], fine["estimate"], where="post", color=color, linewidth=1.4, label="bisected")
    axes.set(xlabel="slider scale", ylabel="share without failure", ylim=(0, 1))


def cost_lines(axes: Axes, table: pd.DataFrame) -> None:
    """Images beyond the grid against the resolution, one line per method, named at its end; both axes logarithmic."""
    for method, look in palette.looks(table["method"].unique()).items():
        part = table[table["method"] == method].sort_values("resolution")
        axes.plot(part["resolution"], part["images"], markersize=4, **look)
        end, text = part.iloc[0], f"{method}: {part['images'].iloc[0]:,.0f}"
        place = {"shared": "top", "each model alone": "bottom"}.get(method, "center")
        axes.annotate(text, (end["resolution"], end["images"]), (6, 0), textcoords="offset points", va=place, color=look["color"])
    ticks = sorted(table["resolution"].unique())
    axes.set(xscale="log", yscale="log", xlabel="resolution of the slider scale", ylabel="images beyond the grid")
    axes.set_xticks(ticks, [f"1/{1 / tick:g}" for tick in ticks], minor=False)
    axes.minorticks_off()
    axes.invert_xaxis()
