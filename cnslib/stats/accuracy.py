"""Accuracy, accuracy drop, CE and rCE, each number with n and an interval (CNS-Bench section 3.3).

Every statistic is computed on the same resamples, for all classifiers at once: intervals are clustered, because the images of one
seed share their initial noise (see `stats.bootstrap`), and paired, because all classifiers see the same images. `shares` gives
the errors on images without a shift that no training has seen: from the answers to each image, or from published accuracies.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int, Shaped
from statsmodels.stats.proportion import proportion_confint

from cnslib.core import tables
from cnslib.core.names import UNSHIFTED, demand
from cnslib.core.settings.method import Bootstrap
from cnslib.stats.bootstrap import Range, estimates, reaching_zero, record, records, resampling_weights, too_few

ALL = "all shifts"  # images pooled over the shifts, each image with the same weight
MEAN = "mean over shifts"
MEAN_MODEL = "mean over models"
NEVER = "never"
TINY = 1e-9  # rounding residue of a difference of two shares
LEAST_TRAJECTORIES, LEAST_LOSS, LEAST_ERRORS = 50, 0.05, 3  # of the reference under a shift, so that a quotient means something
RULE = (
    f"shifts with at least {LEAST_TRAJECTORIES} trajectories under which the reference loses at least {LEAST_LOSS:g} of accuracy, "
    f"averaged over the scales, and at least {LEAST_ERRORS} standard errors"
)


@dataclass(frozen=True)
class Outcomes:
    """Which images each model misclassifies, along the same trajectories."""

    trajectories: pd.DataFrame  # shift, class, seed; one row per first axis of `wrong`
    models: list[str]
    scales: list[float]
    wrong: Bool[np.ndarray, "trajectories models scales"]


@dataclass(frozen=True)
class Shares:
    """Shares of trajectories per group (every shift, then ALL); row 0 is the sample itself, the others are its resamples.

    `sums`, where they are known, are those of each unit (see `sums_of`), which row 0 adds up and divides by n. They are of these samples
    alone, so `dataclasses.replace` forgets them.
    """

    samples: Float[np.ndarray, "resamples+1 groups models bins"]
    groups: list[str]
    n: Int[np.ndarray, "groups"]  # trajectories
    models: list[str]
    bins: list
    confidence: float
    sums: Float[np.ndarray, "units groups models bins"] | None = field(default=None, init=False)


def outcomes(predictions: pd.DataFrame, kept: pd.DataFrame | None = None) -> Outcomes:
    """Arranges predictions by trajectory; with `kept` (shift, class, seed) only those trajectories count.

    Unshifted rows are repeated under every shift. Raises ValueError where a trajectory has no row or more than one for a model
    and scale, where a kept trajectory was not predicted, and where none is left.
    """
    shifts = sorted(set(predictions["shift"].unique()) - {UNSHIFTED})
    wrong = np.asarray(predictions["top1"]) != np.asarray(predictions["class"])
    rows = predictions[[*tables.TRAJECTORY, "model", "scale"]].assign(wrong=wrong)
    rows = tables.trajectories(rows, shifts) if (rows["shift"] == UNSHIFTED).any() else rows
    if kept is not None:
        rows = tables.select(rows, kept[kept["shift"].isin(shifts)], tables.TRAJECTORY, "predictions of kept trajectories")
    if rows.empty:
        raise ValueError("predictions: no trajectory is left; the filter kept none of them")
    keys = (tables.TRAJECTORY, ["model"], ["scale"])
    numbers, (trajectories, models, scales) = zip(*(tables.numbered(rows, key) for key in keys), strict=True)
    wrong = np.zeros([len(trajectories), len(models), len(scales)], bool)
    found = Outcomes(trajectories, models["model"].tolist(), scales["scale"].tolist(), wrong)
    cells = np.ravel_multi_index(numbers, wrong.shape)
    require_grid(rows, cells, found)
    wrong.flat[cells] = rows["wrong"]
    return found


def require_grid(rows: pd.DataFrame, cells: Int[np.ndarray, "rows"], found: Outcomes) -> None:
    """Raises ValueError unless every trajectory has one row per model and scale; shows a key that is twice, or the counts."""
    counts = np.bincount(cells, minlength=found.wrong.size)
    if counts.max() > 1:
        first = rows[[*tables.TRAJECTORY, "model", "scale"]].iloc[np.argmax(cells == counts.argmax())]
        raise ValueError(f"predictions: {(counts - 1).clip(0).sum()} rows appear twice, first {tuple(first)}")
    if counts.min() == 0:
        fewest = counts.reshape(found.wrong.shape).sum(0)
        model, scale = np.unravel_index(fewest.argmin(), fewest.shape)
        lost = found.trajectories.iloc[np.argmin(counts.reshape(found.wrong.shape)[:, model, scale])]
        needed = f"one for each of {len(found.wrong)} trajectories is needed, but none is of {lost['class']!r} under {lost['shift']!r}"
        raise ValueError(f"predictions: {fewest.min()} rows of model {found.models[model]!r} at scale {found.scales[scale]:g}, {needed}")


def error_shares(found: Outcomes, *, settings: Bootstrap) -> Shares:
    """Error rate per shift, model and scale with its resamples."""
    return resample(found, found.wrong, found.scales, settings=settings)


def resample(found: Outcomes, values: Shaped[np.ndarray, "trajectories models bins"], bins: list, *, settings: Bootstrap) -> Shares:
    """Means of `values` per group over resamples of what was drawn together (see `stats.bootstrap`)."""
    weights, units = resampling_weights(found.trajectories, settings=settings)
    shift, shifts = pd.factorize(found.trajectories["shift"], sort=True)
    parts = [(weights[:, units[shift == i]], values[shift == i]) for i in range(len(shifts))]
    sums = np.stack([np.tensordot(weight, part.astype(float), 1) for weight, part in parts], 1)
    counts = np.stack([weight.sum(1) for weight, _ in parts], 1)
    sums, counts = (np.concatenate([array, array.sum(1, keepdims=True)], 1) for array in (sums, counts))
    with np.errstate(invalid="ignore"):  # where no unit is left there is no share
        shares = sums / counts[..., None, None]
    result = Shares(shares, [*shifts, ALL], counts[0].astype(int), found.models, bins, settings.confidence)
    object.__setattr__(result, "sums", sums_of(values, units, shift))  # the class is frozen
    return result


def sums_of(
    values: Shaped[np.ndarray, "trajectories models bins"], units: Int[np.ndarray, "trajectories"], shift: Int[np.ndarray, "trajectories"]
) -> Float[np.ndarray, "units groups models bins"]:
    """The sum of `values` over each unit's trajectories, per shift and over all of them; NaN where it has none."""
    size = (units.max() + 1, shift.max() + 1)
    sums, counts = np.zeros((*size, *values.shape[1:])), np.zeros(size)
    np.add.at(sums, (units, shift), values)
    np.add.at(counts, (units, shift), 1)
    each = np.where(counts[..., None, None] > 0, sums, np.nan)
    return np.concatenate([each, sums.sum(1, keepdims=True)], 1)


