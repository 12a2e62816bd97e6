"""Figures from tidy tables into an Axes, and one `save` that writes picture and numbers, byte-identical for equal inputs."""

import textwrap
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from IPython import get_ipython
from IPython.display import Image, display
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib_inline.backend_inline import set_matplotlib_formats

from cnslib.core import units
from cnslib.plots import palette

WITHOUT_DATE = {"png": {"Software": None}, "pdf": {"CreationDate": None, "Producer": None, "Creator": None}}  # nor version

CHARACTERS = 16  # of a caption, in an inch


def use_style(*, shifts: Iterable[str] = (), families: Mapping[str, list[str]] | None = None, finished: bool = False) -> None:
    """The look of every figure: seaborn ticks, a colour-blind palette, small type, 72 dpi on screen.

    Shifts, and families (see `palette.families`), keep their order and colours in all figures to come. Where figures are `finished` by
    `save`, a notebook shows them there, and not below the cell that began them; else it shows them at twice the resolution.
    """
    palette.fix(shifts=shifts, grouped=families or {})
    sns.set_theme(context="paper", style="ticks", palette="colorblind")
    mpl.rcParams.update({"figure.dpi": 72, "savefig.dpi": 150, "savefig.bbox": "tight", "pdf.fonttype": 42, "axes.spines.top": False})
    mpl.rcParams.update({"axes.spines.right": False, "legend.frameon": False, "axes.titlesize": "medium", "axes.titlelocation": "left"})
    if finished:
        plt.switch_backend(plt.get_backend())  # a notebook's turns interactive on when it is loaded, which is with the first figure else
        plt.ioff()
    elif get_ipython():
        set_matplotlib_formats("retina")


def save(figure: Figure, stem: Path, data: pd.DataFrame) -> None:
    """Writes a figure as `write` does; a notebook that shows finished figures shows it as it was written."""
    write(figure, stem, data)
    if not plt.isinteractive() and get_ipython():
        drawn = stem.with_name(f"{stem.name}.png").read_bytes()
        wide = int.from_bytes(drawn[16:20]) * mpl.rcParams["figure.dpi"] / mpl.rcParams["savefig.dpi"]  # where a PNG has its width
        display(Image(drawn, width=round(wide)))
        plt.close(figure)


def write(figure: Figure, stem: Path, data: pd.DataFrame) -> None:
    """Writes <stem>.png, <stem>.pdf and <stem>.csv, the plotted numbers at six digits and then sorted by their columns."""
    for kind, metadata in WITHOUT_DATE.items():
        with units.atomic(stem.with_name(f"{stem.name}.{kind}")) as partial:
            figure.savefig(partial, format=kind, metadata=metadata)
    short = data.select_dtypes("floating").map("{:.6g}".format).astype(float)  # the twelfth digit orders no rows
    text = data.assign(**short).sort_values(list(data.columns)).to_csv(index=False, float_format="%.6g", lineterminator="\n")
    units.write_bytes(stem.with_name(f"{stem.name}.csv"), text.encode())


def caption(figure: Figure, text: str) -> None:
    """A text below everything drawn so far: what is seen, then what n counts, then what the intervals are; long ones are broken."""
    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()  # which places the axes
    bottom = figure.get_tightbbox().y0 - 0.06  # inches
    lines = textwrap.fill(text, int(CHARACTERS * figure.get_figwidth()), break_long_words=False)
    figure.text(0.01, bottom / figure.get_figheight(), lines, ha="left", va="top", fontsize="small", color="0.35")


def extent(counts: Iterable[int]) -> str:
    """Smallest and largest of some counts in words: "n = 40" or "n = 31 to 40"."""
    low, high = min(counts), max(counts)
    return f"n = {low:,}" if low == high else f"n = {low:,} to {high:,}"


def label_ends(axes: Axes) -> None:
    """Writes the names of all curves right of the axes, moved apart where they would overlap, each with a line to the end of its curve.

    To be called when all is drawn, since it fixes the limits.
    """
    handles: Any = axes.get_legend_handles_labels()
    curves, names = handles
    if not curves:
        return
    low, high = axes.get_ylim()
    ends: np.ndarray = np.array([curve.get_ydata()[-1] for curve in curves], float)
    order = np.argsort(ends, kind="stable")
    steps = np.arange(len(order)) * (high - low) * 10 / (axes.bbox.height * 72 / axes.figure.dpi)
    placed = np.maximum.accumulate(ends[order] - steps) + steps
    placed += (ends[order] - placed).mean()
    for place, height in zip(order, placed, strict=True):
        across, colour = axes.get_yaxis_transform(), curves[place].get_color()
        axes.plot([1, 1.05], [ends[place], height], color=colour, linewidth=0.8, transform=across, clip_on=False)
        axes.annotate(names[place], (1.05, height), (3, 0), across, "offset points", va="center", color="0.2", fontsize="small")
    axes.set_ylim(low, high)


def panels(
    table: pd.DataFrame,
    draw: Callable,
    *,
    by: str = "shift",
    columns: int = 4,
    size: tuple[float, float] = (2.3, 2.1),
    names_at_ends: bool = False,
    **settings,
) -> Figure:
    """One panel per level of `by`, all with the same axes, in the fixed order, drawn by a function of this wing; one legend for all.

    `size` is that of a panel in inches; `names_at_ends` names the curves at their ends in place of the legend. A level of `hue` looks the
    same in all panels.
    """
    levels = palette.ordered(table[by])
    columns = min(columns, len(levels))
    rows = -(-len(levels) // columns)
    figure, grid = plt.subplots(rows, columns, figsize=(size[0] * columns, size[1] * rows), sharex=True, sharey=True, squeeze=False)
    hues = table[settings["hue"]] if "hue" in settings else ()
    for place, (axes, level) in enumerate(zip(grid.flat, levels, strict=False)):
        with palette.pinned(hues):
            draw(axes, table[table[by] == level], **settings)
        lowest, leftmost = place + columns >= len(levels), place % columns == 0
        axes.set(title=palette.displayed(level), xlabel=axes.get_xlabel() if lowest else "", ylabel=axes.get_ylabel() if leftmost else "")
        axes.tick_params(labelbottom=lowest, labelleft=leftmost)  # also above an empty place, where label_outer shows none
    for axes in grid.flat[len(levels) :]:
        axes.set_visible(False)
    if names_at_ends:
        for axes in grid.flat[: len(levels)]:
            label_ends(axes)
    else:
        legend(figure, grid.flat[: len(levels)], names=map(palette.displayed, palette.looks(hues)))
    figure.tight_layout()
    return figure


def legend(figure: Figure, panels: Iterable[Axes], *, names: Iterable[str] = ()) -> None:
    """One legend right of all panels, of what is drawn in any of them: first the names given, in their order, then the others."""
    entries = {label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    order = [name for name in names if name in entries]
    order += [name for name in entries if name not in order]
    figure.legend([entries[name] for name in order], order, loc="center left", bbox_to_anchor=(1, 0.5))
