"""Accuracy, accuracy drop, CE and rCE, each number with n and an interval (CNS-Bench section 3.3).

Arrays are labelled (xarray): `wrong_predictions` says which images each model misclassifies, [trajectory, model, scale]; `by_shift`
averages such an array under each shift in every resample, [resample, shift, model, scale]; `interval` makes a table of it. Entry 0 of
"resample" is the estimate itself. All classifiers share the resamples, so that differences are paired.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Int
from statsmodels.stats.proportion import proportion_confint

from cnslib.core import tables
from cnslib.core.names import UNSHIFTED, demand
from cnslib.core.settings.method import Bootstrap
from cnslib.stats.bootstrap import RECORD, Range, bounds, record, resampling_weights, too_few, units_of

ALL = "all shifts"  # images pooled over the shifts, each image with the same weight
MEAN = "mean over shifts"
MEAN_MODEL = "mean over models"
NEVER = "never"
TINY = 1e-9  # rounding residue of a difference of two shares
LEAST_TRAJECTORIES, LEAST_LOSS, LEAST_ERRORS = 50, 0.05, 3  # of the reference under a shift, so that a quotient means something


def wrong_predictions(predictions: pd.DataFrame, kept: pd.DataFrame | None = None, *, below: bool = False) -> xr.DataArray:
    """Which images each model misclassifies: bool [trajectory, model, scale]; with `kept` only those trajectories (shift, class, seed).

    Unshifted rows are repeated under every shift. Scales `below` 0 are left out unless asked for: drops, CE and failure points begin at
    0. ValueError for rows that are missing or there twice.
    """
    shifts = sorted(set(predictions["shift"].unique()) - {UNSHIFTED})
    wrong = np.asarray(predictions["top1"]) != np.asarray(predictions["class"])
    rows = predictions[[*tables.TRAJECTORY, "model", "scale"]].assign(wrong=wrong)
    rows = tables.trajectories(rows, shifts) if (rows["shift"] == UNSHIFTED).any() else rows
    places, (keys, models, scales) = zip(*(tables.numbered(rows, key) for key in (tables.TRAJECTORY, ["model"], ["scale"])), strict=True)
    labels = {key: ("trajectory", keys[key].to_numpy()) for key in keys} | {"model": models["model"].to_numpy(), "scale": scales["scale"]}
    count = xr.DataArray(np.zeros([len(keys), len(models), len(scales)], int), labels, ["trajectory", "model", "scale"])
    np.add.at(count.data, places, 1)
    misclassified = count.astype(bool)
    misclassified.data[places] = rows["wrong"]
    if kept is not None:
        wanted = pd.MultiIndex.from_frame(kept.loc[kept["shift"].isin(shifts), tables.TRAJECTORY]).sort_values()
        place = pd.MultiIndex.from_frame(keys).get_indexer(wanted)
        if (place < 0).any():
            raise ValueError(f"predictions of kept trajectories: {(place < 0).sum()} rows missing {wanted[place < 0].tolist()[:2]}")
        count, misclassified = count[place], misclassified[place]
    if not len(misclassified):
        raise ValueError("predictions: no trajectory is left; the filter kept none of them")
    for fault, wrong in {"appear twice": count > 1, "are missing": count == 0}.items():
        if wrong.any():
            first = ", ".join(f"{name} {label.item()}" for name, label in wrong.isel(wrong.argmax(...)).coords.items())
            raise ValueError(f"predictions: {int(wrong.sum())} rows {fault}, the first of {first}; accepted: one for each of {len(count)}")
    return misclassified if below else misclassified.sel(scale=misclassified["scale"] >= 0)


def trajectories(wrong: xr.DataArray) -> pd.DataFrame:
    """The trajectories of an array: shift, class and seed."""
    return pd.DataFrame({key: wrong[key].to_numpy() for key in tables.TRAJECTORY})


def by_shift(values: xr.DataArray, settings: Bootstrap) -> xr.DataArray:
    """Means of a value per trajectory under each shift, and over ALL of them, in every resample: [resample, shift, ...]."""
    weights, units = resampling_weights(trajectories(values), settings=settings)
    return averaged_by(values, weights, units).assign_coords(confidence=settings.confidence)


def same_classes(values: xr.DataArray, settings: Bootstrap) -> xr.DataArray:
    """`by_shift` over the classes that have a trajectory under every shift, each class with the same weight; n counts their trajectories.

    So no shift is hard because the filter left it other classes. NaN and n = 0 where no class has one under every shift.
    """
    rows = trajectories(values)
    weights, units = resampling_weights(rows, settings=settings)
    counts = pd.crosstab(rows["class"], rows["shift"])
    common = counts.index[(counts > 0).all(axis=1)]
    if common.empty:
        nothing = averaged_by(values, 0 * weights, units)
        return nothing.assign_coords(n=0 * nothing["n"], confidence=settings.confidence)
    parts = [averaged_by(values[chosen], weights, units[chosen]) for chosen in (rows["class"].to_numpy() == name for name in common)]
    mean = xr.concat([part.drop_vars("n") for part in parts], "class").mean("class", skipna=False)
    n = sum(part["n"].to_numpy() for part in parts)
    return mean.assign_coords(n=("shift", n), confidence=settings.confidence)


def by_unit(values: xr.DataArray, settings: Bootstrap) -> xr.DataArray:
    """The same of each unit that is drawn together, alone, [unit, shift, ...]; NaN where it has no trajectory."""
    units, _ = units_of(trajectories(values), settings.target)
    return averaged_by(values, np.eye(units.max() + 1), units).rename(resample="unit")


def averaged_by(
    values: xr.DataArray, weights: Float[np.ndarray, "resamples units"], units: Int[np.ndarray, "trajectories"]
) -> xr.DataArray:
    """Weighted means under each shift and over ALL; `n` counts trajectories, and where no unit is left there is NaN."""
    shift, shifts = pd.factorize(values["shift"].to_numpy(), sort=True)
    parts = [(weights[:, units[shift == i]], values.to_numpy()[shift == i].astype(float)) for i in range(len(shifts))]
    sums = np.stack([np.tensordot(weight, part, 1) for weight, part in parts], 1)
    counts = np.stack([weight.sum(1) for weight, _ in parts], 1)
    sums, counts = (np.concatenate([array, array.sum(1, keepdims=True)], 1) for array in (sums, counts))
    with np.errstate(invalid="ignore"):
        means = sums / counts.reshape(*counts.shape, *[1] * (values.ndim - 1))
    n = np.bincount(shift)
    labels = {"shift": [*shifts, ALL], "n": ("shift", [*n, n.sum()])} | {name: values[name] for name in values.dims[1:]}
    return xr.DataArray(means, labels, ["resample", "shift", *values.dims[1:]])


def interval(samples: xr.DataArray, *, within: Range | None = None, share: bool = False, units: xr.DataArray | None = None) -> pd.DataFrame:
    """A table of estimates with their `bounds`, columns n, estimate, low, high beside the labels.

    A `share` that is 0 or 1 in all resamples has Wilson's interval of n cases. The interval of a difference reaches 0 where too few units
    differ to tell a side (`too_few`); `units` is the same difference `by_unit`.
    """
    confidence = samples["confidence"].item()
    low, high = bounds(samples.to_numpy(), confidence, within)
    estimate = samples.isel(resample=0, drop=True).drop_vars("confidence")
    table = estimate.to_dataframe("estimate", dim_order=estimate.dims).reset_index().assign(low=low.ravel(), high=high.ravel())
    if share:
        same = table["estimate"].isin([0.0, 1.0]) & (table["low"] == table["high"])
        hits, n = table["estimate"][same] * table["n"][same], table["n"][same]
        table.loc[same, "low"], table.loc[same, "high"] = proportion_confint(hits, n, alpha=1 - confidence, method="wilson")
    if units is not None:
        few = np.ravel(too_few(units.to_numpy(), confidence))
        table.loc[few, "low"] = table["low"].clip(upper=0.0)
        table.loc[few, "high"] = table["high"].clip(lower=0.0)
    return table[[*table.columns.drop(RECORD), *RECORD]]


def metric(samples: xr.DataArray, *, within: Range | None = None) -> dict:
    """A single number with its `bounds` as a metrics record."""
    return record(samples.to_numpy(), samples["n"].item(), samples["confidence"].item(), within=within)


def drop(errors: xr.DataArray) -> xr.DataArray:
    """Accuracy at scale 0 minus accuracy at each scale (section 5.2), absolute; negative where a shift helps."""
    return errors - errors.isel(scale=0, drop=True)


def accuracy(errors: xr.DataArray) -> pd.DataFrame:
    """Share of correctly classified images per shift, model and scale."""
    return interval(1 - errors, share=True)


def over_shifts(rates: xr.DataArray) -> xr.DataArray:
    """The mean over the shifts, in which each weighs the same, as the only shift MEAN."""
    mean = rates.drop_sel(shift=ALL).mean("shift").expand_dims(shift=[MEAN], axis=1)
    return mean.assign_coords(n=("shift", [rates["n"].to_numpy()[-1]]))


def hardest(drops: xr.DataArray) -> pd.DataFrame:
    """Drops [resample, shift] under each shift, largest first, and the `probability` (a share of resamples) that no other costs more."""
    single = drops.drop_sel(shift=ALL)
    complete = single[1:].dropna("resample")
    first = complete >= complete.max("shift") - TINY
    probability = (first / first.sum("shift")).mean("resample")
    table = interval(single).assign(probability=probability.to_numpy())
    return table.sort_values("estimate", ascending=False, ignore_index=True)


def exemplars(ordered: pd.DataFrame) -> list[str]:
    """The hardest, the middle and the mildest shift of a table by `hardest`, of those with enough trajectories if they are three."""
    enough = ordered[ordered["n"] >= LEAST_TRAJECTORIES]
    shifts = (enough if len(enough) > 2 else ordered)["shift"].tolist()
    return list(dict.fromkeys([shifts[0], shifts[len(shifts) // 2], shifts[-1]]))


def corruption_error(errors: xr.DataArray, *, reference: str) -> pd.DataFrame:
    """CE (Table 4): errors summed over all scales, divided by the reference's sum; per shift and averaged over shifts.

    The paper does not say whether scale 0 is in the sum. It is here, which agrees slightly better with Tables 4 and 5.
    """
    return error_ratio(errors.mean("scale"), reference=reference, trajectories=1)


def relative_corruption_error(errors: xr.DataArray, *, reference: str) -> pd.DataFrame:
    """rCE (Eq. 6): accuracy drops summed over the scales, divided by the reference model's sum; then the mean over shifts."""
    return error_ratio(drop(errors).mean("scale"), reference=reference, trajectories=LEAST_TRAJECTORIES)


