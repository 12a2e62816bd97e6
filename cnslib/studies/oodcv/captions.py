"""Captions and sentences of notebook 21: what its figures show, with the numbers of their tables. `note` says what intervals are about."""

import pandas as pd

from cnslib.plots.captions.words import interval, listed
from cnslib.plots.figures import extent
from cnslib.stats.accuracy import LEAST_TRAJECTORIES, NEVER
from cnslib.stats.verdicts import OPPOSITE, SAME, UNDECIDED, UNMEASURED, word
from cnslib.studies.oodcv.labels import UNKNOWN

EASIER = "easier than the reference"
OPENINGS = {
    SAME: "Drawn weather at the last scale hurts less than rendered weather of mixed severity",
    OPPOSITE: "Drawn weather at the last scale hurts more than rendered weather of mixed severity",
    UNDECIDED: "Whether drawn or rendered weather hurts more is undecided",
    UNMEASURED: "Too few trajectories say whether drawn or rendered weather hurts more",
}


def short(shift: str) -> str:
    """A shift without its "heavy"."""
    return shift.removeprefix("heavy ")


def reference(examples: pd.DataFrame, count: int) -> str:
    """The caption of the reference's pictures."""
    own = examples[examples["scale"] > 0]["scale"]
    shown = f"Severities from {own.min():.2f} to {own.max():.2f}: {len(examples)} of {count:,} pictures, each row ordered by severity"
    return f"{shown}; unshifted ones have none, and no order" if (examples["scale"] == 0).any() else shown


def against_reference(curves: pd.DataFrame, lines: pd.DataFrame, model: str, *, note: str) -> str:
    """The caption of curves beside the reference's line, about one classifier."""
    own = curves[(curves["model"] == model) & (curves["images"] == "all") & (curves["scale"] == curves["scale"].max())]
    known = lines[lines["model"] == model].set_index("shift")["estimate"]
    ends = [
        f"{short(row.shift)} {row.estimate:.2f} ({known[row.shift]:.2f})" for row in own.itertuples() if row.shift in set(curves["shift"])
    ]
    scale = curves["scale"].max()
    return f"Accuracy of {model} at scale {scale:g} on all generated images, and on the reference: {', '.join(ends)}. {note}"


def starts_seen(begin: pd.DataFrame) -> str:
    """Whether drawn unshifted garments are harder than real ones, and what the filter prefers, by classifier."""
    parts = {kind: own.set_index("model") for kind, own in begin.groupby("of")}
    real, drawn, kept = (parts[kind] for kind in ("real", "drawn, all", "drawn, kept"))
    harder, easier = (drawn["high"] < real["low"]).sum(), (drawn["low"] > real["high"]).sum()
    text = f"Drawn garments without any weather are surely harder than real ones for {harder} of {len(real)} classifiers"
    apart = listed(kept.index[kept["low"] > drawn["high"]])
    counts = f"{drawn['n'].max()} drawn garments, of which the filter keeps {kept['n'].max()}"
    kept_text = f"kept ones surely easier than all for {apart}"
    return f"{text}, surely easier for {easier}, and {kept_text} (intervals that do not overlap; {counts})."


def failures(bars: pd.DataFrame, *, note: str) -> str:
    """The caption of the failure points."""
    between = bars[~bars["scale"].isin([0.0, NEVER])]
    own = between.groupby(["shift", "model"])["estimate"].sum().groupby("shift").mean()
    each = [f"{share:.0%} under {shift}" for shift, share in own.items()]
    return f"The weather itself makes classifiers fail on {', '.join(each)}. {extent(bars['n'])} trajectories per shift; {note} in the csv"


def labels(right: dict, confused: pd.DataFrame, named: pd.DataFrame, *, note: str) -> str:
    """The caption of CLIP's labels: how often they are right, what is mistaken most, and what generated images are called at the end.

    `confused` holds the shares of labels by true weather, `named` those of generated images by shift and scale.
    """
    end = named[named["scale"] == named["scale"].max()]
    each = [f"{short(row.shift)} {row.estimate:.2f}" for row in end.itertuples()]
    shares = f"CLIP's label is right for {interval(right)} of {right['n']} reference pictures; {mistaken(confused)}, {missed(confused)}"
    return f"{shares}. At the last scale it is right for {', '.join(each)}. On the right {extent(named['n'])} trajectories; bands: {note}"


def mistaken(confused: pd.DataFrame) -> str:
    """Which weather is called by the name of another most often (as `confusion` gives the shares)."""
    wrong = confused[(confused["truth"] != confused["label"]) & (confused["label"] != UNKNOWN)]
    if not (wrong["estimate"] > 0).any():
        return "no picture gets the name of another weather"
    worst = wrong.loc[wrong["estimate"].idxmax()]
    return f"most mistaken is {short(worst['truth'])} as {short(worst['label'])}, {interval(worst)}"


