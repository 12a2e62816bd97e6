"""Sheets of pictures, and strips, one trajectory each, read from the image tables, the failure points framed (CNS-Bench Fig. 34)."""

import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import seaborn as sns
from jaxtyping import UInt8
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from cnslib.core import tables
from cnslib.core.names import UNSHIFTED, identifier
from cnslib.plots import palette


def contact_sheet(axes: Axes, pictures: UInt8[np.ndarray, "rows columns height width 3"], *, rows: list[str], columns: list[str]) -> None:
    """A grid of pictures with the rows' and columns' names at its rim; strips of growing scale are its rows (Fig. 34)."""
    tiled(axes, pictures, below=0)
    height, width = (side + 2 for side in pictures.shape[2:4])
    axes.set_yticks((np.arange(len(rows)) + 0.5) * height, rows)
    axes.set_xticks((np.arange(len(columns)) + 0.5) * width, columns)
    axes.xaxis.tick_top()


def tiled(axes: Axes, pictures: UInt8[np.ndarray, "rows columns height width 3"], *, below: int) -> None:
    """Draws pictures side by side, with a white rim and `below` more rows of white pixels under each."""
    padded = np.pad(pictures, ((0, 0), (0, 0), (1, 1 + below), (1, 1), (0, 0)), constant_values=255)
    rows, columns, height, width, _ = padded.shape
    axes.imshow(padded.transpose(0, 2, 1, 3, 4).reshape(rows * height, columns * width, 3), interpolation="none")
    axes.tick_params(length=0)
    sns.despine(ax=axes, left=True, bottom=True)


def judged_sheet(axes: Axes, pictures: UInt8[np.ndarray, "rows columns height width 3"], groups: dict[str, pd.DataFrame]) -> None:
    """A grid with a row of pictures per group, and under each its class and the oracle's probability of it (/ of its mirror image).

    The rows of a group (class, class_probability, perhaps mirrored_probability) are its pictures in their order.
    """
    high, wide = pictures.shape[2:4]
    below = round(0.3 * high)
    tiled(axes, pictures, below=below)
    for row, table in enumerate(groups.values()):
        shown = table.head(pictures.shape[1])
        probabilities = shown.filter(["class_probability", "mirrored_probability"]).to_numpy()
        chances = [" / ".join(f"{chance:.2f}" for chance in row) for row in probabilities]
        for column, (name, chance) in enumerate(zip(shown["class"], chances, strict=True)):
            place = (column + 0.5) * (wide + 2), row * (high + 2 + below) + high + 2 + below / 2
            axes.text(*place, f"{name}\n{chance}", ha="center", va="center", fontsize=5, linespacing=1)
    axes.set_yticks(np.arange(len(groups)) * (high + 2 + below) + high / 2 + 1, list(groups))
    axes.set_xticks([])


def show_image(image) -> None:
    """Shows one image tensor [3, height, width] in [0, 1] at twice its size."""
    picture = image.detach().permute(1, 2, 0).clamp(0, 1).numpy()
    figure = plt.figure(figsize=(picture.shape[1] / 36, picture.shape[0] / 36))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.imshow(picture, interpolation="none")
    axes.set_axis_off()


PAIR = ["class", "seed"]
ABSENT = "The pictures are not there: give the images of the benchmark to see the trajectories listed beside this figure."


def pictures(
    folder: Path, trajectories: pd.DataFrame, scales: list[float]
) -> UInt8[np.ndarray, "trajectories scales height width 3"] | None:
    """The pictures of some trajectories (shift, class, seed; at most one per shift) at some scales; None where no picture is stored.

    Scale 0 is that of the shift's own table, else the unshifted one. Errors are those of `tables.pick`; ValueError for a missing scale.
    """
    if not any(folder.glob("*.parquet")):
        return None
    plain = tables.pick(folder / f"{UNSHIFTED}.parquet", trajectories, PAIR) if (folder / f"{UNSHIFTED}.parquet").exists() else None
    parts = []
    for row in trajectories.itertuples(index=False):
        of_shift = tables.pick(folder / f"{identifier(row.shift)}.parquet", trajectories[trajectories["shift"] == row.shift], PAIR)
        parts += [of_shift] if plain is None else [of_shift, plain[plain[PAIR].eq([row[1], row[2]]).all(axis=1)].assign(shift=row.shift)]
    images = pd.concat(parts, ignore_index=True).merge(trajectories.assign(place=range(len(trajectories))), on=tables.TRAJECTORY)
    wanted = [(*key, scale) for key in trajectories[tables.TRAJECTORY].itertuples(index=False, name=None) for scale in scales]
    chosen = images[images["scale"].isin(scales)]
    ordered = tables.complete(chosen, wanted, tables.KEY, str(folder)).sort_values(["place", "scale"])
    grid = tables.pictures(ordered[[*tables.KEY, "image"]], "strips")
    return grid.reshape(len(trajectories), len(scales), *grid.shape[1:])


