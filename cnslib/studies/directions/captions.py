"""Captions and sentences of notebook 22: what its figures show, with the numbers of their tables. `note` says what intervals are about."""

import pandas as pd

from cnslib.plots.captions.words import interval, listed
from cnslib.plots.figures import extent
from cnslib.stats import verdicts
from cnslib.stats.verdicts import AGREES, OPPOSITE, SAME
from cnslib.studies.directions.findings import MARGIN
from cnslib.studies.directions.texts import CLASS, PROMPTS, SLIDER, TEXTUAL, WHOLE

Trajectory = tuple[str, str, int]
GAP = "structure kept at equal gain, slider minus {}"


def strip(rows: pd.DataFrame, key: Trajectory) -> str:
    """The caption of one trajectory by every method; `rows` are those of `findings.per_trajectory`."""
    shift, name, seed = key
    own = rows[(rows["shift"] == shift) & (rows["class"] == name) & (rows["seed"] == seed)].set_index("method")
    ends = [f"{method} {own.loc[method, 'structure']:.2f}" for method in (SLIDER, PROMPTS, WHOLE)]
    shown = f"{name} in {shift}, seed {seed}; columns: scale of the slider, weight of the texts"
    return f"Structure left at the end: {', '.join(ends)}. {shown}"


def curves(summary: pd.DataFrame, counts: pd.Series, *, note: str) -> str:
    """The caption of gain and structure along the scale."""
    wide = summary.pivot(index="method", columns="measure", values="estimate")
    ends = [f"{method}: gained {wide.loc[method, 'gain']:.2f}, kept {wide.loc[method, 'structure']:.2f}" for method in (SLIDER, WHOLE)]
    return f"At the last scale, {'; '.join(ends)}. {extent(counts)} trajectories; bands: {note}"


def plane(points: pd.DataFrame) -> str:
    """The caption of structure over gain."""
    top = points.loc[points.groupby("method")["gain_estimate"].idxmax()].set_index("method")
    ends = [f"{method} {top.loc[method, 'structure_estimate']:.2f}" for method in (SLIDER, *TEXTUAL)]
    counted = extent(points["gain_n"].astype(int))
    return f"Structure left where each gains most: {', '.join(ends)}. {counted} trajectories; means, from the upper left"


def equal_gain(table: pd.DataFrame, level: pd.DataFrame, *, note: str) -> str:
    """The caption of the differences at equal gain; `level` is their mean over the shares."""
    own = level[level["measure"] == "structure"].set_index("method")
    ends = [f"{method} {interval(row, '+.2f')}" for method, row in own.iterrows()]
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
    numbers = own.loc[cases["works"], "gain"], own.loc[cases["breaks"], "structure"], own.loc[cases["wavers"], "rising"]
    text = "At its best the class token gains {:.2f}; at its worst it leaves {:.2f} of the structure, or rises in {:.0%} of its steps"
    return f"{text.format(*numbers)}. One trajectory each; columns: weight"


def equal_gain_seen(level: pd.DataFrame, shifts: pd.DataFrame) -> str:
    """What is left at equal gain, text by text, and under which shift the whole text and the slider differ most."""
    own = level[level["measure"] == "structure"].set_index("method")
    kept = {method: side(row) for method, row in own.iterrows()}
    parts = [f"{word} than the {method} ({interval(own.loc[method], '+.2f')})" for method, word in kept.items()]
    least, most = shifts["estimate"].idxmin(), shifts["estimate"].idxmax()
    ends = f"from {shifts.loc[least, 'estimate']:+.2f} under {least} to {shifts.loc[most, 'estimate']:+.2f} under {most}"
    return f"At equal gain the slider leaves {listed(parts)} of the structure. The difference from the whole text goes {ends}."


def side(row: pd.Series) -> str:
    """What an interval of a difference says about structure."""
    return "more" if row["low"] > 0 else "less" if row["high"] < 0 else "not surely more or less"


def alike(record: dict) -> bool:
    """Whether a whole interval lies within MARGIN of zero."""
    claim = verdicts.read("about 0", float("nan"), float("nan"), tolerance=MARGIN, null=0.0)
    return claim.verdict(record["low"], record["high"]) == AGREES


def answer(claims: pd.DataFrame, ours: dict[str, dict], summary: pd.DataFrame) -> str:
    """The notebook's answer: knob for knob at equal gain first, then two prompts, then how steadily the shift rises."""
    means = summary.set_index(["measure", "method"])["estimate"]
    steps = f"Two prompts have no knob: all of their way is one step, where the largest of a slider's makes {means['largest', SLIDER]:.0%}."
    rise = f"The shift rises in {means['rising', SLIDER]:.0%} of a slider's steps and in {means['rising', CLASS]:.0%} of the class token's"
    return f"{knob(claims.loc['knob'], ours['knob'])} {steps} {rise} ({claims.loc['consistent', 'verdict']})."


def knob(claim: pd.Series, record: dict) -> str:
    """The slider against the whole text in one sentence, by the verdict on the claim that the slider keeps more."""
    if not record["n"]:
        return "Not measured: on no garment do both the slider and the whole text gain anything."
    within = f"Yes, within {MARGIN:g}" if alike(record) else "Undecided"
    opening = {SAME: "Not as well", OPPOSITE: "Yes, and better"}.get(claim["verdict"], within)
    gap = f"structure kept, slider minus whole text, is {interval(record, '+.2f')} (n = {record['n']})"
    visible = f"; {claim['smallest']:.2f} could have been told from none" if claim["smallest"] > 0 else ""
    return f"{opening}: turned to an equal gain of the shift, {gap}{visible}."
