"""What notebook 40 shows: sheets of scenarios, accuracy per scenario in both experiments, sentences of the answer."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from jaxtyping import UInt8
from matplotlib.axes import Axes

from cnslib.plots import palette
from cnslib.stats import bootstrap
from cnslib.studies.scenarios import experiment2, scenarios, subjects
from cnslib.studies.scenarios.score import Accuracies
from cnslib.studies.scenarios.subjects import Subject

TRANSPARENT = "transparent"


def sheet(
    found: list[Subject], names: list[str], *, side: int, seed: int
) -> tuple[UInt8[np.ndarray, "subjects names side side 3"], pd.DataFrame]:
    """Some subjects under some scenarios at severity 1, at most `side` pixels wide, and which object stands in which row.

    A transparent picture is shown on white, as most programs do.
    """
    step = max(1, found[0].image.shape[0] // side)
    pictures = [[picture(own, name, seed=seed)[::step, ::step] for name in names] for own in found]
    rows = [(place, own.label, own.seed) for place, own in enumerate(found, start=1)]
    return np.array(pictures), pd.DataFrame(rows, columns=["row", "class", "seed"])


def picture(subject: Subject, name: str, *, seed: int) -> UInt8[np.ndarray, "height width 3"]:
    """One subject under one scenario at severity 1."""
    if name != TRANSPARENT:
        return subjects.shown(subject, name, 1.0, seed=seed)
    made = scenarios.transparent(subject.image, subject.mask, 1.0)
    alpha = made[..., 3:]
    return subjects.rounded(alpha * made[..., :3] + 1 - alpha)


def scenario_dots(axes: Axes, table: pd.DataFrame) -> None:
    """Accuracy per scenario of Table 1 with its interval, a colour per experiment (Fig. 5)."""
    dots(axes, table, y="scenario", hue="experiment", levels=["EX1", "EX2"], order=list(experiment2.TRAINED))
    axes.set(xlabel="top-1 accuracy", xlim=(0, 1))


def coefficient_dots(axes: Axes, table: pd.DataFrame) -> None:
    """Coefficients of the scenarios with their intervals, a colour per kind of regression, beside a line at 0."""
    dots(axes, table, y="scenario", hue="regression", levels=["clustered", "mixed"], order=list(scenarios.NAMES))
    axes.axvline(0, color="0.6", linewidth=0.8, linestyle=":", zorder=0)
    axes.set(xlabel="change of accuracy")


def dots(axes: Axes, table: pd.DataFrame, *, y: str, hue: str, levels: list[str], order: list[str]) -> None:
    """Estimates with intervals, a row for each of `order` in every panel, the two levels of `hue` side by side."""
    for offset, (name, look) in zip((-0.15, 0.15), palette.looks(levels).items(), strict=True):
        part = table[table[hue] == name]
        places = np.array([order.index(row) for row in part[y]]) + offset
        arms = np.abs(part[["low", "high"]].sub(part["estimate"], axis=0)).T.to_numpy()
        axes.errorbar(part["estimate"], places, xerr=arms, fmt="none", ecolor=look["color"], elinewidth=1)
        axes.plot(part["estimate"], places, linestyle="", markersize=3.5, label=name, **look)
    axes.set_yticks(range(len(order)), order)
    axes.set(ylim=(len(order) - 0.5, -0.5))


def losses(found: Accuracies, names: list[str]) -> pd.DataFrame:
    """Accuracy lost by each scenario, mean over models, with its interval, the largest first."""
    drops = found.drops(names).mean(1)
    table = pd.DataFrame({"scenario": names, **bootstrap.estimates(drops, found.n, found.confidence)})
    return table.sort_values("estimate", ascending=False, ignore_index=True)


def told(row: pd.Series | dict) -> str:
    """An estimate and its interval in words: "0.12 (0.05 to 0.20)"."""
    return f"{row['estimate']:.2f} ({row['low']:.2f} to {row['high']:.2f})"


def keyed(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Table 1 by experiment, a key "model, scenario" for each row."""
    named = table.assign(key=table["model"] + ", " + table["scenario"])
    yield from named.groupby("experiment")
