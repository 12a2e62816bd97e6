"""What the scale of a slider means (notebook 12): captions, and sentences on what its figures show.

Tables are those of `stats.calibration`; `note` says what the intervals are about.
"""

from collections.abc import Sequence

import pandas as pd

from cnslib.plots.captions.words import answered, certain, enough, interval, listed
from cnslib.plots.figures import extent
from cnslib.stats.accuracy import ALL
from cnslib.stats.calibration import NOMINAL

TIED = 0.01  # medians that differ by less are told as equal


def by_ruler(table: pd.DataFrame) -> pd.Series:
    """The median estimate over the shifts of every ruler, the largest first."""
    return table.groupby("ruler")["estimate"].median().sort_values(ascending=False, kind="stable")


def correlation(table: pd.DataFrame, severities: int, *, note: str) -> str:
    """The caption of the rank correlations on rendered garments; rulers whose medians differ by less than `TIED` are named together."""
    median = by_ruler(table).dropna()
    best, worst = median[median > median.max() - TIED], median[median < median.min() + TIED]
    rho, counted = "median Spearman's rho", f"{extent(table['n'])} garments per shift, {severities + 1} severities; lines: {note}"
    if len(best) == len(median):
        return f"No ruler puts rendered garments better in the order of their severity than another ({rho} {span(best)}). {counted}"
    finding = f"Of the rulers {listed(best.index)} put{'s' if len(best) == 1 else ''} rendered garments best in the order of their severity"
    return f"{finding}, {listed(worst.index)} worst ({rho} {span(best)} and {span(worst)}). {counted}"


def span(values: pd.Series) -> str:
    """A number, or the least and the greatest where two digits tell them apart."""
    ends = [f"{value:.2f}" for value in (values.min(), values.max())]
    return " to ".join(dict.fromkeys(ends))


def correlation_seen(table: pd.DataFrame) -> str:
    """The median of each ruler, and where each is weakest."""
    median = by_ruler(table)
    parts = []
    for ruler, value in median.items():
        own = table[table["ruler"] == ruler].set_index("shift")["estimate"]
        parts.append(f"{ruler} {value:.2f} (least under {own.idxmin()}, {own.min():.2f})")
    return f"Median rho over the shifts: {listed(parts)}. A ruler near 1 orders severities, one near 0 does not see them."


def bias(table: pd.DataFrame, *, note: str) -> str:
    """The caption of the oracle's readings against the true severity."""
    ends = at_end(table, "oracle")
    finding = f"At the heaviest true severity, 1, the oracle reads {ends.min():.2f} ({ends.idxmin()}) to {ends.max():.2f} ({ends.idxmax()})"
    return f"{finding}. {extent(table['n'])} rendered held-out garments per shift; bands: {note}"


def at_end(table: pd.DataFrame, ruler: str) -> pd.Series:
    """What a ruler reads at the last scale, by shift."""
    own = table[(table["ruler"] == ruler) & (table["scale"] == table["scale"].max())]
    return own.set_index("shift")["estimate"]


def bias_seen(table: pd.DataFrame) -> str:
    """How far the oracle's reading is from the truth, mean over the shifts, at every severity."""
    own = table[table["ruler"] == "oracle"]
    off = (own["estimate"] - own["scale"]).groupby(own["scale"]).mean()
    low, high = off.idxmin(), off.idxmax()
    text = f"Averaged over the shifts, the oracle reads {off[high]:+.2f} off the truth at severity {high:g} and {off[low]:+.2f} at {low:g}"
    word = "neither exaggerates nor plays down" if abs(off.mean()) < 0.005 else "exaggerates" if off.mean() > 0 else "plays down"
    return f"{text}. In the mean of all severities it {word} ({off.mean():+.2f})."


def at_zero(rendered: pd.DataFrame, generated: pd.DataFrame) -> str:
    """The oracle's severity of pictures without a shift, rendered and generated."""
    read = [table.loc[table["scale"] == 0, "oracle"].mean() for table in (rendered, generated)]
    last = f"At scale {generated['scale'].max():g}:"
    return f"The oracle's severity at 0: {read[0]:.2f} in rendered garments, {read[1]:.2f} in generated ones. {last}"


def rising(cells: pd.DataFrame, steps: int) -> str:
    """The caption of the sliders' rising steps."""
    surely = [f"{certain(part, 0.5)[0]} of {len(part)} by {ruler}" for ruler, part in cells.groupby("ruler", sort=False)]
    finding = f"Sliders that surely rise in more than half of their steps: {listed(surely)}"
    return f"{finding}. {extent(cells['n'])} trajectories per slider, {steps} steps each"


