"""Curves, dots, bars and lists of estimates with their intervals, each drawn from a tidy table into an Axes.

Along the paper's axes curves keep the axis' own order and dots stand beside the paper's numbers; in a report one classifier is in
colour among the others in grey.
"""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from cnslib.plots import figures
from cnslib.plots.palette import MARKERS
from cnslib.plots.palette import looks as fixed_looks
from cnslib.stats import verdicts
from cnslib.stats.accuracy import ALL


def estimate_lines(axes: Axes, table: pd.DataFrame, *, x: str, hue: str, label: str, named: bool = False) -> None:
    """Curves of an estimate with its interval as a band, one per level of `hue`; `named` at their right end (Fig. 6)."""
    for name, look in fixed_looks(table[hue].unique()).items():
        part = table[table[hue] == name].sort_values(x)
        axes.plot(part[x], part["estimate"], markersize=3.5, linewidth=1.2, label=name, **look)
        axes.fill_between(part[x], part["low"], part["high"], color=look["color"], alpha=0.12, linewidth=0)
    axes.set(xlabel=x, ylabel=label)
    if named:
        figures.label_ends(axes)


def paths(axes: Axes, table: pd.DataFrame, *, x: str, y: str, hue: str, labels: tuple[str, str]) -> None:
    """One path per level of `hue` through its points, in the order of the rows; `labels` are those of both axes."""
    styles = fixed_looks(table[hue].unique())
    for name, part in table.groupby(hue, sort=False):
        axes.plot(part[x], part[y], markersize=4, linewidth=1.2, label=name, **styles[name])
    axes.set(xlabel=labels[0], ylabel=labels[1])
    axes.legend()


def drop_lines(axes: Axes, table: pd.DataFrame, *, along: str = "slider scale") -> None:
    """Accuracy drop along the scale, one curve per model (Fig. 6); `along` names it."""
    estimate_lines(axes, table, x="scale", hue="model", label="accuracy drop")
    axes.set_xlabel(along)
    axes.axhline(0, color="0.7", linewidth=0.6, zorder=0)


def accuracy_lines(axes: Axes, table: pd.DataFrame, *, chance: float, along: str = "slider scale") -> None:
    """Accuracy along the scale, which `along` names, one curve per model; the dotted line is the share that guessing gets right."""
    estimate_lines(axes, table, x="scale", hue="model", label="accuracy")
    axes.set_xlabel(along)
    axes.axhline(chance, color="0.5", linewidth=0.8, linestyle=":", zorder=0)


def rank_lines(axes: Axes, table: pd.DataFrame, *, along: str = "slider scale") -> None:
    """Rank along the scale, which `along` names, one curve per model, rank 1 on top (Fig. 7)."""
    estimate_lines(axes, table, x="scale", hue="model", label="rank")
    axes.set(xlabel=along, ylim=(table["high"].max() + 0.5, 0.5))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))  # there is no place 1.5


def bump_lines(axes: Axes, table: pd.DataFrame, *, shown: list[str]) -> None:
    """Ranks of all models along the scale, rank 1 on top, every name at its own end; those `shown` in colour, the others grey (Fig. 7).

    The bars behind the last scale are the intervals of the ranks there, of those shown. Equal last ranks stand one above the other.
    """
    last, count = table["scale"].max(), table["model"].nunique()
    ends = table[table["scale"] == last].sort_values(["estimate", "model"]).set_index("model")
    styles = fixed_looks(ends.index)
    for place, (model, end) in enumerate(ends.iterrows(), start=1):
        strong = model in shown
        part, colour = table[table["model"] == model].sort_values("scale"), styles[model]["color"] if strong else GREY
        axes.plot(part["scale"], part["estimate"], color=colour, linewidth=2 if strong else 0.8, zorder=2 + strong, clip_on=False)
        axes.plot([last, 1.17 * last], [end["estimate"], place], color=colour, linewidth=0.6, clip_on=False, zorder=1)
        style = {"color": colour, "fontsize": "small"} if strong else {"color": INK, "fontsize": "x-small"}
        axes.text(1.18 * last, place, model, va="center", **style)
        if strong:
            right = last * (1.03 + 0.08 * shown.index(model) / len(shown))
            axes.vlines(right, end["low"], end["high"], color=colour, linewidth=1.4)
    axes.set(xlabel="slider scale", ylabel="rank", xlim=(table["scale"].min(), 1.12 * last), ylim=(count + 0.5, 0.5))
    axes.set_xticks(sorted(table["scale"].unique()))
    axes.set_yticks([1, *range(5, count + 1, 5)])


