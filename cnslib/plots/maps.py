"""The heat map of drops: one row per classifier, one column per shift, the numbers written into the fields."""

import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from cnslib.plots import palette
from cnslib.stats.accuracy import ALL


def drop_map(table: pd.DataFrame, members: dict[str, list[str]]) -> Figure:
    """Accuracy drop per classifier and shift (axis, model, shift, n, estimate, low, high), the classifiers by axis and in its order.

    All shifts together stand first, then the one that costs most. A bold number differs from zero for certain.
    """
    hardness = table.groupby("shift")["estimate"].mean().sort_values(ascending=False, kind="stable")
    shifts, heights = sorted(hardness.index, key=ALL.__ne__), [len(names) for names in members.values()]
    size = (2.4 + 0.5 * len(shifts), 2 + 0.24 * sum(heights))
    figure, grid = plt.subplots(len(members), 1, figsize=size, height_ratios=heights, sharex=True, squeeze=False, layout="constrained")
    limits = {"vmin": min(0.0, table["estimate"].min()), "vmax": table["estimate"].max()}
    for axes, (axis, names) in zip(grid.flat, members.items(), strict=True):
        part = table[table["axis"] == axis]
        drop, low, high = (
            part.pivot(index="model", columns="shift", values=name).loc[names, shifts] for name in ("estimate", "low", "high")
        )
        options = {"annot_kws": {"size": 7}, "cmap": "rocket_r", "cbar": False, "yticklabels": [*map(palette.displayed, names)], **limits}
        sns.heatmap(drop, ax=axes, annot=drop.map("{:.2f}".format), fmt="", **options)
        certain = ((low > 0) | (high < 0)).to_numpy().ravel()
        for text, sure in zip(axes.texts, certain, strict=True):
            text.set(weight="bold" if sure else "normal", alpha=1 if sure else 0.7)
        axes.set(title=axis, xlabel="", ylabel="")
        axes.tick_params(length=0, labelbottom=axes is grid[-1, 0])
    counts = table.groupby("shift")["n"].first()
    grid[-1, 0].set_xticklabels([f"{shift} ({counts[shift]})" for shift in shifts], rotation=40, ha="right", rotation_mode="anchor")
    figure.colorbar(axes.collections[0], ax=grid[:, 0], label="accuracy drop at the last scale", aspect=50, pad=0.01)
    return figure
