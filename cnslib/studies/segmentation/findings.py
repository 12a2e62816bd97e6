"""What notebook 41 says in words: the findings that open its captions, and its answer, each from the numbers of a table."""

import pandas as pd

from cnslib.plots.captions.words import interval
from cnslib.stats import verdicts
from cnslib.studies.scenarios.subjects import Subject


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


def certainly_more(plain: pd.DataFrame, area: pd.Series) -> int:
    """How many classifiers have a share on the garment whose whole interval lies above that of its area."""
    return int((plain["low"] > area["high"]).sum())


def looking(plain: pd.DataFrame, overall: pd.DataFrame, area: pd.Series) -> str:
    """Who certainly looks at the garment more than its area, and the scenario that draws most of the attribution to it."""
    changed = overall[overall["scenario"] != "original"]
    most = changed.loc[changed["estimate"].idxmax()]
    first = f"{certainly_more(plain, area)} of {len(plain)} classifiers certainly look at the garment more than its area"
    return f"{first}; most does it draw under '{most['scenario']}', {interval(most)}"


def photographs(table: pd.DataFrame, area: dict) -> str:
    """The share on photographed objects without a scenario, by method, beside their area."""
    plain = table[table["scenario"] == "original"]
    said = " and ".join(f"{row['estimate']:.0%} of the {row['method']}" for row in plain.to_dict("records"))
    return f"On unchanged photographs {said} lies on the object, which covers {area['estimate']:.0%}"


def claim(rho: dict) -> pd.DataFrame:
    """The statement of section 5.2 (Fig. 4), that robust models look at the foreground: a rank correlation below 0."""
    return verdicts.beside(pd.DataFrame([{"quantity": "rank correlation of share and lost accuracy", **rho}]), "below 0")


def worded(rho: dict) -> str:
    """What a rank correlation of share and lost accuracy tells."""
    told_by = {
        verdicts.SAME: "who looks at the garment more certainly loses less",
        verdicts.OPPOSITE: "who looks at the garment more certainly loses more",
        verdicts.UNDECIDED: "whether who looks at the garment more loses less is undecided",
    }
    return told_by[claim(rho)["verdict"].iloc[0]]


def correlation(rho: dict) -> str:
    """The same with the number, to open a caption."""
    words = worded(rho)
    return f"{words[0].upper()}{words[1:]}: rank correlation {interval(rho)}"


def answer(ends: pd.DataFrame, original: float, plain: pd.DataFrame, area: pd.Series, rho: dict) -> str:
    """The notebook's answer: where mean IoU falls furthest (`ends`: a row per scenario), who looks at the garment, and the claim."""
    hurt = ends["iou"].sort_values()
    worst = " and ".join(f"'{name}' ({value:.2f})" for name, value in hurt.iloc[:2].items())
    first = f"The mean IoU falls from {original:.2f} furthest under {worst}"
    second = f"{certainly_more(plain, area)} of {len(plain)} classifiers certainly look at the garment more than its area would give"
    return f"{first}; {second} ({area['estimate']:.0%}); {worded(rho)} (rank correlation {interval(rho)})."
