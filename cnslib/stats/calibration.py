"""Severity calibration: what a slider's scale means to a ruler (extends CNS-Bench appendix H, 73 % of the steps raise the alignment).

A ruler is a column of readings, one row per image; its mean reading, made monotone, is the map from scale to perceived severity.
"""

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float
from scipy.optimize import isotonic_regression

from cnslib.core import tables
from cnslib.core.settings.method import Bootstrap
from cnslib.stats import accuracy, bootstrap, ranking
from cnslib.stats.accuracy import ALL, TINY, by_shift, interval
from cnslib.stats.bootstrap import percentiles

NOMINAL = "scale"
POINTS = 101  # severities at which two shifts are compared


def readings(table: pd.DataFrame, rulers: list[str]) -> xr.DataArray:
    """What each ruler reads along each trajectory, [trajectory, ruler, scale]. ValueError unless each has one row for each scale."""
    ordered = table.sort_values(tables.KEY)
    rows = ordered.drop_duplicates(tables.TRAJECTORY)
    scales = np.sort(table["scale"].unique())
    if ordered.duplicated(tables.KEY).any() or len(ordered) != len(rows) * len(scales):
        raise ValueError(f"readings: {len(ordered)} rows, one for each of {len(rows)} trajectories and {len(scales)} scales is needed")
    values = ordered[rulers].to_numpy(float).reshape(len(rows), len(scales), -1).transpose(0, 2, 1)
    labels = {key: ("trajectory", rows[key].to_numpy()) for key in tables.TRAJECTORY}
    return xr.DataArray(values, labels | {"ruler": rulers, "scale": scales}, ["trajectory", "ruler", "scale"])


def correlations(readings: xr.DataArray, *, settings: Bootstrap) -> pd.DataFrame:
    """Pearson's and Spearman's correlation of scale and reading over all images of a shift; n counts trajectories."""
    rows = []
    for shift, group in readings.groupby("shift"):
        keys = pd.DataFrame({key: group[key].to_numpy() for key in tables.TRAJECTORY})
        weights, units = bootstrap.resampling_weights(keys, settings=settings)
        weights, scale = weights[:, units].repeat(group.sizes["scale"], axis=1), np.tile(group["scale"], len(keys))
        for ruler in group["ruler"].to_numpy():
            pair = scale, group.sel(ruler=ruler).to_numpy().ravel()
            for name, (x, y) in {"pearson": pair, "spearman": [weighted_ranks(side, weights) for side in pair]}.items():
                record = bootstrap.joined(weighted_correlation(x, y, weights), len(keys), settings.confidence)
                rows.append({"shift": shift, "ruler": ruler, "measure": name, **record})
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


def rising(readings: xr.DataArray, *, settings: Bootstrap) -> pd.DataFrame:
    """Share of steps between neighbouring scales at which the reading rises, per shift and ruler."""
    return interval(by_shift((readings.diff("scale") > 0).mean("scale"), settings))


def monotone_maps(means: xr.DataArray) -> xr.DataArray:
    """The map from scale to perceived severity per shift and ruler: isotonic regression of the mean readings, resample by resample."""

    def fit(row: np.ndarray) -> np.ndarray:
        return row if np.isnan(row).any() else isotonic_regression(row).x

    core = [["scale"]]
    return xr.apply_ufunc(fit, means.drop_sel(shift=ALL), input_core_dims=core, output_core_dims=core, vectorize=True)


def moving(means: xr.DataArray) -> xr.DataArray:
    """Whether the reading at the last scale lies above that at scale 0, with the interval of the difference above zero."""
    rise = (means.isel(scale=-1) - means.isel(scale=0)).drop_sel(shift=ALL)
    return rise[0].copy(data=percentiles(rise[1:].to_numpy(), means["confidence"].item())[0] > TINY)


def progress(maps: xr.DataArray, rises: xr.DataArray) -> xr.DataArray:
    """Share of a map's rise that is done at each scale, 0 at the first and 1 at the last; NaN where it does not rise (`moving`)."""
    done = maps - maps.isel(scale=0)
    total = done.isel(scale=-1)
    return (done / total.where(rises & (total > TINY))).transpose(*maps.dims)


def position(severity: Float[np.ndarray, "*maps scales"], wanted: Float[np.ndarray, "*maps wanted"]) -> Float[np.ndarray, "*maps wanted"]:
    """The inverse of a rising map: where it first reaches each severity, 0 at the first scale, 1 at the second; NaN beyond its ends."""
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


