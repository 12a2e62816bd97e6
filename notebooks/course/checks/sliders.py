"""Lesson 3, making a shift from prompts to sliders: the exercises."""

from dataclasses import replace

import numpy as np
import pandas as pd
from checks.exercises import Exercise, Sheet
from cnslib.core import tables
from cnslib.core.names import PROMPT, text
from cnslib.stats import gates
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

LESSON = "3_sliders"
ETA = 2.5  # with which the slider of the second exercise was trained
START = 750  # the slider acts at noise levels up to this one of 1,000


def sheet(
    *,
    name: str,
    shift: str,
    predictions: Float[np.ndarray, "2 values"],
    layer: tuple[int, int],
    weight: Float[np.ndarray, "rows columns"],
    seen: Float[np.ndarray, "rows columns"],
    levels: Int[np.ndarray, "steps"],
    report: pd.DataFrame,
) -> Sheet:
    """The exercises on the prompt of a class in a shift, and on what the lesson shows.

    Predictions are those for the class, and for the class in the shift; `layer` is (inputs, outputs); `seen` are the weights at scale 1.5.
    """
    exercises = {
        "prompt": prompt(name, shift),
        "eta": eta(*predictions),
        "size": size(*layer, rank=4),
        "weights": weights(weight, seen, at=1.5, scale=2.5),
        "steps": steps(levels),
        "rising": rising(report),
    }
    return Sheet(LESSON, exercises)


def prompt(name: str, shift: str) -> Exercise:
    """The prompt of a class in a shift (paper section A.1)."""
    plain = PROMPT.format(token=name)
    return Exercise(
        (f"{plain} {text(shift, {})}",),
        {"plain": (plain,), "missing": (f"{plain} {shift}",), "turned": (f"{PROMPT.format(token=shift)} in {name}",)},
    )


def slid(plain: np.ndarray, shifted: np.ndarray) -> np.ndarray:
    """What a network with a trained slider predicts for the plain prompt (Eq. 2)."""
    return (plain + ETA * (shifted - plain)).round(2)


def eta(plain: np.ndarray, shifted: np.ndarray) -> Exercise:
    """How far along the arrow a slider was trained to go, from what it predicts (Eq. 2 solved for eta)."""
    return Exercise(
        ETA,
        {"shifted": ETA - 1, "inverse": 1 / ETA, "norms": float(np.linalg.norm(slid(plain, shifted)) / np.linalg.norm(shifted))},
        tolerance=0.05,
    )


def with_failure(sheet: Sheet, said: pd.DataFrame) -> Sheet:
    """The sheet with the exercise on a trajectory of which the first frames are shown: where the predictions `said` first go wrong."""
    point = said.loc[said["top1"] != said["class"], "scale"].min()
    return replace(sheet, exercises={**sheet.exercises, "next": Exercise(np.inf if np.isnan(point) else point, tolerance=0.1)})


def size(inputs: int, outputs: int, *, rank: int) -> Exercise:
    """How many values a low-rank adapter of one layer has."""
    return Exercise(
        rank * (inputs + outputs),
        {
            "layer": inputs * outputs,
            "product": rank * inputs * outputs,
            "rank_one": inputs + outputs,
            "a": rank * inputs,
            "b": rank * outputs,
        },
        tolerance=0.5,
        praise=f"The layer has {inputs * outputs:,} values: the adapter is {rank * (inputs + outputs) / (inputs * outputs):.1%} of it.",
    )


def weights(weight: np.ndarray, seen: np.ndarray, *, at: float, scale: float) -> Exercise:
    """The weights of a layer at some scale of its adapter, from those without it and those at another scale."""
    change = seen - weight
    return Exercise(
        weight + scale / at * change,
        {
            "one": weight + scale * change,
            "both": scale / at * seen,
            "plain": weight,
            "change": scale / at * change,
            "added": seen + change,
            "on": seen + scale / at * change,
        },
    )


def steps(levels: Int[np.ndarray, "steps"]) -> Exercise:
    """On how many sampling steps the slider acts (paper section 5.1)."""
    late = int((levels <= START).sum())
    return Exercise(
        late,
        {
            "without": len(levels) - late,
            "all": len(levels),
            "quarters": 0.75 * len(levels),
            "cut": int(0.75 * len(levels)),
            "noisy": (levels > 1000 - START).sum(),
        },
        tolerance=0.1,
    )


def rising(report: pd.DataFrame) -> Exercise:
    """The share of steps along the scale that raise the alignment with the shift (supplement H): of all, and of the worst shift."""
    ordered = report.sort_values(tables.KEY)
    steps = gates.rises(report, "alignment")
    share, by_shift = steps["rises"].mean(), steps.groupby("shift")["rises"].mean()
    ends = ordered.groupby(tables.TRAJECTORY)["alignment"].agg(["first", "last"])
    change, shift = ordered.groupby(tables.TRAJECTORY)["alignment"].diff(), ordered["shift"]
    known = change.notna()
    return Exercise(
        np.array([share, by_shift.min()]),
        {
            "ends": all_and_lowest(ends["last"] > ends["first"], ends.index.get_level_values("shift")),
            "across": all_and_lowest(ordered["alignment"].diff().dropna() > 0, shift.iloc[1:]),
            "first": all_and_lowest(change > 0, shift),
            "lower": all_and_lowest((change < 0)[known], shift[known]),
            "highest": np.array([share, by_shift.max()]),
        },
        praise=f"Of {len(steps):,} steps {share:.0%} rise here; fewest under {by_shift.idxmin()}. The paper reports 73% (supplement H).",
    )


def all_and_lowest(hits: pd.Series, shift: ArrayLike) -> Float[np.ndarray, "2"]:
    """The share of hits, and that of the shift in which it is lowest."""
    return np.array([hits.mean(), hits.groupby(np.asarray(shift)).mean().min()])
