"""Accuracy on the line: how far accuracy under a shift follows accuracy without one (CNS-Bench supplement F, Figs. 20 to 24).

A point is a model: ID accuracy without a shift, OOD accuracy under one. Too few images flatten the line, resamples once more, so intervals
are reflected. `low` and `high` are about other images, `models_low` and `models_high` about other models.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import scipy.stats
import xarray as xr
from scipy.stats import norm

from cnslib.core.names import demand
from cnslib.stats.accuracy import ALL, TINY, interval, metric
from cnslib.stats.bootstrap import ANYWHERE, SHARE, holm, percentiles

AXES = ("linear", "probit")
LEAST = 3  # models that a line with a test needs
TO_SHARES = {"linear": lambda position: position, "probit": norm.cdf}


def points(errors: xr.DataArray, catalog: xr.DataArray | None = None, *, axes: str = "linear") -> xr.Dataset:
    """ID and OOD accuracy of every model, and their places x and y on the axes; n counts trajectories, `images` those of ID accuracy.

    ID accuracy is that on the catalog, or without one that at scale 0 of the same trajectories; with a catalog scale 0 is a shift. On
    probit axes shares of 0 and 1 move in by half an image.
    """
    start = errors if catalog is None else catalog
    ood = 1 - (errors.isel(scale=slice(1, None)) if catalog is None else errors)
    id_accuracy = 1 - (start if catalog is None else start.sel(shift=ALL).drop_vars("shift")).isel(scale=0, drop=True)
    sides = {"id": id_accuracy.drop_vars("n"), "ood": ood, "x": on_axes(id_accuracy, axes).drop_vars("n"), "y": on_axes(ood, axes)}
    sides |= {
        name: sides[name].broadcast_like(ood.isel(scale=0, drop=True)).transpose("resample", "shift", "model") for name in ("id", "x")
    }
    return xr.Dataset(sides).assign_coords(images=id_accuracy["n"].drop_vars("n") + 0 * ood["n"].drop_vars("n"), axes=axes)


def on_axes(share: xr.DataArray, axes: str) -> xr.DataArray:
    """Shares on linear or probit axes."""
    return share if axes == "linear" else xr.apply_ufunc(norm.ppf, share.clip(0.5 / share["n"], 1 - 0.5 / share["n"]))


def moments(x: xr.DataArray, y: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray]:
    """Sums of squares and products about the means along the axis of the models: xx, xy, yy."""
    dx, dy = (values - values.mean("model", skipna=False) for values in (x, y))
    return xr.dot(dx, dx, dim="model"), xr.dot(dx, dy, dim="model"), xr.dot(dy, dy, dim="model")


def ratio(numerator: xr.DataArray, denominator: xr.DataArray) -> xr.DataArray:
    """A quotient that is NaN where the denominator vanishes: models that all have one accuracy draw no line."""
    return numerator / denominator.where(denominator > TINY**2)


def drawing(points: xr.Dataset, models: Sequence[str] | None) -> tuple[xr.DataArray, xr.DataArray]:
    """x and y of the models that draw the line: all of them unless told otherwise."""
    drawn = points if models is None else points.sel(model=list(models))
    demand(drawn.sizes["model"] >= LEAST, "models that draw the line", drawn.sizes["model"], f"at least {LEAST}")
    drawn = drawn.drop_vars(["images", "axes"])  # no labels of a slope
    return drawn["x"], drawn["y"]


def fit(points: xr.Dataset, models: Sequence[str] | None = None) -> tuple[xr.DataArray, xr.DataArray]:
    """Slope and intercept of the least-squares line of every resample, shift and scale."""
    x, y = drawing(points, models)
    xx, xy, _ = moments(x, y)
    slope = ratio(xy, xx).transpose("resample", "shift", "scale")
    return slope, y.mean("model", skipna=False) - slope * x.mean("model", skipna=False)


def slopes(points: xr.Dataset, models: Sequence[str] | None = None) -> pd.DataFrame:
    """The line of every shift and scale: slope with both intervals, intercept, R with Fisher's interval, p and Holm's correction."""
    slope, intercept = fit(points, models)
    x, y = (values[0] for values in drawing(points, models))
    xx, xy, yy = moments(x, y)
    freedom, confidence = y.sizes["model"] - 2, points["confidence"].item()
    half = scipy.stats.t.ppf((1 + confidence) / 2, freedom) * np.sqrt(ratio((yy - slope[0] * xy).clip(0) / freedom, xx))
    sloped = (xx > TINY**2) & (yy > TINY**2)  # R of a level line is not known
    with np.errstate(invalid="ignore", divide="ignore"):
        tested = scipy.stats.pearsonr(*(coordinate.where(sloped).transpose("model", "shift", "scale") for coordinate in (x, y)), axis=0)
        r_low, r_high = tested.confidence_interval(confidence)
    table = interval(slope, within=ANYWHERE).assign(models=freedom + 2, intercept=np.ravel(intercept[0]))
    table = table.assign(models_low=np.ravel(slope[0] - half), models_high=np.ravel(slope[0] + half))
    table = table.assign(r=tested.statistic.ravel(), r_low=r_low.ravel(), r_high=r_high.ravel(), p=tested.pvalue.ravel())
    return table.assign(p_holm=table.groupby(table["shift"] == ALL)["p"].transform(holm))


def without_noise(moment: xr.DataArray) -> xr.DataArray:
    """A sum of squares or products without what few images add, the mean over resamples minus the sample; a resample has it twice."""
    times = xr.DataArray([1, *[2] * (moment.sizes["resample"] - 1)], dims="resample")
    return moment - times * (moment[1:].mean("resample") - moment[0])


def noise_free(points: xr.Dataset) -> pd.DataFrame:
    """R of the accuracies that endless images would show; NaN where too few images leave no variance."""
    xx, xy, yy = (without_noise(moment) for moment in moments(points["x"], points["y"]))
    r = ratio(xy, (xx.clip(0) * yy.clip(0)) ** 0.5).transpose("resample", "shift", "scale")
    lost = (r.isnull() & xy.notnull()).transpose(*r.dims)
    lost[0] = False
    return interval(r.clip(-1, 1).where(~lost, np.inf))


def gain(points: xr.Dataset, models: Sequence[str] | None = None) -> xr.DataArray:
    """OOD accuracy above the line (effective robustness, Fig. 24): what ID accuracy does not explain, in accuracy on either axes."""
    slope, intercept = fit(points, models)
    expected = xr.apply_ufunc(TO_SHARES[points["axes"].item()], intercept + slope * points["x"])
    return ((points["ood"] - expected).transpose("resample", "shift", "model", "scale")).drop_vars(["images", "axes"])


def overall(values: xr.DataArray) -> xr.DataArray:
    """Mean over the shifts, each with the same weight, and the scales above 0; n counts the trajectories of all shifts."""
    return single(values).mean(["shift", "scale"], skipna=False).assign_coords(n=values["n"].sel(shift=ALL, drop=True))


def single(values: xr.DataArray) -> xr.DataArray:
    """The single shifts and the scales above 0."""
    return values.sel(shift=values["shift"] != ALL, scale=values["scale"] > 0)


def mean_gains(points: xr.Dataset, models: Sequence[str] | None = None) -> pd.DataFrame:
    """Gain of every model, averaged over all shifts and the scales above 0 (Fig. 24)."""
    return interval(overall(gain(points, models)), within=ANYWHERE)


def steeper(points: xr.Dataset, models: Sequence[str] | None = None) -> dict:
    """Slope at the last scale minus slope at the first, all shifts together, as a record."""
    slope = fit(points, models)[0].sel(shift=ALL)
    return metric(slope[:, -1] - slope[:, 0], within=ANYWHERE)


def followed(points: xr.Dataset, models: Sequence[str] | None = None) -> dict:
    """Share of shifts and scales above 0 whose line rises with an uncorrected p value below 1 - confidence (Fig. 21), as a record."""
    x, y = drawing(points, models)
    (xx, xy, yy), freedom = moments(x, y), y.sizes["model"] - 2
    quantile = scipy.stats.t.ppf((1 + points["confidence"].item()) / 2, freedom)
    return metric(overall(ratio(xy, (xx * yy) ** 0.5) > quantile / np.sqrt(quantile**2 + freedom)), within=SHARE)


def left_out(points: xr.Dataset, families: dict[str, list[str]]) -> pd.DataFrame:
    """Slopes without each family (or model of no family), and how they differ from the line through all (paired), "all kept"."""
    models = points["model"].to_numpy().tolist()
    alone = sorted(set(models) - {name for members in families.values() for name in members})
    present = {name: group for name, group in families.items() if set(group) & set(models)}
    full, parts = fit(points)[0], []
    for name, group in ({"all kept": []} | present | {name: [name] for name in alone}).items():
        others = [model for model in models if model not in group]
        slope = fit(points, others)[0]
        change = interval(slope - full, within=ANYWHERE)[["estimate", "low", "high"]].add_prefix("change_")
        parts.append(interval(slope, within=ANYWHERE).assign(left_out=name, models=len(others)).join(change))
    return pd.concat(parts, ignore_index=True)


def leverage(points: xr.Dataset) -> pd.DataFrame:
    """ID accuracy of every model and its weight on the line (hat value); `heavy` above twice the mean, 2 / models."""
    pooled = points[["id", "x"]].sel(shift=ALL)
    deviation = (pooled["x"][0] - pooled["x"][0].mean()) ** 2
    hat = 1 / deviation.size + ratio(deviation, deviation.sum()).to_numpy()
    return interval(pooled["id"].assign_coords(n=pooled["images"])).assign(leverage=hat, heavy=hat > 4 / len(hat))


def scatter(points: xr.Dataset, *, shift: str, scale: float) -> pd.DataFrame:
    """The points of one shift and scale as they stand on the axes, in accuracy, with intervals and what the line expects of them."""
    axes = points["axes"].item()
    one = points.assign(expected=points["ood"] - gain(points)).sel(shift=shift, scale=scale)
    table = pd.DataFrame({"shift": shift, "scale": scale, "axes": axes, "model": one["model"], "n": one["n"].item()})
    for name, place in {"id": "x", "ood": "y"}.items():
        values = TO_SHARES[axes](one[place].to_numpy())
        low, high = percentiles(values[1:], one["confidence"].item())
        table = table.assign(**{name: values[0], f"{name}_low": low, f"{name}_high": high})
    return table.assign(expected=one["expected"][0])
