"""What each method of shifting makes of a trajectory: shift gained, structure kept, gradualness, class kept (Figs. 2, 3 of the submission).

Methods are compared on the same trajectories, so differences are paired.
"""

import numpy as np
import pandas as pd

from cnslib import clustered, tables
from cnslib.config import Bootstrap
from cnslib.directions import CLASS, METHODS, PROMPTS, SLIDER, grid

OWN = ["method", *tables.TRAJECTORY]
MEASURES = {
    "gain": "alignment gained at the last scale",
    "rising": "share of steps that raise the alignment",
    "structure": "structure kept at the last scale",
    "largest": "share of the way that the largest step makes",
    "class_kept": "class kept at the last scale",
}


def gains(scores: pd.DataFrame) -> pd.DataFrame:
    """The scores in order, with `gain`, the alignment beyond that of scale 0."""
    ordered = scores.sort_values([*OWN, "scale"], ignore_index=True)
    return ordered.assign(gain=ordered["alignment"] - ordered.groupby(OWN)["alignment"].transform("first"))


def per_trajectory(scores: pd.DataFrame, *, labels: int) -> pd.DataFrame:
    """One row per method and trajectory with the columns of MEASURES.

    The class is kept where the oracle gives it at least chance, 1 / labels; a trajectory that did not start so has no value. The
    largest step is measured in the image encoder's features: 1 where all happens at once, 1 / steps where all steps are equal.
    """
    ordered = gains(scores)
    groups = ordered.groupby(OWN)
    first, last = groups.first(), groups.last()
    table = last[["gain", "structure"]].assign(largest=groups["step"].max() / groups["step"].sum())
    rise = groups["alignment"].diff()
    table["rising"] = (rise > 0)[rise.notna()].groupby([ordered[key] for key in OWN]).mean()
    kept = (last["class_probability"] >= 1 / labels).astype(float)
    return table.assign(class_kept=kept.where(first["class_probability"] >= 1 / labels)).reset_index()


def matched(scores: pd.DataFrame, *, labels: int) -> pd.DataFrame:
    """Structure and class of each method at its first scale that gains as much alignment as two prompts do, per trajectory.

    Only trajectories in which two prompts gain anything; `reached` says whether the method gets there, and one that does not has
    neither structure nor class. The class is counted as in `per_trajectory`.
    """
    ordered = gains(scores)
    prompts = ordered[(ordered["method"] == PROMPTS) & (ordered["scale"] > 0) & (ordered["gain"] > 0)]
    asked = ordered.merge(prompts[[*tables.TRAJECTORY, "gain"]], on=tables.TRAJECTORY, suffixes=("", "_asked"))
    start = asked.groupby(OWN)["class_probability"].transform("first")
    asked["class_kept"] = (asked["class_probability"] >= 1 / labels).astype(float).where(start >= 1 / labels)
    there = asked[asked["gain"] >= asked["gain_asked"]].drop_duplicates(OWN).set_index(OWN)[["scale", "structure", "class_kept"]]
    every = asked.groupby(OWN).size().index
    return there.reindex(every).assign(reached=lambda t: t["scale"].notna().astype(float)).reset_index()


def summary(table: pd.DataFrame, columns: list[str], *, settings: Bootstrap) -> pd.DataFrame:
    """The mean of each column per method: (method, measure, n, estimate, low, high), methods in their order."""
    ordered = table.assign(method=pd.Categorical(table["method"], METHODS)).sort_values("method", kind="stable")
    return clustered.means(ordered.astype({"method": str}), columns, ["method"], settings=settings)


def against_slider(table: pd.DataFrame, columns: list[str], *, settings: Bootstrap) -> pd.DataFrame:
    """The slider minus each text-based method, paired on the trajectory: (method, measure, n, estimate, low, high)."""
    both = table.merge(table[table["method"] == SLIDER], on=tables.TRAJECTORY, suffixes=("", "_slider"), validate="many_to_one")
    other = both[both["method"] != SLIDER]
    differences = {column: other[f"{column}_slider"] - other[column] for column in columns}
    return summary(other[OWN].assign(**differences), columns, settings=settings)


def curves(scores: pd.DataFrame, *, settings: Bootstrap) -> pd.DataFrame:
    """Mean gain and structure of each method at each scale: (method, scale, measure, n, estimate, low, high)."""
    return clustered.means(gains(scores), ["gain", "structure"], ["method", "scale"], settings=settings)


def plane(curve: pd.DataFrame) -> pd.DataFrame:
    """The curves as points, one row per method and scale: gain and structure with their bounds."""
    wide = curve.pivot(index=["method", "scale"], columns="measure", values=["n", "estimate", "low", "high"])
    wide.columns = [f"{measure}_{value}" for value, measure in wide.columns]
    return wide.reset_index()


def examples(table: pd.DataFrame, method: str) -> dict[str, tuple[str, str, int]]:
    """Three trajectories of a method as Fig. 26 shows them: the largest gain, the least structure, the fewest rising steps.

    Ties go to the first in order; no trajectory comes twice.
    """
    rows = table[table["method"] == method].sort_values(tables.TRAJECTORY)
    chosen: dict[str, tuple[str, str, int]] = {}
    for title, column, best in (("works", "gain", True), ("breaks", "structure", False), ("wavers", "rising", False)):
        order = np.argsort(-rows[column].to_numpy() if best else rows[column].to_numpy(), kind="stable")
        keys = [tuple(rows[tables.TRAJECTORY].iloc[place]) for place in order]
        chosen[title] = next((key for key in keys if key not in chosen.values()), keys[0])
    return chosen


def asked(table: pd.DataFrame) -> list[tuple[str, str, str, int]]:
    """The trajectories of `examples` that were moved by their class token, as (method, shift, class, seed)."""
    return [(CLASS, *key) for key in examples(table, CLASS).values()]


def sheet(strips: list[np.ndarray], methods: tuple[str, ...], scales: list[float]) -> np.ndarray:
    """One row of pictures per method, each at its scale; white where a method has none."""
    found = np.full((len(strips), len(scales), *strips[0].shape[1:]), 255, np.uint8)
    for row, (strip, method) in enumerate(zip(strips, methods, strict=True)):
        found[row, [scales.index(scale) for scale in [0.0, *grid(method, scales)]]] = strip
    return found
