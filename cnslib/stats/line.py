"""Accuracy on the line: how far accuracy under a shift follows accuracy without one (CNS-Bench supplement F, Figs. 20 to 24).

Too few images scatter ID accuracy and flatten the line; a resample flattens it once more, so intervals are reflected.

A point is a model: ID accuracy without a shift, OOD accuracy under one. `low` and `high` say what other images would change, the models
given (the line is drawn anew in every resample); `models_low` and `models_high` say what other models of the same kinds would change.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.stats
from jaxtyping import Bool, Float, Int
from scipy.stats import norm

from cnslib.core.names import demand
from cnslib.core.settings.method import Bootstrap
from cnslib.stats.accuracy import ALL, LEAST_TRAJECTORIES, TINY, Shares, over_images, tabulate
from cnslib.stats.accuracy import shares as held_out_shares
from cnslib.stats.bootstrap import ANYWHERE, SHARE, Range, holm, percentiles

AXES = ("linear", "probit")
NONE = "all kept"  # no family left out
LEAST = 3  # models that a line with a test needs
LINES = ("line of all classifiers", "line of the supervised ones")


@dataclass(frozen=True)
class Points:
    """ID and OOD accuracy of every model, and where they stand on the chosen axes (x and y); resample 0 is the sample."""

    shares: Shares  # the OOD errors: names of groups, models and bins, n and confidence
    scales: list[float]
    axes: str
    images: Int[np.ndarray, "#groups"]  # behind each ID accuracy
    id: Float[np.ndarray, "resamples+1 #groups models #scales"]
    ood: Float[np.ndarray, "resamples+1 groups models scales"]
    x: Float[np.ndarray, "resamples+1 #groups models #scales"]
    y: Float[np.ndarray, "resamples+1 groups models scales"]


def catalog_shares(folder: Path, *, settings: Bootstrap) -> Shares:
    """Errors on the catalog's held-out images. Those are not the images of the benchmark, so their resamples are other draws."""
    return held_out_shares(folder, settings=settings.apart(1))


def points(errors: Shares, catalog: Shares | None = None, *, axes: str = "linear") -> Points:
    """The points of every shift and scale. ID accuracy is that on the catalog; without one, that at scale 0 of the same trajectories.

    With a catalog scale 0 is a shift like the others, from renders to generated images. On probit axes shares of 0 and 1, which lie
    at infinity, are moved in by half an image. Raises ValueError for other axes, too few models, and models that do not match.
    """
    demand(axes in AXES, "axes", axes, ", ".join(AXES))
    demand(len(errors.models) >= LEAST, "line", errors.models, f"at least {LEAST} models")
    if catalog is None:
        start, n, first = 1 - errors.samples[..., :1], errors.n, 1
    else:
        demand(catalog.models == errors.models, "line: models of the catalog", catalog.models, f"those of the shifts, {errors.models}")
        start, n, first = 1 - catalog.samples[:, -1:, :, :1], catalog.n[-1:], 0
    ood = 1 - errors.samples[..., first:]
    return Points(errors, errors.bins[first:], axes, n, start, ood, on_axes(start, n, axes), on_axes(ood, errors.n, axes))


def on_axes(share: Float[np.ndarray, "resamples+1 groups models scales"], n: np.ndarray, axes: str) -> np.ndarray:
    """Shares on linear or probit axes; `n` counts the images of each group."""
    edge = 0.5 / n[:, None, None]
    return share if axes == "linear" else norm.ppf(np.clip(share, edge, 1 - edge))


