"""Severity calibration: what a slider's scale means to a ruler (extends CNS-Bench appendix H, 73 % of the steps raise the alignment).

A ruler is a column of readings, one row per image. Its mean reading, made monotone, is the map from scale to perceived severity.
All is resampled with the weights of `stats.accuracy`.

With the maps, accuracy and the orders of classifiers and shifts are put on perceived axes. Maps and errors must be about the same
trajectories and settings: then their resamples are paired. The nominal scale is a ruler among the others, the one that reads itself.

Two curves are matched by equal accuracy: which severity of one a scale of the other is worth. Errors are made monotone (isotonic
regression), so that each belongs to one severity. What lies beyond the ends of a curve is set to its end: a bound of 0 or 1 says
"at most" or "at least". The two sides are resampled independently.
"""

import dataclasses
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int
from scipy.optimize import isotonic_regression

from cnslib.core import tables
from cnslib.core.settings.method import Bootstrap
from cnslib.stats import accuracy, bootstrap, ranking
from cnslib.stats.accuracy import TINY, Outcomes, Shares
from cnslib.stats.bootstrap import percentiles


@dataclass(frozen=True)
class Readings:
    """What each ruler reads along the same trajectories, and whether the oracle names another shift than the one asked for."""

    naming: Outcomes
    rulers: list[str]
    readings: Float[np.ndarray, "trajectories rulers scales"]


def arrange(table: pd.DataFrame, rulers: list[str]) -> Readings:
    """Arranges a table of readings by trajectory. ValueError unless every trajectory has one row for each scale."""
    ordered = table.sort_values(tables.KEY)
    trajectories = ordered[tables.TRAJECTORY].drop_duplicates(ignore_index=True)
    scales = sorted(ordered["scale"].unique().tolist())
    grid = (len(trajectories), len(scales))
    if ordered.duplicated(tables.KEY).any() or len(ordered) != grid[0] * grid[1]:
        raise ValueError(f"readings: {len(ordered)} rows, one for each of {grid[0]} trajectories and {grid[1]} scales is needed")
    values = ordered[rulers].to_numpy(dtype=float).reshape(*grid, len(rulers)).transpose(0, 2, 1)
    wrong = (ordered["named"] != ordered["shift"]).to_numpy().reshape(grid[0], 1, grid[1])
    return Readings(Outcomes(trajectories, ["oracle"], scales, wrong), rulers, values)


def resample(found: Readings, values: np.ndarray, bins: list, *, settings: Bootstrap) -> Shares:
    """Means of values per shift and ruler, on the resamples of `stats.resample`."""
    return accuracy.resample(dataclasses.replace(found.naming, models=found.rulers), values, bins, settings=settings)


def tabulate(values: Float[np.ndarray, "resamples+1 groups rulers bins"], shares: Shares, bins: list) -> pd.DataFrame:
    """A tidy table (shift, ruler, scale, n, estimate, low, high), percentile intervals."""
    return accuracy.tabulate(values, shares, bins).rename(columns={"model": "ruler"})


def correlations(found: Readings, *, settings: Bootstrap) -> pd.DataFrame:
    """Pearson's and Spearman's correlation of scale and reading over all images of a shift; n counts trajectories."""
    rows = []
    for shift, places in found.naming.trajectories.groupby("shift").indices.items():
        weights, units = bootstrap.resampling_weights(found.naming.trajectories.iloc[places], settings=settings)
        weights = weights[:, units].repeat(len(found.naming.scales), axis=1)
        scale = np.tile(found.naming.scales, len(places))
        for k, ruler in enumerate(found.rulers):
            pair = scale, found.readings[places, k].ravel()
            sides = {"pearson": pair, "spearman": tuple(weighted_ranks(side, weights) for side in pair)}
            for name, (x, y) in sides.items():
                value = weighted_correlation(x, y, weights)
                numbers = bootstrap.correlation(value, len(places), settings.confidence)
                rows.append({"shift": shift, "ruler": ruler, "measure": name, **numbers})
    return pd.DataFrame(rows)


