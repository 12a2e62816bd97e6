"""The paper's axes (notebook 08): captions, sentences on classifiers and claims, and the answer of the page.

Tables are those of `stats.accuracy`, `stats.axes` and `stats.claims`; `note` says what the intervals are about.
"""

from collections.abc import Mapping

import pandas as pd

from cnslib.plots.captions.words import answered, enough, extremes, interval, listed
from cnslib.stats import gates, verdicts
from cnslib.stats.accuracy import ALL


def drop(pooled: pd.DataFrame, trajectories: int, *, note: str) -> str:
    """The caption of the drops along each axis, over all shifts; a classifier may stand on several axes."""
    last = pooled["scale"].max()
    ends = pooled[pooled["scale"] == last].drop_duplicates("model").set_index("model")["estimate"]
    most, least = extremes(ends)
    finding = f"Over all shifts {most} loses most accuracy by scale {last:g} and {least} least"
    return f"{finding}. n = {trajectories} trajectories; at the right: {note} at the last scale"


def drop_seen(pooled: pd.DataFrame) -> str:
    """From which to which drop the classifiers of every axis reach at the last scale."""
    last = pooled[pooled["scale"] == pooled["scale"].max()]
    said = []
    for axis, part in last.groupby("axis", sort=False):
        most, least = extremes(part.set_index("model")["estimate"])
        said.append(f"from {least} to {most} along {axis}")
    return f"At scale {pooled['scale'].max():g} the drops go {listed(said)}."


def pool(members: dict[str, list[str]], rest: dict[str, list[str]]) -> str:
    """Who is left out of which axis; `rest` holds the axes without them."""
    left = {axis: ", ".join(name for name in members[axis] if name not in names) for axis, names in sorted(rest.items())}
    return "; ".join(f"{axis}: without {names}" for axis, names in left.items()) or "no axis has such classifiers"


def by_shift(at_last: pd.DataFrame, *, note: str) -> str:
    """The caption of the drops by shift at one scale: the shifts that tell classifiers apart most and least, of those with enough."""
    single = enough(at_last[at_last["shift"] != ALL].drop_duplicates(["model", "shift"]))
    apart = single.groupby("shift")["estimate"].std()
    widest = f"{apart.idxmax()} (standard deviation of their drops {apart.max():.2f})"
    finding = f"Classifiers differ most under {widest}, least under {apart.idxmin()} ({apart.min():.2f})"
    return f"{finding}. In brackets: trajectories; bold: zero lies outside the {note}"


def by_shift_seen(at_last: pd.DataFrame) -> str:
    """For which classifier the shifts (with enough trajectories) matter most: its largest and its smallest drop."""
    single = enough(at_last[at_last["shift"] != ALL].drop_duplicates(["model", "shift"]))
    table = single.pivot(index="model", columns="shift", values="estimate")
    name = (table.max(axis=1) - table.min(axis=1)).idxmax()
    most, least = extremes(table.loc[name])
    return f"The drops of {name} lie furthest apart: its largest is under {most}, its smallest under {least}."


def corruption(guard: pd.DataFrame, trajectories: int, *, reference: str, note: str) -> str:
    """The caption of rCE and average drop; `guard` (shift, n, defined) says which shifts rCE counts."""
    own = guard[guard["defined"]]
    text = f"rCE: n = {own['n'].sum()} trajectories of {len(own)} shifts, dotted: {reference}"
    return f"{text}; drop: n = {trajectories}; lines: {note}; diamonds: the paper's counterparts"


def corruption_seen(chosen: dict[str, pd.DataFrame]) -> str:
    """Who has the lowest and the highest value by each measure; a classifier may stand on several axes."""
    said = []
    for name, table in chosen.items():
        most, least = extremes(table.drop_duplicates("model").set_index("model")["estimate"])
        said.append(f"By {name} {least} is lowest and {most} highest.")
    return " ".join(said)


