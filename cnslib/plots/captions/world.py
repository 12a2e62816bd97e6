"""What goes into the benchmark (notebook 00): the answer of the page."""

import pandas as pd

from cnslib.stats.quality import MET, MISSED


def answer(judged: pd.DataFrame) -> str:
    """The answer of the page: how many bounds are met, and which qualities miss theirs (columns quality and verdict)."""
    met, missed = (judged.loc[judged["verdict"] == word, "quality"] for word in (MET, MISSED))
    return f"**{len(met)} of {len(judged)} quality bounds are met; missed: {', '.join(missed) or 'none'}.**"


def told_apart(table: pd.DataFrame, chosen: list[str]) -> str:
    """What the neighbours' votes say about all classes, and about those that the benchmark takes; `table` as `quality.told_apart`."""
    rows = table.set_index("class")
    poor = rows.sort_values("estimate").head(3)
    told = [f"{name} ({row['estimate']:.0%}, else mostly {row['taken for']})" for name, row in poor.iterrows()]
    left = [name for name in rows.index if name not in chosen]
    rest = f"The benchmark leaves out {' and '.join(left)}" if left else "The benchmark takes them all"
    first = f"{rows['estimate'].mean():.0%} of the garments are named right by their neighbours, fewest of {', '.join(told)}"
    return f"{first}. {rest}."
