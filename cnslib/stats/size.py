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


def sized(found: xr.Dataset, parameters: dict[str, int], families: dict[str, list[str]]) -> dict[str, pd.DataFrame]:
    """The families evaluated in enough sizes for a test, tables (model; size, family), and all of them together under joined names."""
    present = {name: [m for m in own if m in found["model"]] for name, own in families.items()}
    if unknown := sorted({m for own in present.values() for m in own} - parameters.keys()):
        raise ValueError(f"line.sizes: number of weights of {', '.join(unknown)} is not known; known: {', '.join(parameters)}")
    rows = [(name, m, np.log2(parameters[m])) for name, own in present.items() if len(own) > 3 for m in own]
    table = pd.DataFrame(rows, columns=["family", "model", "size"]).set_index("model")
    groups = {str(name): own for name, own in table.groupby("family", sort=False)}
    return groups | ({" + ".join(groups): table} if len(groups) > 1 else {})


def centred(values: xr.DataArray, own: pd.DataFrame) -> xr.DataArray:
    """The members' values about the mean of their family."""
    members = values.sel(model=own.index.to_numpy())
    same = own["family"].to_numpy()[:, None] == own["family"].to_numpy()
    shares = xr.DataArray(same / same.sum(1, keepdims=True), dims=["model", "other"])
    return members - xr.dot(shares, members.rename(model="other").drop_vars("other"), dim="other")


def sizes(own: pd.DataFrame) -> xr.DataArray:
    """The members' sizes about the mean of their family."""
    return centred(own["size"].to_xarray(), own)


def sums(first: xr.DataArray, second: xr.DataArray, dims: Sequence[str] = ("model",)) -> xr.DataArray:
    """Sum of products."""
    return (first * second).sum(dims, skipna=False)


def residuals(found: xr.Dataset, own: pd.DataFrame) -> tuple[xr.DataArray, xr.DataArray]:
    """Size and OOD accuracy of the members after regression on ID accuracy, families about their own level."""
    x, y, size = centred(found["x"], own), centred(found["y"], own), sizes(own)
    left, rest = (values - ratio(sums(values, x), sums(x, x)) * x for values in (size, y))
    return left.broadcast_like(rest), rest


def partial(found: xr.Dataset, families: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Partial correlation of size and OOD accuracy given ID accuracy per family, shift and scale, with p of least squares and Holm's."""
    columns = ["shift", "family", "scale", "n", "estimate", "low", "high", "models", "p", "p_holm"]
    parts = [pd.DataFrame(columns=columns)] if not families else []
    for name, own in families.items():
        size, y = residuals(found, own)
        r = ratio(sums(size, y), (sums(size, size) * sums(y, y)) ** 0.5).transpose("resample", "shift", "scale")
        freedom = len(own) - own["family"].nunique() - 2
        table = interval(r, within=CORRELATION).assign(family=name, models=len(own))
        with np.errstate(divide="ignore"):
            table["p"] = 2 * t.sf(table["estimate"].abs() * np.sqrt(freedom / (1 - table["estimate"] ** 2).clip(0)), freedom)
        parts.append(table.assign(p_holm=table.groupby(table["shift"] == ALL)["p"].transform(holm))[columns])
    return pd.concat(parts, ignore_index=True)


def noise_free(found: xr.Dataset, families: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Partial correlation of size over all shifts and scales above 0, each with its own level and slope on ID accuracy, noise taken out."""
    rows, every = [], ("model", "shift", "scale")
    for name, own in families.items():
        x, y, size = centred(found["x"], own), centred(found["y"], own), sizes(own)
        xx, xy = without_noise(sums(x, x)), without_noise(sums(x, y))
        products = single(ratio(sums(size, y) * xx - sums(size, x) * xy, sums(x, x)[0])).sum(["shift", "scale"], skipna=False)
        left, rest = (single(values)[:1] for values in residuals(found, own))
        r = ratio(products, (sums(left, left, every) * sums(rest, rest, every))[0] ** 0.5)
        record = metric(r.assign_coords(n=found["n"].sel(shift=ALL).item()), within=CORRELATION)
        rows.append({"family": name, "models": len(own), **record})
    return pd.DataFrame(rows, columns=COLUMNS)


def per_doubling(found: xr.Dataset, families: dict[str, pd.DataFrame], models: Sequence[str] | None = None) -> pd.DataFrame:
    """OOD accuracy per doubling of the size, mean over shifts and scales above 0: all of it, and what is left above the line."""
    rows = []
    for name, own in families.items():
        size = sizes(own)
        for title, values in {"OOD accuracy": found["ood"], "gain": gain(found, models)}.items():
            slope = sums(size, centred(overall(values), own)) / sums(size, size)
            rows.append({"family": name, "models": len(own), "of": title, **metric(slope, within=ANYWHERE)})
    return pd.DataFrame(rows, columns=[*COLUMNS[:2], "of", *COLUMNS[2:]])