def missed(confused: pd.DataFrame) -> str:
    """Which of the weathers that have a name is called unknown most often."""
    lost = confused[(confused["label"] == UNKNOWN) & confused["truth"].isin(confused["label"])]
    if not (lost["estimate"] > 0).any():
        return "none of the named weathers is called unknown"
    worst = lost.loc[lost["estimate"].idxmax()]
    return f"most often called unknown is {short(worst['truth'])}, {interval(worst)}"


def doubt_seen(doubt: pd.DataFrame) -> str:
    """Where CLIP says unknown, and where its label is right."""
    known = doubt.set_index(["severity", "label"])["estimate"]
    rows = list(dict.fromkeys(doubt["severity"]))
    each = [f"{name}: right {known[name, 'right']:.2f}, unknown {known[name, 'unknown']:.2f}" for name in rows]
    return f"Labels by true severity, as shares: {'; '.join(each)}."


def neighbours(alike: pd.DataFrame, images: int) -> str:
    """The caption of nearest neighbours."""
    own = alike.set_index("same")
    each = [f"the {name} in {own.loc[name, 'estimate']:.2f} (by chance {own.loc[name, 'chance']:.2f})" for name in ("class", "weather")]
    counted = f"n = {own['n'].max():,} neighbours among {images:,} generated images, by CLIP; real: the picture of median closeness"
    return f"Neighbours share {' and '.join(each)}. {counted}"


def severities(worth: pd.DataFrame, counts: tuple[str, str, int], *, note: str) -> str:
    """The caption of severities of equal accuracy; `counts` of trajectories and of garments, in words, and of classifiers."""
    sizes = f"mean over {counts[2]} classifiers; {counts[0]} trajectories, {counts[1]} rendered garments per shift"
    return f"Counted from the start of each, the last scale is worth the severity {ends(worth)}. {sizes}; bands: {note}"


def looked_up_seen(table: pd.DataFrame) -> str:
    """Where the looked-up severity of the reference leaves out the true mean, and whether the bend of the ladder's curve explains it.

    `table` as `claims.of_reference` gives it.
    """
    out = (table["true"] < table["low"]) | (table["true"] > table["high"])
    kept, missed = (
        [f"{short(name)} ({interval(row, '.3f')}, true {row['true']:.3f})" for name, row in table[side].iterrows()] for side in (~out, out)
    )
    first = f"The looked-up severity holds the true mean under {listed(kept)}, and leaves it out under {listed(missed)}."
    return f"{first} {bend_seen(table[out])}" if missed else first


def bend_seen(table: pd.DataFrame) -> str:
    """What a mixture of the true severities would be looked up as by the ladder's own curve, and how far what was found lies from it."""
    each = [f"{row['expected']:.2f} under {short(name)}" for name, row in table.iterrows()]
    gaps = [f"{interval({key: row[f'gap_{key}'] for key in ('estimate', 'low', 'high')}, '+.3f')}" for _, row in table.iterrows()]
    apart = (table["gap_low"] > 0) | (table["gap_high"] < 0)
    word = "does not explain it all" if apart.any() else "can explain it"
    expected = f"By the ladder's own curve such a mixture should be looked up at {listed(each)}"
    return f"{expected}; found minus that is {listed(gaps)}: the bend {word}."


def ends(worth: pd.DataFrame) -> str:
    """The relative severity of the last scale under each shift."""
    last = worth[(worth["compared"] == "relative") & (worth["scale"] == worth["scale"].max())]
    return ", ".join(f"{short(row['shift'])} {interval(row)}" for _, row in last.iterrows())


def answer(said: dict[str, pd.DataFrame], *, model: str, scale: float) -> str:
    """The notebook's answer; `said` are the statements on all and on kept images."""
    rows = {name: table.loc[EASIER].rename({"ours": "estimate"}) for name, table in said.items()}
    each = " and ".join(on_images(name, row) for name, row in rows.items())
    opening = OPENINGS[decided(rows["all"])]
    return f"{opening}: accuracy of {model} on generated minus accuracy on rendered weather is, at scale {scale:g}, {each}."


def decided(row: pd.Series) -> str:
    """Whether generated images are surely easier (same direction) or harder than the reference; nothing is said of few trajectories."""
    return UNMEASURED if row["n"] < LEAST_TRAJECTORIES else word(row["low"] > 0, row["high"] < 0)


def on_images(name: str, row: pd.Series) -> str:
    """The difference on one set of images with its trajectories; where these are few, that there is no verdict."""
    if (side := decided(row)) == UNMEASURED:
        return f"without a verdict on the {row['n']:.0f} {name} trajectories, which are too few"
    hurt = {SAME: "easier", OPPOSITE: "harder"}.get(side, side)
    return f"{interval(row, '+.2f')} on {name} {row['n']:.0f} trajectories ({hurt})"
