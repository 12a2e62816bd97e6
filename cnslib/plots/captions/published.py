"""What follows from the published tables (notebook 13): captions, and sentences on what its figures show.

Tables are those of `studies.published`.
"""

import pandas as pd

from cnslib.plots.captions.words import interval, listed, numbered
from cnslib.plots.figures import extent


def averages(check: pd.DataFrame) -> str:
    """The caption of printed and recomputed averages."""
    wrong = (~check["consistent"]).sum()
    finding = f"{len(check) - wrong} of {len(check)} rows of Table 5 agree with themselves, {wrong} not (other colour)"
    return f"{finding}. n = {len(check)} models; no interval is published"


def averages_seen(check: pd.DataFrame, averaging: pd.DataFrame, tau: float) -> str:
    """Which rows contradict themselves, which mean fits better, and how far drop and rCE agree on the order."""
    wrong, near = check.index[~check["consistent"]], averaging["mean"].idxmin()
    fits = f"the printed average drops fit means over {near} best (off by {averaging.loc[near, 'mean']:.4f} on average)"
    orders = f"on the right the two orders agree by Kendall's tau {tau:.2f}"
    return f"Rows that contradict themselves: {listed(wrong)}. On the left {fits}; {orders}."


def partial(table: pd.DataFrame, said: float, *, confidence: float, starts: int) -> str:
    """The caption of the partial correlation by what could be meant."""
    near = table.loc[(table["estimate"] - said).abs().idxmin()]
    finding = f"Of what could be meant, '{near['accuracy']}' comes closest to the printed {said}: {near['estimate']:+.2f}"
    size = f"Size: log2 of the parameters; with their number itself it is {near['counted']:+.2f}"
    return (
        f"{finding}. {size}. {extent(table['n'])} models; bars: {confidence:.0%} of {starts:,} roundings; lines: extremes of all roundings"
    )


def partial_seen(table: pd.DataFrame, said: float) -> str:
    """How many readings have the printed sign, and in whose bars and in whose extremes the printed number lies."""
    sign = (table["estimate"] * said > 0).sum()
    bars, ends = (table[(table[low] <= said) & (said <= table[high])]["accuracy"] for low, high in (("low", "high"), ("least", "most")))
    first = f"{sign} of {len(table)} readings {'has' if sign == 1 else 'have'} the sign of the printed {said}"
    text = f"{first}. It lies within the bars of: {listed(bars)}"
    return f"{text}; and within the extremes of {len(ends)} of {len(table)}."


def printed_p(said: float, p: float, needed: int) -> str:
    """Whether a correlation of five models could be significant."""
    return f"p of {said} with one value per model: {p:.2f}; points it needs: {needed}"


def intervals(shares: pd.DataFrame, *, confidence: float) -> str:
    """The caption of counted shares."""
    wide = shares.loc[(shares["high"] - shares["low"]).idxmax()]
    finding = f"The least certain share is '{wide['what']}', {interval(wide, '.0%')}"
    return f"{finding}. {extent(shares['n'])} images; bars: {confidence:.0%} Wilson intervals"


def intervals_seen(shares: pd.DataFrame) -> str:
    """The widest and the narrowest interval with what was counted."""
    width = shares["high"] - shares["low"]
    ends = [shares.loc[place] for place in (width.idxmin(), width.idxmax())]
    narrow, wide = (f"{row['what']}, {interval(row, '.1%')} of {row['n']:,}" for row in ends)
    return f"Most certain: {narrow}. Least certain: {wide}."


def scores(table: pd.DataFrame, scenarios: int) -> str:
    """The caption of the sibling paper's scores (model, score, value)."""
    gap = gaps(table)
    model, value = gap.abs().idxmax(), gap[gap.abs().idxmax()]
    finding = f"Computed to the letter, the score of {model} changes most, by {value:+.3f}"
    return f"{finding}. n = {scenarios} scenarios per model and row; no interval is published"


def gaps(table: pd.DataFrame) -> pd.Series:
    """The score as defined minus that printed, by model."""
    wide = table.pivot_table(index="model", columns="score", values="value", sort=False)
    return wide["by the equations"] - wide["as printed"]


def scores_seen(table: pd.DataFrame) -> str:
    """Whether the order of the models is the same by all three."""
    wide = table.pivot_table(index="model", columns="score", values="value", sort=False)
    orders = {name: wide[name].sort_values(ascending=False).index.tolist() for name in wide}
    if len({tuple(order) for order in orders.values()}) == 1:
        return f"The order of the models is the same by all three: {' > '.join(next(iter(orders.values())))}."
    said = [f"{name}: {' > '.join(order)}" for name, order in orders.items()]
    return f"The order of the models is not the same by all three. {'; '.join(said)}."


def ledger(lines: pd.DataFrame, verdicts: list[str]) -> str:
    """The caption of the ledger's verdicts; `verdicts` from agreement, then nothing stated, to a claim that falls."""
    agree, unsaid, *differ = lines["verdict"].value_counts().reindex(verdicts, fill_value=0)
    falls = f"{numbered(differ[-1], 'claim')} {'falls' if differ[-1] == 1 else 'fall'}"
    text = f"{agree} lines agree, {sum(differ)} differ, so that {falls}, and for {unsaid} the papers state nothing"
    return f"{text}. n = {len(lines)} lines"


def ledger_seen(lines: pd.DataFrame, verdicts: list[str]) -> str:
    """Every verdict with its number."""
    counts = lines["verdict"].value_counts().reindex(verdicts, fill_value=0)
    return f"By verdict: {listed(f'{name} ({count})' for name, count in counts.items())}."


def answer(lines: pd.DataFrame, verdicts: list[str], check: pd.DataFrame) -> str:
    """The answer of the page in one sentence: whether a table agrees with itself, and tables, texts and code with each other."""
    agree, _, *others = lines["verdict"].value_counts().reindex(verdicts, fill_value=0)
    differ, fall = sum(others), others[-1]
    rows = f"{check['consistent'].sum()} of {len(check)} rows of the paper's large table agree with themselves"
    if not differ:
        return f"**Yes: {rows}, and tables, texts and code agree wherever we compared them ({agree} times).**"
    where = f"tables, texts and released code differ in {differ} of the {agree + differ} places where the papers state something to compare"
    cost = f"{fall} printed claim{'' if fall == 1 else 's'} cannot be upheld" if fall else "no printed claim falls with it"
    return f"**Not everywhere: {rows}, but {where}, and {cost}.**"
