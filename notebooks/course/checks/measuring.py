"""Lesson 5, measuring robustness: the exercises on failure points, rCE, intervals and orders."""

import numpy as np
import pandas as pd
from checks.exercises import Exercise, Sheet
from cnslib.core import tables
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
    return Sheet(
        LESSON,
        {
            "point": point(trajectory),
            "survivors": survivors(points, scale),
            "median": median(points[points["shift"] == rarely], list(wide.columns)),
            "rce": relative_corruption_error(wide.loc[shift, :].loc[model], wide.loc[shift, :].loc[reference]),
            "clusters": clusters(points),
            "classes": classes(points),
            "difference": difference(*pair),
            "tau": tau(over_shifts.iloc[:, 0], over_shifts.iloc[:, -1]),
            "bootstrap": by_hand(points, draws, scale),
        },
    )


def point(wrong: pd.Series) -> Exercise:
    """The failure point of one trajectory (Eq. 3)."""
    flags, scales = wrong.to_numpy(bool), [*map(float, wrong.index)]
    first = int(first_failure(flags))
    forever = max(np.flatnonzero(~flags)) + 1
    return Exercise(
        scales[first],
        (
            "The failure point is the smallest scale with a wrong answer. What happens later does not matter.",
            "Go along the row from the left and stop at the first `True`. Its column is the answer.",
        ),
        {
            "From there on the answer is never right again. But the definition takes the *first* error; recoveries are ignored.": (
                scales[forever]
            ),
            "That is the last scale that is right before the first error. The point is the first wrong one.": scales[first - 1],
            "That is the largest scale with a wrong answer. The smallest is asked.": scales[max(np.flatnonzero(flags))],
        },
    )


def survivors(points: pd.DataFrame, scale: float) -> Exercise:
    """The share of trajectories that have not failed up to and including a scale (Kaplan-Meier)."""
    found = points["failure_point"].fillna(np.inf)
    failed = points["failure_point"].dropna()
    return Exercise(
        float((found > scale).mean()),
        (
            f"Who has survived scale {scale:g}? All trajectories whose failure point lies above it, and those that never fail.",
            'A comparison with a missing number is `False`: `points["failure_point"].fillna(np.inf)` first.',
        ),
        {
            "Those have failed by then. The survivors are the others.": float((found <= scale).mean()),
            "Trajectories that never fail (a missing failure point) are survivors, too. You left them out.": float((failed > scale).mean()),
            "You compared with missing numbers, which gives False: the ones that never fail were counted as failures.": (
                float((points["failure_point"] > scale).mean())
            ),
            "Up to *and including* the scale: a failure at the scale itself is a failure.": float((found >= scale).mean()),
        },
        tolerance=0.0005,
    )


def median(points: pd.DataFrame, scales: list[float]) -> Exercise:
    """The first scale by which half of the trajectories have failed; infinite where more than half never fail."""
    found, failed = points["failure_point"].fillna(np.inf), points["failure_point"].dropna()
    reached = [scale for scale in scales if (found <= scale).mean() >= 0.5]
    return Exercise(
        reached[0] if reached else np.inf,
        (
            "Count failures up to each scale. The first scale with at least one half is the median; `np.inf` where there is none.",
            "Fill the missing failure points with `np.inf` first: then no trajectory is lost.",
        ),
        {
            "You left out the trajectories that never fail. They are the most robust ones, and the median must count them.": (
                float(failed.quantile(0.5, interpolation="lower"))
            ),
            "You gave trajectories that never fail the last scale. They fail later, or not at all: count them as `np.inf`.": (
                float(found.clip(upper=max(scales)).quantile(0.5, interpolation="lower"))
            ),
            "That is a mean. It has no value where some never fail; the median has.": float(failed.mean()),
        },
        praise="Where it is `inf`, that is an answer, too: more than half of the trajectories never fail on the scale.",
    )


def relative_corruption_error(own: pd.Series, other: pd.Series) -> Exercise:
    """rCE of one shift (Eq. 6), from accuracies by scale."""
    lost, below = own.iloc[0] - own, other.iloc[0] - other
    return Exercise(
        float(lost.sum() / below.sum()),
        (
            "Accuracy at scale 0 minus accuracy at each scale; sum these drops; divide by the same sum of the reference.",
            "Pivot the rows of the shift to a column per classifier; then `(wide.loc[0] - wide).sum()` gives both sums.",
        ),
        {
            "That is the ratio at the last scale alone. Sum over all scales.": float(lost.iloc[-1] / below.iloc[-1]),
            "You averaged ratios of single scales. Divide one sum by the other: small drops would decide otherwise.": (
                float((lost.iloc[1:] / below.iloc[1:]).mean())
            ),
            "The ratio is upside down: the reference belongs below.": float(below.sum() / lost.sum()),
            "That is CE, from all errors. rCE counts only what is lost since scale 0.": float((1 - own).sum() / (1 - other).sum()),
            "That is CE as in lesson 2, without scale 0. rCE counts only what is lost since scale 0.": (
                float((1 - own).iloc[1:].sum() / (1 - other).iloc[1:].sum())
            ),
        },
        praise="1 is as the reference; below 1 it loses less.",
    )


