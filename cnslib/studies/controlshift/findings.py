"""What Control+Shift found (sections 4.2 and 4.3): each finding one number with its interval, beside what the paper says.

All numbers come from the same resamples, which all classifiers share, so differences of classifiers are paired.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
from jaxtyping import Float

from cnslib.core import tables
from cnslib.core.settings.method import Bootstrap
from cnslib.plots.captions.words import interval
from cnslib.stats import accuracy, axes, verdicts
from cnslib.stats.accuracy import ALL, Outcomes, Shares, over_images
from cnslib.studies.controlshift.distance import along, slope

AUGMENTED = " + RandAugment"
ARMS = ("plain", "RandAugment")
STRONG, WEAK = "resnet20", ("svm", "mixer", "vit")  # the paper's own four, by inductive bias (Fig. 5, centre)
BIASED = "overlap"  # the shift under which it compares them
STRONGEST, MILDER = "truncation", ("extend", "overlap")  # section 4.1
Values = Float[np.ndarray, "resamples+1"]


def standard(answers: pd.DataFrame) -> Outcomes:
    """The first run of every classifier on the standard training sets; those with augmentation have names of their own."""
    rows = answers[(answers["run"] == 1) & answers["training"].isin(["truncation", "half sphere"])]
    model = rows["network"] + np.where(rows["augmented"], AUGMENTED, "")
    return accuracy.outcomes(rows[[*tables.KEY, "top1"]].assign(model=model))


def averaged(shares: Shares, groups: dict[str, list[str]]) -> Shares:
    """The same shares averaged over groups of classifiers."""
    samples = np.stack([shares.samples[:, :, axes.columns(shares, names)].mean(2) for names in groups.values()], 2)
    return replace(shares, models=list(groups), samples=samples)


def arms(models: list[str]) -> dict[str, list[str]]:
    """Networks that were trained in both ways: without and with augmentation."""
    augmented = [name for name in models if name.endswith(AUGMENTED)]
    return dict(zip(ARMS, ([name.removesuffix(AUGMENTED) for name in augmented], augmented), strict=True))


def by_set(answers: pd.DataFrame, reference: str, *, settings: Bootstrap) -> Shares:
    """Errors of one network trained on the half sphere, on twice as many images of it, and on the whole sphere; runs are averaged."""
    rows = answers[(answers["network"] == reference) & ~answers["augmented"] & (answers["training"] != "truncation")]
    model = rows["training"] + " " + rows["run"].astype(str)
    errors = accuracy.error_shares(accuracy.outcomes(rows[[*tables.KEY, "top1"]].assign(model=model)), settings=settings)
    return averaged(errors, {name: sorted(set(model[rows["training"] == name])) for name in sorted(set(rows["training"]))})


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
    values = {
        "decline": last_drop(errors, single),
        **{f"strongest_{milder}": hardest - last_drop(errors, single, shift=milder) for milder in MILDER},
        "augmented": last_drop(errors, augmented),
        "baseline": starts(errors, augmented) - starts(errors, partners),
        "augmentation": mean_slope(slopes, augmented) - mean_slope(slopes, partners),
        "size": average_drop(sets, "half sphere") - average_drop(sets, "large"),
        "support": average_drop(sets, "large") - average_drop(sets, "full support"),
        "complete": average_drop(sets, "full support"),
        "bias": mean_slope(slopes, strong, shift=BIASED) - mean_slope(slopes, weak, shift=BIASED),
    }
    return {name: over_images(own, sets if name in ("size", "support", "complete") else errors) for name, own in values.items()}


def against(found: dict[str, dict], published: pd.DataFrame) -> pd.DataFrame:
    """Our numbers beside the paper's statements (id, finding, quantity, published, tolerance): a number, "above 0" or "about 0"."""
    table = published.set_index("id").loc[list(found)]
    own = table[["finding", "quantity"]].join(pd.DataFrame(found).T)
    return verdicts.beside(own, table["published"], tolerance=table["tolerance"].fillna(0.0))


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


def tally(own: pd.DataFrame, everybody: pd.DataFrame) -> str:
    """What became of the claims, and how many hold when classifiers that learned nothing take part, too."""
    held = int(everybody["verdict"].isin(verdicts.CONFIRMED).sum())
    return f"Of the paper's claims: {verdicts.counted(own['verdict'])}; if classifiers that learned nothing take part, {held} hold"


def by_training(slopes: pd.DataFrame) -> pd.DataFrame:
    """The slopes of the networks that were trained in both ways, with the columns model and training."""
    augmented = slopes["model"].str.endswith(AUGMENTED)
    names = slopes["model"].str.removesuffix(AUGMENTED)
    both = slopes.assign(training=augmented.map(dict(zip((False, True), ARMS, strict=True))), model=names)
    return both[both.groupby("model")["training"].transform("size") == 2]


def drop_words(errors: Shares, models: list[str]) -> str:
    """Accuracy at step 0 and at the last step of every shift, mean over some classifiers."""
    right = 1 - errors.samples[0][:, axes.columns(errors, models)].mean(1)
    said = [f"{group} {row[0]:.2f} to {row[-1]:.2f}" for group, row in zip(errors.groups[:-1], right, strict=False)]
    return f"Accuracy falls from step 0 to the last, mean over the classifiers: {', '.join(said)}"


def loss_words(results: dict[str, dict]) -> str:
    """How much accuracy the classifiers lose at the last step, and under which shift."""
    lost, extend, overlap = (results[name] for name in ("decline", "strongest_extend", "strongest_overlap"))
    said = f"At the last step classifiers lose {interval(lost)} of accuracy"
    ahead = [record["estimate"] for record in (extend, overlap)]
    if np.isnan(ahead).any():
        return said
    sides = {True: "most", False: "least"}
    place = sides[min(ahead) > 0] if (min(ahead) > 0) == (max(ahead) > 0) else "neither most nor least"
    return f"{said}, {place} of it under truncation, which is the strongest shift of the paper"


def line_words(fits: pd.DataFrame) -> str:
    """How much of the change of accuracy a line in the distance explains, shift by shift (as `distance.linearity`)."""
    shares = fits.set_index("shift")["estimate"].drop(ALL)
    return f"a line in the distance explains {', '.join(f'{share:.2f} ({shift})' for shift, share in shares.items())} of the change"


def set_words(sets: Shares) -> str:
    """Average drop of one network after each training set."""
    lost = {name: average_drop(sets, name)[0] for name in sets.models}
    said = [f"{drop:.2f} after {name}" for name, drop in sorted(lost.items(), key=lambda item: item[1])]
    return f"Averaged over the steps it loses {', '.join(said)}"


def steepest(slopes: Shares) -> str:
    """The classifiers with the flattest and the steepest slope over all shifts."""
    own = pd.Series(slopes.samples[0, slopes.groups.index(ALL), :, 0], slopes.models).sort_values()
    return (
        f"{own.index[0]} loses accuracy fastest with distance ({own.iloc[0]:.2f} per unit), {own.index[-1]} slowest ({own.iloc[-1]:+.2f})"
    )
