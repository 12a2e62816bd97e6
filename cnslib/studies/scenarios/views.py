"""What notebook 40 shows: sheets of scenarios, how far they move pixels, accuracy per scenario in both experiments."""

from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd
from jaxtyping import UInt8
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cnslib.core.names import UNSHIFTED
from cnslib.plots import palette, sheets
from cnslib.plots.captions.words import listed
from cnslib.stats import accuracy, bootstrap, ranking
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
    dots(axes, table, y="scenario", hue="regression", levels=["clustered", "mixed"], order=[*scenarios.NAMES, scenarios.SUMMED])
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
    """Accuracy lost by each scenario, mean over models, with its interval, the largest first; p by Holm over the scenarios."""
    drops = found.drops(names).mean(1)
    p = bootstrap.holm(pd.Series(ranking.wald(drops)))
    table = pd.DataFrame({"scenario": names, **bootstrap.estimates(drops, found.n, found.confidence), "p_holm": p})
    return table.sort_values("estimate", ascending=False, ignore_index=True)


def drawn_sheet(pictures: UInt8[np.ndarray, "rows columns side side 3"], places: pd.DataFrame, names: list[str]) -> Figure:
    """The sheet as a figure, a class beside each row and a scenario above each column."""
    figure, axes = plt.subplots(figsize=(9, 0.6 + 9 * len(pictures) / len(names)))
    sheets.contact_sheet(axes, pictures, rows=list(places["class"]), columns=names)
    axes.tick_params(axis="x", labelrotation=90)
    return figure


def sheet_caption(found: list[Subject], objects: str, names: list[str], *, seed: int) -> str:
    """What a sheet shows: which scenarios keep a part of the picture bit for bit, as counted on its subjects."""
    changed = [name for name in names if not all(keeps_a_part(own, name, seed=seed) for own in found)]
    kept = f"{len(names) - len(changed)} of {len(names)} columns keep the object or the background bit for bit"
    return f"{kept}{f', all but {listed(changed)}' if changed else ''}. n = {len(found)} {objects}"


def keeps_a_part(own: Subject, name: str, *, seed: int) -> bool:
    """Whether every pixel of the object, or every pixel of the background, is the same under a scenario at severity 1."""
    before, after = (picture(own, one, seed=seed) for one in (UNSHIFTED, name))
    return any(bool((before == after)[own.mask == side].all()) for side in (0, 1))


def by_scenario(table: pd.DataFrame) -> pd.DataFrame:
    """A results table of single scenarios, which stand in the column of that name."""
    return table[table["shift"] != accuracy.ALL].rename(columns={"shift": "scenario"})


def composite_minus_sum(found: Accuracies) -> dict:
    """Accuracy on clean composites minus that on the sums of the very same pictures, mean over models, as a record."""
    apart = (found.of("random background") - found.of(scenarios.SUMMED))[..., 0].mean(1)
    return bootstrap.record(apart, found.n, found.confidence)


def moved(found: list[Subject], names: Iterable[str], *, seed: int) -> pd.Series:
    """How far a scenario moves the pixels that it changes: mean absolute difference of values in [0, 1] at severity 1, by scenario.

    Over the object for a scenario of the object, else over the background. A loss of accuracy means little where this is near 0.
    """
    parts = {name: [difference(own, name, seed=seed) for own in found] for name in names}
    return pd.Series({name: float(np.mean(values)) for name, values in parts.items()}, name="moved").rename_axis("scenario")


def difference(own: Subject, name: str, *, seed: int) -> float:
    """The same of one subject."""
    changed = own.mask == (1 if name.endswith("object") else 0)
    before, after = (subjects.shown(own, name, severity, seed=seed).astype(float) for severity in (0.0, 1.0))
    return float(np.abs(after - before)[changed].mean() / 255)


def cost_table(costs: dict[str, pd.DataFrame], moves: dict[str, pd.Series]) -> pd.DataFrame:
    """The losses of every set side by side, a row per scenario, and how far each moves the pixels of the set."""
    parts = {name: own.set_index("scenario").join(moves[name]) for name, own in costs.items()}
    return pd.concat(parts, axis=1)


def keyed(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Table 1 by experiment, a key "model, scenario" for each row."""
    named = table.assign(key=table["model"] + ", " + table["scenario"])
    yield from named.groupby("experiment")
