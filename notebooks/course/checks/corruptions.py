"""Lesson 2, corruptions and severity: errors along the severity, and the exercises on them."""

import numpy as np
import pandas as pd
from checks.exercises import Exercise, Sheet
from cnslib.core.settings.method import Bootstrap
from cnslib.stats import accuracy, ranking
from jaxtyping import UInt8

LESSON = "2_corruptions"
HALF = 0.5


def errors(predictions: pd.DataFrame, *, settings: Bootstrap) -> pd.DataFrame:
    """Error rates (model, corruption, severity, error) from answers; severity 0, the original, stands under every corruption."""
    found = accuracy.accuracy(accuracy.by_shift(accuracy.wrong_predictions(ranking.common(predictions)), settings))
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
    return Sheet(
        LESSON,
        {
            "distance": distance(*pictures),
            "ce": corruption_error(own.loc[corruption], other.loc[corruption]),
            "mce": mean_corruption_error(own.drop(columns=0), other.drop(columns=0)),
            "rce": relative_corruption_error(own.loc[corruption], other.loc[corruption]),
            "half": half(own),
        },
    )


def distance(first: np.ndarray, second: np.ndarray) -> Exercise:
    """The mean absolute difference of two pictures."""
    change = (second.astype(float) - first) / 255
    return Exercise(
        float(np.abs(change).mean()),
        (
            "Turn both pictures into floats first, divide by 255, then take the mean of the absolute difference.",
            "`first.astype(float) - second`, then `np.abs(...).mean() / 255`.",
        ),
        {
            "Bytes cannot be negative: 10 - 20 becomes 246. Use `astype(float)` before you subtract.": float((second - first).mean() / 255),
            "Positive and negative differences cancel. Take absolute values.": float(change.mean()),
            "Those are squares. The mean *absolute* difference is asked.": float((change**2).mean()),
            "That is on the scale of bytes, 0 to 255. Divide by 255.": float(255 * np.abs(change).mean()),
        },
        tolerance=0.0005,
    )


def corruption_error(own: pd.Series, other: pd.Series) -> Exercise:
    """CE of one corruption (Hendrycks and Dietterich 2019)."""
    rows, sums = own.drop(0), (own.drop(0).sum(), other.drop(0).sum())
    return Exercise(
        float(sums[0] / sums[1]),
        (
            "Sum the errors over the severities 1 to 5, for the classifier and for the reference, and divide.",
            "Leave severity 0 out of both sums: it is no corruption.",
        ),
        {
            "That is the mean error, 1 minus accuracy. CE divides by the reference's errors.": float(rows.mean()),
            "You averaged ratios. CE is one ratio, of two sums.": float((rows / other.drop(0)).mean()),
            "The ratio is upside down: the reference belongs below.": float(sums[1] / sums[0]),
            "The original (severity 0) is no corruption. ImageNet-C leaves it out.": float(own.sum() / other.sum()),
        },
        tolerance=0.0002,
        praise="Below 1: fewer errors than the reference.",
    )


def mean_corruption_error(own: pd.DataFrame, other: pd.DataFrame) -> Exercise:
    """MCE: the mean of the CE over the corruptions."""
    ratios = own.sum(axis=1) / other.sum(axis=1)
    return Exercise(
        float(ratios.mean()),
        (
            "Compute the CE of each corruption as in exercise 2, then take the mean of these.",
            "Two sums per corruption with `groupby`, one division, and only then `.mean()`.",
        ),
        {
            "That is the mean error over everything: 1 minus accuracy. mCE is relative to the reference.": float(own.to_numpy().mean()),
            "You summed over the corruptions before dividing. Then the hardest corruption counts most; mCE gives each the same weight.": (
                float(own.to_numpy().sum() / other.to_numpy().sum())
            ),
            "That is the sum over the corruptions. Take the mean.": float(ratios.sum()),
        },
        praise="An mCE is not 1 minus an accuracy: with another reference, it is another number.",
    )


def relative_corruption_error(own: pd.Series, other: pd.Series) -> Exercise:
    """Relative CE of one corruption: what is lost since the original."""
    lost, below = (row.drop(0) - row[0] for row in (own, other))
    return Exercise(
        float(lost.sum() / below.sum()),
        (
            "At each severity, subtract the error on the original (severity 0), for the classifier *and* for the reference.",
            "Sum the five differences of each of the two, then divide.",
        ),
        {
            "That is CE. rCE counts only what is lost since severity 0.": float(own.drop(0).sum() / other.drop(0).sum()),
            "You subtracted the original's error once. It belongs to every severity, five times in the sum.": (
                float((own.drop(0).sum() - own[0]) / (other.drop(0).sum() - other[0]))
            ),
            "The reference's error on the original must be subtracted, too.": float(lost.sum() / other.drop(0).sum()),
        },
        praise="A classifier can have a low CE and a high rCE: good on originals, and much to lose.",
    )


def half(own: pd.DataFrame) -> Exercise:
    """The first severity of each corruption at which more than half of the answers are wrong; infinite where none is."""
    over = own > HALF
    first = over.idxmax(axis=1).where(over.any(axis=1), np.inf).astype(float)
    below = (~over).iloc[:, ::-1].idxmax(axis=1).astype(float)
    return Exercise(
        first,
        ("For each corruption, keep the rows with an error above 0.5 and take the smallest severity.", "`reindex` and `fillna(np.inf)`."),
        {
            "Where the error never exceeds one half, the answer is `np.inf`, not missing: it says that the scale ended too early.": (
                first.replace(np.inf, np.nan)
            ),
            "Those are the last severities that are still at or below one half. The first above it is asked.": below,
            "`idxmax` gives the first label also where nothing is above one half. Those are `np.inf`.": over.idxmax(axis=1).astype(float),
        },
        praise="The same severity number means different things for different corruptions.",
    )
