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
    exercises = {
        "suspects": suspects(validation),
        "changed": changed(answers, *names),
        "hidden": hidden(*(shifted.loc[name] for name in closest(shifted.mean(axis=1)))),
        "line": line(accuracies["before"], shifted.mean(axis=1), model),
        "many": many(p),
    }
    return Sheet(LESSON, exercises)


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
        {
            "sign": frozenset(name[gap < -POINTS]),
            "fraction": frozenset(name[np.abs(gap) > POINTS / 100]),
            "agree": frozenset(name[np.abs(gap) <= POINTS]),
        },
    )


def changed(answers: pd.DataFrame, own: str, other: str) -> Exercise:
    """How many pictures get another answer under another preprocessing."""
    wide = answers.pivot(index=["class", "seed"], columns="model", values="top1")
    right = answers.groupby("model")["right"].sum()
    lost = answers.pivot(index=["class", "seed"], columns="model", values="right").astype(bool)
    return Exercise(
        (wide[own] != wide[other]).sum(),
        {"difference": right[own] - right[other], "same": (wide[own] == wide[other]).sum(), "lost": (lost[own] & ~lost[other]).sum()},
        tolerance=0.5,
    )


def hidden(first: pd.Series, second: pd.Series) -> Exercise:
    """The largest difference of two classifiers on a single shift."""
    gap = first - second
    return Exercise(gap.abs().max(), {"means": abs(gap.mean()), "gain": min(gap.max(), -gap.min()), "mean": gap.abs().mean()})


def line(before: pd.Series, after: pd.Series, model: str) -> Exercise:
    """How far one classifier lies above the line of all (effective robustness)."""
    fit, back = stats.linregress(before, after), stats.linregress(after, before)
    expected = fit.intercept + fit.slope * before[model]
    gap = float(after[model] - expected)
    says = "Positive: it loses less than" if gap > 0 else "Negative: it loses more than"
    return Exercise(
        gap,
        {
            "diagonal": after[model] - before[model],
            "expected": expected,
            "sign": expected - after[model],
            "turned": before[model] - back.intercept - back.slope * after[model],
        },
        praise=f"{says} its accuracy without a shift lets one expect, if there is a line at all. See the cell below.",
    )


def many(p: pd.Series) -> Exercise:
    """How many pairs differ after Holm's correction."""
    holm, bonferroni = (int(multipletests(p, LEVEL, method=method)[0].sum()) for method in ("holm", "bonferroni"))
    plain = int((p < LEVEL).sum())
    return Exercise(holm, {"plain": plain, "bonferroni": bonferroni, "same": len(p) - holm}, tolerance=0.5)