def over_axis(errors: xr.DataArray, maps: xr.DataArray) -> xr.DataArray:
    """Accuracy of each model averaged along each ruler's axis, the area under its curve by the range; NaN where a map is flat."""
    right = 1 - errors.drop_sel(shift=ALL)
    middles = ((right + right.shift(scale=1)) / 2).isel(scale=slice(1, None))
    span = maps.isel(scale=-1) - maps.isel(scale=0)
    return xr.dot(maps.diff("scale") / span.where(span > TINY), middles, dim="scale")


def hardness(drops: xr.DataArray, severity: xr.DataArray) -> xr.DataArray:
    """How much more accuracy each shift costs than the others, at the severities that both of a pair reach; [resample, shift, scale]."""
    fitted = severity.to_numpy()
    grid = np.broadcast_to(np.linspace(fitted[0].min(), fitted[0].max(), POINTS), (*fitted.shape[:2], POINTS))
    drop = read(drops.to_numpy(), position(fitted, grid))
    valid, filled = (~np.isnan(drop)).astype(float), np.nan_to_num(drop)
    with np.errstate(invalid="ignore", divide="ignore"):
        gaps = (filled @ valid.swapaxes(1, 2) - valid @ filled.swapaxes(1, 2)) / (valid @ valid.swapaxes(1, 2))
        others = ~np.isnan(gaps) & ~np.eye(fitted.shape[1], dtype=bool)
        return severity.isel(scale=0, drop=True).copy(data=np.where(others, gaps, 0).sum(2) / others.sum(2))


def on_axes(errors: xr.DataArray, maps: xr.DataArray, rises: xr.DataArray) -> dict[tuple[str, str], list[xr.DataArray]]:
    """By (what, ruler): mean accuracy of classifiers or hardness of shifts on the nominal axis, and on the ruler's.

    Both sides are formed on the shifts whose reading rises (`moving`), hardness on those that share severities.
    """
    along, pairs = over_axis(errors, maps), {}
    drops = accuracy.drop(errors).mean("model")
    for ruler in maps["ruler"].to_numpy():
        shifts = rises["shift"][rises.sel(ruler=ruler)].to_numpy()
        if not len(shifts):
            continue
        n = maps["n"].sel(shift=shifts).sum()
        means = [along.sel(shift=shifts, ruler=name).mean("shift", skipna=False) for name in (NOMINAL, ruler)]
        pairs["classifiers", ruler] = [side.assign_coords(n=n).rename(model="name") for side in means]
        used = shifts[hardness(drops.sel(shift=shifts), maps.sel(shift=shifts, ruler=ruler))[0].notnull()]
        if len(used):
            sides = [hardness(drops.sel(shift=used), maps.sel(shift=used, ruler=name)) for name in (NOMINAL, ruler)]
            pairs["shifts", ruler] = [side.rename(shift="name") for side in sides]
    return dict(sorted(pairs.items(), key=lambda item: item[0][0]))


def orders(sides: dict[tuple[str, str], list[xr.DataArray]], confidence: float) -> pd.DataFrame:
    """Kendall's tau between the order on the nominal axis and on each ruler's; `sides` are those of `on_axes`."""
    rows = []
    for (what, ruler), both in sides.items():
        nominal, on_ruler = (side.transpose("resample", "name").to_numpy().round(9) for side in both)  # rounding residues are no order
        tau = ranking.order_record(nominal, on_ruler, int(both[0]["n"].sum()), confidence)
        rows.append({"ruler": ruler, "order": what, "items": both[0].sizes["name"], **tau})
    return pd.DataFrame(rows)


def standings(sides: dict[tuple[str, str], list[xr.DataArray]]) -> pd.DataFrame:
    """What `orders` compares, on each ruler's own axis."""
    parts = [
        interval(on_ruler.transpose("resample", "name")).assign(order=what, ruler=ruler) for (what, ruler), (_, on_ruler) in sides.items()
    ]
    return pd.concat(parts, ignore_index=True)[["order", "ruler", "name", *bootstrap.RECORD]]


def reached(curve: xr.DataArray, wanted: xr.DataArray) -> pd.DataFrame:
    """Where the monotone curve reaches each wanted error, per shift and classifier; `beyond` its ends it is set to its end."""
    rising, wanted = monotone_maps(curve).transpose(*curve.dims).to_numpy(), wanted.drop_sel(shift=ALL)
    values = wanted.to_numpy()
    scales = np.broadcast_to(curve["scale"].to_numpy().astype(float), rising.shape)
    reached_scales = read(scales, position(rising, np.clip(values, rising[..., :1], rising[..., -1:])))
    outside = np.select([values[0] < rising[0, ..., :1], values[0] > rising[0, ..., -1:]], ["below", "above"], "")
    return interval(wanted.copy(data=reached_scales)).assign(beyond=outside.ravel())
