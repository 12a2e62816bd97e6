"""Captions and sentences of notebook 22: what its figures show, with the numbers of their tables. `note` says what intervals are about."""

import pandas as pd

from cnslib.plots.captions.words import interval, listed
from cnslib.plots.figures import extent
from cnslib.stats import verdicts
from cnslib.stats.verdicts import AGREES, OPPOSITE, SAME
from cnslib.studies.directions.findings import EXAMPLES, MARGIN
from cnslib.studies.directions.texts import CLASS, PROMPTS, SLIDER, TEXTUAL, WHOLE

Trajectory = tuple[str, str, int]
GAP = "structure kept at equal gain, slider minus {}"


def strip(rows: pd.DataFrame, key: Trajectory) -> str:
    """The caption of one trajectory by every method; `rows` are those of `findings.per_trajectory`."""
    shift, name, seed = key
    own = rows[(rows["shift"] == shift) & (rows["class"] == name) & (rows["seed"] == seed)].set_index("method")
    ends = [f"{method} {own.loc[method, 'gain']:.2f} and {own.loc[method, 'structure']:.2f}" for method in (SLIDER, PROMPTS, WHOLE)]
    shown = f"Shown: {name} in {shift}, seed {seed}; columns: scale of the slider, weight of the texts"
    return f"Alignment gained and structure left at the end: {', '.join(ends)}. {shown}"


def curves(summary: pd.DataFrame, counts: pd.Series, *, note: str) -> str:
    """The caption of gain and structure along the scale."""
    wide = summary.pivot(index="method", columns="measure", values="estimate")
    ends = [f"{method}: gained {wide.loc[method, 'gain']:.2f}, kept {wide.loc[method, 'structure']:.2f}" for method in (SLIDER, WHOLE)]
    return f"At the last scale, {'; '.join(ends)}. {extent(counts)} trajectories; bands: {note}"


def plane(points: pd.DataFrame) -> str:
    """The caption of structure over gain."""
    top = points.loc[points.groupby("method")["gain_estimate"].idxmax()].set_index("method")
    ends = [
        f"{method} {top.loc[method, 'structure_estimate']:.2f} at {top.loc[method, 'gain_estimate']:.2f}" for method in (SLIDER, *TEXTUAL)
    ]
    counted = extent(points["gain_n"].astype(int))
    return f"Structure left where each gains most, and that gain: {', '.join(ends)}. {counted} trajectories; means, from the upper left"


def plane_seen(points: pd.DataFrame) -> str:
    """From where on the slider and the whole text pay structure for little more gain: after nine tenths of their largest."""
    parts = [turned(method, points[points["method"] == method].sort_values("scale")) for method in (SLIDER, WHOLE)]
    return f"{'. '.join(parts)}. So weights that go on rising after that make a method look worse than it need be."


def turned(method: str, path: pd.DataFrame) -> str:
    """Where one path has nine tenths of its largest mean gain, and what the rest of the way brings and costs."""
    enough = path[path["gain_estimate"] >= 0.9 * path["gain_estimate"].max()].iloc[0]
    more, cost = path["gain_estimate"].max() - enough["gain_estimate"], enough["structure_estimate"] - path["structure_estimate"].iloc[-1]
    at = f"has nine tenths of its gain at {enough['scale']:g}, with {enough['structure_estimate']:.2f} of the structure"
    return f"The {method} {at}; what follows brings {more:.2f} and costs {cost:.2f}"


def equal_gain(table: pd.DataFrame, level: pd.DataFrame, *, note: str) -> str:
    """The caption of the differences at equal gain; `level` is their mean over the shares."""
    own = level[level["measure"] == "structure"].set_index("method")
    ends = [f"{method} {interval(row, '+.3f')}" for method, row in own.iterrows()]
    return f"{GAP.format('text').capitalize()}: {'; '.join(ends)}. {extent(table['n'])} trajectories; bands: {note}"


def spread(gained: pd.DataFrame) -> str:
    """The caption of the boxes of gains; `gained` is that of `findings.spread`."""
    last = gained.loc[gained["column"] != PROMPTS, "scale"].max()
    ends = {PROMPTS: PROMPTS, f"{last:g}": f"the slider at {last:g}"}
    quartiles = {ends[name]: part["gain"].quantile([0.25, 0.75]).tolist() for name, part in gained.groupby("column") if name in ends}
    halves = [f"{low:.2f} to {high:.2f} by {name}" for name, (low, high) in quartiles.items()]
    counted = extent(gained.groupby("column").size())
    return f"The middle half of the garments gains {', '.join(halves)}. {counted} trajectories per box; whiskers: 1.5 quartile ranges"


