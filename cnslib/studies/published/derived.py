"""What follows from the published tables of CNS-Bench: averages, drops, orders, rCE, intervals, and what rounding allows.

A printed number stands for all numbers that round to it. Comparisons therefore allow half a digit for every number they use.
"""

import numpy as np
import pandas as pd
import scipy.optimize
import scipy.stats

from cnslib.data import published

HALF = 0.005  # half of the last digit of Table 5
SLACK = 1e-9  # what binary fractions may add


def consistency(name: str) -> pd.DataFrame:
    """Per model of Table 5 how far its printed drops and averages lie from those of its printed accuracies.

    `drop` is the largest difference of a single drop, `average` and `average_drop` those of the averages over all six scales;
    `consistent` says whether rounding explains all three.
    """
    accuracy, drop, printed = published.by_scale(name), published.by_scale(name, "drop"), published.averages(name)
    implied = accuracy[[0.0]].to_numpy() - accuracy
    table = pd.DataFrame(
        {
            "drop": (implied - drop).abs().max(axis=1),
            "average": (accuracy.mean(axis=1) - printed["accuracy"]).abs(),
            "average_drop": (implied.mean(axis=1) - printed["drop"]).abs(),
        }
    )
    bounds = np.array([3 * HALF, 2 * HALF, 3 * HALF])
    table["consistent"] = (table[["drop", "average", "average_drop"]] < bounds - SLACK).all(axis=1)
    return table


def averaging(name: str) -> pd.DataFrame:
    """How well the printed average drops are means over all scales, and over the scales above 0: mean and largest difference."""
    accuracy, printed = published.by_scale(name), published.averages(name)["drop"]
    implied = accuracy[[0.0]].to_numpy() - accuracy
    rows = {"six scales": implied.mean(axis=1), "five scales": implied.drop(columns=0.0).mean(axis=1)}
    apart = {title: (values - printed).abs() for title, values in rows.items()}
    return pd.DataFrame({title: {"mean": values.mean(), "largest": values.max()} for title, values in apart.items()}).T


def recomputed() -> pd.DataFrame:
    """Per model of Table 5 the average accuracy and drop, printed and recomputed, rCE and CE of Table 4, and the ranks of drop and rCE."""
    accuracy, printed = published.by_scale("cns_table5"), published.averages("cns_table5")
    drop = accuracy[0.0] - accuracy.mean(axis=1)
    table = printed.assign(accuracy_recomputed=accuracy.mean(axis=1), drop_recomputed=drop)
    table = table.join(published.read("cns_table4").set_index("model")[["ce", "rce"]])
    return table.assign(rank_drop=drop.rank(), rank_rce=table["rce"].rank())


def implied_reference() -> pd.DataFrame:
    """What AlexNet's summed error would be if CE and rCE were ratios of pooled sums: mean, spread, smallest and largest over models.

    One number for all models would mean that the definition fits. CE is tried with and without scale 0.
    """
    error, ratios = 1 - published.by_scale("cns_table5"), recomputed()
    above = error.drop(columns=0.0)
    sums = {"CE, six scales": error.sum(axis=1), "CE, five scales": above.sum(axis=1), "rCE": above.sub(error[0.0], axis=0).sum(axis=1)}
    implied = pd.DataFrame({title: values / ratios["rce" if title == "rCE" else "ce"] for title, values in sums.items()})
    spread = implied.std() / implied.mean()
    return pd.DataFrame({"mean": implied.mean(), "relative_spread": spread, "low": implied.min(), "high": implied.max()})


def order_agreement() -> float:
    """Kendall's tau of the models' order by recomputed average drop and by rCE."""
    table = recomputed()
    return float(scipy.stats.kendalltau(table["drop_recomputed"], table["rce"]).statistic)


def axis_table() -> pd.DataFrame:
    """Table 3 beside Table 4: rCE of both, and the rank within the axis by each."""
    table = published.read("cns_table3").merge(published.read("cns_table4")[["model", "rce"]], on="model", suffixes=("_3", "_4"))
    ranks = table.groupby("axis")[["rce_3", "rce_4"]].rank()
    return table.assign(rank_3=ranks["rce_3"], rank_4=ranks["rce_4"])[["axis", "label", "model", "rce_3", "rce_4", "rank_3", "rank_4"]]


def failures() -> pd.DataFrame:
    """Earlier Table 3 (shares of first failures) beside Table 2: which share of trajectories would have to fail, and to recover.

    `failing` is the error at scale 0 over the share of failures at scale 0; `late` the trajectories that first fail at the last scale;
    `recovered` the share of earlier failures that must be right again there for the printed error to hold.
    """
    shares = published.read("cns2024_table3").pivot(index="model", columns="scale", values="share")
    error = 1 - published.by_scale("cns2024_table2").reindex(shares.index)
    first, last = published.SCALES[0], published.SCALES[-1]
    failing = error[first] / shares[first]
    late = failing * shares[last]
    recovered = 1 - (error[last] - late) / (failing - late)
    columns = {"error_first": error[first], "error_last": error[last], "total": shares.sum(axis=1), "failing": failing, "late": late}
    return pd.DataFrame({**columns, "recovered": recovered})


def prevalence(tpr: float, fpr: float, accuracy: float) -> float:
    """The share of positives at which a detector with these rates has this accuracy."""
    return (accuracy - (1 - fpr)) / (tpr - (1 - fpr))


def vote_rates(rate: float, *, detectors: int, fires: int) -> tuple[float, float, float]:
    """Least, independent and largest probability that at least `fires` detectors fire when each fires at this rate.

    The bounds are those of a linear programme over all joint distributions (scipy).
    """
    outcomes = (np.arange(2**detectors)[:, None] >> np.arange(detectors)) & 1
    target = (outcomes.sum(1) >= fires).astype(float)
    equal, right = np.vstack([outcomes.T, np.ones(len(outcomes))]), np.append(np.full(detectors, rate), 1.0)
    ends = [sign * scipy.optimize.linprog(sign * target, A_eq=equal, b_eq=right).fun for sign in (1, -1)]
    return float(ends[0]), float(scipy.stats.binom.sf(fires - 1, detectors, rate)), float(ends[1])


def intervals(*, confidence: float) -> pd.DataFrame:
    """Wilson intervals of the user study, of the OOD-CV weather subset and of fine-tuning: what, n, printed, estimate, low, high."""
    text, rows = published.facts("cns_text"), []
    cases = [("user study: out of class", int(text["user_study_ooc"]), int(text["user_study_images"]), float(text["user_study_ratio"]))]
    for row in published.read("cns_table10").itertuples():
        cases.append((f"OOD-CV: {row.shift}", round(row.images * row.accuracy_percent / 100), row.images, row.accuracy_percent / 100))
    for row in published.read("cns_table6").itertuples():
        for title, percent in (("without", row.without_percent), ("with", row.with_percent)):
            cases.append((f"{row.images} {title} fine-tuning", round(row.n * percent / 100), row.n, percent / 100))
    for what, count, n, printed in cases:
        estimate, low, high = published.binomial(count, n, confidence=confidence)
        rows.append({"what": what, "n": n, "printed": printed, "estimate": estimate, "low": low, "high": high})
    return pd.DataFrame(rows)
