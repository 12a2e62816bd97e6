"""Strips of pictures, one trajectory each: read from the image tables, and drawn with the failure points framed (CNS-Bench Fig. 34)."""

from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import UInt8
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from cnslib import plots, tables
from cnslib.config import UNSHIFTED, identifier

ABSENT = "The pictures are not there: give the images of the benchmark to see the trajectories listed beside this figure."


def pictures(
    folder: Path, trajectories: pd.DataFrame, scales: list[float]
) -> UInt8[np.ndarray, "trajectories scales height width 3"] | None:
    """The pictures of some trajectories (shift, class, seed; at most one per shift) at all scales; None where no picture is stored.

    Scale 0 is that of the shift's own table, else the unshifted one. One table is in memory at a time. Errors are those of
    `tables.load`; ValueError also for a trajectory that lacks a scale.
    """
    if not any(folder.glob("*.parquet")):
        return None
    plain = rows(folder / f"{UNSHIFTED}.parquet", trajectories) if (folder / f"{UNSHIFTED}.parquet").exists() else None
    parts = []
    for row in trajectories.itertuples(index=False):
        own = rows(folder / f"{identifier(row.shift)}.parquet", trajectories[trajectories["shift"] == row.shift])
        parts += [own] if plain is None else [own, plain[plain[["class", "seed"]].eq([row[1], row[2]]).all(axis=1)].assign(shift=row.shift)]
    found = pd.concat(parts, ignore_index=True).merge(trajectories.assign(place=range(len(trajectories))), on=tables.TRAJECTORY)
    wanted = [(*key, scale) for key in trajectories[tables.TRAJECTORY].itertuples(index=False, name=None) for scale in scales]
    ordered = tables.complete(found, wanted, tables.KEY, str(folder)).sort_values(["place", "scale"])
    grid = tables.pictures(ordered[[*tables.KEY, "image"]], "strips")
    return grid.reshape(len(trajectories), len(scales), *grid.shape[1:])


def rows(path: Path, trajectories: pd.DataFrame) -> pd.DataFrame:
    """The rows of an image table that are of some (class, seed)."""
    table = tables.load(path)
    keys = pd.MultiIndex.from_frame(table.select(["class", "seed"]).to_pandas().astype({"class": str}))
    chosen = keys.isin(list(trajectories[["class", "seed"]].itertuples(index=False, name=None)))
    return table.take(np.flatnonzero(chosen)).to_pandas().astype({"shift": str, "class": str})


def failures(grid: UInt8[np.ndarray, "trajectories scales height width 3"] | None, lost: pd.DataFrame, scales: list[float]) -> Figure:
    """One strip per row of `lost` (shift, class, model, failed, failure_point), its failure point framed; one sentence without pictures."""
    figure, axes = plt.subplots(figsize=(5, 1.2 if grid is None else 0.9 * len(lost) + 0.3))
    if grid is None:
        axes.set_axis_off()
        axes.text(0.5, 0.5, ABSENT, ha="center", va="center", wrap=True)
        return figure
    names = (lost["shift"] + ": " + lost["class"] + "\n(" + lost["model"] + ")").tolist()
    plots.contact_sheet(axes, grid, rows=names, columns=[str(scale) for scale in scales])
    for row in np.flatnonzero(lost["failed"]):
        plots.frame_picture(axes, grid, row=int(row), column=scales.index(lost["failure_point"].iloc[row]))
    return figure