def bump_panels(table: pd.DataFrame, titles: dict[str, str], *, shown: list[str]) -> Figure:
    """Panels of `bump_lines` side by side, one per shift in `titles`."""
    size = (4.6 * len(titles), 0.8 + 0.19 * table["model"].nunique())
    figure, grid = plt.subplots(1, len(titles), figsize=size, layout="constrained")
    for axes, (shift, title) in zip(np.atleast_1d(grid), titles.items(), strict=True):
        bump_lines(axes, table[table["shift"] == shift], shown=shown)
        axes.set_title(title)
    return figure


def survival_lines(axes: Axes, table: pd.DataFrame) -> None:
    """Share of trajectories without failure so far against the slider scale, one curve per model."""
    estimate_lines(axes, table, x="scale", hue="model", label="share without failure")
    axes.set(xlabel="slider scale", ylim=(-0.03, 1.03))


def progress_lines(axes: Axes, table: pd.DataFrame) -> None:
    """Share of the rise against the slider scale, one curve per ruler; a slider that means what it says is on the dotted line."""
    estimate_lines(axes, table, x="scale", hue="ruler", label="share of the rise")
    axes.plot([0, table["scale"].max()], [0, 1], color="0.5", linewidth=0.8, linestyle=":", zorder=0)
    axes.set(xlabel="slider scale", ylim=(-0.05, 1.05))


def failure_bars(axes: Axes, table: pd.DataFrame) -> None:
    """Share of trajectories whose first failure is at each scale, bars per model with intervals (Fig. 8)."""
    styles = fixed_looks(table["model"].unique())
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
    for offset, (name, look) in zip((0.16, -0.16), fixed_looks(levels).items(), strict=True):
        part = table[table[hue] == name].set_index(y).loc[order]
        arms = np.abs(part[["low", "high"]].sub(part["estimate"], axis=0)).T
        places = np.arange(len(order)) + offset
        axes.errorbar(part["estimate"], places, xerr=arms, fmt="none", ecolor=look["color"], elinewidth=1)
        axes.plot(part["estimate"], places, linestyle="", markersize=4, label=name, **look)
    axes.set_yticks(np.arange(len(order)), order)
    axes.set(xlabel=label)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2)


def paired_distances(table: pd.DataFrame, floors: pd.DataFrame, *, names: dict[str, str]) -> Figure:
    """A distance per class and prompt with its interval, side by side, and the floor as a cross; `names` are those of the prompts.

    `table` has the columns class, prompt, estimate, low and high, `floors` class and estimate, both in the order of the classes.
    """
    figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
    for offset, (prompt, part) in zip((-0.1, 0.1), table.groupby("prompt"), strict=True):
        across, arms = np.arange(len(part)) + offset, abs(part[["low", "high"]].T - part["estimate"])
        axes.errorbar(across, part["estimate"], arms, fmt="o", markersize=4, label=names[prompt])
    axes.plot(floors["estimate"].to_numpy(), "x", color="grey", label="real scenes")
    classes = floors["class"].tolist()
    axes.set(ylabel="Frechet distance to held-out scenes", ylim=(0, None), xticks=range(len(classes)), xticklabels=classes)
    figure.legend(loc="outside upper center", ncols=3)
    return figure


