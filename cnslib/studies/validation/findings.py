"""What notebook 23 says in words: the findings that open its captions, and its answer, each from the numbers of a table."""

import pandas as pd

from cnslib.plots.captions.words import interval
from cnslib.stats import accuracy
from cnslib.studies.validation.screening import ALONE, LABELS


def areas_told(table: pd.DataFrame) -> str:
    """Which detector knows best on each part."""
    best = [part.loc[part["estimate"].idxmax()] for _, part in table.groupby("part", sort=False)]
    said = [f"on {row['part']} {row['detector']}, {interval(row)}" for row in best]
    return f"Largest area under the curve: {'; '.join(said)}"


def honest_part(quality: pd.DataFrame) -> str:
    """The part of the labels that did not choose the thresholds; the pair where there are no other shifts."""
    return str(quality.dropna(subset="estimate")["part"].iloc[-1])


def rule_told(quality: pd.DataFrame, rule: str, part: str) -> str:
    """What a rule finds and what it drops on one part, beside CLIP alone."""
    rows = quality[quality["part"] == part].set_index(["rule", "measure"])["estimate"]
    own, alone = ([rows[name, measure] for measure in ("tpr", "fpr")] for name in (rule, ALONE))
    found = f"On {part}, {rule} drops {own[0]:.0%} of the lost pictures and {own[1]:.0%} of the good ones"
    return f"{found}, {ALONE} {alone[0]:.0%} and {alone[1]:.0%}"


def promise_told(table: pd.DataFrame, rule: str, recall: float) -> str:
    """On how many shifts with lost pictures a rule finds the promised share of them, by where its thresholds come from."""
    found = table[(table["rule"] == rule) & (table["measure"] == "tpr")].dropna(subset="estimate")
    kept = found.assign(kept=found["estimate"] >= recall - accuracy.TINY).groupby("thresholds", sort=False)["kept"]
    said = [f"{own.sum()} of {len(own)} shifts with thresholds {name}" for name, own in kept]
    return f"{rule} finds {recall:.0%} of the lost pictures on {' and on '.join(said)}"


def closest(last: pd.DataFrame) -> str:
    """The rule whose drop at the last scale lies closest to that under the labels (a row per rule)."""
    return str(last["estimate"].drop(LABELS).abs().idxmin())


def curves_told(last: pd.DataFrame, rule: str) -> str:
    """How far the accuracy drop under a rule is from that under the labels, and which rule comes closest."""
    row, best = last.loc[rule], closest(last)
    words = {True: "too small", False: "too large"}[row["estimate"] < 0]
    decided = "certainly " if row["low"] > 0 or row["high"] < 0 else ""
    own = f"Under {rule} the drop is {decided}{words}, by {abs(row['estimate']):.2f}"
    return f"{own}; closest to the labels comes {best} ({last.loc[best, 'estimate']:+.2f})"


def order_told(tau: pd.DataFrame, rule: str) -> str:
    """How far the order of the classifiers under a rule agrees with that under the labels, at the last scale."""
    row = tau[(tau["rule"] == rule) & (tau["scale"] == tau["scale"].max())].iloc[0]
    return f"Under {rule} tau with the order under the labels is {interval(row)}"


def study_told(shares: pd.DataFrame) -> str:
    """The share out of class in the sample beside the paper's."""
    rows = shares.set_index("what")
    ours, theirs = (next(name for name in rows.index if name.startswith(word)) for word in ("sample", "paper"))
    shown, published = (interval(rows.loc[name], ".0%") for name in (ours, theirs))
    return f"Of what is left, {shown} are out of class in the {ours}, {published} in the {theirs}"


def answer(quality: pd.DataFrame, last: pd.DataFrame, rule: str, pair: list[str], source: str) -> str:
    """The notebook's answer: what the rule finds and drops elsewhere than on the pair, and which rule comes closest to the labels."""
    part = honest_part(quality)
    rows = quality[quality["part"] == part].set_index(["rule", "measure"])
    found, lost = (interval(rows.loc[(rule, measure)], ".0%") for measure in ("tpr", "fpr"))
    first = f"With thresholds from {' and '.join(pair)} the rule {rule} finds {found} of the out-of-class pictures of {part}"
    return f"{first} and drops {lost} of the good ones; closest to the accuracy curve under the labels comes {closest(last)} ({source})."