def fails(rows: pd.DataFrame, cases: dict[str, Trajectory]) -> str:
    """The caption of the three examples of the class token."""
    own = rows[rows["method"] == CLASS].set_index(["shift", "class", "seed"])
    most, least, fewest = (own.loc[cases[name]] for name in EXAMPLES)
    gain = f"Where it gains most, {most['gain']:.2f}, the class token leaves {most['structure']:.2f} of the structure"
    worst = f"the least that it leaves is {least['structure']:.2f}, and the fewest rises are {fewest['rising']:.0%} of the steps"
    return f"{gain}; {worst}. One trajectory each; columns: weight"


def equal_gain_seen(level: pd.DataFrame, shifts: pd.DataFrame) -> str:
    """What is left at equal gain, text by text, and under which shift the whole text and the slider differ most."""
    own = level[level["measure"] == "structure"].set_index("method")
    sides: dict[str, list[str]] = {}
    for method, row in own.iterrows():
        sides.setdefault(side(row), []).append(f"the {method} ({interval(row, '+.3f')})")
    parts = "; it ".join(f"{verb} {listed(texts)}" for verb, texts in sides.items())
    least, most = shifts["estimate"].idxmin(), shifts["estimate"].idxmax()
    ends = f"from {interval(shifts.loc[least], '+.3f')} under {least} to {interval(shifts.loc[most], '+.3f')} under {most}"
    return f"By the structure left at equal gain the slider {parts}. The difference from the whole text goes {ends}."


def side(row: pd.Series) -> str:
    """What an interval of a difference says about structure, before the name of what the slider is compared with."""
    return "keeps more than" if row["low"] > 0 else "keeps less than" if row["high"] < 0 else "cannot be told from"


def alike(record: dict, margin: float) -> bool:
    """Whether a whole interval lies within a margin of zero."""
    claim = verdicts.read("about 0", float("nan"), float("nan"), tolerance=margin, null=0.0)
    return claim.verdict(record["low"], record["high"]) == AGREES


def answer(claims: pd.DataFrame, ours: dict[str, dict], lost: float, shifts: pd.DataFrame) -> str:
    """The notebook's answer on texts: knob for knob at equal gain, over all `shifts` and one by one, and what two plain prompts lack."""
    over = knob(claims.loc["knob"], ours["knob"], lost, len(shifts))
    return f"{over} {one_by_one(shifts)} A plain prompt has no knob: it makes the whole way in one step."


def knob(claim: pd.Series, record: dict, lost: float, shifts: int) -> str:
    """The slider against the whole text in one sentence, over so many shifts, by the verdict on the claim that the slider keeps more.

    `lost` is the structure that the slider itself has lost at that gain. Alike are two that differ by less than half of it, and by less
    than MARGIN: beside a small loss a fixed margin would hold everything.
    """
    if not record["n"]:
        return "Not measured: on no garment do both the slider and the whole text gain anything."
    margin = min(MARGIN, lost / 2)
    bound = f"{margin:.3f}, half of what the slider loses" if margin < MARGIN else f"{margin:.3f}"
    within = f"Yes, to within {bound}" if alike(record, margin) else "Undecided"
    opening = {SAME: "Not as well", OPPOSITE: "Yes, and better"}.get(claim["verdict"], within)
    gap = f"structure kept, slider minus whole text, is {interval(record, '+.3f')} on average over {shifts} shifts"
    turned = f"turned by a weight to an equal gain of the shift, {gap}"
    return f"{opening}: {turned}, where the slider has lost {lost:.3f} (n = {record['n']})."


def one_by_one(shifts: pd.DataFrame) -> str:
    """Under which single shifts the slider surely keeps more or less structure than the whole text, each interval by itself."""
    sure = shifts[(shifts["low"] > 0) | (shifts["high"] < 0)]
    each = [f"{name}, {interval(row, '+.3f')}" for name, row in sure.iterrows()]
    return f"Shift by shift, the two surely differ under {listed(each)}." if each else "Shift by shift, it differs surely under none."
