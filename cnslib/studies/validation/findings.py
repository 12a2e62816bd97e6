"""What notebook 23 says in words: the findings that open its captions, and its answer, each from the numbers of a table."""

import pandas as pd

from cnslib.plots.captions.words import interval, listed
from cnslib.stats import verdicts
from cnslib.studies.validation.screening import ALONE, FILTER, LABELS, NONE

COIN = 0.5  # the area under the curve of a guess, and what it finds or drops
OPENINGS = {
    verdicts.SAME: "Yes, results come closer to the labels with a filter by the paper's recipe than without one",
    verdicts.OPPOSITE: "No, results lie further from the labels with a filter by the paper's recipe than without one",
    verdicts.UNDECIDED: "Undecided, whether results come closer to the labels with a filter by the paper's recipe or without one",
}


def areas_told(table: pd.DataFrame) -> str:
    """Which detector knows best on each part, and which are not surely better than a coin."""
    best = [part.loc[part["estimate"].idxmax()] for _, part in table.groupby("part", sort=False)]
    said = [f"on {row['part']} {row['detector']}, {interval(row)}" for row in best]
    poor = [f"{row['detector']} on {row['part']}, {interval(row)}" for _, row in table[table["low"] <= COIN].iterrows()]
    coin = f". Not surely better than a coin: {'; '.join(poor)}" if poor else ""
    return f"Largest area under the curve: {'; '.join(said)}{coin}"


def honest_part(quality: pd.DataFrame) -> str:
    """The part of the labels that did not choose the thresholds; the pair where there are no other shifts."""
    return str(quality.dropna(subset="estimate")["part"].iloc[-1])


def rule_told(quality: pd.DataFrame, rule: str, part: str) -> str:
    """What a rule finds and what it drops on one part, beside CLIP alone and the filter of notebook 04."""
    rows = quality[quality["part"] == part].set_index(["rule", "measure"])["estimate"]
    own, *others = ([rows[name, measure] for measure in ("tpr", "fpr")] for name in (rule, ALONE, FILTER))
    found = f"On {part}, {rule} drops {own[0]:.0%} of the lost pictures and {own[1]:.0%} of the good ones"
    beside = [f"{name} {lost:.0%} and {good:.0%}" for name, (lost, good) in zip((ALONE, FILTER), others, strict=True)]
    return f"{found}, {', '.join(beside)}"


def base_rate_told(quality: pd.DataFrame, rule: str, part: str) -> str:
    """How often a rule is right about a picture of one part, beside one that drops nothing, which is right about all that are in class."""
    rows = quality[(quality["part"] == part) & (quality["measure"] == "accuracy")].set_index("rule")
    nothing, own = (interval(rows.loc[name], ".0%") for name in (NONE, rule))
    return f"On {part} a rule that drops nothing gives {nothing} right verdicts, since as many are in class; {rule} gives {own}."


def promise_told(table: pd.DataFrame, rule: str, recall: float, pair: list[str]) -> str:
    """On how many shifts that had no say a rule surely misses or exceeds the promised share of lost pictures, by its thresholds."""
    found = table[(table["rule"] == rule) & (table["measure"] == "tpr") & ~table["part"].isin(pair)].dropna(subset="estimate")
    if found.empty:
        return f"Beyond {listed(pair)} no shift has lost pictures that {rule} could find"
    said = []
    for name, own in found.groupby("thresholds", sort=False):
        missed = own.loc[own["high"] < recall, "part"]
        short = f"{len(missed)} of {len(own)} other shifts{f' ({listed(missed)})' if len(missed) else ''}"
        said.append(f"with thresholds {name} on {short}, surely more on {(own['low'] > recall).sum()}")
    return f"{rule} surely finds fewer than {recall:.0%} of the lost pictures {'; '.join(said)}"


def closest(last: pd.DataFrame) -> str:
    """The rule whose drop at the last scale lies closest to that under the labels (a row per rule)."""
    return str(last["estimate"].drop(LABELS).abs().idxmin())


def curves_told(last: pd.DataFrame, rule: str) -> str:
    """How far the accuracy drop under a rule is from that under the labels, and which rule comes closest."""
    row, best = last.loc[rule], closest(last)
    small = row["estimate"] < 0
    by = {"estimate": -row["estimate"], "low": -row["high"], "high": -row["low"]} if small else row
    decided = "certainly " if row["low"] > 0 or row["high"] < 0 else ""
    own = f"Under {rule} the drop is {decided}too {'small' if small else 'large'}, by {interval(by)}"
    return f"{own}; closest to the labels comes {best}, {interval(last.loc[best], '+.2f')}"


def order_told(tau: pd.DataFrame, rule: str) -> str:
    """How far the order of the classifiers under a rule agrees with that under the labels, at the first scale and at the last."""
    own = tau[tau["rule"] == rule].sort_values("scale").iloc[[0, -1]]
    each = [f"{interval(row)} at scale {row['scale']:g}" for _, row in own.iterrows()]
    return f"Under {rule} tau with the order under the labels is {' and '.join(each)}"


def seen_from(name: str, part: str, measure: str) -> float | None:
    """What a line of Table 2b is seen from: a half, as a coin gives; nothing for accuracy, and for a recall that was set on the pair."""
    was_set = (name, part, measure) == ("CLIP", "the pair", "tpr")
    return None if was_set or measure == "accuracy" else COIN


def study_told(shares: pd.DataFrame) -> str:
    """The share out of class in the sample beside the paper's."""
    rows = shares.set_index("what")
    ours, theirs = (next(name for name in rows.index if name.startswith(word)) for word in ("sample", "paper"))
    shown, published = (interval(rows.loc[name], ".1%") for name in (ours, theirs))
    return f"Of what is left, {shown} are out of class in the {ours}, {published} in the {theirs}"


def answer(quality: pd.DataFrame, last: pd.DataFrame, gaps: pd.DataFrame, rule: str, source: str, *, pair: list[str]) -> str:
    """The notebook's answer: whether the filter brings the accuracy drop closer to the labels, and what it finds and drops.

    `gaps` as `screening.distances` gives them; the thresholds come from the shifts of the `pair`. Asked are the others. The filter of
    notebook 04 has thresholds of its own, and stands beside it.
    """
    part, gap = honest_part(quality), gaps.loc["closer than no filter"]
    side = verdicts.word(gap["high"] < 0, gap["low"] > 0)
    drops = [f"{interval(last.loc[name], '+.2f')} {how}" for name, how in ((rule, "with it"), (NONE, "without"))]
    first = f"{OPENINGS[side]}: the accuracy drop differs from that under the labels by {listed(drops)}"
    recipe = f"Its thresholds come from the labels of {listed(pair)}: it {caught(quality, rule, part)} ({source})"
    other = "It is not the filter of notebook 04, whose thresholds come from the oracle's labels of all shifts"
    beside = f"that one {caught(quality, FILTER, part)}, and with it the drop differs by {interval(last.loc[FILTER], '+.2f')}"
    return f"{first}. {recipe}. {other}; {beside}."


def caught(quality: pd.DataFrame, rule: str, part: str) -> str:
    """What a rule finds of the out-of-class pictures of one part, and what it drops of the good ones."""
    rows = quality[quality["part"] == part].set_index(["rule", "measure"])
    found, lost = (interval(rows.loc[(rule, measure)], ".0%") for measure in ("tpr", "fpr"))
    return f"finds {found} of the out-of-class pictures of {part} and drops {lost} of the good ones"