def roc_curves(axes: Axes, table: pd.DataFrame, *, hue: str, points: pd.DataFrame) -> None:
    """ROC curves (columns fpr, tpr and `hue`) with the diagonal of guessing, and operating points (name, fpr, tpr) on top."""
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=0.8, linestyle=":", zorder=0)
    for name, look in fixed_looks(table[hue].unique()).items():
        part = table[table[hue] == name].sort_values(["fpr", "tpr"])
        axes.plot(part["fpr"], part["tpr"], color=look["color"], linewidth=1.3, label=name)
    for marker, row in zip(MARKERS, points.itertuples(), strict=False):
        axes.plot(row.fpr, row.tpr, marker, color="0.15", markersize=5, linestyle="none", label=row.name, clip_on=False, zorder=3)
    axes.set(xlabel="false positive rate", ylabel="true positive rate", xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
    axes.legend(loc="lower right", fontsize="small")


GREY, INK = "0.8", "0.45"
COLOURS = dict(zip(verdicts.WORDS, (2, 0, 3, 7, None), strict=True))  # places in the colour-blind palette


def axis_lines(axes: Axes, table: pd.DataFrame, *, order: list[str]) -> None:
    """Accuracy drop against the slider scale, one curve per classifier of an axis (Figs. 9 to 12).

    Bands of many classifiers would hide each other, so intervals are drawn for the last scale alone, side by side at the right.
    """
    styles = fixed_looks(order)
    for place, name in enumerate(order):
        part = table[table["model"] == name].sort_values("scale")
        axes.plot(part["scale"], part["estimate"], markersize=3.5, linewidth=1.2, label=name, **styles[name])
        end = part.iloc[-1]
        right = end["scale"] * (1.06 + 0.2 * place / len(order))
        axes.vlines(right, end["low"], end["high"], color=styles[name]["color"], linewidth=1.4)
    axes.axhline(0, color="0.7", linewidth=0.6, zorder=0)
    axes.set(xlabel="slider scale", ylabel="accuracy drop", xticks=sorted(table["scale"].unique())[::2])


def axis_dots(axes: Axes, table: pd.DataFrame, *, label: str, reference: float, published: pd.Series | None = None) -> None:
    """An estimate with its interval per classifier, top to bottom in the order of the rows; diamonds mark the paper's counterparts."""
    places = np.arange(len(table))
    arms = np.abs(table[["low", "high"]].sub(table["estimate"], axis=0)).T
    color = sns.color_palette("colorblind")[0]
    axes.errorbar(table["estimate"], places, xerr=arms, fmt="o", markersize=4, color=color, elinewidth=1)
    if published is not None:
        axes.plot(published.reindex(table["model"]), places, "D", markersize=4, markerfacecolor="none", color="0.35", zorder=3)
    axes.axvline(reference, color="0.6", linewidth=0.8, linestyle=":", zorder=0)
    axes.set(xlabel=label, ylim=(len(table) - 0.5, -0.5))
    axes.set_yticks(places, table["model"])


def axis_panels(
    measures: dict[str, pd.DataFrame], members: dict[str, list[str]], *, references: dict[str, float], published: pd.DataFrame
) -> Figure:
    """The dots of every axis, a row of panels each as high as it has classifiers, and of every measure, a column of panels.

    `references` are the measures' dotted lines; `published` (axis, classifier, a column per measure that the paper has) the diamonds.
    """
    heights = [len(names) for names in members.values()]
    size, columns = (7, 1.8 + 0.22 * sum(heights)), len(measures)
    figure, grid = plt.subplots(len(members), columns, figsize=size, sharex="col", sharey="row", height_ratios=heights, squeeze=False)
    for row, axis in zip(grid, members, strict=True):
        theirs = published[published["axis"] == axis].set_index("classifier")
        for panel, (name, table) in zip(row, measures.items(), strict=True):
            own, paper = table[table["axis"] == axis], theirs.get(name)
            axis_dots(panel, own, label=name, reference=references[name], published=paper)
            panel.label_outer()
        row[0].set_title(axis)
    figure.tight_layout()
    return figure


def verdict_rows(axes: Axes, table: pd.DataFrame) -> None:
    """Every claim in a row, by family, with a mark below its verdict, its estimate and its interval.

    A hollow circle marks the verdict by average drop, for the claims that are about rCE.
    """
    words, palette = list(COLOURS), sns.color_palette("colorblind")
    for row, claim in enumerate(table.itertuples()):
        color = "0.8" if COLOURS[claim.verdict] is None else palette[COLOURS[claim.verdict]]
        axes.axhline(row, color="0.93", linewidth=0.6, zorder=0)
        axes.plot(words.index(claim.verdict), row, "oDXs."[words.index(claim.verdict)], color=color, markersize=6)
        if claim.drop_verdict:
            axes.plot(words.index(claim.drop_verdict) + 0.25, row, "o", color="0.35", markerfacecolor="none", markersize=5)
    axes.set(xlim=(-0.5, len(words) - 0.5), ylim=(len(table) - 0.5, -0.5))
    axes.set_xticks(range(len(words)), [word.replace(" ", "\n") for word in words], fontsize="small")
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(table)), table["claim"], fontsize="small")
    axes.tick_params(length=0)
    sns.despine(ax=axes, left=True, bottom=True)
    verdict_numbers(axes, table)


