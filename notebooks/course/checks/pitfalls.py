"""Lesson 6, what can go wrong: the exercises on preprocessing, averages, the line of accuracies and many comparisons."""

from dataclasses import replace

import numpy as np
import pandas as pd
import xarray as xr
from checks.exercises import Exercise, Sheet
from cnslib.models.classifiers import Classifier
from cnslib.stats.accuracy import ALL, metric, over_shifts
from cnslib.stats.bootstrap import ANYWHERE
from cnslib.stats.line import gain, points
from scipy import stats
from statsmodels.stats.multitest import multipletests
from timm.data import create_transform

LESSON = "6_pitfalls"
POINTS = 2.0  # a difference of printed accuracies, in percent, that rounding cannot explain
LEVEL = 0.05


def at_the_end(table: pd.DataFrame) -> pd.DataFrame:
    """Accuracy per classifier: `before`, its mean over the shifts at the first scale, and under each shift at the last.

    `table` (shift, model, scale, estimate) may hold accuracies over all shifts as well. Each shift counts the same on both sides.
    """
    single = table[table["shift"] != ALL]
    ends = [single[single["scale"] == scale] for scale in (single["scale"].min(), single["scale"].max())]
    first, last = (part.pivot(index="model", columns="shift", values="estimate") for part in ends)
    return pd.concat([first.mean(axis=1).rename("before"), last], axis=1)


def above_the_line(errors: xr.DataArray, model: str) -> dict:
    """How far one classifier lies above the line of all at the last scale, in the mean over the shifts, as a record."""
    own = gain(points(over_shifts(errors))).sel(model=model).isel(shift=0, scale=-1)
    return metric(own, within=ANYWHERE)


def sheet(
    *, validation: pd.DataFrame, answers: pd.DataFrame, names: tuple[str, str], accuracies: pd.DataFrame, model: str, p: pd.Series
) -> Sheet:
    """The exercises on printed accuracies (model, printed, library), two versions of a classifier, accuracies and p values.

    `answers` (model, class, seed, top1, right) holds both `names` on the same pictures; `accuracies` has a row per classifier and
    the columns `before` and the shifts, at the last scale.
    """
    shifted = accuracies.drop(columns="before")
    return Sheet(
        LESSON,
        {
            "suspects": suspects(validation),
            "changed": changed(answers, *names),
            "hidden": hidden(*(shifted.loc[name] for name in closest(shifted.mean(axis=1)))),
            "line": line(accuracies["before"], shifted.mean(axis=1), model),
            "many": many(p),
        },
    )


def between(own: Classifier, other: Classifier) -> list[Classifier]:
    """One network with its own preprocessing, but for one thing of the other version's: its crop, or its normalisation."""
    parts = {"crop": ("crop_pct", "crop_mode"), "normalisation": ("mean", "std")}
    changed = {name: own.settings | {key: other.settings[key] for key in keys} for name, keys in parts.items()}
    return [replace(own, name=name, settings=settings, transform=create_transform(**settings)) for name, settings in changed.items()]


def closest(means: pd.Series) -> tuple[str, str]:
    """The two classifiers whose means lie closest to each other, by name."""
    ordered = means.sort_values()
    place = int(np.diff(ordered.to_numpy()).argmin())
    first, second = sorted(ordered.index[place : place + 2])
    return first, second


def suspects(validation: pd.DataFrame) -> Exercise:
    """The classifiers whose printed accuracy differs from the library's own."""
    gap = (validation["library"] - validation["printed"]).to_numpy()
    name = validation["model"].to_numpy()
    return Exercise(
        frozenset(name[np.abs(gap) > POINTS]),
        (
            "Subtract the two columns, take the absolute value, and keep what is above 2 points.",
            '`validation.loc[gap > 2, "model"]`, where `gap` holds the absolute differences.',
        ),
        {
            "You kept the wrong sign: these are printed too *high*, and there are none. Take absolute values.": frozenset(
                name[gap < -POINTS]
            ),
            "The columns are in percent, so 2 points are 2, not 0.02. You kept nearly all.": frozenset(name[np.abs(gap) > POINTS / 100]),
            "Those are the ones that agree.": frozenset(name[np.abs(gap) <= POINTS]),
        },
        praise="Both were trained with mean and standard deviation 0.5. The paper ran every model with those of ImageNet, and with "
        "one crop for all. That one of these is the cause is our inference: the numbers alone do not say which.",
    )