def rising_seen(cells: pd.DataFrame) -> str:
    """The weakest slider by the severity of the asked shift, and how many surely fall more often than they rise."""
    own = cells[cells["ruler"] == "asked"].dropna(subset=["estimate"])
    low, falls = own.loc[own["estimate"].idxmin()], certain(own, 0.5)[1]
    weakest = f"the weakest slider is {low['shift']} of {low['class']}: {low['estimate']:.0%} of its steps rise"
    return f"By the severity of the asked shift, {weakest}. {falls} of {len(own)} sliders surely fall more often than they rise."


def severity(progress: pd.DataFrame, counts: pd.Series, *, note: str) -> str:
    """The caption of the maps from scale to severity."""
    last = progress[progress["scale"] == progress["scale"].max()]
    finding = f"{last['estimate'].notna().sum()} of {len(last)} maps rise with certainty"
    missing = "; the others are left out" if last["estimate"].isna().any() else ""
    return f"{finding}{missing}. {extent(counts)} trajectories per shift; bands: {note}"


def severity_seen(progress: pd.DataFrame) -> str:
    """Which share of its rise each ruler has done by the middle of the scale, median over the shifts."""
    last = progress["scale"].max()
    middle = min(progress["scale"].unique(), key=lambda scale: (abs(scale - last / 2), scale))
    done = by_ruler(progress[progress["scale"] == middle].dropna(subset=["estimate"]))
    parts = [f"{value:.0%} by {ruler}" for ruler, value in done.items()]
    text = f"At scale {middle:g} of {last:g} the share of the rise that is done, in the median over the shifts, is {listed(parts)}"
    return f"{text}; even sliders would have {middle / last:.0%}."


def moved(summary: pd.DataFrame) -> pd.DataFrame:
    """The maps that rise with certainty."""
    return summary[summary["low"] > 0]


def bent(summary: pd.DataFrame, last: float) -> pd.DataFrame:
    """Those of them in which half of the rise surely lies before or beyond half of the scale."""
    own = moved(summary)
    return own[(own["half_low"] > last / 2) | (own["half_high"] < last / 2)]


def fates(summary: pd.DataFrame, last: float) -> str:
    """Which maps do not rise with certainty, and which end early."""
    pairs, own = summary["shift"] + " by " + summary["ruler"], moved(summary)
    still, early = pairs[summary["low"] <= 0], pairs[own.index[own["ends"] < last]]
    return f"No certain rise: {', '.join(still) or 'none'}. Saturated before scale {last:g}: {', '.join(early) or 'none'}."


def wide(summary: pd.DataFrame, rulers: Sequence[str]) -> pd.DataFrame:
    """Rise and half of every slider, a row per shift and a column per ruler."""
    named = summary.rename(columns={"estimate": "rise", "half_estimate": "half"})
    return named.pivot(index="shift", columns="ruler", values=["rise", "half"]).reindex(columns=list(rulers), level="ruler")


def steps(summary: pd.DataFrame, last: float, counts: pd.Series, number: int, *, note: str) -> str:
    """The caption of the scales of equal steps."""
    finding = f"In {len(bent(summary, last))} of {len(moved(summary))} maps half of the rise surely does not lie at half of the scale"
    return f"{finding}. {extent(counts)} trajectories per shift; dots: {number} equal steps of the ruler; lines: {note}; grey: equal scales"


def steps_seen(summary: pd.DataFrame, last: float) -> str:
    """Where half of the rise of the asked shift lies, earliest and latest."""
    own = moved(summary[summary["ruler"] == "asked"]).dropna(subset=["half_estimate"])
    if own.empty:
        return "By the severity of the asked shift no slider rises with certainty."
    early, late = (own.loc[own["half_estimate"].agg(which)] for which in ("idxmin", "idxmax"))
    halves = [f"{row['half_estimate']:.2f} ({row['half_low']:.2f} to {row['half_high']:.2f}) under {row['shift']}" for row in (early, late)]
    text = f"By the severity of the asked shift, half of the rise is done by scale {halves[0]} and by {halves[1]}"
    return f"{text}; even sliders would have {last / 2:g}."


def strips(shown: pd.DataFrame) -> str:
    """The caption of one garment at equal scales and at equal steps."""
    lines = [f"{name}: {', '.join(f'{scale:g}' for scale in part['scale'])}" for name, part in shown.groupby("strip", sort=False)]
    row, (first, second) = shown.iloc[0], (part["scale"].to_numpy() for _, part in shown.groupby("strip", sort=False))
    finding = f"At {(first != second).sum()} of {len(first)} steps the two strips show different scales"
    return f"{finding}. {row['shift']}, {row['class']}; scales shown, {'; '.join(lines)}"


