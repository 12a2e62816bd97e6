"""Model size and OOD accuracy given ID accuracy, within families of one architecture at several sizes (CNS-Bench supplement F).

Size is the logarithm to base 2 of the number of weights. Points are those of `stats.line`.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr
from scipy.stats import t

from cnslib.stats.accuracy import ALL, interval, metric
from cnslib.stats.bootstrap import ANYWHERE, CORRELATION, holm
from cnslib.stats.line import gain, overall, ratio, single, without_noise

COLUMNS = ["family", "models", "n", "estimate", "low", "high"]


def sized(points: xr.Dataset, parameters: dict[str, int], families: dict[str, list[str]]) -> dict[str, pd.DataFrame]:
    """The families evaluated in enough sizes for a test, tables (model; size, family), and all of them together under joined names."""
    present = {name: [m for m in family if m in points["model"]] for name, family in families.items()}
    if unknown := sorted({m for family in present.values() for m in family} - parameters.keys()):
        raise ValueError(f"line.sizes: number of weights of {', '.join(unknown)} is not known; known: {', '.join(parameters)}")
    rows = [(name, m, np.log2(parameters[m])) for name, family in present.items() if len(family) > 3 for m in family]
    table = pd.DataFrame(rows, columns=["family", "model", "size"]).set_index("model")
    groups = {str(name): family for name, family in table.groupby("family", sort=False)}
    return groups | ({" + ".join(groups): table} if len(groups) > 1 else {})


def centred(values: xr.DataArray, family: pd.DataFrame) -> xr.DataArray:
    """The members' values about the mean of their family."""
    members = values.sel(model=family.index.to_numpy())
    same = family["family"].to_numpy()[:, None] == family["family"].to_numpy()
    shares = xr.DataArray(same / same.sum(1, keepdims=True), dims=["model", "other"])
    return members - xr.dot(shares, members.rename(model="other").drop_vars("other"), dim="other")


def sizes(family: pd.DataFrame) -> xr.DataArray:
    """The members' sizes about the mean of their family."""
    return centred(family["size"].to_xarray(), family)


def sums(first: xr.DataArray, second: xr.DataArray, dims: Sequence[str] = ("model",)) -> xr.DataArray:
    """Sum of products."""
    return (first * second).sum(dims, skipna=False)


def residuals(points: xr.Dataset, family: pd.DataFrame) -> tuple[xr.DataArray, xr.DataArray]:
    """Size and OOD accuracy of the members after regression on ID accuracy, families about their own level."""
    x, y, size = centred(points["x"], family), centred(points["y"], family), sizes(family)
    left, rest = (values - ratio(sums(values, x), sums(x, x)) * x for values in (size, y))
    return left.broadcast_like(rest), rest


def partial(points: xr.Dataset, families: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Partial correlation of size and OOD accuracy given ID accuracy per family, shift and scale, with p of least squares and Holm's."""
    columns = ["shift", "family", "scale", "n", "estimate", "low", "high", "models", "p", "p_holm"]
    parts = [pd.DataFrame(columns=columns)] if not families else []
    for name, family in families.items():
        size, y = residuals(points, family)
        r = ratio(sums(size, y), (sums(size, size) * sums(y, y)) ** 0.5).transpose("resample", "shift", "scale")
        freedom = len(family) - family["family"].nunique() - 2
        table = interval(r, within=CORRELATION).assign(family=name, models=len(family))
        with np.errstate(divide="ignore"):
            table["p"] = 2 * t.sf(table["estimate"].abs() * np.sqrt(freedom / (1 - table["estimate"] ** 2).clip(0)), freedom)
        parts.append(table.assign(p_holm=table.groupby(table["shift"] == ALL)["p"].transform(holm))[columns])
    return pd.concat(parts, ignore_index=True)


def noise_free(points: xr.Dataset, families: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Partial correlation of size over all shifts and scales above 0, each with its own level and slope on ID accuracy, noise taken out."""
    rows, every = [], ("model", "shift", "scale")
    for name, family in families.items():
        x, y, size = centred(points["x"], family), centred(points["y"], family), sizes(family)
        xx, xy = without_noise(sums(x, x)), without_noise(sums(x, y))
        products = single(ratio(sums(size, y) * xx - sums(size, x) * xy, sums(x, x)[0])).sum(["shift", "scale"], skipna=False)
        left, rest = (single(values)[:1] for values in residuals(points, family))
        r = ratio(products, (sums(left, left, every) * sums(rest, rest, every))[0] ** 0.5)
        record = metric(r.assign_coords(n=points["n"].sel(shift=ALL).item()), within=CORRELATION)
        rows.append({"family": name, "models": len(family), **record})
    return pd.DataFrame(rows, columns=COLUMNS)


def per_doubling(points: xr.Dataset, families: dict[str, pd.DataFrame], models: Sequence[str] | None = None) -> pd.DataFrame:
    """OOD accuracy per doubling of the size, mean over shifts and scales above 0: all of it, and what is left above the line."""
    rows = []
    for name, family in families.items():
        size = sizes(family)
        for title, values in {"OOD accuracy": points["ood"], "gain": gain(points, models)}.items():
            slope = sums(size, centred(overall(values), family)) / sums(size, size)
            rows.append({"family": name, "models": len(family), "of": title, **metric(slope, within=ANYWHERE)})
    return pd.DataFrame(rows, columns=[*COLUMNS[:2], "of", *COLUMNS[2:]])
