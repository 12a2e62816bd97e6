"""What Control+Shift found (sections 4.2 and 4.3): each finding one number with its interval, beside what the paper says.

All numbers come from the same resamples, which all classifiers share, so differences of classifiers are paired.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
from jaxtyping import Float

from cnslib.core import tables
from cnslib.core.settings.method import Bootstrap
from cnslib.plots.captions.words import interval, listed, numbered
from cnslib.stats import accuracy, axes, bootstrap, verdicts
from cnslib.stats.accuracy import ALL, Outcomes, Shares, over_images
from cnslib.studies.controlshift.distance import along, slope

AUGMENTED = " + RandAugment"
ARMS = ("plain", "RandAugment")
STRONG, WEAK = "resnet20", ("svm", "mixer", "vit")  # the paper's own four, by inductive bias (Fig. 5, centre)
BIASED = "overlap"  # the shift under which it compares them
STRONGEST, MILDER = "truncation", ("extend", "overlap")  # section 4.1
STANDARD, LARGE, FULL = "standard", "twice as many", "full support"
NAMED = {"half sphere": STANDARD, "large": LARGE, "full support": FULL}  # the training sets that are compared, for a reader
Values = Float[np.ndarray, "resamples+1"]


def standard(answers: pd.DataFrame) -> Outcomes:
    """The first run of every classifier on the standard training sets; those with augmentation have names of their own."""
    rows = answers[(answers["run"] == 1) & answers["training"].isin(["truncation", "half sphere"])]
    model = rows["network"] + np.where(rows["augmented"], AUGMENTED, "")
    return accuracy.outcomes(rows[[*tables.KEY, "top1"]].assign(model=model))


def arms(models: list[str]) -> dict[str, list[str]]:
    """Networks that were trained in both ways: without and with augmentation."""
    augmented = [name for name in models if name.endswith(AUGMENTED)]
    return dict(zip(ARMS, ([name.removesuffix(AUGMENTED) for name in augmented], augmented), strict=True))


def by_set(answers: pd.DataFrame, reference: str, *, settings: Bootstrap) -> Shares:
    """Errors of one network trained on the half sphere, on twice as many images of it, and on the whole sphere; runs are averaged."""
    rows = answers[(answers["network"] == reference) & ~answers["augmented"] & (answers["training"] != "truncation")]
    training = rows["training"].map(NAMED)
    model = training + " " + rows["run"].astype(str)
    errors = accuracy.error_shares(accuracy.outcomes(rows[[*tables.KEY, "top1"]].assign(model=model)), settings=settings)
    return accuracy.averaged(errors, {name: sorted(set(model[training == name])) for name in NAMED.values() if (training == name).any()})


def steepness(found: Outcomes, away: pd.DataFrame, *, space: str, settings: Bootstrap) -> Shares:
    """Robustness slopes with their resamples, one bin; `away` holds the distances of the images, `space` says in what."""
    change, distance, errors = along(found, away.rename(columns={space: "distance"}), settings=settings)
    return replace(errors, samples=slope(distance, change)[..., None], bins=[0.0])


def against_distance(errors: Shares, means: pd.DataFrame, *, space: str) -> pd.DataFrame:
    """Change of accuracy from step 0 with its interval, beside the 1-NN distance of the step (Fig. 6)."""
    table = accuracy.tabulate(errors.samples[..., :1] - errors.samples, errors, errors.bins)
    return table.merge(means[["shift", "scale", space]].rename(columns={space: "distance"}), on=["shift", "scale"])


def last_drop(errors: Shares, models: list[str], *, shift: str = ALL) -> Values:
    """Accuracy drop at the last step, averaged over some classifiers; NaN where there is no such shift or no classifier."""
    if shift not in errors.groups or not models:
        return np.full(len(errors.samples), np.nan)
    samples = errors.samples[:, errors.groups.index(shift), axes.columns(errors, models)]
    return (samples[..., -1] - samples[..., 0]).mean(1)


def starts(errors: Shares, models: list[str]) -> Values:
    """Accuracy at step 0, all shifts, averaged over some classifiers; NaN where there is none."""
    if not models:
        return np.full(len(errors.samples), np.nan)
    return 1 - errors.samples[:, errors.groups.index(ALL), axes.columns(errors, models), 0].mean(1)


def average_drop(errors: Shares, model: str) -> Values:
    """Accuracy drop of one classifier, all shifts, averaged over the steps above 0."""
    samples = errors.samples[:, errors.groups.index(ALL), errors.models.index(model)]
    return (samples[:, 1:] - samples[:, :1]).mean(1)


def share_of(part: Values, whole: Values) -> Values:
    """A part of an accuracy drop as a share of it; NaN where nothing is lost for certain: then there is nothing to share."""
    return part / whole if (whole > 0).all() else np.full(len(whole), np.nan)


def mean_slope(slopes: Shares, models: list[str], *, shift: str = ALL) -> Values:
    """Slopes averaged over some classifiers; NaN where there is no such shift or no classifier."""
    if shift not in slopes.groups or not models:
        return np.full(len(slopes.samples), np.nan)
    return slopes.samples[:, slopes.groups.index(shift), axes.columns(slopes, models), 0].mean(1)


def learned(errors: Shares, least: float) -> list[str]:
    """Classifiers with at least this accuracy at step 0, all shifts: who has learned nothing can lose nothing."""
    start = 1 - errors.samples[0, errors.groups.index(ALL), :, 0]
    return [name for name, accuracy in zip(errors.models, start, strict=True) if accuracy >= least]


def findings(errors: Shares, slopes: Shares, sets: Shares, *, least: float) -> dict[str, dict]:
    """Every finding as a record, oriented so that the paper's direction is positive; n counts trajectories.

    Classifiers below `least` take no part, see `learned`; an augmented one takes part only beside its partner.
    """
    able = learned(errors, least)
    single = [name for name in able if AUGMENTED not in name]
    strong, weak = ([name for name in single if name in own] for own in ((STRONG,), WEAK))
    partners, augmented = arms([name for name in able if name.removesuffix(AUGMENTED) in single]).values()
    hardest = last_drop(errors, single, shift=STRONGEST)
    standard, large, full = (average_drop(sets, name) for name in (STANDARD, LARGE, FULL))
    values = {
        "decline": last_drop(errors, single),
        **{f"strongest_{milder}": hardest - last_drop(errors, single, shift=milder) for milder in MILDER},
        "augmented": last_drop(errors, augmented),
        "baseline": starts(errors, augmented) - starts(errors, partners),
        "augmentation": mean_slope(slopes, augmented) - mean_slope(slopes, partners),
        "size": share_of(standard - large, standard),
        "support": large - full,
        "complete": share_of(full, standard),
        "bias": mean_slope(slopes, strong, shift=BIASED) - mean_slope(slopes, weak, shift=BIASED),
    }
    return {name: over_images(own, sets if name in ("size", "support", "complete") else errors) for name, own in values.items()}


def against(found: dict[str, dict], published: pd.DataFrame) -> pd.DataFrame:
    """Our numbers beside the paper's statements (id, finding, quantity, published, tolerance): a number, "above 0" or "about 0".

    A statement that `unmeasured` gives a reason for gets no verdict.
    """
    table = published.set_index("id").loc[list(found)]
    own = table[["finding", "quantity"]].join(pd.DataFrame(found).T)
    judged = verdicts.beside(own, table["published"], tolerance=table["tolerance"].fillna(0.0))
    return verdicts.set_aside(judged, table["unmeasured"])


def levels(errors: Shares, slopes: Shares) -> pd.DataFrame:
    """Accuracy at step 0 and at the last step of every shift, what is lost between, and the slope over all shifts, per classifier.

    A drop can be small because there was little to lose; the levels tell.
    """
    ends = 1 - errors.samples[0][..., [0, -1]]
    parts = {(group, end): ends[i, :, j] for i, group in enumerate(errors.groups) for j, end in enumerate(("step 0", "last step"))}
    table = pd.DataFrame(parts, index=pd.Index(errors.models, name="model"))
    for i, group in enumerate(errors.groups):
        table[group, "lost"] = ends[i, :, 0] - ends[i, :, 1]
    table = table.sort_index(axis=1, ascending=[True, False])
    return table.assign(slope=slopes.samples[0, slopes.groups.index(ALL), :, 0])


def idle(errors: Shares, least: float) -> list[str]:
    """Classifiers that are not among the `learned`."""
    able = learned(errors, least)
    return [name for name in errors.models if name not in able]


def learned_words(errors: Shares, least: float, chance: float) -> str:
    """How many classifiers have learned enough to take part, and where the weakest of them starts."""
    start = pd.Series(1 - errors.samples[0, errors.groups.index(ALL), :, 0], errors.models)
    able, left = learned(errors, least), idle(errors, least)
    out = f"; not {listed(left)}" if left else ""
    first = f"{len(able)} of {len(start)} classifiers reach an accuracy of {least:g} at step 0{out}"
    return f"{first}. The weakest start is that of {start.idxmin()}, {start.min():.2f}; guessing gives {chance:.2f}."


def tally(own: pd.DataFrame, everybody: pd.DataFrame, left: list[str]) -> str:
    """What became of the tests, of how many claims, which got no verdict, and how many hold when those that learned nothing take part."""
    against = own.loc[own["verdict"] == verdicts.OPPOSITE, "finding"]
    same = f"; the opposite ones contradict {against.nunique()} of the claims" if against.duplicated().any() else ""
    tests, told = numbered(len(own), "test"), numbered(own["finding"].nunique(), "claim")
    unmeasured = own.loc[own["verdict"] == verdicts.UNMEASURED, "finding"].unique()
    none = f"; without a verdict: that {listed(unmeasured)}" if len(unmeasured) else ""
    said = f"{tests} of {told} of the paper: {verdicts.counted(own['verdict'])}{same}{none}"
    held = int(everybody["verdict"].isin(verdicts.CONFIRMED).sum())
    return f"{said}; with {listed(left)}, who learned nothing, {held} hold" if left else said


def by_training(slopes: pd.DataFrame) -> pd.DataFrame:
    """The slopes of the networks that were trained in both ways, with the columns model and training."""
    augmented = slopes["model"].str.endswith(AUGMENTED)
    names = slopes["model"].str.removesuffix(AUGMENTED)
    both = slopes.assign(training=augmented.map(dict(zip((False, True), ARMS, strict=True))), model=names)
    return both[both.groupby("model")["training"].transform("size") == 2]


def drop_words(errors: Shares, models: list[str]) -> str:
    """Accuracy at step 0 and at the last step of every shift, and what is lost between, mean over some classifiers."""
    right = 1 - errors.samples[0][:, axes.columns(errors, models)].mean(1)
    lost = [interval(over_images(last_drop(errors, models, shift=group), errors)) for group in errors.groups[:-1]]
    said = [f"{group} {row[0]:.2f} to {row[-1]:.2f}, by {drop}" for group, row, drop in zip(errors.groups, right, lost, strict=False)]
    return f"Accuracy falls from step 0 to the last, mean over the classifiers: {'; '.join(said)}"


def loss_words(results: dict[str, dict]) -> str:
    """How much accuracy is lost at the last step without augmentation, and whether truncation, the paper's hardest, costs most or least."""
    lost, *ahead = (results[name] for name in ("decline", "strongest_extend", "strongest_overlap"))
    said = f"At the last step classifiers trained without augmentation lose {interval(lost)} of accuracy (n = {lost['n']})"
    if np.isnan([record["estimate"] for record in ahead]).any():
        return said
    if all(record["high"] < 0 for record in ahead):
        return f"{said}, surely least of it under truncation, where the paper's lose most"
    if all(record["low"] > 0 for record in ahead):
        return f"{said}, surely most of it under truncation, as in the paper"
    return f"{said}; whether truncation costs most, as in the paper, is undecided"