def error_ratio(losses: xr.DataArray, *, reference: str, trajectories: int) -> pd.DataFrame:
    """Ratios of mean losses [resample, shift, model] to the reference model's, under the shifts where that says something.

    These have so many trajectories, and a loss of the reference of at least `LEAST_LOSS` and `LEAST_ERRORS` standard errors; another has
    NaN. The mean runs over these `shifts`, and is `defined` only if all are. A denominator that is not positive makes an infinite ratio.
    """
    demand(reference in losses["model"].to_numpy(), "accuracy.reference", reference, ", ".join(map(str, losses["model"].to_numpy())))
    single = losses.drop_sel(shift=ALL)
    below = single.sel(model=reference, drop=True)
    least = np.maximum(LEAST_LOSS, LEAST_ERRORS * below[1:].std("resample", skipna=False))
    defined = (single["n"] >= trajectories) & (below[0] >= least)
    ratio = (single / below.where(below > TINY)).fillna(np.inf).where(below.notnull() & defined)
    mean = ratio.sel(shift=defined if defined.any() else ~defined).mean("shift", skipna=False)
    mean = mean.expand_dims(shift=[MEAN], axis=1).assign_coords(n=("shift", [int(single["n"][defined].sum())]))
    table = pd.concat([interval(ratio), interval(mean)], ignore_index=True)
    used = defined.to_series() * 1
    table["shifts"] = table["shift"].map(used).fillna(used.sum()).astype(int)
    return table.assign(defined=table["shifts"] == np.where(table["shift"] == MEAN, len(used), 1))


