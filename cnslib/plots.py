"""Figures from tidy tables into an Axes, and one `save` that writes picture and numbers, byte-identical for equal inputs."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cnslib import units

FIXED = {"png": {"Software": None}, "pdf": {"CreationDate": None, "Producer": None, "Creator": None}}


def use_style() -> None:
    """The look of every figure: seaborn ticks, a colour-blind palette, small type, 72 dpi on screen."""
    sns.set_theme(context="paper", style="ticks", palette="colorblind")
    mpl.rcParams.update({"figure.dpi": 72, "savefig.dpi": 200, "savefig.bbox": "tight", "pdf.fonttype": 42, "axes.spines.top": False})
    mpl.rcParams.update({"axes.spines.right": False, "legend.frameon": False})


def save(figure: Figure, stem: Path, data: pd.DataFrame) -> None:
    """Writes <stem>.png, <stem>.pdf and <stem>.csv, the plotted numbers sorted by their columns and at six digits."""
    for kind, metadata in FIXED.items():
        with units.atomic(stem.with_suffix(f".{kind}")) as partial:
            figure.savefig(partial, format=kind, metadata=metadata)
    ordered = data.sort_values(list(data.columns), ignore_index=True)
    units.write_bytes(stem.with_suffix(".csv"), ordered.to_csv(index=False, float_format="%.6g", lineterminator="\n").encode())


def contact_sheet(axes: Axes, pictures: np.ndarray, *, rows: list[str], columns: list[str]) -> None:
    """A grid of pictures [rows, columns, height, width, 3] (uint8) with the rows' and columns' names at its rim."""
    height, width = pictures.shape[2:4]
    padded = np.pad(pictures, ((0, 0), (0, 0), (1, 1), (1, 1), (0, 0)), constant_values=255)
    axes.imshow(padded.transpose(0, 2, 1, 3, 4).reshape(len(rows) * (height + 2), len(columns) * (width + 2), 3), interpolation="none")
    axes.set_yticks((np.arange(len(rows)) + 0.5) * (height + 2), rows)
    axes.set_xticks((np.arange(len(columns)) + 0.5) * (width + 2), columns)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    sns.despine(ax=axes, left=True, bottom=True)


def show_image(image) -> None:
    """Shows one image tensor [3, height, width] in [0, 1] at twice its size."""
    picture = image.detach().permute(1, 2, 0).clamp(0, 1).numpy()
    figure = plt.figure(figsize=(picture.shape[1] / 36, picture.shape[0] / 36))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.imshow(picture, interpolation="none")
    axes.set_axis_off()


def estimate_lines(axes: Axes, table: pd.DataFrame, *, x: str, hue: str, label: str) -> None:
    """Curves of an estimate with its interval as a band, one per level of `hue` (Fig. 6)."""
    for colour, (name, part) in zip(sns.color_palette(n_colors=table[hue].nunique()), table.groupby(hue, sort=True), strict=True):
        part = part.sort_values(x)
        axes.plot(part[x], part["estimate"], marker="o", markersize=3, color=colour, label=name)
        axes.fill_between(part[x], part["low"], part["high"], color=colour, alpha=0.15, linewidth=0)
    axes.set_xlabel(x)
    axes.set_ylabel(label)