def line_words(fits: pd.DataFrame) -> str:
    """How much of the change of accuracy a line in the distance explains, shift by shift (as `distance.linearity`)."""
    shares = fits.set_index("shift")["estimate"].drop(ALL)
    return f"a line in the distance explains {', '.join(f'{share:.2f} ({shift})' for shift, share in shares.items())} of the change"


def set_words(sets: Shares) -> str:
    """Average drop of one network after each training set."""
    lost = {name: over_images(average_drop(sets, name), sets) for name in sets.models}
    said = [f"{interval(drop)} with '{name}'" for name, drop in sorted(lost.items(), key=lambda item: item[1]["estimate"])]
    return f"Averaged over the steps it loses {', '.join(said)}"


def steepest(slopes: Shares) -> str:
    """The classifiers with the steepest and the flattest slope over all shifts, and how many of the others each surely exceeds.

    Of those that were trained in both ways, which stand in the figure; of all where there are none.
    """
    shown = [name for own in arms(slopes.models).values() for name in own] or slopes.models
    own = slopes.samples[:, slopes.groups.index(ALL), axes.columns(slopes, shown), 0]
    ends = {"loses accuracy fastest with distance": int(own[0].argmin()), "slowest": int(own[0].argmax())}
    said = []
    for (words, place), side in zip(ends.items(), (1, -1), strict=True):
        low, _ = bootstrap.bounds(side * (own - own[:, [place]]), slopes.confidence, None)
        record, others = over_images(own[:, place], slopes), own.shape[1] - 1
        said.append(f"{shown[place]} {words} ({interval(record)} per unit), surely so beside {(low > 0).sum()} of {others} others")
    return "; ".join(said)


