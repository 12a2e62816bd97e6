"""What notebook 40 says in words: the findings that open its captions, and its answer, each from the numbers of a table."""

from collections.abc import Mapping

import pandas as pd

from cnslib.core.names import UNSHIFTED
from cnslib.plots.captions.words import interval
from cnslib.stats import verdicts
from cnslib.studies.scenarios.scenarios import SUMMED
from cnslib.studies.scenarios.score import CONVENTIONS, Accuracies

CHANGED_OBJECT = ("bright object", "blurred object", SUMMED)  # under all others the object is as it was


def survival(order: list[str], at_end: pd.DataFrame, plain: float) -> str:
    """Under which scenario fewest and most survive, with the accuracy at the end, mean over models; `plain` is that on originals."""
    mean = at_end.groupby("scenario")["estimate"].mean()
    worst, mildest = (f"'{name}' (accuracy {mean[name]:.2f})" for name in (order[0], order[-1]))
    return f"Fewest garments survive {worst}, most {mildest}; before any change it is {plain:.2f}"


def experiments(ex1: Accuracies, ex2: Accuracies) -> str:
    """The scenario that is worst for those who were trained on originals, and what those who were trained within it reach."""
    names = [name for name in ex1.names if name != UNSHIFTED]
    before = ex1.of(*names)[0].mean(0)
    worst = names[int(before.argmin())]
    after = ex2.of(worst)[0].mean()
    first = f"Who was trained on originals is right about {before.min():.0%} of the garments under '{worst}'"
    return f"{first}, who was trained within it about {after:.0%}"


def learning(gains: pd.DataFrame) -> str:
    """Whether the trainings had come to their end: which scenarios certainly gained accuracy in the last third."""
    rising, most = gains[gains["low"] > 0], gains.iloc[0]
    if rising.empty:
        return f"In the last third no scenario certainly gains accuracy; the most is '{most['scenario']}', {interval(most)}"
    names = ", ".join(f"'{row.scenario}' by {row.estimate:.2f}" for row in rising.itertuples())
    return f"Not all is learned: in the last third accuracy still rises under {len(rising)} of {len(gains)} scenarios, {names}"


def scores(table: pd.DataFrame) -> str:
    """Which model has the highest robustness score by each convention."""
    best = {way: part.loc[part["estimate"].idxmax()] for way, part in table.groupby("convention", sort=False)}
    said = [f"{way} '{best[way]['model']}' is first, {interval(best[way])}" for way in CONVENTIONS]
    return f"By {'; '.join(said)}"


def coefficients(rows: pd.DataFrame) -> str:
    """How many scenarios certainly cost accuracy on each set, and which costs most, by the clustered regression."""
    parts = []
    for name, part in rows[rows["regression"] == "clustered"].groupby("set", sort=False):
        worst, harmful = part.loc[part["estimate"].idxmin()], (part["high"] < 0).sum()
        parts.append(f"{harmful} of {len(part)} on {name}, most of it '{worst['scenario']}', {interval(worst)}")
    return f"Scenarios that certainly cost accuracy: {'; '.join(parts)}"


def worst(costs: dict[str, pd.DataFrame]) -> dict[str, pd.Series]:
    """By set, the scenario that costs most accuracy among those that leave the object as it is."""
    return {name: own[~own["scenario"].isin(CHANGED_OBJECT)].iloc[0] for name, own in costs.items()}


def answer(costs: dict[str, pd.DataFrame], gain: Mapping, claims: pd.Series) -> str:
    """The notebook's answer: the worst background of each set, what training on random backgrounds gives back, the paper's claims."""
    behind = worst(costs)
    shown = all(row["low"] > 0 for row in behind.values())
    first = "Not at the object alone" if shown else "The background is not shown to matter on every set"
    named = "; ".join(f"on {name} '{row['scenario']}', {interval(row)}" for name, row in behind.items())
    cost = f"Of the scenarios that leave the object as it is, one costs most accuracy: {named}"
    after = f"Training on random backgrounds changes accuracy before them by {interval(gain)}"
    return f"{first}. {cost}. {after}. Claims of the paper: {verdicts.counted(claims)}."
