"""What follows from the published tables (notebook 13): captions, and sentences on what its figures show.

Tables are those of `studies.published`.
"""

import pandas as pd

from cnslib.plots.captions.words import interval, listed
from cnslib.plots.figures import extent


def averages(check: pd.DataFrame) -> str:
    """The caption of printed and recomputed averages."""
    wrong = (~check["consistent"]).sum()
    finding = f"{len(check) - wrong} of {len(check)} rows of Table 5 agree with themselves, {wrong} contradict themselves (other colour)"
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
    return f"{finding}. n = 5 models; bars: {confidence:.0%} of {starts:,} roundings; lines: extremes of all roundings"


def partial_seen(table: pd.DataFrame, said: float) -> str:
    """How many readings have the printed sign, and in whose bars and in whose extremes the printed number lies."""
    sign = (table["estimate"] * said > 0).sum()
    bars, ends = (table[(table[low] <= said) & (said <= table[high])]["accuracy"] for low, high in (("low", "high"), ("least", "most")))
    text = f"{sign} of {len(table)} readings have the sign of the printed {said}. It lies within the bars of: {listed(bars)}"
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
    return wide["as_defined"] - wide["printed"]


def scores_seen(table: pd.DataFrame) -> str:
    """Whether the order of the models is the same by all three."""
    wide = table.pivot_table(index="model", columns="score", values="value", sort=False)
    orders = {name: wide[name].sort_values(ascending=False).index.tolist() for name in wide}
    said = [f"{name}: {' > '.join(order)}" for name, order in orders.items()]
    same = len({tuple(order) for order in orders.values()}) == 1
    return f"The order of the models is {'the same by all three' if same else 'not the same by all three'}. {'; '.join(said)}."


def ledger(lines: pd.DataFrame, verdicts: list[str]) -> str:
    """The caption of the ledger's verdicts; `verdicts` from agreement to a claim that falls."""
    counts = lines["verdict"].value_counts().reindex(verdicts, fill_value=0)
    return f"{counts.iloc[0]} lines agree, {len(lines) - counts.iloc[0]} differ, and {counts.iloc[-1]} claims fall. n = {len(lines)} lines"


def ledger_seen(lines: pd.DataFrame, verdicts: list[str]) -> str:
    """Every verdict with its number."""
    counts = lines["verdict"].value_counts().reindex(verdicts, fill_value=0)
    return f"By verdict: {listed(f'{name} ({count})' for name, count in counts.items())}."


def answer(lines: pd.DataFrame, verdicts: list[str], check: pd.DataFrame, said: float, readings: tuple[pd.Series, pd.Series]) -> str:
    """The answer of the page; `readings` are the rows of the partial correlation for the accuracy and for its drop."""
    differ, fall = lines[lines["verdict"] != verdicts[0]], lines[lines["verdict"] == verdicts[3]]
    first, drop = readings
    text = f"{len(differ)} of {len(lines)} comparisons differ, and {len(fall)} claims fall with them: {'; '.join(fall['subject'])}. "
    spread = f"{first['low']:+.2f} to {first['high']:+.2f} by rounding"
    text += f"The partial correlation printed as {said} comes out at {first['estimate']:+.2f} ({spread})"
    text += f", of the accuracy drop at {interval(drop, '+.2f')}"
    return f"**{text}; {check['consistent'].sum()} of {len(check)} rows of Table 5 agree with themselves.**"