def clusters(points: pd.DataFrame) -> Exercise:
    """How many independent units the trajectories contain, if a repetition draws other seeds of the same classes."""
    return Exercise(
        counted(points, "seed"),
        (
            "What would another study of the same classes draw anew? Count the different values of that column.",
            "The seed chooses the noise. All classes of a seed start from the same noise, so they are drawn together.",
        ),
        {
            "That is the number of trajectories. Those of one seed, under all shifts, start from the same noise.": float(len(points)),
            "That is the number of (class, seed). But seed 1 of a bag and seed 1 of a sneaker start from the same noise.": pairs(points),
            "That is the number of classes. Here the classes stay, and the seeds would be others.": counted(points, "class"),
        },
        tolerance=0.5,
        praise="The bootstrap must draw each seed with all of its classes. To draw trajectories alone makes intervals too narrow.",
    )


def classes(points: pd.DataFrame) -> Exercise:
    """How many independent units the trajectories contain, if a repetition draws other classes."""
    return Exercise(
        counted(points, "class"),
        (
            "Now the classes would be others. What belongs to one class is drawn together, with all of its seeds.",
            "Count the different values of the column that a study with other classes would draw anew.",
        ),
        {
            "That is the number of seeds: the units of a study that keeps the classes. Now the classes change.": counted(points, "seed"),
            "That is the number of (class, seed). A class that is hard is hard for all of its seeds: they go together.": pairs(points),
            "That is the number of trajectories. A class that is hard is hard under many shifts: they go together.": float(len(points)),
        },
        tolerance=0.5,
        praise="These are few. The interval about other classes is wide, and more seeds do not help it much.",
    )


def difference(first: Resampled, second: Resampled) -> Exercise:
    """The interval of one classifier's accuracy minus another's on the same resamples."""
    gap, (one, other) = first[1:] - second[1:], (np.quantile(row[1:], TAILS) for row in (first, second))
    low, high = np.quantile(gap, TAILS)
    says = "It holds 0: the order of the two is open." if low <= 0 <= high else "It leaves 0 out: the two differ."
    return Exercise(
        np.array([low, high]),
        (
            "Subtract first: one difference for each resample. Then take the quantiles of the differences.",
            "`np.quantile(differences[1:], [0.025, 0.975])`",
        ),
        {
            "The sign is turned round: `resnet` minus `vit`.": np.quantile(-gap, TAILS),
            "You took the least of one and the most of the other: wider even than if each had seen other pictures. "
            "Subtract within each resample first.": one - other[::-1],
            "You subtracted the bounds of two intervals. Subtract within each resample first.": one - other,
            "Those are the smallest and the largest difference. Take the quantiles 0.025 and 0.975.": np.quantile(gap, (0.0, 1.0)),
        },
        tolerance=0.0005,
        praise=f"{says} It says so for this pair alone: with many pairs, see lesson 6.",
    )


def counted(points: pd.DataFrame, key: str) -> float:
    """How many different values a column of the trajectories has."""
    return float(points[key].nunique())


def pairs(points: pd.DataFrame) -> float:
    """How many pairs of class and seed the trajectories contain."""
    return float(len(points[["class", "seed"]].drop_duplicates()))


def tau(first: pd.Series, last: pd.Series) -> Exercise:
    """Kendall's tau between the orders of the classifiers at the first and the last scale."""
    return Exercise(
        float(stats.kendalltau(first, last).statistic),
        (
            "Take one accuracy per classifier at scale 0, and one at the last scale.",
            "`from scipy import stats`, then `stats.kendalltau(first, last).statistic`.",
        ),
        {
            "That is Pearson's correlation of the accuracies. The order alone is asked.": float(stats.pearsonr(first, last).statistic),
            "That is Spearman's correlation of ranks. Kendall's tau counts pairs.": float(stats.spearmanr(first, last).statistic),
            "That is the p value. Take the statistic.": float(stats.kendalltau(first, last).pvalue),
        },
        praise="(1 + tau) / 2 of the pairs keep their order, if there are no ties. The interval below says how certain it is.",
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
        (
            "For one row of `draws`: the survivors of its seeds, divided by their trajectories. A seed that is drawn twice counts twice.",
            'Count both per seed first, with `groupby("seed")`; `.loc[row]` then repeats a seed as often as it was drawn.',
        ),
        {
            "You averaged the shares of the seeds. Sum the survivors and the trajectories first: seeds differ in how many were kept.": (
                np.quantile((survived / counted_in).mean(axis=1), TAILS)
            ),
            "Those are the smallest and the largest share. Take the quantiles 0.025 and 0.975.": np.quantile(shares, (0.0, 1.0)),
            "That is the share plus and minus one standard deviation, an interval of about 68 %. Take the quantiles.": (
                alive.mean() + np.array([-spread, spread])
            ),
            "Those are the shares of single seeds. A resample is a whole row of `draws`.": np.quantile(seeds["sum"] / seeds["size"], TAILS),
        },
        tolerance=0.0005,
        praise="Compare it with the table below exercise 6: random weights and drawn seeds are two ways to the same interval.",
    )


def example(points: pd.DataFrame) -> pd.Series:
    """How many of the trajectories fail first at each scale, and never."""
    counts = points["failure_point"].map(lambda value: f"{value:g}", na_action="ignore").fillna("never")
    return counts.value_counts().sort_index().rename("trajectories")


def of_model(points: pd.DataFrame, model: str) -> pd.DataFrame:
    """The failure points of one classifier (shift, class, seed, failure_point); missing where it never fails."""
    own = points[points["model"] == model]
    return own[[*tables.TRAJECTORY, "failure_point"]].reset_index(drop=True)