def accuracy(errors: Shares) -> pd.DataFrame:
    """Share of correctly classified images per shift, model and scale."""
    return unanimous(tabulate(1 - errors.samples, errors, errors.bins), errors.confidence)


def unanimous(table: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """A table of shares, with Wilson's interval of n cases where all are alike: resamples of such know no other, as in `bootstrap.rate`.

    Cases of one seed count one by one; with fixed classes that is nearly what simulations ask (tests/stats/test_coverage_single.py).
    """
    same = table["estimate"].isin([0.0, 1.0]) & table["low"].eq(table["high"])
    found = (table["estimate"] * table["n"]).where(same), table["n"].where(same)
    low, high = proportion_confint(*found, alpha=1 - confidence, method="wilson")
    return table.assign(low=table["low"].mask(same, low), high=table["high"].mask(same, high))


def accuracy_drop(errors: Shares) -> pd.DataFrame:
    """Accuracy at scale 0 minus accuracy at each scale (section 5.2), absolute; negative where a shift helps."""
    return tabulate(falls(errors.samples), errors, errors.bins)


def drop_against(errors: Shares, *, reference: str) -> pd.DataFrame:
    """Accuracy drop minus the reference model's on the same images: a `paired` difference, positive where it loses more."""
    place = model_index(errors, reference)
    return paired(lambda rates: falls(rates) - falls(rates)[:, :, [place]], errors, bins=errors.bins)


def falls(rates: Float[np.ndarray, "rows groups models bins"]) -> Float[np.ndarray, "rows groups models bins"]:
    """Error rates, or numbers of errors, minus those at the first scale."""
    return rates - rates[..., :1]


def paired(change: Callable[..., np.ndarray], *sides: Shares, bins: list, models: list | None = None) -> pd.DataFrame:
    """A table as `tabulate` of a difference on the same images: `change` of the samples of `sides`, linear in them.

    The interval reaches 0 where too few units differ to tell a side (`bootstrap.too_few`), if it is known what each unit adds.
    """
    table = tabulate(change(*(side.samples for side in sides)), sides[0], bins, models=models)
    sums = [side.sums for side in sides if side.sums is not None]
    if len(sums) < len(sides):
        return table
    return reaching_zero(table, np.ravel(too_few(change(*sums), sides[0].confidence)))


def drop_beyond(errors: Shares) -> pd.DataFrame:
    """Accuracy drop under each shift minus that over all of them, per model and for their mean: above 0 under the harder shifts."""
    drops = falls(errors.samples)
    beyond = drops - drops[:, -1:]
    with_mean = np.concatenate([beyond, beyond.mean(2, keepdims=True)], 2)
    return tabulate(with_mean, errors, errors.bins, models=[*errors.models, MEAN_MODEL])


def hardest(errors: Shares) -> pd.DataFrame:
    """The drop at the last scale under each shift, mean over the models, and how probable it is that none costs more.

    The probability is the share of those resamples that have a trajectory under every shift; shifts that are level there share it, and
    those of the shifts add up to 1. The hardest shift of the sample is hardest partly by luck, which its own interval does not know.
    """
    drops = (errors.samples[:, :-1, :, -1] - errors.samples[:, :-1, :, 0]).mean(2)
    known = drops[1:][~np.isnan(drops[1:]).any(1)]
    first = np.isclose(known, known.max(1, keepdims=True), rtol=0, atol=TINY) if len(known) else np.full((1, drops.shape[1]), np.nan)
    probability = (first / first.sum(1, keepdims=True)).mean(0)
    table = pd.DataFrame({"shift": errors.groups[:-1], **estimates(drops, errors.n[:-1], errors.confidence), "probability": probability})
    return table.sort_values("estimate", ascending=False, ignore_index=True)


def exemplars(ordered: pd.DataFrame) -> list[str]:
    """The hardest, the middle and the mildest shift of a table by `hardest`, which stand for all where a figure has room for three.

    Only shifts with enough trajectories count (`LEAST_TRAJECTORIES`), if three have them.
    """
    enough = ordered[ordered["n"] >= LEAST_TRAJECTORIES]
    shifts = (enough if len(enough) > 2 else ordered)["shift"].tolist()
    return list(dict.fromkeys([shifts[0], shifts[len(shifts) // 2], shifts[-1]]))


def over_shifts(shares: Shares) -> Shares:
    """The mean over the shifts, in which each weighs the same, as the only group MEAN; pooled, a few shifts may supply half of all rows."""
    with np.errstate(invalid="ignore"):
        samples = np.nanmean(shares.samples[:, :-1], axis=1, keepdims=True)
    return Shares(samples, [MEAN], shares.n[-1:], shares.models, shares.bins, shares.confidence)


def averaged(shares: Shares, groups: dict[str, list[str]]) -> Shares:
    """The same shares averaged over groups of models, such as the trainings of one network."""
    samples = np.stack([shares.samples[:, :, [shares.models.index(name) for name in names]].mean(2) for names in groups.values()], 2)
    return replace(shares, models=list(groups), samples=samples)


def mean_accuracy(errors: Shares) -> pd.DataFrame:
    """Accuracy averaged over the models, per shift and scale."""
    right = 1 - errors.samples.mean(2, keepdims=True)
    return unanimous(tabulate(right, errors, errors.bins, models=[MEAN_MODEL]), errors.confidence)


def corruption_error(errors: Shares, *, reference: str) -> pd.DataFrame:
    """CE (Table 4): errors summed over all scales, divided by the reference model's sum; per shift and averaged over shifts.

    The paper does not say whether scale 0 is in the sum. It is here, which agrees slightly better with Tables 4 and 5.
    """
    return error_ratio(errors.samples.mean(-1), errors, reference=reference, trajectories=1)


def relative_corruption_error(errors: Shares, *, reference: str) -> pd.DataFrame:
    """rCE (Eq. 6): accuracy drops summed over the scales, divided by the reference model's sum; then the mean over shifts."""
    drops = falls(errors.samples).mean(-1)
    return error_ratio(drops, errors, reference=reference, trajectories=LEAST_TRAJECTORIES)


def error_ratio(
    losses: Float[np.ndarray, "resamples+1 groups models"], errors: Shares, *, reference: str, trajectories: int
) -> pd.DataFrame:
    """Ratios of mean losses to the reference model's, under the shifts where that says something (`RULE`, with this many trajectories).

    A shift that fails the rule has NaN and `defined` False. The mean runs over the defined shifts, the same ones for every
    model; `shifts` counts them, and the mean is `defined` only if all are. A resample whose denominator is not positive
    counts as infinitely large, and a bound that becomes infinite by it is NaN.
    """
    above, below = losses[:, :-1], losses[:, :-1, [model_index(errors, reference)]]
    own, spread = below[0, :, 0], below[1:, :, 0].std(0)
    defined = (errors.n[:-1] >= trajectories) & (own >= LEAST_LOSS) & (own >= LEAST_ERRORS * spread)
    ratio = np.divide(above, below, out=np.full(above.shape, np.inf), where=below > TINY)
    ratio[np.broadcast_to(np.isnan(below), ratio.shape)] = np.nan
    ratio[:, ~defined] = np.nan
    mean = ratio[:, defined].mean(1, keepdims=True) if defined.any() else ratio[:, :1]
    table = tabulate(np.concatenate([ratio, mean], 1)[..., None], errors, [0], groups=[*errors.groups[:-1], MEAN])
    used = dict(zip(errors.groups[:-1], defined.astype(int), strict=True)) | {MEAN: int(defined.sum())}
    table["shifts"] = table["shift"].map(used)
    table.loc[table["shift"] == MEAN, "n"] = errors.n[:-1][defined].sum()
    table["defined"] = table["shifts"] == np.where(table["shift"] == MEAN, len(defined), 1)
    return table.drop(columns="scale")


def headline(errors: Shares, *, reference: str, suffix: str = "") -> dict:
    """Records for a metrics file: mean accuracy at the first and last scale, and per model the drop at the last, CE and rCE."""
    ends, drops = mean_accuracy(errors), accuracy_drop(errors)
    ends = ends[ends["shift"] == ALL].iloc[[0, -1]]
    per_model = {"drop": drops[(drops["shift"] == ALL) & (drops["scale"] == errors.bins[-1])]}
    for name, measure in {"ce": corruption_error, "rce": relative_corruption_error}.items():
        ratios = measure(errors, reference=reference)
        per_model[name] = ratios[ratios["shift"] == MEAN]
    found = {f"accuracy_scale_{scale:g}": row for scale, row in records(ends, "scale").items()}
    found |= {name: records(table, "model") for name, table in per_model.items()}
    return {f"{name}{suffix}": value for name, value in found.items()}


def over_images(samples: Float[np.ndarray, "resamples+1"], shares: Shares, *, within: Range | None = None) -> dict:
    """One number that is computed from the shares, with its interval, as a record; n counts the trajectories of all shifts."""
    return record(samples, shares.n[-1], shares.confidence, within=within)


def model_index(errors: Shares, reference: str) -> int:
    """Where the reference model stands; ValueError names an unknown one and the accepted ones."""
    demand(reference in errors.models, "accuracy.reference", reference, ", ".join(errors.models))
    return errors.models.index(reference)


def tabulate(
    values: np.ndarray, shares: Shares, bins: list, *, groups: list | None = None, models: list | None = None, within: Range | None = None
) -> pd.DataFrame:
    """A tidy table (shift, model, scale, n, estimate, low, high) of [resamples+1, groups, models, bins], with `bootstrap.bounds`."""
    names = [groups or shares.groups, models or shares.models, bins]
    places = np.indices(values.shape[1:]).reshape(3, -1)
    keys = {key: pd.Index(own)[place] for key, own, place in zip(["shift", "model", "scale"], names, places, strict=True)}
    return pd.DataFrame(keys | estimates(values, np.repeat(shares.n, values[0, 0].size), shares.confidence, within=within))


GROUP = "catalog"
SUMMARY = "heldout.csv"  # model, n, accuracy: where answers to single images are not known


def shares(folder: Path, *, settings: Bootstrap) -> Shares:
    """Error rates on the held-out images of an evaluation's folder, with resamples of what was drawn together.

    No two of these images share anything but their class, whatever their seeds are: "other objects" stand for "the same classes".
    Where only accuracies are known (`SUMMARY`), the resamples are binomial: the images are independent, and which of them two
    classifiers share is lost. Raises FileNotFoundError where there is neither, ValueError as `stats.outcomes` does.
    """
    files = sorted((folder / "heldout").glob("*.parquet"))
    if not files and (folder / SUMMARY).exists():
        return from_accuracies(pd.read_csv(folder / SUMMARY), settings=settings)
    answers = tables.read_answers(files)
    return error_shares(outcomes(answers.assign(shift=GROUP)), settings=settings.one_by_one)


def from_accuracies(table: pd.DataFrame, *, settings: Bootstrap) -> Shares:
    """Error rates from accuracies (model, n, accuracy), which share one n; the same seed gives the same resamples."""
    table = table.sort_values("model", ignore_index=True)
    n, errors = int(table["n"].iloc[0]), 1 - table["accuracy"].to_numpy()
    drawn = np.random.default_rng(settings.seed).binomial(n, errors, (settings.resamples, len(table))) / n
    samples = np.vstack([errors, drawn])[:, None, :, None].repeat(2, axis=1)
    return Shares(samples, [GROUP, ALL], np.array([n, n]), table["model"].tolist(), [0.0], settings.confidence)


def spread(found: Shares, models: list[str]) -> Shares:
    """The same for all of `models`, in their order; one whose accuracy is not known has NaN."""
    if found.models == models:
        return found
    samples = np.full((*found.samples.shape[:2], len(models), 1), np.nan)
    for place, name in enumerate(models):
        if name in found.models:
            samples[:, :, place] = found.samples[:, :, found.models.index(name)]
    return Shares(samples, found.groups, found.n, models, found.bins, found.confidence)
