"""What follows from the formulas and tables of the sibling papers: Control+Shift's slerp and XIMAGENET-12's robustness score."""

import numpy as np
import pandas as pd
from jaxtyping import Float

from cnslib import published
from cnslib.latents import slerp

GRID = np.linspace(0, 1, 10_001)  # candidate means of a row, accuracies in [0, 1]
ROUNDED = 0.5e-4  # half of the last digit of a percentage with two decimals
REGIMES = ("original images", "same scenario")


def extended(theta: float, *, size: int, images: int, seed: int, printed: bool) -> pd.DataFrame:
    """Latents of the extend shift at an angle: per image the angle to z and to the target in degrees, and the norm.

    `printed` follows Eq. 7 to the letter; otherwise z and the target change places, as in the released code and in the text.
    """
    generator = np.random.default_rng(seed)
    z, target = generator.standard_normal((images, size)), generator.standard_normal(size)
    z, target = z / np.linalg.norm(z, axis=1, keepdims=True), np.broadcast_to(target / np.linalg.norm(target), z.shape)
    tau = (theta + np.pi / 2) / np.pi
    made = slerp(z, target, tau) if printed else slerp(target, z, tau)
    norm = np.linalg.norm(made, axis=1)
    angles = {name: np.degrees(np.arccos(np.clip((made * other).sum(1) / norm, -1, 1))) for name, other in (("z", z), ("target", target))}
    return pd.DataFrame({**angles, "norm": norm})


def rows(name: str, column: str) -> dict[tuple[str, str], np.ndarray]:
    """A table of XIMAGENET-12 as one vector per (model, trained on), over the eight scenarios, in [0, 1]."""
    table = published.read(name)
    return {
        key: part.set_index("scenario")[column].loc[list(published.SCENARIOS)].to_numpy() / 100
        for key, part in table.groupby(["model", "trained_on"])
    }


def fits(
    accuracy: Float[np.ndarray, "scenarios"], deviation: Float[np.ndarray, "scenarios"], mean: Float[np.ndarray, "means"]
) -> np.ndarray:
    """Whether each printed squared deviation is that of the printed accuracy from each candidate mean, up to rounding."""
    away = np.abs(accuracy - mean[:, None])
    return np.abs(away**2 - deviation) <= ROUNDED * (1 + 2 * away) + 1e-9


def implied_means() -> pd.DataFrame:
    """Per row of Table 2 the mean that most of its cells were measured from, how many fit it, and which cells took 0 in its place.

    Also the divisor that gives the printed variance from the printed cells: their sum over the variance.
    """
    accuracy, deviation = rows("ximagenet12_table1", "accuracy_percent"), rows("ximagenet12_table2", "squared_deviation_percent")
    scores, found = published.read("ximagenet12_table2_scores").set_index("model"), []
    for (model, regime), cells in deviation.items():
        counts = fits(accuracy[model, regime], cells, GRID).sum(1)
        mean = GRID[counts == counts.max()].mean()
        zero = fits(accuracy[model, regime], cells, np.zeros(1))[0]
        printed = scores.loc[model, "variance_cross" if regime == REGIMES[0] else "variance_inner"]
        names = ", ".join(np.array(published.SCENARIOS)[zero])
        found.append(
            {
                "model": model,
                "trained_on": regime,
                "mean": mean,
                "fitting": counts.max(),
                "zero": names,
                "variance": printed,
                "sum": cells.sum(),
            }
        )
    return pd.DataFrame(found).assign(divisor=lambda table: table["sum"] / table["variance"])


def scores() -> pd.DataFrame:
    """Robustness scores of Table 2, printed and recomputed from Table 1, a row per model.

    `cells`: from the printed cells over n - 1. `row_mean`: each row's own mean in all of its cells, over n - 1. `one_mean`: the mean of
    the cross row in both rows, over n - 1. `as_defined`: the same over n, as Eqs. 1 to 3 say.
    """
    accuracy, deviation = rows("ximagenet12_table1", "accuracy_percent"), rows("ximagenet12_table2", "squared_deviation_percent")
    means = implied_means().set_index(["model", "trained_on"])["mean"]
    table = published.read("ximagenet12_table2_scores").set_index("model")[["score"]].rename(columns={"score": "printed"})
    for model in table.index:
        own = [((accuracy[model, regime] - means[model, regime]) ** 2).sum() for regime in REGIMES]
        one = [((accuracy[model, regime] - means[model, REGIMES[0]]) ** 2).sum() for regime in REGIMES]
        cells, n = sum(deviation[model, regime].sum() for regime in REGIMES), len(published.SCENARIOS)
        values = {"cells": cells / (n - 1), "row_mean": sum(own) / (n - 1), "one_mean": sum(one) / (n - 1), "as_defined": sum(one) / n}
        for name, variance in values.items():
            table.loc[model, name] = 1 - variance
    return table


def drop_pairs(model: str, drop_percent: float) -> list[tuple[str, str]]:
    """The pairs of scenarios whose accuracies, trained on originals, differ by a printed drop rate of a model."""
    accuracy = rows("ximagenet12_table1", "accuracy_percent")[model, REGIMES[0]]
    named = list(zip(published.SCENARIOS, accuracy, strict=True))
    return [(a, b) for a, high in named for b, low in named if abs(high - low - drop_percent / 100) < ROUNDED]
