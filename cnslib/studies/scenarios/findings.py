"""What notebook 40 says in words: the findings that open its captions, and its answer, each from the numbers of a table."""

from collections.abc import Mapping

import pandas as pd

from cnslib.core.names import UNSHIFTED
from cnslib.plots.captions.words import interval, numbered
from cnslib.stats import bootstrap, verdicts
from cnslib.studies.scenarios.scenarios import SUMMED
from cnslib.studies.scenarios.score import Accuracies

AFTER = {
    verdicts.SAME: "After training on random backgrounds these cost garments less than before",
    verdicts.OPPOSITE: "After training on random backgrounds these cost garments more than before",
    verdicts.UNDECIDED: "Whether training on random backgrounds makes these cost garments less is undecided",
}
CHANGED_OBJECT = ("bright object", "blurred object", SUMMED)  # under all others the object is as it was


def survival(order: list[str], at_end: pd.DataFrame, plain: float) -> str:
    """Under which scenario fewest and most survive, with the accuracy at the end, mean over models; `plain` is that on originals."""
    mean = at_end.groupby("scenario")["estimate"].mean()
    worst, mildest = (f"'{name}' (accuracy {mean[name]:.2f})" for name in (order[0], order[-1]))
    return f"Fewest garments survive {worst}, most {mildest}; before any change it is {plain:.2f}"


def experiments(ex1: Accuracies, ex2: Accuracies) -> str:
    """The scenario that is worst for those who were trained on originals, and what those who were trained within it reach."""
    names = [name for name in ex1.names if name != UNSHIFTED]
    worst = names[int(ex1.of(*names)[0].mean(0).argmin())]
    before, after = (interval(bootstrap.record(own.of(worst)[..., 0].mean(1), own.n, own.confidence), ".0%") for own in (ex1, ex2))
    return f"Under '{worst}' backbones trained on originals name {before} of the garments right, those trained within it {after}"


def learning(gains: pd.DataFrame) -> str:
    """Which scenarios gained accuracy in the last third, by intervals that stand alone: of many, one may lie above zero by luck."""
    rising, most = gains[gains["low"] > 0], gains.iloc[0]
    if rising.empty:
        return f"In the last third no interval of a gain lies above zero; the most is '{most['scenario']}', {interval(most)}"
    names = ", ".join(f"'{row['scenario']}' by {interval(row, '.3f')}" for _, row in rising.iterrows())
    luck = f"of {len(gains)} intervals that stand alone, one may lie above zero by luck"
    return f"In the last third accuracy still rises in {len(rising)} of {len(gains)} kinds of training, {names}; {luck}"


def scores(table: pd.DataFrame) -> str:
    """Which model has the highest robustness score by each convention, and how many of the others it surely exceeds."""
    best = {way: part.loc[part["estimate"].idxmax()] for way, part in table.groupby("convention", sort=False)}
    others = table["model"].nunique() - 1
    said = [f"{way}: '{row['model']}', {interval(row)}, surely above {row['exceeds']} of {others} others" for way, row in best.items()]
    return f"The highest score, {'; '.join(said)}"


def coefficients(rows: pd.DataFrame) -> str:
    """How many scenarios certainly cost accuracy on each set by either regression, and which costs most by the clustered one."""
    parts = []
    for name, both in rows.groupby("set", sort=False):
        part, mixed = (both[both["regression"] == way] for way in ("clustered", "mixed"))
        worst, harmful, other = part.loc[part["estimate"].idxmin()], (part["high"] < 0).sum(), (mixed["high"] < 0).sum()
        parts.append(f"{harmful} of {len(part)} on {name} (mixed: {other}), most of it '{worst['scenario']}', {interval(worst)}")
    return f"Scenarios that certainly cost accuracy by their clustered intervals, taken one by one: {'; '.join(parts)}"


def behind(name: str, own: pd.DataFrame, *, alpha: float) -> str:
    """Whether backgrounds matter on one set, by Holm over its scenarios, and the scenario that costs most with the object as it is."""
    kept = own[~own["scenario"].isin(CHANGED_OBJECT)]
    sure, dearest = int(((kept["p_holm"] < alpha) & (kept["estimate"] > 0)).sum()), kept.iloc[0]
    if sure:
        first = f"On {name} a classifier looks at the background, too: {sure} of {len(kept)} changed ones surely cost accuracy"
        return f"{first}, most '{dearest['scenario']}', {interval(dearest)}"
    none = f"On {name} none of {len(kept)} changed backgrounds surely costs accuracy"
    return f"{none}; '{dearest['scenario']}' costs most, {interval(dearest)}, Holm's p {dearest['p_holm']:.2f}"


def tested(claims: pd.DataFrame) -> str:
    """How many tests of how many of the paper's claims there are, and what became of the tests (as `claims.against_paper`)."""
    tests, told = numbered(len(claims), "test"), numbered(claims["claim"].nunique(), "claim")
    return f"{tests} of {told} of the paper: {verdicts.counted(claims['verdict'])}"


def answer(costs: dict[str, pd.DataFrame], less: Mapping, claims: pd.DataFrame, *, confidence: float) -> str:
    """The notebook's answer: whether backgrounds matter on each set, what training on random ones brings, the paper's claims."""
    first = ". ".join(behind(name, own, alpha=1 - confidence) for name, own in costs.items())
    side, word = verdicts.word(less["low"] > 0, less["high"] < 0), "less"
    if side == verdicts.OPPOSITE:
        less, word = {"estimate": -less["estimate"], "low": -less["high"], "high": -less["low"]}, "more"
    return f"{first}. {AFTER[side]}: {interval(less)} {word}, each measured from its originals. {tested(claims)}."
