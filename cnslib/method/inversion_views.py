"""What is shown of the learned tokens: losses, the floor of the Frechet distance, sheets of pictures, the paper's Table 2a.

References and pictures are given by class, in the order of the classes; drawn pictures have the columns prompt, class and seed.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float, UInt8

from cnslib.method import inversion

Pictures = UInt8[np.ndarray, "images side side 3"]
Features = Float[np.ndarray, "images features"]
REAL = "real scenes"


def smoothed(tokens: dict[str, Path], steps: int) -> pd.DataFrame:
    """The loss of every step and class as a running mean over a tenth of the steps, NaN before the first whole one (step, class, loss)."""
    losses = pd.DataFrame({name: inversion.loss_curve(path) for name, path in tokens.items()}).rename_axis("step")
    mean = losses.rolling(max(1, steps // 10)).mean()
    return mean.reset_index().melt("step", var_name="class", value_name="loss")


def floors(real: dict[str, Features], references: dict[str, Features]) -> pd.DataFrame:
    """Frechet distance of real scenes to other real scenes of their class, in the columns of `inversion.frechet_table`."""
    values = [inversion.frechet_distance(features, references[name]) for name, features in real.items()]
    return pd.DataFrame({"class": list(real), "prompt": REAL, "n": [len(own) for own in real.values()], "estimate": values})


def side_by_side(
    heldout: dict[str, Pictures], drawn: pd.DataFrame, pictures: Pictures, count: int
) -> UInt8[np.ndarray, "rows columns s s 3"]:
    """A row per class: `count` held-out scenes, then as many pictures asked for by each prompt."""
    rows = []
    for name, scenes in heldout.items():
        asked = [pictures[((drawn["class"] == name) & (drawn["prompt"] == prompt)).to_numpy()][:count] for prompt in inversion.WORDS]
        rows.append(np.concatenate([scenes[:count], *asked]))
    return np.stack(rows)


def pairs(near: pd.DataFrame, learned: dict[str, Pictures], pictures: Pictures, count: int) -> UInt8[np.ndarray, "rows columns s s 3"]:
    """A row per class: pictures drawn by token with seeds up to `count`, each followed by its nearest learned scene."""
    found: dict[str, list[np.ndarray]] = {name: [] for name in learned}
    chosen = near[(near["prompt"] == "in_star") & (near["seed"] <= count)]
    for row, name, place in chosen[["class", "learned_place"]].itertuples():
        found[name] += [pictures[row], learned[name][place]]
    return np.stack([np.stack(own) for own in found.values()])


def against_paper(found: dict[str, dict[str, dict]], published: pd.DataFrame) -> pd.DataFrame:
    """Accuracies of both prompts, their difference and the ratio of their distances, beside Table 2a (rows SD and IN*).

    `found` has records by quantity (accuracy, frechet) and prompt.
    """
    accuracy, fid, right = found["accuracy"], published["fid"], published["accuracy"]
    ours = [accuracy["text"], accuracy["in_star"], accuracy["difference"], found["frechet"]["ratio"]]
    rows = [{"ours": record["estimate"], "low": record["low"], "high": record["high"]} for record in ours]
    theirs = [right["SD"], right["IN*"], right["IN*"] - right["SD"], fid["IN*"] / fid["SD"]]
    names = ["accuracy by name", "accuracy by token", "accuracy, token minus name", "Frechet distance, token / name"]
    return pd.DataFrame(rows, index=names).assign(published=theirs)[["ours", "published", "low", "high"]]


NULLS = [None, None, 0.0, 1.0]  # levels of two worlds have no direction in common