def classified(
    grid: UInt8[np.ndarray, "trajectories scales height width 3"] | None,
    strips: pd.DataFrame,
    predictions: pd.DataFrame,
    scales: list[float],
    *,
    across: int = 1,
) -> Figure:
    """One strip per row (shift, class, seed, model), `across` side by side, with what the model predicts below each image.

    `predictions` has a row (model, shift, class, seed, scale, top1) for each, at scale 0 under the shift or unshifted. A frame is green
    where the prediction is right and red where it is wrong; the first red one is the failure point. Without images there is one sentence.
    """
    rows = -(-len(strips) // across)
    figure, panels = plt.subplots(
        1, across, figsize=((1.6 + 0.75 * len(scales)) * across, 1.2 if grid is None else 0.95 * rows + 0.3), squeeze=False
    )
    if grid is None:
        panels[0, 0].set_axis_off()
        panels[0, 0].text(0.5, 0.5, ABSENT, ha="center", va="center", wrap=True)
        return figure
    words = predictions.set_index(["model", *tables.KEY])["top1"].astype(str)
    for number, axes in enumerate(panels[0]):
        part = slice(number * rows, (number + 1) * rows)
        below = round(0.28 * grid.shape[2])
        tiled(axes, grid[part], below=below)
        high, wide = grid.shape[2] + 2 + below, grid.shape[3] + 2
        for row, strip in enumerate(strips[part].to_dict("records")):
            for column, scale in enumerate(scales):
                keys = [(strip["model"], shift, strip["class"], strip["seed"], scale) for shift in (strip["shift"], UNSHIFTED)]
                said = next(words[key] for key in keys if key in words)
                judge(axes, (column * wide, row * high), wide, high - below, said, strip["class"])
        names = strips[part]["shift"] + "\n" + strips[part]["class"]
        names += "\n" + strips[part]["model"].map(palette.displayed) if strips["model"].nunique() > 1 else ""
        axes.set_yticks(np.arange(len(names)) * high + (high - below) / 2, names, fontsize="small")
        axes.set_xticks((np.arange(len(scales)) + 0.5) * wide, [f"{scale:g}" for scale in scales])
        axes.xaxis.tick_top()
    figure.tight_layout()
    return figure


def judge(axes: Axes, corner: tuple[float, float], wide: float, high: float, prediction: str, label: str) -> None:
    """A frame around an image and the prediction below it, in green where it is the label and in red where it is not."""
    colour = [0.8 * part for part in sns.color_palette("colorblind")[2 if prediction == label else 3]]
    frame: dict = {"fill": False, "edgecolor": colour, "linewidth": 1.5, "clip_on": False}
    axes.add_patch(Rectangle((corner[0] + 0.02 * wide, corner[1]), 0.95 * wide, high - 1, **frame))
    text = "\n".join(textwrap.wrap(prediction, 15)[:2])
    axes.text(corner[0] + wide / 2, corner[1] + 1.03 * high, text, ha="center", va="top", fontsize=7, linespacing=0.9, color=colour)


def close_up(
    grid: UInt8[np.ndarray, "1 scales height width 3"] | None, table: pd.DataFrame, *, value: str, label: str, marked: dict | None = None
) -> tuple[Figure, Axes]:
    """The strip of one trajectory and, below it, a value of each model (model, scale, `value`) at each scale, which `label` names.

    `marked` maps models to the scale of a dashed line, infinite for none. A sentence stands in place of missing pictures.
    """
    scales, ratios = sorted(table["scale"].unique()), [0.85, 2.2]
    size = (0.85 * len(scales) + 1.2, sum(ratios))
    figure, (top, axes) = plt.subplots(2, 1, figsize=size, height_ratios=ratios, sharex=True, layout="constrained")
    for place, picture in enumerate([] if grid is None else grid[0]):
        top.imshow(picture, extent=(place - 0.48, place + 0.48, 0, 0.96), interpolation="none")
    if grid is None:
        top.text(0.5, 0.5, ABSENT, ha="center", va="center", wrap=True, transform=top.transAxes)
    top.set(xlim=(-0.5, len(scales) - 0.5), ylim=(0, 0.96), aspect="auto")
    top.set_axis_off()
    axes.set_xticks(range(len(scales)), [f"{scale:.5g}" for scale in scales])
    axes.set(xlabel="slider scale", ylabel=label)
    for model, look in palette.looks(table["model"].unique()).items():
        curve = table[table["model"] == model].sort_values("scale")
        axes.plot(curve["scale"].map(scales.index), curve[value], markersize=4, linewidth=1.4, label=palette.displayed(model), **look)
        if marked and marked[model] in scales:
            axes.axvline(scales.index(marked[model]), color=look["color"], linewidth=1, linestyle="--", zorder=0)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure, axes