def moments(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums of squares and products about the means along the axis of the models: xx, xy, yy."""
    dx, dy = x - x.mean(2, keepdims=True), y - y.mean(2, keepdims=True)
    return (dx * dx).sum(2), (dx * dy).sum(2), (dy * dy).sum(2)


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """A quotient that is NaN where the denominator vanishes: models that all have one accuracy draw no line."""
    numerator, denominator = np.broadcast_arrays(numerator, denominator)
    return np.divide(numerator, denominator, out=np.full(numerator.shape, np.nan), where=denominator > TINY**2)


def chosen(found: Points, drawn: Bool[np.ndarray, "models"] | None) -> tuple[np.ndarray, np.ndarray]:
    """x and y of the models that draw the line: all of them unless told otherwise."""
    own = np.ones(len(found.shares.models), bool) if drawn is None else np.asarray(drawn)
    demand(own.sum() >= LEAST, "models that draw the line", int(own.sum()), f"at least {LEAST}")
    return found.x[:, :, own], found.y[:, :, own]


def fit(found: Points, drawn: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Slope and intercept of the least-squares line of every resample, group and scale."""
    x, y = chosen(found, drawn)
    xx, xy, _ = moments(x, y)
    slope = ratio(xy, xx)
    return slope, y.mean(2) - slope * x.mean(2)


def slopes(found: Points, drawn: np.ndarray | None = None) -> pd.DataFrame:
    """The line of every shift and scale: slope with both intervals, intercept, R with Fisher's interval, p value and Holm's correction.

    The correction runs over all shifts and scales; the images of all shifts together are no further test.
    """
    slope, intercept = fit(found, drawn)
    x, y = (values[0] for values in chosen(found, drawn))
    table = along(slope, found, within=ANYWHERE).assign(models=y.shape[1], intercept=intercept[0].ravel())
    xx, xy, yy = (values[0] for values in moments(x[None], y[None]))
    deviation = np.sqrt(ratio((yy - slope[0] * xy).clip(0) / (y.shape[1] - 2), xx))
    half = scipy.stats.t.ppf((1 + found.shares.confidence) / 2, y.shape[1] - 2) * deviation
    table["models_low"], table["models_high"] = (slope[0] - half).ravel(), (slope[0] + half).ravel()
    flat = (np.broadcast_to(xx, yy.shape) <= TINY**2) | (yy <= TINY**2)
    with np.errstate(invalid="ignore", divide="ignore"):
        tested = scipy.stats.pearsonr(*(np.where(flat[:, None], np.nan, values) for values in (x, y)), axis=1)
        low, high = tested.confidence_interval(found.shares.confidence)
    columns = {"r": tested.statistic, "r_low": low, "r_high": high, "p": tested.pvalue}
    table = table.assign(**{name: values.ravel() for name, values in columns.items()})
    return table.assign(p_holm=table.groupby(table["shift"] == ALL)["p"].transform(holm))


def along(values: Float[np.ndarray, "resamples+1 groups scales"], found: Points, *, within: Range | None = None) -> pd.DataFrame:
    """A table (shift, scale, n, estimate, low, high) of something that belongs to no single model."""
    return tabulate(values[:, :, None], found.shares, found.scales, models=["line"], within=within).drop(columns="model")


def without_noise(moment: Float[np.ndarray, "resamples+1 ..."]) -> Float[np.ndarray, "resamples+1 ..."]:
    """A sum of squares or products without what the limited number of images adds: the mean over resamples minus the sample.

    The sample holds that noise once, a resample twice.
    """
    noise = np.nanmean(moment[1:], 0) - moment[0]
    return np.concatenate([moment[:1] - noise, moment[1:] - 2 * noise])


def noise_free(found: Points, drawn: np.ndarray | None = None) -> pd.DataFrame:
    """R of the accuracies that endless images would show. Too few images leave no variance; then R is not known.

    Unknown is NaN, as is a bound that lies among such resamples.
    """
    xx, xy, yy = (without_noise(moment) for moment in moments(*chosen(found, drawn)))
    r = ratio(xy, np.sqrt(xx.clip(0) * yy.clip(0)))
    r[1:] = np.where(np.isnan(r[1:]) & ~np.isnan(xy[1:]), np.inf, r[1:])
    return along(np.where(np.isinf(r), r, r.clip(-1, 1)), found)


def gain(found: Points, drawn: np.ndarray | None = None) -> Float[np.ndarray, "resamples+1 groups models scales"]:
    """OOD accuracy above the line (effective robustness): what ID accuracy does not explain, in accuracy on either axes."""
    slope, intercept = fit(found, drawn)
    expected = intercept[:, :, None] + slope[:, :, None] * found.x
    return found.ood - (expected if found.axes == "linear" else norm.cdf(expected))


def gains(found: Points, drawn: np.ndarray | None = None) -> pd.DataFrame:
    """Gain of every model per shift and scale, after removing the fit (Fig. 24)."""
    return tabulate(gain(found, drawn), found.shares, found.scales, within=ANYWHERE)


def above(values: np.ndarray, found: Points) -> np.ndarray:
    """The single shifts and the scales above 0; what is the same for all shifts or scales stays as it is."""
    shifts = values[:, :-1] if values.shape[1] > 1 else values
    return shifts[..., np.array(found.scales) > 0] if values.shape[-1] > 1 else shifts


def overall(values: Float[np.ndarray, "resamples+1 groups models scales"], found: Points) -> Float[np.ndarray, "resamples+1 models"]:
    """Mean over the shifts, each with the same weight, and the scales above 0."""
    return above(values, found).mean((1, 3))


def mean_gains(found: Points, drawn: np.ndarray | None = None) -> pd.DataFrame:
    """Gain of every model, averaged over all shifts and the scales above 0 (Fig. 24)."""
    values = overall(gain(found, drawn), found)
    rows = [{"model": m, **over_images(values[:, i], found.shares, within=ANYWHERE)} for i, m in enumerate(found.shares.models)]
    return pd.DataFrame(rows)


def gain_difference(found: Points, first: str, second: str, drawn: np.ndarray | None = None) -> dict:
    """Mean gain of the first model minus that of the second, paired, as a record."""
    one, other = (found.shares.models.index(name) for name in (first, second))
    values = overall(gain(found, drawn), found)
    return over_images(values[:, one] - values[:, other], found.shares, within=ANYWHERE)


def mask(models: list[str], names: list[str]) -> Bool[np.ndarray, "models"]:
    """Which models are not among the names."""
    return ~np.isin(models, names)


def left_out(found: Points, families: dict[str, list[str]]) -> pd.DataFrame:
    """Slopes without each family of models, and how they differ from the line through all (paired); `NONE` is that line.

    A model of no family is one by itself. A line that hangs on one family shows here.
    """
    models = found.shares.models
    alone = sorted(set(models) - {name for members in families.values() for name in members})
    present = {name: own for name, own in families.items() if set(own) & set(models)}
    everyone: dict[str, list[str]] = {NONE: []} | present | {name: [name] for name in alone}
    full, parts = fit(found)[0], []
    for name, own in everyone.items():
        slope = fit(found, mask(models, own))[0]
        change = along(slope - full, found, within=ANYWHERE)[["estimate", "low", "high"]].add_prefix("change_")
        parts.append(along(slope, found, within=ANYWHERE).assign(left_out=name, models=int(mask(models, own).sum())).join(change))
    return pd.concat(parts, ignore_index=True)


def leverage(found: Points) -> pd.DataFrame:
    """ID accuracy of every model and its weight on the line (hat value); `heavy` above twice the mean, 2 / models."""
    x = found.x[0, -1, :, 0]
    deviation = (x - x.mean()) ** 2
    hat = 1 / len(x) + ratio(deviation, deviation.sum())
    rows = [{"model": model, **over_images(found.id[:, -1, i, 0], found.shares)} for i, model in enumerate(found.shares.models)]
    return pd.DataFrame(rows).assign(n=found.images[-1], leverage=hat, heavy=hat > 4 / len(x))


def steeper(found: Points, drawn: np.ndarray | None = None) -> dict:
    """Slope at the last scale minus slope at the first, all shifts together, as a record."""
    slope = fit(found, drawn)[0][:, -1]
    return over_images(slope[:, -1] - slope[:, 0], found.shares, within=ANYWHERE)


def followed(found: Points, drawn: np.ndarray | None = None) -> dict:
    """Share of shifts and scales above 0 whose line rises with an uncorrected p value below 1 - confidence (Fig. 21), as a record."""
    x, y = chosen(found, drawn)
    xx, xy, yy = moments(x, y)
    t = scipy.stats.t.ppf((1 + found.shares.confidence) / 2, y.shape[2] - 2)
    r = above(ratio(xy, np.sqrt(xx * yy)), found)
    return over_images(np.mean(r > t / np.sqrt(t**2 + y.shape[2] - 2), (1, 2)), found.shares, within=SHARE)


def scatter(found: Points, *, shift: str, scale: float) -> pd.DataFrame:
    """The points of one shift and scale as they stand on the axes, in accuracy, with intervals and what the line expects of them."""
    group, column = found.shares.groups.index(shift), found.scales.index(scale)
    placed = (found.id, found.ood) if found.axes == "linear" else (norm.cdf(found.x), norm.cdf(found.y))
    start, ood = (np.broadcast_to(values, found.ood.shape)[:, group, :, column] for values in placed)
    expected = (found.ood - gain(found))[0, group, :, column]
    table = pd.DataFrame({"shift": shift, "scale": scale, "axes": found.axes, "model": found.shares.models, "n": found.shares.n[group]})
    for name, values in {"id": start, "ood": ood}.items():
        low, high = percentiles(values[1:], found.shares.confidence)
        table = table.assign(**{name: values[0], f"{name}_low": low, f"{name}_high": high})
    return table.assign(expected=expected)


def exemplars(table: pd.DataFrame) -> dict[tuple[str, float], str]:
    """Titles by (shift, scale): all shifts at both ends of the scale, and at the last the shifts with the largest and the smallest R.

    `table` is that of `slopes`. Of the single shifts only those with enough trajectories count, if two have them.
    """
    first, last = table["scale"].min(), table["scale"].max()
    single = table[(table["scale"] == last) & (table["shift"] != ALL)].sort_values("r", ascending=False)
    enough = single[single["n"] >= LEAST_TRAJECTORIES]
    ends = (enough if len(enough) > 1 else single)["shift"]
    chosen = [(ALL, first), (ALL, last), (ends.iloc[0], last), (ends.iloc[-1], last)]
    return {(shift, scale): f"{shift}, scale {scale:g}" for shift, scale in chosen}


def scatters(found: dict[str, Points], panels: Iterable[tuple[str, float]]) -> pd.DataFrame:
    """`scatter` of some shifts and scales on all axes."""
    return pd.concat([scatter(own, shift=shift, scale=scale) for own in found.values() for shift, scale in panels])


def gains_by_line(found: dict[str, Points], supervised: Bool[np.ndarray, "models"]) -> pd.DataFrame:
    """`mean_gains` over the line of all models and over that of the supervised ones (`LINES`), on all axes."""
    drawn = dict(zip(LINES, (None, supervised), strict=True))
    parts = [mean_gains(own, by).assign(line=name, axes=axes) for name, by in drawn.items() for axes, own in found.items()]
    return pd.concat(parts)


def slopes_by_members(found: Points, independent: Bool[np.ndarray, "models"]) -> pd.DataFrame:
    """The lines over all shifts at the first and the last scale, of all models and without those that are not independent."""
    kinds = {"all classifiers": None, f"without {(~independent).sum()} of the generator's pool": independent}
    drawn = pd.concat({name: slopes(found, own) for name, own in kinds.items()}, names=["line of"]).reset_index("line of")
    ends = drawn[(drawn["shift"] == ALL) & drawn["scale"].isin([found.scales[0], found.scales[-1]])]
    return ends.set_index(["scale", "line of"]).sort_index()