def strips_seen(shown: pd.DataFrame) -> str:
    """How evenly the severity of the asked shift grows in the two strips: largest and smallest step."""
    grown = {name: part["asked"].diff().dropna() for name, part in shown.groupby("strip", sort=False)}
    parts = [f"from {values.min():+.2f} to {values.max():+.2f} in the strip of {name}" for name, values in grown.items()]
    return f"For this garment the steps of severity that the oracle sees go {listed(parts)}."


def accuracy(drawn: pd.DataFrame, three: list[str], models: int, counts: pd.Series) -> str:
    """The caption of accuracy against the scale and against what each ruler reads."""
    by_shift = drawn[drawn["ruler"] == NOMINAL].sort_values("scale").groupby("shift")["estimate"]
    fall = (by_shift.first() - by_shift.last()).loc[three]
    finding = f"Over its own slider {three[0]} costs {fall.iloc[0]:.2f} of accuracy and {three[-1]} {fall.iloc[-1]:.2f}"
    counted = f"Mean of {models} classifiers; {extent(counts)} kept trajectories per shift"
    return f"{finding}. {counted}; grey: the other shifts; intervals: csv"


def accuracy_seen(drawn: pd.DataFrame, three: list[str]) -> str:
    """How severe the hardest and the mildest shift get at the last scale, as the oracle sees the asked shift."""
    last = drawn[(drawn["ruler"] == "asked") & (drawn["scale"] == drawn["scale"].max())].set_index("shift")
    ends = [f"{last.loc[shift, 'severity']:.2f} under {shift}" for shift in dict.fromkeys((three[0], three[-1]))]
    without = last["estimate"].isna().sum()
    text = f"At the last scale the severity of the asked shift is {listed(ends)}"
    if not without:
        return f"{text}. All {len(last)} shifts have a curve there."
    return f"{text}. {without} of {len(last)} shifts have no curve there: they do not surely rise."


def hardness(hard: pd.DataFrame, counts: pd.Series, *, note: str) -> str:
    """The caption of the shifts' hardness on every axis."""
    tops = [
        f"{part.loc[part['estimate'].idxmax(), 'name']} by {ruler}" for ruler, part in enough(hard, "name").groupby("ruler", sort=False)
    ]
    return f"Highest estimate of hardness: {listed(tops)}. {extent(counts)} kept trajectories per shift; lines: {note}"


def hardness_seen(hard: pd.DataFrame) -> str:
    """How many shifts change sides between the scale and each ruler: harder than the others on one, milder on the other."""
    table = hard.pivot(index="name", columns="ruler", values="estimate")
    if NOMINAL not in table:
        return "On the scale itself no hardness can be formed."
    pairs = {ruler: table[[NOMINAL, ruler]].dropna() for ruler in table if ruler != NOMINAL}
    parts = [f"{int((own.prod(axis=1) < 0).sum())} of {len(own)} by {ruler}" for ruler, own in pairs.items()]
    return f"By their estimates, shifts harder than the rest on the scale and milder by a ruler, or the other way round: {listed(parts)}."


def answer(rising: pd.DataFrame, summary: pd.DataFrame, orders: pd.DataFrame, last: float) -> str:
    """The answer of the page: rising steps by CLIP and by the severity of the asked shift, bent maps, and how far the orders agree."""
    total = rising[rising["shift"] == ALL].set_index("ruler")
    said = {ruler: interval(total.loc[ruler], ".1%") for ruler in ("alignment", "asked")}
    more = f"A step up the scale shows more of the shift in {said['alignment']} of all cases by CLIP"
    more = f"{more} and in {said['asked']} by the severity of the asked shift"
    uneven, rises = len(bent(summary, last)), len(moved(summary))
    word = "but equal steps are not equal readings" if uneven else "and no map is known to be bent"
    half = f"in {uneven} of {rises} maps half of the rise surely does not lie at half of the scale"
    tau = orders.dropna(subset="estimate").groupby("order")["estimate"].agg(["min", "max"])
    spans = [f"{row['min']:.2f} to {row['max']:.2f} for the {what}" for what, row in tau.iterrows()]
    orders = f"Kendall's tau of the order on the scale and that on a ruler is, by ruler, {' and '.join(spans)}"
    return answered(f"{more}, {word}: {half}. {orders}.")
