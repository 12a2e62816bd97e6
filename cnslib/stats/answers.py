"""What classifiers answer, before anything is averaged: accuracy on two sets of pictures, margins, and where wrong answers go.

Tables of answers have a row per model and picture: top1, class, margin and probability of the true class (`tables.predictions`).
"""

import pandas as pd
from statsmodels.stats.proportion import confint_proportions_2indep

from cnslib.core import tables
from cnslib.stats import bootstrap


def exams(sets: dict[str, pd.DataFrame], *, confidence: float) -> pd.DataFrame:
    """Accuracy of every model on several sets of pictures (exam, model, n, estimate, low, high), Wilson intervals."""
    marked = pd.concat([answers.assign(exam=exam, right=answers["top1"] == answers["class"]) for exam, answers in sets.items()])
    groups = marked.groupby(["exam", "model"])["right"]
    shares = {key: bootstrap.independent_share(part, confidence=confidence) for key, part in groups}
    return pd.DataFrame(shares).T.rename_axis(["exam", "model"]).reset_index()


def cost(first: pd.DataFrame, second: pd.DataFrame, *, confidence: float) -> pd.DataFrame:
    """Accuracy on the first set minus that on the second, by model (rows of `exams`), smallest first, with Newcombe's interval."""
    hits = [(table["n"] * table["estimate"]).round().astype(int) for table in (first, second)]
    sides = hits[0], first["n"], hits[1], second["n"]
    low, high = confint_proportions_2indep(*sides, method="newcomb", alpha=1 - confidence)
    return pd.DataFrame({"cost": first["estimate"] - second["estimate"], "low": low, "high": high}).sort_values("cost")


def before_the_flip(answers: pd.DataFrame) -> pd.Series:
    """What is left of the margin at scale 0 at the last scale before the answer turns wrong, a value per trajectory and model.

    Of those that are right at scale 0 and at the next scale, and wrong later: where the second answer is wrong, nothing lies between.
    """
    wide = answers.pivot(index=["model", *tables.TRAJECTORY], columns="scale", values="margin")
    margin, wrong = wide.to_numpy(), answers.pivot(index=["model", *tables.TRAJECTORY], columns="scale", values="wrong").to_numpy()
    late = wrong.any(axis=1) & ~wrong[:, :2].any(axis=1)
    before = margin[late, wrong[late].argmax(axis=1) - 1]
    return pd.Series(before / margin[late, 0], index=wide.index[late], name="left")
