"""What notebook 41 says in words: the findings that open its captions, and its answer, each from the numbers of a table."""

from collections.abc import Mapping

import pandas as pd

from cnslib.core.settings.studies import NETWORKS
from cnslib.plots.captions.words import certain, interval, listed
from cnslib.stats import verdicts
from cnslib.studies.scenarios.subjects import Subject
from cnslib.studies.segmentation.masks import ON_BACKGROUND

BACKGROUNDS = {"random background": "a random background", "segmented": "none at all"}


def maps(rows: pd.DataFrame, own: Subject, overlap: float) -> str:
    """In how many of its states every network outlines and names one garment well enough (rows as `masks.images` gives them)."""
    mine = rows[(rows["class"] == own.label) & (rows["seed"] == own.seed) & rows["scale"].isin([0.0, 1.0])]
    hits = (mine["iou"] >= overlap).groupby(mine["model"], sort=False).sum()
    count = len(mine) // len(hits)
    return f"Of {count} pictures of one {own.label}, found with an IoU of {overlap:g}: {named(hits)}"


def named(counts: pd.Series) -> str:
    """Counts with their names, the largest first."""
    return ", ".join(f"{name} {count}" for name, count in counts.sort_values(ascending=False, kind="stable").items())


def survival(order: list[str], last: pd.DataFrame) -> str:
    """Under which scenario fewest and most masks survive, with the mean mIoU at the end (a row per scenario, a column per network)."""
    worst, mildest = (f"'{name}' (mean mIoU {last.loc[name].mean():.2f})" for name in (order[0], order[-1]))
    return f"Fewest masks survive {worst}, most {mildest}"


def attributions(rows: pd.DataFrame) -> str:
    """How much of the attribution lies on one garment, from the least to the most over some classifiers and states."""
    low, high = rows["share"].min(), rows["share"].max()
    return f"Between {low:.0%} and {high:.0%} of the attribution lies on the garment, which covers {rows['area'].iloc[0]:.0%}"


def apart(excess: pd.DataFrame) -> str:
    """How many classifiers look at the garment more, or less, than chance: their share minus its area, picture by picture."""
    more, less = certain(excess)
    return f"{more} of {len(excess)} classifiers surely look at the garment more than chance would, {less} surely less"


def looking(excess: pd.DataFrame, changes: pd.DataFrame) -> str:
    """The same, and what a random background and none at all do to the share on the garment (`changes` from that on originals)."""
    own = changes.set_index("scenario")
    moved = [f"{interval(own.loc[name], '+.2f')} by {what}" for name, what in BACKGROUNDS.items()]
    return f"{apart(excess)}; the share on it changes {listed(moved)}"


def moved(changes: pd.DataFrame) -> str:
    """What backgrounds say of the question: a random one that draws looks away, a black one that gives them back, and the others."""
    other, black = (changes.set_index("scenario").loc[name] for name in BACKGROUNDS)
    took = (
        "draws looks away from it" if other["high"] < 0 else "draws looks to it" if other["low"] > 0 else "is not shown to draw looks away"
    )
    back = "gives them back" if black["low"] > 0 else "takes more away" if black["high"] < 0 else "is not shown to give any back"
    said = f"a random background {took} ({interval(other, '+.2f')} of the share on it), a black one {back} ({interval(black, '+.2f')})"
    rest = changes[changes["scenario"].isin(set(ON_BACKGROUND) - set(BACKGROUNDS))]
    towards, away = certain(rest)
    return f"{said}; of {len(rest)} other changed backgrounds {towards} surely draw looks to it, {away} surely away" if len(rest) else said


def photographs(table: pd.DataFrame, area: dict) -> str:
    """The share on photographed objects without a scenario, by method, beside their area."""
    plain = table[table["scenario"] == "original"]
    said = " and ".join(f"{interval(row, '.0%')} of the {row['method']}" for row in plain.to_dict("records"))
    return f"On unchanged photographs {said} lies on the object, which covers {interval(area, '.0%')}"


def luck(table: pd.DataFrame) -> str:
    """How far apart the trainings of one network lie at most, and the means of the networks (rows as `masks.by_training` gives them)."""
    groups = table.groupby("model")["estimate"]
    apart, means = groups.max() - groups.min(), groups.mean()
    own = f"The trainings of one network lie up to {apart.max():.3f} apart ({apart.idxmax()})"
    size = f"n = {table['n'].iloc[0]} images, {table['training'].max()} trainings of each network"
    return f"{own}, the means of the networks up to {means.max() - means.min():.3f}; {size}."


def networks(coefficients: pd.DataFrame) -> str:
    """Whether each network is surely above or below the reference, other images and other trainings allowed (as `masks.table3`)."""
    rows = coefficients[coefficients["of"] == "network"].rename(columns={"ours": "estimate"})
    if rows.empty:
        return f"{NETWORKS[0]} stands alone."
    said = "; ".join(f"{row['name']} {interval(row, '+.3f')}, {side(row)}" for row in rows.to_dict("records"))
    size = f"n = {rows['n'].iloc[0]} images, {rows['trainings'].iloc[0]} trainings of each network"
    return f"Garment IoU minus that of {NETWORKS[0]}, about other images and other trainings: {said}; {size}."


def side(row: Mapping) -> str:
    """On which side of 0 an interval lies."""
    return "surely worse" if row["high"] < 0 else "surely better" if row["low"] > 0 else "not told apart"


def claim(rho: dict) -> pd.DataFrame:
    """The statement of section 5.2 (Fig. 4), that robust models look at the foreground: a rank correlation below 0."""
    return verdicts.beside(pd.DataFrame([{"quantity": "rank correlation of share and lost accuracy", **rho}]), "below 0")


def worded(rho: dict) -> str:
    """What a rank correlation of share and lost accuracy tells."""
    told_by = {
        verdicts.SAME: "classifiers that look more at the garment certainly lose less",
        verdicts.OPPOSITE: "classifiers that look more at the garment certainly lose more",
        verdicts.UNDECIDED: "whether classifiers that look more at the garment lose less is undecided",
    }
    return told_by[claim(rho)["verdict"].iloc[0]]


def correlation(rho: dict) -> str:
    """The same with the number, to open a caption."""
    return f"{sentence(worded(rho))}: rank correlation {interval(rho)}"


def answer(coefficients: pd.DataFrame, original: float, excess: pd.DataFrame, changes: pd.DataFrame, rho: dict) -> str:
    """The notebook's answer: where outlines fall furthest, where classifiers look and what a background does to it, and the claim.

    `coefficients` as `masks.table3` gives them: of scenarios, what they change of the garment IoU.
    """
    worst = coefficients[coefficients["of"] == "scenario"].sort_values("ours").iloc[0].rename({"ours": "estimate"})
    sure = "Yes, where outlines are asked for" if worst["high"] < 0 else "Not shown where outlines are asked for"
    size = f"n = {worst['n']} images, {worst['trainings']} trainings"
    first = f"{sure}: '{worst['name']}' changes the networks' garment IoU of {original:.2f} by {interval(worst, '+.2f')}, {size}"
    second = f"{apart(excess)}; {moved(changes)}"
    return f"{first}. {second}. {sentence(worded(rho))} (rank correlation {interval(rho)}, n = {rho['n']})."


def sentence(words: str) -> str:
    """Words as the beginning of a sentence."""
    return f"{words[0].upper()}{words[1:]}"