def weighted_ranks(values: Float[np.ndarray, "n"], weights: Float[np.ndarray, "resamples n"]) -> Float[np.ndarray, "resamples n"]:
    """Ranks in samples that hold each value as often as its weight says; equal values share their mean rank."""
    order = np.argsort(values, kind="stable")
    _, first, level = np.unique(values, return_index=True, return_inverse=True)
    starts = np.searchsorted(values[order], values[first])
    mass = np.add.reduceat(weights[:, order], starts, axis=1)
    return (mass.cumsum(1) - mass + (mass + 1) / 2)[:, level]


def weighted_correlation(x: np.ndarray, y: np.ndarray, weights: Float[np.ndarray, "resamples n"]) -> Float[np.ndarray, "resamples"]:
    """Pearson's correlation under each row of weights; NaN where one side does not vary."""
    total = weights.sum(1, keepdims=True)
    x, y = (values - (weights * values).sum(1, keepdims=True) / total for values in (x, y))
    spread = (weights * x * x).sum(1) * (weights * y * y).sum(1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(spread > TINY**2, (weights * x * y).sum(1) / np.sqrt(spread), np.nan)


def rising(found: Readings, *, settings: Bootstrap, start: float = 0.0) -> pd.DataFrame:
    """Share of steps between neighbouring scales, from `start` on, at which the reading rises, per shift and ruler."""
    begins = np.array(found.naming.scales[:-1]) >= start
    up = (np.diff(found.readings) > 0)[..., begins].mean(-1, keepdims=True)
    shares = resample(found, up, [0], settings=settings)
    return tabulate(shares.samples, shares, [0]).drop(columns="scale")


def rising_by_class(found: Readings, *, settings: Bootstrap) -> pd.DataFrame:
    """Share of rising steps per shift, class and ruler: one slider each."""
    parts = []
    for shift, places in found.naming.trajectories.groupby("shift").indices.items():
        classes = found.naming.trajectories.iloc[places].assign(shift=lambda part: part["class"])
        own = Readings(dataclasses.replace(found.naming, trajectories=classes), found.rulers, found.readings[places])
        table = rising(own, settings=settings).rename(columns={"shift": "class"})
        parts.append(table[table["class"] != accuracy.ALL].assign(shift=shift))
    return pd.concat(parts, ignore_index=True)


def means(found: Readings, *, settings: Bootstrap) -> Shares:
    """Mean reading per shift, ruler and scale with its resamples."""
    return resample(found, found.readings, found.naming.scales, settings=settings)


def monotone(mean: Shares) -> Shares:
    """The map from scale to perceived severity per shift and ruler: isotonic regression of the mean readings, resample by resample.

    Every scale has the same images, hence the same weight. The pooled shifts are left out, since a slider belongs to one shift.
    """
    readings = mean.samples[:, :-1].reshape(-1, len(mean.bins))
    known = ~np.isnan(readings).any(1)
    fitted = np.full_like(readings, np.nan)
    fitted[known] = np.apply_along_axis(lambda row: isotonic_regression(row).x, 1, readings[known])
    shape = (len(mean.samples), len(mean.groups) - 1, *mean.samples.shape[2:])
    return dataclasses.replace(mean, samples=fitted.reshape(shape), groups=mean.groups[:-1], n=mean.n[:-1])


def position(severity: Float[np.ndarray, "*maps scales"], wanted: Float[np.ndarray, "*maps wanted"]) -> Float[np.ndarray, "*maps wanted"]:
    """The inverse of a rising map: where it first reaches each wanted severity, 0 at the first scale, 1 at the second.

    Linear between scales; on a plateau its smallest scale. NaN outside of what the map reaches.
    """
    reached = severity[..., None, :] >= wanted[..., None]
    upper = reached.argmax(-1)
    lower = np.maximum(upper - 1, 0)
    below, above = (np.take_along_axis(severity, index, -1) for index in (lower, upper))
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(upper > 0, (wanted - below) / (above - below), 0.0)
    inside = reached.any(-1) & (wanted >= severity[..., :1])
    return np.where(inside, lower + share, np.nan)


def read(values: Float[np.ndarray, "*maps scales"], places: Float[np.ndarray, "*maps wanted"]) -> Float[np.ndarray, "*maps wanted"]:
    """Values at the positions that `position` finds, linear between scales; NaN where the position is."""
    lower = np.clip(np.nan_to_num(places).astype(int), 0, values.shape[-1] - 2)
    below, above = (np.take_along_axis(values, index, -1) for index in (lower, lower + 1))
    return below + (places - lower) * (above - below)


def scales_for(curve: pd.DataFrame, severity: Float[np.ndarray, "wanted"]) -> Float[np.ndarray, "wanted"]:
    """The smallest scale at which the map of one shift and ruler (columns scale, estimate) reaches each wanted severity.

    NaN for a severity that the slider does not show: below that at scale 0, or above that at the last scale.
    """
    ordered = curve.sort_values("scale")
    return read(ordered["scale"].to_numpy(), position(ordered["estimate"].to_numpy(), np.asarray(severity, dtype=float)))


def moving(mean: Shares) -> Bool[np.ndarray, "shifts rulers"]:
    """Whether the reading at the last scale lies above that at scale 0, with the interval of the difference above zero."""
    low, _ = percentiles((mean.samples[..., -1] - mean.samples[..., 0])[1:, :-1], mean.confidence)
    return low > TINY


def equal_steps(maps: Shares, moving: Bool[np.ndarray, "shifts rulers"], *, steps: int) -> pd.DataFrame:
    """Scales whose perceived severities are equally spaced from scale 0 to the last, per shift and ruler, with intervals.

    NaN where the reading does not rise (`moving`).
    """
    first, last = maps.samples[..., 0], maps.samples[..., -1]
    wanted = np.where((moving & (last - first > TINY))[..., None], np.linspace(first, last, steps + 1, axis=-1), np.nan)
    scales = np.broadcast_to(np.array(maps.bins), maps.samples.shape)
    found = tabulate(read(scales, position(maps.samples, wanted)), maps, list(range(steps + 1)))
    return found.rename(columns={"scale": "step"}).assign(severity=wanted[0].ravel())


def progress(maps: Shares, moving: Bool[np.ndarray, "shifts rulers"]) -> pd.DataFrame:
    """Share of a map's rise that is done at each scale, 0 at the first and 1 at the last; NaN where it does not rise (`moving`)."""
    done = maps.samples - maps.samples[..., :1]
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(moving[..., None] & (done[..., -1:] > TINY), done / done[..., -1:], np.nan)
    return tabulate(share, maps, maps.bins)


def summary(mean: Shares, maps: Shares) -> pd.DataFrame:
    """What a slider does to a ruler, per shift: the rise over all scales, and the scale by which half of it is done.

    `starts` and `ends` are the two ends of the scales on which a step rises with certainty (its interval lies above zero): before
    them nothing is known to rise, and beyond them the slider is saturated. `falls` counts the steps that fall with certainty.
    """
    samples = mean.samples[:, :-1]
    rise = tabulate(samples[..., [-1]] - samples[..., [0]], maps, [0]).drop(columns="scale")
    half = equal_steps(maps, moving(mean), steps=2).query("step == 1")[["estimate", "low", "high"]]
    low, high = percentiles(np.diff(samples)[1:], mean.confidence)
    scales, up = np.array(mean.bins), low > TINY
    starts = np.where(up.any(-1), scales[up.argmax(-1)], np.nan)
    ends = np.where(up.any(-1), scales[::-1][up[..., ::-1].argmax(-1)], np.nan)
    return rise.join(half.add_prefix("half_").reset_index(drop=True)).assign(
        starts=starts.ravel(), ends=ends.ravel(), falls=(high < -TINY).sum(-1).ravel()
    )


def typical(table: pd.DataFrame, ruler: str) -> pd.DataFrame:
    """The rows, by scale, of the trajectory whose readings come closest to the mean of its table."""
    readings = table.pivot(index=tables.TRAJECTORY, columns="scale", values=ruler)
    nearest = ((readings - readings.mean()) ** 2).sum(axis=1).idxmin()
    return table.set_index(tables.TRAJECTORY).loc[[nearest]].reset_index().sort_values("scale")


NOMINAL = "scale"
POINTS = 101  # severities at which two shifts are compared


def curves(errors: Shares, maps: Shares, moving: Bool[np.ndarray, "shifts rulers"]) -> pd.DataFrame:
    """Mean accuracy of the models at every scale that was drawn, beside what each ruler's map reads there (severity), per shift.

    Nothing lies between the points. NaN for a shift whose reading does not rise (`moving`), since it has no axis.
    """
    right, count = 1 - errors.samples[:, :-1].mean(2), len(errors.bins)
    columns = bootstrap.estimates(right, maps.n.repeat(count), maps.confidence)
    keys = {"shift": np.repeat(maps.groups, count), "scale": np.tile(errors.bins, len(maps.groups))}
    parts = []
    for place, (ruler, own) in enumerate(zip(maps.models, moving.T, strict=True)):
        table = pd.DataFrame({"ruler": ruler, **keys, "severity": maps.samples[0, :, place].ravel(), **columns})
        table.loc[~table["shift"].isin(np.array(maps.groups)[own]), ["estimate", "low", "high"]] = np.nan
        parts.append(table)
    return pd.concat(parts, ignore_index=True)


def over_axis(errors: Shares, maps: Shares) -> Float[np.ndarray, "resamples+1 shifts rulers models"]:
    """Accuracy of each model averaged along each ruler's axis, the area under its curve by the range; NaN where a map is flat."""
    right = 1 - errors.samples[:, :-1]
    middles = (right[..., 1:] + right[..., :-1]) / 2
    span = maps.samples[..., -1:] - maps.samples[..., :1]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(span > TINY, np.diff(maps.samples) / span, np.nan) @ middles.swapaxes(-1, -2)


def hardness(
    errors: Shares, maps: Shares, *, ruler: str, shifts: Bool[np.ndarray, "shifts"]
) -> Float[np.ndarray, "resamples+1 chosen_shifts"]:
    """How much more accuracy each shift costs than the others at equal severity: mean difference in drop, pair by pair.

    Two shifts are compared at the severities that both reach. Drops are averaged over the models. NaN where a shift shares no
    severity with any other.
    """
    fitted = maps.samples[:, shifts, maps.models.index(ruler)]
    drops = (errors.samples - errors.samples[..., :1])[:, :-1][:, shifts].mean(2)
    grid = np.broadcast_to(np.linspace(fitted[0].min(), fitted[0].max(), POINTS), (*fitted.shape[:2], POINTS))
    drop = read(drops, position(fitted, grid))
    seen, known = (~np.isnan(drop)).astype(float), np.nan_to_num(drop)
    with np.errstate(invalid="ignore", divide="ignore"):
        gaps = (known @ seen.swapaxes(1, 2) - seen @ known.swapaxes(1, 2)) / (seen @ seen.swapaxes(1, 2))
        others = ~np.isnan(gaps) & ~np.eye(shifts.sum(), dtype=bool)
        return np.where(others, gaps, 0).sum(2) / others.sum(2)


def comparable(errors: Shares, maps: Shares, *, ruler: str, shifts: Bool[np.ndarray, "shifts"]) -> Bool[np.ndarray, "shifts"]:
    """Those of the shifts whose range on the ruler's axis overlaps with that of another; the rest have no hardness."""
    found = shifts.copy()
    found[shifts] = ~np.isnan(hardness(errors, maps, ruler=ruler, shifts=shifts)[0])
    return found


def on_axes(errors: Shares, maps: Shares, moving: Bool[np.ndarray, "shifts rulers"]) -> dict[tuple[str, str], tuple[np.ndarray, ...]]:
    """What is ordered on each ruler's axis, beside the same on the nominal axis: mean accuracy of classifiers, hardness of shifts.

    By (what, ruler): the values on the nominal axis, on the ruler's, and the shifts used. Only shifts whose reading rises (`moving`)
    have an axis, and only `comparable` ones a hardness; both sides are formed on them. A ruler without enough of them is left out:
    one for the classifiers, two for the shifts.
    """
    accuracy, nominal = over_axis(errors, maps), maps.models.index(NOMINAL)
    found = {}
    for k, ruler in enumerate(maps.models):
        own = moving[:, k]
        if own.any():
            found["classifiers", ruler] = (*(accuracy[:, own, place].mean(1) for place in (nominal, k)), own)
        if own.sum() > 1 and (used := comparable(errors, maps, ruler=ruler, shifts=own)).sum() > 1:
            found["shifts", ruler] = (*(hardness(errors, maps, ruler=name, shifts=used) for name in (NOMINAL, ruler)), used)
    return dict(sorted(found.items(), key=lambda item: item[0][0]))


def orders(errors: Shares, maps: Shares, moving: Bool[np.ndarray, "shifts rulers"]) -> pd.DataFrame:
    """Kendall's tau between the order on the nominal axis and on each ruler's, of the classifiers and of the shifts.

    `items` counts what is ordered, `shifts` the shifts that have an axis, n their trajectories.
    """
    rows = []
    for (what, ruler), (nominal, own, used) in on_axes(errors, maps, moving).items():
        key = {"ruler": ruler, "order": what, "items": own.shape[1], "shifts": used.sum()}
        sides = nominal.round(9), own.round(9)  # rounding residues are no order
        rows.append({**key, **ranking.order_record(*sides, maps.n[used].sum(), maps.confidence)})
    return pd.DataFrame(rows, columns=["ruler", "order", "items", "shifts", "n", "estimate", "low", "high"])


def standings(errors: Shares, maps: Shares, moving: Bool[np.ndarray, "shifts rulers"]) -> pd.DataFrame:
    """What `orders` compares, on each ruler's own axis: mean accuracy of every classifier and hardness of every shift."""
    parts = []
    for (what, ruler), (_, own, used) in on_axes(errors, maps, moving).items():
        names, n = (errors.models, maps.n[used].sum()) if what == "classifiers" else (np.array(maps.groups)[used], maps.n[used])
        columns = {"name": names, **bootstrap.estimates(own, n, maps.confidence)}
        parts.append(pd.DataFrame({"order": what, "ruler": ruler, **columns}))
    return pd.concat(parts, ignore_index=True)


MEAN = "mean over classifiers"


def with_mean(errors: Shares) -> Shares:
    """The classifiers, and their mean as one more."""
    samples = np.concatenate([errors.samples, errors.samples.mean(2, keepdims=True)], 2)
    return dataclasses.replace(errors, samples=samples, models=[*errors.models, MEAN])


def relative(errors: Shares) -> Shares:
    """Share of the answers right at the first scale that are lost: 1 - accuracy / accuracy at the first scale."""
    start = 1 - errors.samples[..., :1]
    return dataclasses.replace(errors, samples=1 - (1 - errors.samples) / start)


def at_equal_error(
    curve: Shares, wanted: Float[np.ndarray, "resamples+1 groups models bins"]
) -> Float[np.ndarray, "resamples+1 groups models bins"]:
    """Where the monotone curve reaches each wanted error, linear between its bins, and its ends for errors beyond them."""
    rising = monotone(curve).samples
    clipped = np.clip(wanted, rising[..., :1], rising[..., -1:])
    bins = np.broadcast_to(np.array(curve.bins, float), rising.shape)
    return read(bins, position(rising, clipped))


def reached(curve: Shares, sought: Shares, *, n: Int[np.ndarray, "groups"], **counts: Int[np.ndarray, "groups"]) -> pd.DataFrame:
    """Where the curve reaches each error of the other shares, per shift and classifier, with intervals.

    `n` and `counts` are columns of what was counted; `beyond` says where even the end of the curve is more or less accurate.
    """
    wanted, ends = sought.samples[:, :-1], monotone(curve).samples[0]
    own = dataclasses.replace(sought, groups=sought.groups[:-1], n=n[:-1])
    found = accuracy.tabulate(at_equal_error(curve, wanted), own, sought.bins)
    outside = np.select([wanted[0] < ends[..., :1], wanted[0] > ends[..., -1:]], ["below", "above"], "")
    others = {name: np.repeat(count[:-1], wanted[0, 0].size) for name, count in counts.items()}
    return found.assign(**others, beyond=outside.ravel())


def severities(drawn: Shares, ladder: Shares) -> pd.DataFrame:
    """The severity on the ladder at which accuracy equals that at each slider scale; n counts trajectories, `n_ladder` garments."""
    return reached(ladder, drawn, n=drawn.n, n_ladder=ladder.n)


def scales(drawn: Shares, reference: Shares) -> pd.DataFrame:
    """The slider scale at which accuracy falls to that on the reference; n counts trajectories, `n_reference` its pictures."""
    return reached(drawn, reference, n=drawn.n, n_reference=reference.n).drop(columns="scale")


def differences(drawn: Shares, reference: Shares) -> pd.DataFrame:
    """Accuracy at each scale minus that on the reference: above zero where the generated images are easier (section 4.3)."""
    return accuracy.tabulate(reference.samples - drawn.samples, drawn, drawn.bins)
