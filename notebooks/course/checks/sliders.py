"""Lesson 3, making a shift from prompts to sliders: the exercises."""

from pathlib import Path

import numpy as np
import pandas as pd
from checks.exercises import Exercise, Sheet
from cnslib.core import tables
from cnslib.core.names import PROMPT, text
from cnslib.method import health
from cnslib.plots.figures import extent
from cnslib.stats import trajectory
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

LESSON = "3_sliders"
ETA = 4.0
START = 750  # the slider acts at noise levels up to this one of 1,000


def sheet(
    *,
    name: str,
    shift: str,
    predictions: Float[np.ndarray, "2 values"],
    layer: tuple[int, int],
    weight: Float[np.ndarray, "rows columns"],
    factors: tuple[Float[np.ndarray, "rows rank"], Float[np.ndarray, "rank columns"]],
    levels: Int[np.ndarray, "steps"],
    report: pd.DataFrame,
) -> Sheet:
    """The exercises on the prompt of a class in a shift, and on what the lesson shows.

    Predictions are those for the class, and for the class in the shift; `layer` is (inputs, outputs); the factors are B and A.
    """
    return Sheet(
        LESSON,
        {
            "prompt": prompt(name, shift),
            "target": target(*predictions),
            "size": size(*layer, rank=4, other=len(factors[1])),
            "weights": weights(weight, *factors, scale=1.5),
            "steps": steps(levels),
            "rising": rising(report),
        },
    )


def prompt(name: str, shift: str) -> Exercise:
    """The prompt of a class in a shift (paper section A.1)."""
    plain = PROMPT.format(token=name)
    return Exercise(
        (f"{plain} {text(shift, {})}",),
        (
            "The pattern is: a picture of a (class) in (shift). Copy the names as they are written.",
            "Begin with the first prompt as it stands, and add a space, the word `in` and the shift.",
        ),
        {
            "That is the prompt of the class alone. Name the shift as well.": (plain,),
            'A word is missing between the class and the shift: "in".': (f"{plain} {shift}",),
            "The class comes first: the picture is of the class.": (f"{PROMPT.format(token=shift)} in {name}",),
        },
    )


def target(plain: np.ndarray, shifted: np.ndarray) -> Exercise:
    """What a slider learns to predict (Eq. 2)."""
    return Exercise(
        ETA * shifted - (ETA - 1) * plain,
        (
            "Start at the prediction for the class and walk along the arrow to the prediction for the class in the shift, 4 times as far.",
            "The arrow is `shifted - plain`.",
        ),
        {
            "That is the arrow alone. Start at `plain`, or the slider forgets the class.": ETA * (shifted - plain),
            "That is one arrow too far: start at `plain`, not at `shifted`.": shifted + ETA * (shifted - plain),
            "You walked the other way, from the shift to the class.": ETA * plain - (ETA - 1) * shifted,
            "That is one arrow only. Walk `eta` times as far.": shifted,
            "That is a single arrow without its start. Begin at `plain`, and walk `eta` times as far.": shifted - plain,
            "You added `shifted` itself. The arrow is the difference of the two.": plain + ETA * shifted,
        },
        praise="The same in other words: 4 times `shifted` minus 3 times `plain`. At `eta` = 1 it would be `shifted` itself.",
    )


def size(inputs: int, outputs: int, *, rank: int, other: int) -> Exercise:
    """How many values a low-rank adapter of one layer has; `other` is the rank of the small layer, which the lesson holds in `rank`."""
    return Exercise(
        float(rank * (inputs + outputs)),
        (
            "The adapter is a product of two matrices: outputs by rank, and rank by inputs. Count the values of both.",
            "One has `outputs * 4` values, the other `4 * inputs`.",
        ),
        {
            "That is the layer itself. The adapter has two thin matrices.": float(inputs * outputs),
            "The two matrices stand side by side: add their sizes instead of multiplying them.": float(rank * inputs * outputs),
            "That would be rank 1. Each matrix is `rank` values wide.": float(inputs + outputs),
            "That is `A` alone. `B` has values, too.": float(rank * inputs),
            "That is `B` alone. `A` has values, too.": float(rank * outputs),
            f"That is rank {other}: the name `rank` belongs to the small layer of the next exercise. Write {rank}.": (
                float(other * (inputs + outputs))
            ),
        },
        tolerance=0.5,
        praise=f"The layer has {inputs * outputs:,} values: the adapter is {rank * (inputs + outputs) / (inputs * outputs):.1%} of it.",
    )


