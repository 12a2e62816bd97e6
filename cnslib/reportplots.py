"""The figure of a report: one classifier in colour among the others in grey."""

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cnslib import plots
from cnslib.stats import ALL

GREY, INK = "0.8", "0.45"


def draw(found: dict[str, pd.DataFrame], name: str, *, confidence: float) -> Figure:
    """Accuracy, rank and survival along the scale, and the drop per shift; alone, a classifier has no rank and that panel stays empty."""
    figure, grid = plt.subplots(2, 2, figsize=(9, 6.5), layout="constrained")
    kinds = {"accuracy": "accuracy", "rank": "rank (1 is best)", "survival": "share without failure so far"}
    for axes, (kind, title) in zip(grid.flat, kinds.items(), strict=False):
        if kind in found:
            curves(axes, found[kind].query("shift == @ALL"), name)
            axes.set(title=title, ylabel="")
        axes.set_visible(kind in found)
    if "rank" in found:
        count = found["rank"]["model"].nunique()
        grid[0, 1].set(ylim=(count + 0.5, 0.5))
    drops = found["drop"]
    drop_dots(grid[1, 1], drops[(drops["shift"] != ALL) & (drops["scale"] == drops["scale"].max())], name)
    grid[1, 1].set_title(f"accuracy drop at scale {drops['scale'].max():g}")
    n = found["accuracy"].query("shift == @ALL")["n"].max()
    size = f"n = {n:,} trajectories, {plots.extent(drops.loc[drops['shift'] != ALL, 'n'])} per shift"
    plots.caption(figure, f"{name} in colour, others in grey; {size}; {confidence:.0%} bootstrap over (class, seed)")
    return figure


def curves(axes: Axes, table: pd.DataFrame, name: str) -> None:
    """One curve per model against the scale: the others grey, the named one in colour with its band; first and last are named."""
    others = table[table["model"] != name]
    for _, part in others.groupby("model"):
        axes.plot(part["scale"], part["estimate"], color=GREY, linewidth=0.8, zorder=0)
    plots.estimate_lines(axes, table[table["model"] == name], x="scale", hue="model", label="")
    axes.set(xlabel="slider scale")
    ends = others[others["scale"] == others["scale"].max()].set_index("model")["estimate"]
    for end in dict.fromkeys([ends.idxmax(), ends.idxmin()] if len(ends) else []):
        axes.annotate(end, (1, ends[end]), (3, 0), ("axes fraction", "data"), "offset points", va="center", fontsize="x-small", color=INK)


def drop_dots(axes: Axes, table: pd.DataFrame, name: str) -> None:
    """The accuracy drop per shift, the largest on top: every other model a grey dot, the named one with its interval."""
    own = table[table["model"] == name].sort_values("estimate")
    order = own["shift"].tolist()
    others = table[table["model"] != name]
    axes.plot(others["estimate"], others["shift"].map(order.index), "o", color=GREY, markersize=3, zorder=0)
    arms = own[["low", "high"]].sub(own["estimate"], axis=0).abs().T
    axes.errorbar(own["estimate"], range(len(order)), xerr=arms, fmt="o", markersize=4, elinewidth=1)
    axes.axvline(0, color="0.7", linewidth=0.6, zorder=0)
    axes.set_yticks(range(len(order)), order)
