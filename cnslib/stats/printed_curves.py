"""Accuracy along the scale beside the published accuracies (CNS-Bench Table 5, section 5.3 and the figures of the authors' notebook).

Published accuracies have a row per classifier and a column per scale. Where some of the paper's own classifiers were evaluated, both
sides are formed on these (`axes.alike`).
"""

from pathlib import Path

import pandas as pd

from cnslib.stats import bootstrap, ranking
from cnslib.stats.accuracy import ALL, Shares, accuracy_drop, drop_against, drop_beyond
from cnslib.stats.axes import alike, beside, same, themselves


def read(folder: Path, scales: list[float]) -> pd.DataFrame:
    """Published accuracies over all shifts at our scales, from accuracy.csv."""
    table = pd.read_csv(folder / "accuracy.csv").pivot(index="model", columns="scale", values="accuracy")
    return table.reindex(columns=scales)


def shape(errors: Shares, published: pd.DataFrame) -> tuple[pd.DataFrame, list[float]]:
    """Records on the shape of the mean curve, and the same of the published one.

    Accuracy at scale 0, the drop at the last scale, the share of it that is done by scale 1, and Kendall's tau between the orders of the
    classifiers by mean error and by mean drop; `nulls` has the null of each. The third is left out where scale 1 was not drawn.
    """
    shared = same(errors, published)
    _, theirs = alike(pd.DataFrame(index=shared.models), published)
    wrong, size = shared.samples[:, -1], errors.n[-1]
    right = 1 - wrong.mean(1)
    fall = right[:, 0] - right[:, -1]
    numbers = {"accuracy at scale 0": right[:, 0], "drop at the last scale": fall}
    if 1.0 in errors.bins:
        numbers["share of the drop by scale 1"] = (right[:, 0] - right[:, errors.bins.index(1.0)]) / fall
    rows = {name: bootstrap.record(values, size, errors.confidence) for name, values in numbers.items()}
    sides = wrong.mean(-1), wrong.mean(-1) - wrong[:, :, 0]
    rows["tau of error and drop"] = ranking.order_record(*sides, size, errors.confidence)
    return pd.DataFrame(rows).T, printed_shape(theirs, errors.bins)


def nulls(scales: list[float]) -> list[float | None]:
    """The null of each number of `shape`: a drop that is even along the scale has done 1 / (last scale) of its way by scale 1.

    Levels have no direction. Nor has the tau: a mean error is the error at scale 0 plus the mean drop, so that some of it is built in.
    """
    return [None, None, *([1 / max(scales)] if 1.0 in scales else []), None]


def printed_shape(published: pd.DataFrame, scales: list[float]) -> list[float]:
    """The numbers of `shape` for published accuracies."""
    first, *_, last = published.columns
    curve, mean = published.mean(), published.mean(axis=1)
    fall = curve[first] - curve[last]
    tau = (published[first] - mean).corr(1 - mean, "kendall")
    early = [(curve[first] - curve[1.0]) / fall] if 1.0 in scales else []
    return [curve[first], fall, *early, tau]


def harder(errors: Shares, digitised: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Drops under single shifts minus those over all shifts at the last scale: published ones beside ours.

    `digitised` has the columns shift, model, scale and accuracy; what it lacks over all shifts is taken from the published table.
    """
    first, last = published.columns[0], published.columns[-1]
    table = digitised.pivot(index=["shift", "model"], columns="scale", values="accuracy")
    fall = table[first] - table[last]
    pooled = fall.xs(ALL).combine_first(published[first] - published[last])
    beyond = (fall - fall.index.get_level_values("model").map(pooled)).drop(ALL).rename("published").reset_index("model")
    ours = drop_beyond(errors)
    return beside(beyond, ours[ours["scale"] == last])


def orderings(errors: Shares, listed: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Claims about pairs of classifiers (claim, first, second, paper_first, paper_second): paired differences of their last drops.

    Where the paper's own classifiers were evaluated they take part; a claim about an absent classifier is left out.
    """
    claims = themselves(listed, errors.models, {"first": "paper_first", "second": "paper_second"})
    claims = claims[claims["first"].isin(errors.models) & claims["second"].isin(errors.models)]
    last, rows = errors.bins[-1], [accuracy_drop(errors).head(0)]
    for claim in claims.itertuples():
        table = drop_against(errors, reference=claim.second)
        rows.append(table[(table["shift"] == ALL) & (table["scale"] == last) & (table["model"] == claim.first)])
    order = pd.concat(rows[1:] or rows).set_axis(claims["claim"])[["estimate", "low", "high"]].rename(columns={"estimate": "ours"})
    falls = published[published.columns[0]] - published[published.columns[-1]]
    return order.assign(published=falls.loc[claims["paper_first"]].to_numpy() - falls.loc[claims["paper_second"]].to_numpy())
