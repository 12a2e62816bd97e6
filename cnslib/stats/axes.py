"""Robustness along the paper's axes: architecture, size and pre-training (CNS-Bench section 5.3, Figs. 9 to 12, Tables 3 to 5).

In the mini world relatives stand for the paper's classifiers; where its own were evaluated, each takes its relative's place.
"""

import numpy as np
import pandas as pd
import xarray as xr

from cnslib.core.names import demand
from cnslib.stats import bootstrap, verdicts
from cnslib.stats.accuracy import ALL, TINY, drop, interval, relative_corruption_error

NULLS = {"CE": 1.0, "rCE": 1.0}  # from where a measure has a direction; levels of accuracy and drop have none in common
UNUSABLE = "wrong preprocessing"  # caution of a published number that was measured so
LEAST = 4  # classifiers that a comparison of averages or lines needs
ROLES = ("architecture", "pre-training")  # axes whose names for the paper's classifiers are those of the list of claims
ALONE = {"dino": "dinov1_ft_vit_base_patch16"}  # has a role in the claims, but no relative


def along(table: pd.DataFrame, members: dict[str, list[str]]) -> pd.DataFrame:
    """The rows of a results table axis by axis, each in its order. ValueError names a classifier that the table does not have."""
    known = table["model"].unique().tolist()
    rows = pd.DataFrame([(axis, name) for axis, names in members.items() for name in names], columns=["axis", "model"])
    for axis, name in rows.itertuples(index=False):
        demand(name in known, f"axes.members.{axis}", name, ", ".join(known))
    return rows.merge(table, on="model")[[*table, "axis"]]


def reference_drop(errors: xr.DataArray, reference: str) -> pd.DataFrame:
    """What rCE divides by: the reference's drops summed over the scales, per shift, and whether they are enough (`defined`)."""
    table = interval(drop(errors).sel(model=[reference]).sum("scale").drop_sel(shift=ALL))
    ratio = relative_corruption_error(errors, reference=reference)
    return table.assign(defined=ratio[ratio["model"] == reference].set_index("shift")["defined"].loc[table["shift"]].to_numpy())


def relative_errors(errors: xr.DataArray, *, reference: str) -> xr.DataArray:
    """Mean rCE over the defined shifts of every model and resample, [resample, model]; NaN without such; denominators are at least TINY."""
    defined = reference_drop(errors, reference).query("defined")
    if defined.empty:
        return drop(errors).isel(shift=0, scale=0, drop=True).assign_coords(n=0) * np.nan
    sums = drop(errors).sel(shift=defined["shift"].tolist()).sum("scale", skipna=False)
    ratio = (sums / sums.sel(model=reference, drop=True).clip(TINY)).mean("shift", skipna=False)
    return ratio.assign_coords(n=int(defined["n"].sum()))


def deviation_between(values: xr.DataArray) -> xr.DataArray:
    """Standard deviation of a measure over the models, without what chance adds to it; 0 where chance explains all of it.

    The variance of the centred values over the resamples is subtracted once from the sample, and twice from a resample.
    """
    centred, degrees = values - values.mean("model"), values.sizes["model"] - 1
    chance = centred[1:].var("resample").sum("model") / degrees
    times = xr.DataArray([1, *[2] * (values.sizes["resample"] - 1)], dims="resample")
    return ((centred**2).sum("model", skipna=False) / degrees - chance * times).clip(0) ** 0.5


def deviations_along(errors: xr.DataArray, members: dict[str, list[str]]) -> pd.DataFrame:
    """How far apart the classifiers of each axis are in average drop over all shifts, in accuracy: one record per axis."""
    average = drop(errors).sel(shift=ALL).mean("scale")
    each = xr.concat([deviation_between(average.sel(model=names)) for names in members.values()], pd.Index(members, name="axis"))
    return interval(each.transpose("resample", "axis").drop_vars("shift"))


def compared(table: pd.DataFrame, published: pd.DataFrame, *, column: str) -> pd.DataFrame:
    """A results table along the axes beside the paper's numbers (axis, classifier, the named column), with `verdicts.beside`.

    Numbers with the `caution` `UNUSABLE` get no verdict.
    """
    beside = published.rename(columns={"classifier": "model", column: "published"}).dropna(subset=["model", "published"])
    beside = beside.reindex(columns=["axis", "model", "published", "caution"]).fillna({"caution": ""})
    both = table.merge(beside, on=["axis", "model"], how="inner")
    null = [None if caution == UNUSABLE else NULLS.get(column) for caution in both["caution"]]
    both = verdicts.beside(both, both["published"], null=null)
    return both[["axis", "model", "ours", "low", "high", "n", "published", "difference", "rule", "verdict", "smallest", "caution"]]


def order_agreement(values: xr.DataArray, published: pd.DataFrame, *, column: str) -> pd.DataFrame:
    """Spearman's correlation of a measure [resample, model] with the paper's along each axis."""
    rows, there = [], published["classifier"].isin(values["model"].to_numpy())
    for axis, part in published[there].dropna(subset=[column]).groupby("axis", sort=False):
        ranks = pd.DataFrame(values.sel(model=part["classifier"].tolist()).to_numpy()).rank(axis=1)
        rho = ranks.corrwith(part[column].rank().set_axis(ranks.columns), axis=1).to_numpy()
        rows.append({"axis": axis, "measure": column, **bootstrap.joined(rho, len(part), values["confidence"].item())})
    return pd.DataFrame(rows)


def themselves(table: pd.DataFrame, models: list[str], names: dict[str, str]) -> pd.DataFrame:
    """A list of relatives (columns: keys of `names`) with the paper's classifiers (values) where these were evaluated, without note."""
    table = table.copy()
    for relative, paper in names.items():
        there = table[paper].isin(models)
        table[relative] = table[relative].where(~there, table[paper])
        for text in {"note", "caution"} & set(table):
            table[text] = table[text].where(~there, "")
    return table


def roles(axes: pd.DataFrame, models: list[str]) -> dict[str, str]:
    """Who plays each role of the claims ("deit") by published/axes.csv: the paper's classifier where evaluated, else its relative."""
    listed = axes[axes["axis"].isin(ROLES)].dropna(subset=["classifier"])
    replaced = themselves(listed, models, {"classifier": "paper_model"})
    alone = {role: name for role, name in ALONE.items() if name in models}
    return dict(zip(listed["classifier"], replaced["classifier"], strict=True)) | alone


def alike(ours: pd.DataFrame, published: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both tables (a row per classifier) with the classifiers that they share; as they are where they share fewer than `LEAST`."""
    shared = [name for name in published.index if name in ours.index]
    return (ours.loc[shared], published.loc[shared]) if len(shared) >= LEAST else (ours, published)


def same(errors: xr.DataArray, published: pd.DataFrame) -> xr.DataArray:
    """The errors of the classifiers that a published table (a row per classifier) has too, as `alike` chooses them."""
    ours, _ = alike(pd.DataFrame(index=errors["model"].to_numpy()), published)
    return errors.sel(model=errors["model"].isin(ours.index))
