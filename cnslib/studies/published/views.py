"""Figures of the published tables (notebook 13): averages and rCE, a correlation with all that rounding allows, scores, the ledger."""

import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from cnslib.studies.published.ledger import VERDICTS

SCORES = {"printed": "as printed", "row_mean": "with each row's own mean", "as_defined": "by the equations"}


def averages(rows: pd.DataFrame, odd: pd.Series) -> Figure:
    """Printed drops and rCE against the recomputed drop, a point per model; those that are `odd` in the other colour."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.5, 3))
    hue = odd.reindex(rows.index).to_numpy()
    sns.scatterplot(rows, x="drop_recomputed", y="drop", hue=hue, legend=False, ax=left)
    left.plot([0.01, 0.065], [0.01, 0.065], color="0.6", linewidth=0.8, linestyle=":")
    sns.scatterplot(rows, x="drop_recomputed", y="rce", hue=hue, legend=False, ax=right)
    left.set(xlabel="average drop, recomputed", ylabel="average drop, printed")
    right.set(xlabel="average drop, recomputed", ylabel="rCE (Table 4)")
    return figure


def partial(table: pd.DataFrame, said: float) -> Figure:
    """A row per reading of the partial correlation: its value, a thick bar for drawn roundings, a thin line for all; dotted: as printed."""
    figure, axes = plt.subplots(figsize=(5, 2.4))
    axes.hlines(table["accuracy"], table["least"], table["most"], color="0.6", linewidth=0.8)
    axes.hlines(table["accuracy"], table["low"], table["high"], linewidth=3, alpha=0.6)
    axes.plot(table["estimate"], table["accuracy"], "o", color="0.15", markersize=4)
    axes.axvline(said, color="0.4", linestyle=":")
    axes.set(xlabel="partial correlation of size (dotted: the paper's)", xlim=(-1.05, 1.05))
    return figure


def long(scores: pd.DataFrame) -> pd.DataFrame:
    """The scores of `releases.sibling_scores` in one column (model, score, value), the ways to compute them in words."""
    return scores[list(SCORES)].rename(columns=SCORES).reset_index().melt("model", var_name="score", value_name="value")


def scores(table: pd.DataFrame) -> Figure:
    """The scores of `long`, a row per model and a colour per way to compute them."""
    figure, axes = plt.subplots(figsize=(5, 2.6))
    sns.stripplot(table, x="value", y="model", hue="score", jitter=False, dodge=True, ax=axes)
    axes.set(xlabel="robustness score", ylabel="")
    sns.move_legend(axes, "center left", bbox_to_anchor=(1, 0.5), title="")
    return figure


def ledger(counts: pd.DataFrame) -> Figure:
    """Lines of the ledger as stacked bars, a colour per verdict."""
    figure, axes = plt.subplots(figsize=(5, 2))
    blue, orange, green = sns.color_palette("colorblind")[:3]
    colours = dict(zip(VERDICTS, (green, "0.85", blue, orange, "0.3"), strict=True))
    counts.plot.barh(stacked=True, ax=axes, color=[colours[name] for name in counts])
    axes.set(xlabel="lines of the ledger", ylabel="")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return figure