def size(size: pd.DataFrame, trajectories: int, *, note: str) -> str:
    """The caption of the measures against the number of parameters: how many steps to the next larger classifier lower a measure."""
    ordered = size.dropna(subset=["estimate"]).sort_values("parameters")
    steps = ordered.groupby(["axis", "measure"])["estimate"].diff().dropna()
    finding = f"The next larger classifier has the lower value in {int((steps < 0).sum())} of {len(steps)} steps"
    return f"{finding}. n = {trajectories} trajectories (rCE: those of the shifts where it is defined); bands: {note}"


def size_seen(size: pd.DataFrame) -> str:
    """How every measure goes from the smallest to the largest classifier of every axis of sizes, and whether it falls at each step."""
    said = []
    for (axis, measure), part in size.dropna(subset=["estimate"]).groupby(["axis", "measure"], sort=False):
        values = part.sort_values("parameters")["estimate"].to_numpy()
        falls, steps = int((values[1:] < values[:-1]).sum()), len(values) - 1
        said.append(f"{axis}, {measure}: from {values[0]:.2f} to {values[-1]:.2f}, lower at {falls} of {steps} steps")
    return f"From the smallest to the largest classifier: {'; '.join(said)}." if said else "No size is measured."


def claims(judged: pd.DataFrame, confidence: float) -> str:
    """The caption of all verdicts: what became of the claims, and what is drawn."""
    finding = f"Of {len(judged)} claims {verdicts.counted(judged['verdict'])}"
    return f"{finding}. {confidence:.0%} intervals before, verdicts after Holm's correction in each family; hollow: by average drop"


def disagreement(judged: pd.DataFrame) -> str:
    """Which claims about rCE the average drop judges otherwise, as a list; those that one of the two cannot measure are not counted."""
    both = judged[(judged["measure"] == "rCE") & ~judged[["verdict", "drop_verdict"]].eq(verdicts.UNMEASURED).any(axis=1)]
    apart = both[both["verdict"] != both["drop_verdict"]]
    rows = [f"- {row.claim}: *{row.verdict}* by rCE, *{row.drop_verdict}* by average drop" for row in apart.itertuples()]
    return "\n".join([f"The two measures disagree on {len(apart)} of the {len(both)} claims that both can judge.", "", *rows])


def cautioned(judged: pd.DataFrame) -> str:
    """How many of the claims that hold or are opposite carry a caution."""
    sure = judged[~judged["verdict"].isin([verdicts.UNDECIDED, verdicts.UNMEASURED])]
    return f"{(sure['caution'] != '').sum()} of the {len(sure)} claims that hold or are opposite carry a caution in the table"


def gated(found: Mapping[str, dict]) -> str:
    """How many of the gates that could fail are missed, on which all that is said about classifiers rests; `found` as for `gates.table`."""
    wrong, unknown = len(gates.missed(found)), len(gates.unmeasured(found))
    open_ = f" and {unknown} not measured" if unknown else ""
    if not wrong:
        return f"No gate is missed{open_}"
    missed = f"{wrong} of {len(gates.counted(found))} gates {'is' if wrong == 1 else 'are'} missed{open_}"
    return f"{missed}: by our rule these verdicts are not safe"


def answer(spread: pd.DataFrame, judged: pd.DataFrame, found: Mapping[str, dict], *, sure: bool) -> str:
    """The answer of the page: the deviation along every axis, `sure` if no other can be as large, what became of the claims, the gates."""
    widest = spread["estimate"].idxmax()
    lead = "Classifiers" if sure else "No axis stands out with certainty; classifiers"
    size = f"their average accuracy drops have a standard deviation of {interval(spread.loc[widest], '.3f')}"
    others = listed(f"{row['estimate']:.3f} along {axis}" for axis, row in spread.drop(widest).iterrows())
    unshifted = judged["measure"] == "held-out error"
    shifted, plain = (
        f"of {len(own)}, {verdicts.counted(own)}" for own in (judged.loc[~unshifted, "verdict"], judged.loc[unshifted, "verdict"])
    )
    claims = f"Claims about robustness: {shifted}. About accuracy without a shift: {plain}"
    return answered(f"{lead} differ most by {widest}: {size}, against {others}. {claims}. {cautioned(judged)}. {gated(found)}.")
