"""Lesson 2, corruptions and severity: errors along the severity, and the exercises on them."""

import numpy as np
import pandas as pd
from checks.exercises import Exercise, Sheet
from cnslib.core.settings.method import Bootstrap
from cnslib.stats import accuracy
from cnslib.studies import corruptions
from jaxtyping import UInt8

LESSON = "2_corruptions"
HALF = 0.5


def errors(predictions: pd.DataFrame, *, settings: Bootstrap) -> pd.DataFrame:
    """Error rates (model, corruption, severity, error) from answers; severity 0, the original, stands under every corruption."""
    found = accuracy.accuracy(accuracy.by_shift(accuracy.wrong_predictions(corruptions.common(predictions)), settings))
    table = found[found["shift"] != accuracy.ALL].rename(columns={"shift": "corruption", "scale": "severity"})
    return table.assign(error=1 - table["estimate"])[["model", "corruption", "severity", "error"]].reset_index(drop=True)


def sheet(
    table: pd.DataFrame,
    *,
    model: str,
    reference: str,
    corruption: str,
    pictures: tuple[UInt8[np.ndarray, "height width 3"], UInt8[np.ndarray, "height width 3"]],
) -> Sheet:
    """The exercises on two pictures, and on the error rates of one classifier beside the reference."""
    wide = table.pivot(index=["model", "corruption"], columns="severity", values="error")
    own, other = wide.loc[model], wide.loc[reference]
    exercises = {
        "distance": distance(*pictures),
        "ce": corruption_error(own.loc[corruption], other.loc[corruption]),
        "mce": mean_corruption_error(own.drop(columns=0), other.drop(columns=0)),
        "rce": relative_corruption_error(own.loc[corruption], other.loc[corruption]),
        "half": half(own),
    }
    return Sheet(LESSON, exercises)


def distance(first: np.ndarray, second: np.ndarray) -> Exercise:
    """The mean absolute difference of two pictures."""
    change = (second.astype(float) - first) / 255
    return Exercise(
        np.abs(change).mean(),
        {
            "bytes": (second - first).mean() / 255,
            "cancel": change.mean(),
            "squares": (change**2).mean(),
            "scale": 255 * np.abs(change).mean(),
        },
        tolerance=0.0005,
    )


def corruption_error(own: pd.Series, other: pd.Series) -> Exercise:
    """CE of one corruption (Hendrycks and Dietterich 2019)."""
    rows, sums = own.drop(0), (own.drop(0).sum(), other.drop(0).sum())
    return Exercise(
        sums[0] / sums[1],
        {"mean": rows.mean(), "ratios": (rows / other.drop(0)).mean(), "upside": sums[1] / sums[0], "original": own.sum() / other.sum()},
        tolerance=0.0002,
    )


def mean_corruption_error(own: pd.DataFrame, other: pd.DataFrame) -> Exercise:
    """MCE: the mean of the CE over the corruptions."""
    ratios = own.sum(axis=1) / other.sum(axis=1)
    return Exercise(
        ratios.mean(), {"mean": own.to_numpy().mean(), "pooled": own.to_numpy().sum() / other.to_numpy().sum(), "sum": ratios.sum()}
    )


def relative_corruption_error(own: pd.Series, other: pd.Series) -> Exercise:
    """Relative CE of one corruption: what is lost since the original."""
    lost, below = (row.drop(0) - row[0] for row in (own, other))
    return Exercise(
        lost.sum() / below.sum(),
        {
            "ce": own.drop(0).sum() / other.drop(0).sum(),
            "once": (own.drop(0).sum() - own[0]) / (other.drop(0).sum() - other[0]),
            "reference": lost.sum() / other.drop(0).sum(),
        },
    )


def half(own: pd.DataFrame) -> Exercise:
    """The first severity of each corruption at which more than half of the answers are wrong; infinite where none is."""
    over = own > HALF
    first = over.idxmax(axis=1).where(over.any(axis=1), np.inf).astype(float)
    below = (~over).iloc[:, ::-1].idxmax(axis=1).astype(float)
    return Exercise(first, {"missing": first.replace(np.inf, np.nan), "below": below, "first": over.idxmax(axis=1).astype(float)})
