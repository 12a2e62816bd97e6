"""Figures from tidy tables into an Axes, and one `save` that writes picture and numbers, byte-identical for equal inputs."""

from collections.abc import Callable, Iterable
from pathlib import Path

import matplotlib as mpl
import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from cnslib.core import units

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
