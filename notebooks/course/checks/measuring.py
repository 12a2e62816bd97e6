"""Lesson 5, measuring robustness: the exercises on failure points, rCE, intervals and orders."""

import numpy as np
import pandas as pd
from checks.exercises import Exercise, Sheet
from cnslib.stats.failure import first_failure
from jaxtyping import Float, Int
from scipy import stats

LESSON = "5_measuring"
TAILS = (0.025, 0.975)  # of a 95 % interval
Resampled = Float[np.ndarray, "resamples+1"]


def sheet(
    *,
    trajectory: pd.Series,
    points: pd.DataFrame,
    accuracies: pd.DataFrame,
    model: str,
    reference: str,
    shift: str,
    rarely: str,
    scale: float,
    pair: tuple[Resampled, Resampled],
    draws: Int[np.ndarray, "resamples seeds"],
) -> Sheet:
    """The exercises on one trajectory (`wrong` by scale), failure points of one classifier, and accuracies (shift, model, scale).

    `scale` is where survivors are counted, `rarely` the shift whose median is asked, best one under which more than half never fail.
    `pair` holds the accuracies of two classifiers, each in the sample and in its resamples; a row of `draws` the seeds of one resample.
    """
    wide = accuracies.pivot(index=["shift", "model"], columns="scale", values="estimate")
    over_shifts = wide.groupby("model").mean()
    exercises = {
        "point": point(trajectory),
        "survivors": survivors(points, scale),
        "median": median(points[points["shift"] == rarely], list(wide.columns)),
        "rce": relative_corruption_error(wide.loc[shift, :].loc[model], wide.loc[shift, :].loc[reference]),
        "clusters": clusters(points),
        "classes": classes(points),
        "difference": difference(*pair),
        "tau": tau(over_shifts.iloc[:, 0], over_shifts.iloc[:, -1]),
        "bootstrap": by_hand(points, draws, scale),
    }
    return Sheet(LESSON, exercises)


def point(wrong: pd.Series) -> Exercise:
    """The failure point of one trajectory (Eq. 3)."""
    flags, scales = wrong.to_numpy(bool), [*map(float, wrong.index)]
    first = int(first_failure(flags))
    forever = max(np.flatnonzero(~flags)) + 1
    return Exercise(scales[first], {"forever": scales[forever], "before": scales[first - 1], "last": scales[max(np.flatnonzero(flags))]})


def survivors(points: pd.DataFrame, scale: float) -> Exercise:
    """The share of trajectories that have not failed up to and including a scale (Kaplan-Meier)."""
    found = points["failure_point"].fillna(np.inf)
    failed = points["failure_point"].dropna()
    return Exercise(
        (found > scale).mean(),
        {
            "failed": (found <= scale).mean(),
            "left_out": (failed > scale).mean(),
            "missing": (points["failure_point"] > scale).mean(),
            "including": (found >= scale).mean(),
        },
        tolerance=0.0005,
    )


def median(points: pd.DataFrame, scales: list[float]) -> Exercise:
    """The first scale by which half of the trajectories have failed; infinite where more than half never fail."""
    found, failed = points["failure_point"].fillna(np.inf), points["failure_point"].dropna()
    reached = [scale for scale in scales if (found <= scale).mean() >= 0.5]
    return Exercise(
        reached[0] if reached else np.inf,
        {
            "left_out": failed.quantile(0.5, interpolation="lower"),
            "clipped": found.clip(upper=max(scales)).quantile(0.5, interpolation="lower"),
            "mean": failed.mean(),
        },
    )


def relative_corruption_error(own: pd.Series, other: pd.Series) -> Exercise:
    """rCE of one shift (Eq. 6), from accuracies by scale."""
    lost, below = own.iloc[0] - own, other.iloc[0] - other
    return Exercise(
        lost.sum() / below.sum(),
        {
            "last": lost.iloc[-1] / below.iloc[-1],
            "ratios": (lost.iloc[1:] / below.iloc[1:]).mean(),
            "upside": below.sum() / lost.sum(),
            "ce": (1 - own).sum() / (1 - other).sum(),
            "ce_above": (1 - own).iloc[1:].sum() / (1 - other).iloc[1:].sum(),
        },
    )


def clusters(points: pd.DataFrame) -> Exercise:
    """How many independent units the trajectories contain, if a repetition draws other seeds of the same classes."""
    seeds, classes, pairs = (len(points[key].drop_duplicates()) for key in ("seed", "class", ["class", "seed"]))
    return Exercise(seeds, {"trajectories": len(points), "pairs": pairs, "classes": classes}, tolerance=0.5)


def classes(points: pd.DataFrame) -> Exercise:
    """How many independent units the trajectories contain, if a repetition draws other classes."""
    seeds, classes, pairs = (len(points[key].drop_duplicates()) for key in ("seed", "class", ["class", "seed"]))
    return Exercise(classes, {"seeds": seeds, "pairs": pairs, "trajectories": len(points)}, tolerance=0.5)


def difference(first: Resampled, second: Resampled) -> Exercise:
    """The interval of one classifier's accuracy minus another's on the same resamples."""
    gap, (one, other) = first[1:] - second[1:], (np.quantile(row[1:], TAILS) for row in (first, second))
    low, high = np.quantile(gap, TAILS)
    says = "It holds 0: the order of the two is open." if low <= 0 <= high else "It leaves 0 out: the two differ."
    return Exercise(
        np.array([low, high]),
        {"sign": np.quantile(-gap, TAILS), "extremes": one - other[::-1], "bounds": one - other, "range": np.quantile(gap, (0.0, 1.0))},
        tolerance=0.0005,
        praise=f"{says} It says so for this pair alone: with many pairs, see lesson 6.",
    )


def tau(first: pd.Series, last: pd.Series) -> Exercise:
    """Kendall's tau between the orders of the classifiers at the first and the last scale."""
    return Exercise(
        stats.kendalltau(first, last).statistic,
        {
            "pearson": stats.pearsonr(first, last).statistic,
            "spearman": stats.spearmanr(first, last).statistic,
            "p_value": stats.kendalltau(first, last).pvalue,
        },
    )


def by_hand(points: pd.DataFrame, draws: Int[np.ndarray, "resamples seeds"], scale: float) -> Exercise:
    """The interval of the share of survivors when whole seeds are drawn with replacement (Efron 1979)."""
    alive = points["failure_point"].fillna(np.inf) > scale
    seeds = alive.groupby(points["seed"]).agg(["sum", "size"])
    places = np.searchsorted(seeds.index, draws)
    survived, counted_in = (seeds[column].to_numpy(float)[places] for column in ("sum", "size"))
    shares = survived.sum(axis=1) / counted_in.sum(axis=1)
    spread = shares.std(ddof=1)
    return Exercise(
        np.quantile(shares, TAILS),
        {
            "averaged": np.quantile((survived / counted_in).mean(axis=1), TAILS),
            "range": np.quantile(shares, (0.0, 1.0)),
            "one_error": alive.mean() + np.array([-spread, spread]),
            "single": np.quantile(seeds["sum"] / seeds["size"], TAILS),
        },
        tolerance=0.0005,
    )
