"""The out-of-class filter (notebook 04): captions, sentences on what its figures show, and the answer of the page.

Records are those of `method.filtering`; rates are of dropping out-of-class images, the positive class.
"""

import numpy as np
import pandas as pd

from cnslib.plots.captions.words import answered, extremes, interval, listed, numbered


def labels(outside: pd.Series, labelled: int, shifted: int) -> str:
    """How many images are labelled and out of class, and which shifts have none; `outside` counts the latter by shift."""
    without = outside.index[outside == 0]
    first = f"{labelled:,} of {shifted:,} shifted images are labelled, {outside.sum():,} of them out of class."
    return f"{first} There is none under {listed(without)}." if len(without) else f"{first} There are some under every shift."


def answer(ours: dict[str, dict], baseline: dict[str, dict], kept: dict) -> str:
    """The answer of the page: what is kept, what the vote removes, and what CLIP alone does; records by measure."""
    whole = f"{interval(kept, '.0%')} of {kept['n']:,} trajectories are kept: they start in class and pass the vote at every scale"
    if not ours["tpr"]["n"]:
        return answered(f"{whole}. No labelled image is out of class, so the vote drops nothing.")
    bad, good = (f"{interval(ours[rate], '.1%')} of {ours[rate]['n']:,}" for rate in ("tpr", "fpr"))
    alone = f"CLIP alone removes {baseline['tpr']['estimate']:.1%} and {baseline['fpr']['estimate']:.1%}."
    return answered(f"{whole}. The vote removes {bad} out-of-class images, and with them {good} good ones. {alone}")


def detectors_seen(areas: pd.DataFrame, labelled: pd.DataFrame, limits: dict[str, float]) -> str:
    """Which detector orders the images best and worst, and what the text with the shift does where there is little of it.

    `areas` has a row per detector, `labelled` the alignments of the images and whether they are out of class.
    """
    if areas.empty:
        return "Images of one kind alone cannot be ordered."
    ranked = areas.sort_values("estimate")
    worst, best = (f"`{row['detector']}`, {interval(row)}" for _, row in ranked.iloc[[0, -1]].iterrows())
    first = labelled[~labelled["oracle_ooc"] & (labelled["scale"] == labelled["scale"].min())]
    alarm = (first["clip_class_shift"] <= limits["clip_class_shift"]).mean()
    little = f"At scale {labelled['scale'].min():g}, where there is little of the shift, `clip_class_shift` alone would drop {alarm:.0%}"
    return f"The largest area is that of {best}, the smallest that of {worst}. {little} of the good images."


def roc_seen(curves: pd.DataFrame, ours: dict[str, dict]) -> str:
    """Whether the vote's dot lies above all curves, at its own share of good images that are dropped (detector, fpr, tpr)."""
    if curves.empty:
        return "Without images of both kinds there is no curve."
    fpr, rate = ours["fpr"]["estimate"], ours["tpr"]
    at = {name: float(np.interp(fpr, own["fpr"].astype(float), own["tpr"].astype(float))) for name, own in curves.groupby("detector")}
    best = max(at, key=lambda name: at[name])
    where = "below" if rate["high"] < at[best] else "above" if rate["low"] > at[best] else "not clearly apart from"
    return (
        f"The vote finds {interval(rate)} of the out-of-class images; its dot is {where} the best curve there, `{best}` ({at[best]:.2f})."
    )


def passes(sweep: pd.DataFrame, rule: int, *, note: str) -> str:
    """The caption of the number of tests that must pass: what the benchmark's own rule keeps and drops, and of how many of each."""
    own = sweep[sweep["passes"] == rule].set_index("measure")
    kept, good = (own.loc[measure, "estimate"] for measure in ("kept", "fpr"))
    finding = f"With {numbered(rule, 'test')} to pass {kept:.0%} of the trajectories stay, and {good:.0%} of the good images go"
    bad, fine, whole = (f"{own.loc[measure, 'n']:,}" for measure in ("tpr", "fpr", "kept"))
    return f"{finding}. n = {bad} images out of class, {fine} in class and {whole} trajectories; bands: {note}; grey: our rule"


def passes_seen(sweep: pd.DataFrame) -> str:
    """What each number of tests keeps and drops (passes, measure, estimate)."""
    wide = sweep.pivot(index="passes", columns="measure", values="estimate")
    rows = (f"{passes}: {row['kept']:.0%} kept, {row['fpr']:.0%} of the good images dropped" for passes, row in wide.iterrows())
    return f"Trajectories kept by the number of tests: {'; '.join(rows)}."


def kept_seen(counts: pd.Series, total: int) -> str:
    """Of which shift most and fewest trajectories are kept; `counts` by shift, of `total` each."""
    most, least = extremes(counts.fillna(0), ".0f")
    return f"Of {total} trajectories per shift, most are kept under {most} and fewest under {least}."


def outcomes_seen(shares: pd.DataFrame) -> str:
    """Under how many shifts more is lost than caught at the last scale (rows shift and scale, columns caught, lost, missed)."""
    last = shares.xs(shares.index.get_level_values("scale").max(), level="scale")
    more, most = int((last["lost"] > last["caught"]).sum()), last["lost"].max()
    first = f"At the last scale more good images are lost than bad ones caught under {more} of {len(last)} shifts"
    if not most:
        return f"{first}; none is lost."
    return f"{first}; most are lost under {listed(last.index[last['lost'] == most])}, {most:.0%} of all pictures of a shift at that scale."


def doubtful(by_shift: pd.DataFrame, *, named: float, step: float) -> str:
    """Which shifts are named too rarely, and which rise too much in one step by any reading (shift, measure, estimate)."""
    wide = by_shift.pivot(index="shift", columns="measure", values="estimate")
    each = wide.filter(like="step of")
    readings, steps = each.columns.str.replace("step of ", ""), each.max(axis=1)
    rare, jumps = wide.index[wide["named"] < named], steps[steps > step].sort_values(ascending=False)
    by = dict(zip(each.index, readings[each.to_numpy().argmax(1)], strict=True))
    told = listed(f"{shift} ({value:.2f} of {by[shift]})" for shift, value in jumps.items())
    return f"Named in fewer than {named:.0%} of the pictures: {listed(rare)}. More than {step:g} of a rise in one step: {told}."


def roc(outside: pd.Series, recall: float) -> str:
    """The caption of the ROC curves; `outside` tells of every labelled image whether it is out of class."""
    return f"{outside.sum():,} of {len(outside):,} images out of class; grey: recall {recall:.0%}"


def outcomes(images: int) -> str:
    """The caption of what happens to the images of a shift and scale."""
    return f"n = {images} images per shift and scale; out of class: caught, missed; in class: lost"


def gallery(scale: float) -> str:
    """The caption of the pictures by outcome."""
    below = "under each picture its class, and the probability that the oracle gives it"
    return f"Kept and lost are in class, missed and caught out of class; {below}. Scale {scale:g}, drawn at random"


def gallery_seen(picked: dict[str, pd.DataFrame]) -> str:
    """The middle probability of the class in every group of shown pictures that has any."""
    middle = [f"{kind} {table['class_probability'].median():.2f}" for kind, table in picked.items() if len(table)]
    return f"The median probability of the class, by the oracle: {', '.join(middle)}."