def verdict_numbers(axes: Axes, table: pd.DataFrame) -> None:
    """Right of the verdicts: estimate and interval of every claim, and the name of each family at its first claim."""
    families = table["family"].where(table["family"] != table["family"].shift(), "")
    numbers = table[["estimate", "low", "high"]].round(3) + 0.0  # no negative zero
    for row, (family, values) in enumerate(zip(families, numbers.to_numpy(), strict=True)):
        text = "" if np.isnan(values[0]) else "{:.3f} ({:.3f} to {:.3f})".format(*values)
        for words, right, weight in ((text, 4, "normal"), (family, 108, "bold")):
            kind, place = ("axes fraction", "data"), (right, 0)
            axes.annotate(words, (1, row), place, kind, "offset points", va="center", fontsize="small", weight=weight)
        if family:
            axes.axhline(row - 0.5, color="0.5", linewidth=0.6)


def draw(found: dict[str, pd.DataFrame], name: str, *, note: str) -> Figure:
    """Accuracy, rank and survival along the scale, and the drop per shift; alone, a classifier has no rank and that panel stays empty.

    `note` says what the intervals are about.
    """
    layout = ConstrainedLayoutEngine(wspace=0.1)  # names of curves end well before the shifts begin
    figure, grid = plt.subplots(2, 2, figsize=(9, 6.5), layout=layout)
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
    size = f"n = {n:,} trajectories, {figures.extent(drops.loc[drops['shift'] != ALL, 'n'])} per shift"
    own = found["accuracy"].query("shift == @ALL and model == @name").sort_values("scale").iloc[[0, -1]]
    ends = [f"{row['estimate']:.2f} at scale {row['scale']:g}" for _, row in own.iterrows()]
    finding = f"Accuracy of {name} goes from {' to '.join(ends)}, over all shifts"
    figures.caption(figure, f"{finding}. {name} in colour, others in grey; {size}; {note}")
    return figure


def curves(axes: Axes, table: pd.DataFrame, name: str) -> None:
    """One curve per model against the scale: the others grey, the named one in colour with its band; first and last are named."""
    others = table[table["model"] != name]
    for _, part in others.groupby("model"):
        axes.plot(part["scale"], part["estimate"], color=GREY, linewidth=0.8, zorder=0)
    estimate_lines(axes, table[table["model"] == name], x="scale", hue="model", label="")
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