def bridge_words(tau: dict[str, dict]) -> str:
    """Whether the order of the classifiers by slope agrees with that on the benchmark more than chance would, all shifts pooled."""
    record = tau[ALL]
    told_by = {
        verdicts.SAME: "the two orders agree more than chance would",
        verdicts.OPPOSITE: "the two orders are rather reversed",
        verdicts.UNDECIDED: "it is undecided whether the two orders agree",
    }
    said = told_by[verdicts.word(record["low"] > 0, record["high"] < 0)]
    return f"Pooled over the shifts {said}: Kendall's tau {interval(record)}"


def bridge_seen(tau: dict[str, dict], slopes: Shares) -> str:
    """The same shift by shift, and how many of the benchmark's classifiers lose anything with distance at all."""
    each = [f"{interval(record)} under {group}" for group, record in tau.items() if group != ALL]
    low, high = bootstrap.bounds(slopes.samples[:, slopes.groups.index(ALL), :, 0], slopes.confidence, None)
    falls, rises, count = int((high < 0).sum()), int((low > 0).sum()), len(slopes.models)
    empty = ": where few lose anything, an order by what is lost says little" if falls < count / 2 else ""
    return f"By shift tau is {listed(each)}. {falls} of {count} slopes are surely below zero, {rises} surely above{empty}."