GROUP = "catalog"
SUMMARY = "heldout.csv"  # model, n, accuracy: where those of single images are not known


def held_out(folder: Path, *, settings: Bootstrap) -> xr.DataArray:
    """Error rates on the held-out images of an evaluation's folder, with resamples of what was drawn together, as of one shift.

    "Other objects" stand for "the same classes", which is all that these images share. Where only accuracies are known (`SUMMARY`), the
    resamples are binomial.
    """
    files = sorted((folder / "heldout").glob("*.parquet"))
    if files or not (folder / SUMMARY).exists():
        return by_shift(wrong_predictions(tables.read_top1(files).assign(shift=GROUP)), settings.one_by_one)
    table = pd.read_csv(folder / SUMMARY).sort_values("model", ignore_index=True)
    n, errors = int(table["n"].iloc[0]), 1 - table["accuracy"].to_numpy()
    drawn = np.random.default_rng(settings.seed).binomial(n, errors, (settings.resamples, len(table))) / n
    labels = {"shift": [GROUP, ALL], "n": ("shift", [n, n]), "model": table["model"].to_numpy(), "scale": [0.0]}
    samples = np.vstack([errors, drawn])[:, None, :, None].repeat(2, axis=1)
    return xr.DataArray(samples, labels | {"confidence": settings.confidence}, ["resample", "shift", "model", "scale"])


def mean_accuracy(errors: xr.DataArray) -> pd.DataFrame:
    """Accuracy averaged over the models, per shift and scale."""
    table = interval(1 - errors.mean("model"), share=True)
    table.insert(1, "model", MEAN_MODEL)
    return table