def changed(answers: pd.DataFrame, own: str, other: str) -> Exercise:
    """How many pictures get another answer under another preprocessing."""
    wide = answers.pivot(index=["class", "seed"], columns="model", values="top1")
    right = answers.groupby("model")["right"].sum()
    lost = answers.pivot(index=["class", "seed"], columns="model", values="right").astype(bool)
    return Exercise(
        float((wide[own] != wide[other]).sum()),
        (
            "Pivot `top1` to one column per model and count the rows in which the two differ.",
            '`answers.pivot(index=["class", "seed"], columns="model", values="top1")` has a row per garment.',
        ),
        {
            "That is the difference in right answers. Some wrong answers turn into other wrong ones, and some into right ones.": (
                float(right[own] - right[other])
            ),
            "Those are the answers that stay the same.": float((wide[own] == wide[other]).sum()),
            "Those are the answers that went from right to wrong. Answers that change otherwise count as well.": (
                float((lost[own] & ~lost[other]).sum())
            ),
        },
        tolerance=0.5,
        praise="Same weights, same pictures. Preprocessing belongs to the model, and to every number that one reports.",
    )


def hidden(first: pd.Series, second: pd.Series) -> Exercise:
    """The largest difference of two classifiers on a single shift."""
    gap = first - second
    return Exercise(
        float(gap.abs().max()),
        (
            "Subtract shift by shift, take absolute values, then the largest.",
            "`shifted.loc[first] - shifted.loc[second]` has a number per shift; then `.abs().max()`.",
        ),
        {
            "That is the difference of their means, in which gains and losses cancel.": float(abs(gap.mean())),
            "That is the largest gain of one of them. Take absolute values: the other one may gain more elsewhere.": (
                float(min(gap.max(), -gap.min()))
            ),
            "That is the mean of the absolute differences. The largest is asked.": float(gap.abs().mean()),
        },
        praise="Their means lie closer to each other than those of any other pair.",
    )


def line(before: pd.Series, after: pd.Series, model: str) -> Exercise:
    """How far one classifier lies above the line of all (effective robustness)."""
    fit, back = stats.linregress(before, after), stats.linregress(after, before)
    expected = fit.intercept + fit.slope * before[model]
    gap = float(after[model] - expected)
    says = "Positive: it loses less than" if gap > 0 else "Negative: it loses more than"
    return Exercise(
        gap,
        (
            "`from scipy import stats`; `fit = stats.linregress(before, after)`. It expects `fit.intercept + fit.slope * before[model]`.",
            "Accuracy under shifts minus what the line expects of it.",
        ),
        {
            "That is the drop, turned round: the distance to the line y = x. Take the line through all classifiers.": (
                float(after[model] - before[model])
            ),
            "That is what the line expects. How far does the classifier lie from it?": float(expected),
            "The sign is turned round: measured minus expected.": float(expected - after[model]),
            "You fitted the accuracy without a shift from the one under shifts. Turn them round.": (
                float(before[model] - back.intercept - back.slope * after[model])
            ),
        },
        praise=f"{says} its accuracy without a shift lets one expect, if there is a line at all. See the cell below.",
    )


def many(p: pd.Series) -> Exercise:
    """How many pairs differ after Holm's correction."""
    holm, bonferroni = (int(multipletests(p, LEVEL, method=method)[0].sum()) for method in ("holm", "bonferroni"))
    plain = int((p < LEVEL).sum())
    return Exercise(
        float(holm),
        (
            "`from statsmodels.stats.multitest import multipletests`. It corrects the p values.",
            'Count the values of `multipletests(p, method="holm")[1]` that are below 0.05.',
        ),
        {
            "Those are the uncorrected p values. Among so many pairs some are below 0.05 by chance alone.": float(plain),
            "That is Bonferroni's correction. Holm's is as safe and finds more.": float(bonferroni),
            "Those are the pairs that one cannot tell apart.": float(len(p) - holm),
        },
        tolerance=0.5,
    )
