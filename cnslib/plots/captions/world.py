"""What goes into the benchmark (notebook 00): the answer of the page, and sentences on its tables and figures."""

from collections.abc import Collection

import pandas as pd

from cnslib.plots.captions.words import answered, extremes, listed
from cnslib.stats.quality import MET, MISSED


def answer(judged: pd.DataFrame, classes: Collection[str], shifts: Collection[str], models: Collection[str]) -> str:
    """The answer of the page: what goes in, how many bounds are met, and which qualities miss theirs (columns quality and verdict)."""
    met, missed = (judged.loc[judged["verdict"] == word, "quality"] for word in (MET, MISSED))
    into = f"{len(classes)} classes of garments, {len(shifts)} shifts and {len(models)} small models go into it"
    return answered(f"{into}. {len(met)} of {len(judged)} bounds on the models' quality are met; missed: {listed(missed)}.")


def told_apart(table: pd.DataFrame, among: pd.DataFrame) -> str:
    """What the neighbours' votes say about all classes, and about those that the benchmark takes; both tables as `quality.told_apart`."""
    left = [name for name in table["class"] if name not in set(among["class"])]
    first = f"{table['estimate'].mean():.0%} of the garments are named right by their neighbours, fewest of {fewest(table, 3)}."
    if not left:
        return f"{first} The benchmark takes them all."
    rest = f"among the others {among['estimate'].mean():.0%} are named right, fewest of {fewest(among, 1)}"
    return f"{first} The benchmark leaves out {listed(left)}; {rest}."


def fewest(table: pd.DataFrame, count: int) -> str:
    """The classes that are named right least often, each with its share and what it is taken for otherwise."""
    poor = table.sort_values("estimate").head(count)
    return ", ".join(f"{row['class']} ({row['estimate']:.0%}, else mostly {row['taken for']})" for _, row in poor.iterrows())


def shifts_seen(last: pd.Series) -> str:
    """Which shift changes the pixels most and least; `last` by shift, of the way from black to white."""
    most, least = extremes(last, ".0%")
    pictures = f"In these {len(last)} pictures, a garment each, a pixel at severity 1 changes most under {most} and least under {least}"
    return f"{pictures}, in shares of the way from black to white."
