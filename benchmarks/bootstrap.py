"""Accuracy and failure points with resamples: pandas loops against ours. `python benchmarks/bootstrap.py`.

The predictions are a part of those that `scale.py` simulates.
"""

import sys

import numpy as np
import pandas as pd
import turns
from jaxtyping import Float
from scale import FILE, SCALES, Extent, simulate

from cnslib.core.names import SHIFTS
from cnslib.core.settings.method import Bootstrap
from cnslib.stats import accuracy, bootstrap, failure

MODELS, CHOSEN = ["model 00", "model 01"], sorted(SHIFTS)[:2]
SETTINGS = Bootstrap(resamples=5, confidence=0.95, seed=1, target="same classes")
Samples = Float[np.ndarray, "resamples+1 shifts models values"]


def predictions() -> pd.DataFrame:
    """The answers of two models under two shifts: 2,288 trajectories of six scales each."""
    if not FILE.exists():
        simulate(FILE, extent=Extent())
    found = pd.read_parquet(FILE, filters=[("model", "in", MODELS), ("shift", "in", CHOSEN)])
    return found.astype({"shift": str, "class": str, "top1": str, "model": str})


def reference(found: pd.DataFrame) -> Samples:
    """Error per scale, then the share of first failures per scale, from a data frame per resample, model and shift.

    As in the released notebook, which has one per model and shift, a function applied to groups of pandas finds the first failures.
    """
    weights, units = bootstrap.resampling_weights(found, settings=SETTINGS)
    found = found.assign(unit=units, right=found["top1"] == found["class"])
    samples = [[[summary(part, weight) for part in parts(found, shift)] for shift in CHOSEN] for weight in weights]
    return np.array(samples)


def parts(found: pd.DataFrame, shift: str) -> list[pd.DataFrame]:
    """The answers of each model under one shift."""
    return [found[(found["shift"] == shift) & (found["model"] == model)] for model in MODELS]


def summary(answers: pd.DataFrame, weight: np.ndarray) -> np.ndarray:
    """Error and share of first failures at each scale, trajectories counted by their weights."""
    drawn = answers.assign(weight=weight[answers["unit"]]).sort_values([*bootstrap.CLUSTER, "scale"], ignore_index=True)
    wrong = drawn[~drawn["right"]]
    first = wrong.groupby(bootstrap.CLUSTER).apply(lambda group: group.first_valid_index(), include_groups=False)
    total = drawn.groupby("scale")["weight"].sum()
    errors, failed = (part.groupby("scale")["weight"].sum().reindex(SCALES, fill_value=0) / total for part in (wrong, drawn.loc[first]))
    return np.concatenate([errors, failed])


def ours(found: pd.DataFrame) -> Samples:
    """The same from the arrays of `stats`, all resamples, models and shifts at once."""
    wrong = accuracy.wrong_predictions(found)
    errors, failures = (accuracy.by_shift(part, SETTINGS)[:, :-1].to_numpy() for part in (wrong, failure.first_failures(wrong)))
    return np.concatenate([errors, failures[..., :-1]], axis=-1)


def main() -> int:
    """The measured ratio; results are apart by the largest difference of a share."""
    found = predictions()
    contest = turns.Contest("bootstrap", lambda: reference(found), lambda: ours(found), lambda a, b: np.abs(a - b).max(), 1e-12)
    count = len(CHOSEN) * len(MODELS) * (SETTINGS.resamples + 1)
    return turns.report(contest, notes=f"{len(found):,} predictions, {count} tables of a model, shift and resample")


if __name__ == "__main__":
    sys.exit(main())