def weights(weight: np.ndarray, left: np.ndarray, right: np.ndarray, *, scale: float) -> Exercise:
    """The weights of a layer with an adapter at some scale."""
    rank, change = len(right), left @ right
    return Exercise(
        weight + scale / rank * change,
        (
            "The change is `scale * alpha / rank` times the product B @ A; it is added to the weights.",
            "`B @ A` is the product of two matrices; `B * A` would multiply value by value.",
        ),
        {
            "The factor `alpha / rank` is missing: LoRA divides by the rank, so that the rank can be changed alone.": weight
            + scale * change,
            "That is the adapter at scale 1. The scale multiplies the change.": weight + change / rank,
            "That is the layer without its adapter. Add the change.": weight,
            "That is the product alone. Multiply it by `scale * alpha / rank`, and add it to `W`.": change,
            "You added the bare product. It is multiplied by `scale * alpha / rank` first.": weight + change,
            "The change alone is not enough: it is *added* to the weights.": scale / rank * change,
            "The scale multiplies the change only. At scale 0 the model must be the original one.": scale * (weight + change / rank),
        },
        praise="Any scale works, 0.7 as well as 1.5: this is what makes the shift continuous.",
    )


def steps(levels: Int[np.ndarray, "steps"]) -> Exercise:
    """On how many sampling steps the slider acts (paper section 5.1)."""
    late = int((levels <= START).sum())
    return Exercise(
        float(late),
        (
            f"Sampling starts at a high noise level and ends at a low one. Count the levels up to {START}.",
            f"`levels <= {START}` has a `True` for each step on which the slider acts.",
        ),
        {
            "Those are the steps *without* the slider, which lay out the picture.": float(len(levels) - late),
            "Those are all steps. The first ones run without the slider.": float(len(levels)),
            "Three quarters of the steps: nearly, but a step runs or it does not. Count the levels.": 0.75 * len(levels),
            "You took the noisy end. The slider acts on the *last* steps, where the noise level is low.": (
                float((levels > 1000 - START).sum())
            ),
        },
        tolerance=0.1,
        praise="The first steps decide where things stand. Leaving them alone keeps the garment in its place.",
    )


def rising(report: pd.DataFrame) -> Exercise:
    """The share of steps along the scale that raise the alignment with the shift (supplement H): of all, and of the worst shift."""
    ordered = report.sort_values(tables.KEY)
    steps = trajectory.rises(report, "alignment")
    share, by_shift = steps["rises"].mean(), steps.groupby("shift")["rises"].mean()
    ends = ordered.groupby(tables.TRAJECTORY)["alignment"].agg(["first", "last"])
    change, shift = ordered.groupby(tables.TRAJECTORY)["alignment"].diff(), ordered["shift"]
    known = change.notna()
    return Exercise(
        np.array([share, by_shift.min()]),
        (
            "Sort by trajectory and scale, then take differences *within* each trajectory, a (shift, class, seed).",
            'The first row of a trajectory has no difference: `groupby([...])["alignment"].diff().dropna()`.',
            "For the lowest share, group the steps by shift, take the mean of each, and the smallest of these.",
        ),
        {
            "That compares only the first and the last scale. Each step from one scale to the next counts.": (
                all_and_lowest(ends["last"] > ends["first"], ends.index.get_level_values("shift"))
            ),
            "You took differences across trajectories as well: from the last scale of one to the first of the next. Group first.": (
                all_and_lowest(ordered["alignment"].diff().dropna() > 0, shift.iloc[1:])
            ),
            "The first row of each trajectory has no difference, and yet it counts in your share. Drop it.": (
                all_and_lowest(change > 0, shift)
            ),
            "Those are the steps that lower the alignment.": all_and_lowest((change < 0)[known], shift[known]),
            "The second number is that of the *highest* shift. Take the lowest.": np.array([share, by_shift.max()]),
        },
        praise=f"Of {len(steps):,} steps {share:.0%} rise here; fewest {lowest(steps)}. "
        "The paper reports 73% for its sliders (supplement H).",
    )


def lowest(steps: pd.DataFrame) -> str:
    """The shift, or all the shifts, under which the fewest steps rise, with their share in words."""
    by_shift = steps.groupby("shift")["rises"].agg(["mean", "size"])
    found = by_shift[by_shift["mean"] == by_shift["mean"].min()]
    return f"under {' and '.join(found.index)} ({found['mean'].iloc[0]:.0%}, {extent(found['size'])})"


def all_and_lowest(hits: pd.Series, shift: ArrayLike) -> Float[np.ndarray, "2"]:
    """The share of hits, and that of the shift in which it is lowest."""
    return np.array([hits.mean(), hits.groupby(np.asarray(shift)).mean().min()])


def read(folder: Path) -> pd.DataFrame:
    """The health report of all sliders in a folder."""
    return pd.concat([tables.read(path, health.schema) for path in sorted(folder.glob("*/*.parquet"))], ignore_index=True)


def opening(classes: list[str], shifts: list[str], seed: int) -> pd.DataFrame:
    """One trajectory per shift, all of one class and seed."""
    return pd.DataFrame([(shift, classes[0], seed) for shift in shifts], columns=tables.TRAJECTORY)
