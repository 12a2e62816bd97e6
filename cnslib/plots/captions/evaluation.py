"""What the classifiers answer (notebook 05): captions, and sentences on what its figures show."""

import pandas as pd

from cnslib.plots.captions.words import certain, extremes, listed
from cnslib.plots.figures import extent


def catalog(known: pd.DataFrame, *, confidence: float) -> str:
    """The caption of accuracy on held-out and on generated pictures (columns exam, model, n, estimate)."""
    means = known.groupby("exam", sort=False)["estimate"].mean()
    finding = f"Mean accuracy: {listed(f'{value:.0%} ({exam})' for exam, value in means.items())}"
    sizes = listed(f"{extent(part['n'].astype(int))[4:]} ({exam})" for exam, part in known.groupby("exam", sort=False))
    return f"{finding}. n = {sizes}; lines: {confidence:.0%} Wilson intervals; before filtering"


def catalog_seen(cost: pd.DataFrame) -> str:
    """For whom generated pictures are easier or harder than the catalog's; `cost` (cost, low, high) is the catalog minus them."""
    gain = pd.DataFrame({"estimate": -cost["cost"], "low": -cost["high"], "high": -cost["low"]}).sort_values("estimate")
    least, most = (
        f"{row['estimate']:+.2f} ({row['low']:+.2f} to {row['high']:+.2f}) for *{name}*" for name, row in gain.iloc[[0, -1]].iterrows()
    )
    easier, harder = certain(gain)
    first = f"Accuracy on generated pictures minus that on the catalog's: {least} to {most}"
    return f"{first}. The whole interval is above zero for {easier} of {len(gain)} classifiers, and below it for {harder}."


def example(said: pd.DataFrame) -> str:
    """The caption of all answers to one trajectory (model, scale, top1, probability, wrong)."""
    finding = f"{said['wrong'].mean():.0%} of the {len(said)} answers to this trajectory are wrong"
    return f"{finding}. Words: the class named; colour: probability of the true class, from 0, dark, to 1, light"


def example_seen(said: pd.DataFrame) -> str:
    """Who is right at all scales, who at none, and what is said instead."""
    right = (~said["wrong"]).groupby(said["model"]).mean()
    wrong = said[said["wrong"]]["top1"].value_counts()
    text = f"Right at every scale: {(right == 1).sum()} of {len(right)} classifiers; at none: {(right == 0).sum()}"
    return f"{text}. The commonest wrong answer is {wrong.index[0]} ({wrong.iloc[0]} of {wrong.sum()})." if len(wrong) else f"{text}."


def margin(quartiles: pd.DataFrame, images: int) -> str:
    """The caption of the median margins (model, shift, scale, low, estimate, high)."""
    last = quartiles[quartiles["scale"] == quartiles["scale"].max()]
    finding = f"At the last scale {(last['estimate'] > 0).sum()} of {len(last)} medians of a classifier and a shift are still above 0"
    return f"{finding}. n = {images} images per scale; bands: middle half of the images; above 0 the answer is right"


def margin_seen(quartiles: pd.DataFrame, left: pd.Series) -> str:
    """How far the median margin falls, by shift, mean of all classifiers; `left` as `answers.before_the_flip` gives it."""
    by_scale = quartiles.groupby(["shift", "scale"])["estimate"].mean().unstack()
    most, least = extremes(by_scale.iloc[:, 0] - by_scale.iloc[:, -1], ".1f")
    one = by_scale.iloc[:, 0] - by_scale.iloc[:, 1]
    first = f"The mean of all classifiers' median margins falls most under {most} and least under {least}"
    return f"{first}; at the first step it falls by {one.mean():.1f} on average. {fading(left)}"


def fading(left: pd.Series) -> str:
    """Whether margins fade before answers flip: of how many answers that flip late, and how much is left of the margin by then."""
    if left.empty:
        return "No answer flips after the first step."
    first = f"Of {len(left):,} answers that turn wrong after the first step, {(left < 1).mean():.0%} had lost margin before"
    return f"{first}: at the scale before, the median share left of the margin at scale 0 was {left.median():.0%}."


def mistakes(answers: pd.DataFrame, count: int, classifiers: int, scale: float) -> str:
    """The caption of the shares of wrong answers (a row per shift, a column per label)."""
    shift, label = answers.stack().idxmax()
    finding = f"Under {shift}, {answers.loc[shift, label]:.0%} of the wrong answers are {label}"
    return f"{finding}. n = {count:,} wrong answers of {classifiers} classifiers at scale {scale:g}; before filtering"


def mistakes_seen(answers: pd.DataFrame) -> str:
    """Which label attracts most over all shifts, and in how many of them it leads."""
    mean, leads = answers.mean(), answers.idxmax(axis=1)
    label = mean.idxmax()
    text = (
        f"On average {label} attracts most wrong answers, {mean[label]:.0%}; an even row would give each label {1 / answers.shape[1]:.1%}"
    )
    return f"{text}. It leads under {(leads == label).sum()} of {len(leads)} shifts."


def answer(heldout: pd.Series, drawn: pd.Series, heavy: float, scale: float) -> str:
    """The answer of the page: mean accuracy on the catalog, on generated pictures, and at the last scale."""
    text = f"On average {len(drawn)} classifiers name {heldout.mean():.0%} of the catalog's held-out garments"
    text = f"{text}, {drawn.mean():.0%} of generated ones, and {heavy:.0%} at scale {scale}"
    return f"**{text}, before we set aside the pictures that lost their class.**"
