"""Gates: what the mini world's pictures must show before a sentence about classifiers may rest on them (metrics/gates.json)."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import xarray as xr

from cnslib.core import tables
from cnslib.core.settings.method import Bootstrap
from cnslib.stats import bootstrap
from cnslib.stats.accuracy import ALL, metric

AT_LEAST, AT_MOST = 1, -1
KEPT_AT = (1.5, 2.5)  # scales at which the class is asked for
READINGS = ("alignment", "asked", "distance")  # of the shift by CLIP and by the oracle, and the way from scale 0 in the encoder's features
BOUNDS: dict[str, tuple[str, int, float]] = {  # gate: what it is, the side, the bound
    "start_worst_class": ("unshifted pictures that the oracle knows, worst class", AT_LEAST, 0.9),
    "zoo_scale_0_all": ("mean accuracy of the classifiers at scale 0, all trajectories", AT_LEAST, 0.8),
    "zoo_scale_0_kept": ("mean accuracy of the classifiers at scale 0, kept trajectories", AT_LEAST, 0.88),
    "real_generated_r": ("Pearson's R of the classifiers' accuracies on real and on generated unshifted pictures", AT_LEAST, 0.7),
    "clip_unshifted_none": ("unshifted pictures in which CLIP names no shift", AT_LEAST, 0.9),
    "asked_worst_shift": ("pictures at the last scale in which the oracle names the asked shift, worst shift", AT_LEAST, 0.8),
    "class_kept_scale_1_5": ("pictures whose class the oracle knows at scale 1.5, mean over shifts", AT_LEAST, 0.85),
    "class_kept_scale_2_5": ("pictures whose class the oracle knows at scale 2.5, mean over shifts", AT_LEAST, 0.6),
    "rising_mean": ("steps that raise the oracle's reading of the asked shift, mean over shifts", AT_LEAST, 0.85),
    "rising_worst_shift": ("steps that raise the oracle's reading of the asked shift, worst shift", AT_LEAST, 0.7),
    "largest_step_worst_shift": ("share of a reading's rise that lies in one step, worst shift", AT_MOST, 0.45),
    "filter_good_dropped": ("in-class pictures that the filter drops, where it finds 90 % of the others", AT_MOST, 0.12),
    "kept_start_in_class": ("kept trajectories that start in class", AT_LEAST, 1.0),
    "claims_decided": ("measurable claims of section 5.3 with a verdict", AT_LEAST, 0.5),
}
CANNOT_FAIL = ("kept_start_in_class",)  # gates that cannot fail, since the filter keeps no other trajectory: shown, but not counted
BY_CONSTRUCTION = "by construction"


def table(records: Mapping[str, dict]) -> pd.DataFrame:
    """One row per gate, with its bound and whether its estimate reaches it, up to six digits, or that it cannot fail (`CANNOT_FAIL`)."""
    rows = []
    for key, record in records.items():
        words, side, bound = BOUNDS[key]
        reached = BY_CONSTRUCTION if key in CANNOT_FAIL else bool(side * (round(record["estimate"], 6) - bound) >= 0)
        limit = f"{'>=' if side == AT_LEAST else '<='} {bound:g}"
        rows.append({"gate": key, "what": words, **record, "to reach": limit, "reached": reached})
    return pd.DataFrame(rows)[["gate", "what", *bootstrap.RECORD, "to reach", "reached"]].set_index("gate")


def worst(records: Mapping[str, dict], *, side: int = AT_LEAST) -> tuple[str, dict]:
    """The group that is farthest on the wrong side, and its record: the least estimate, or the greatest. NaN is the worst of all."""
    return min(records.items(), key=lambda item: -np.inf if np.isnan(item[1]["estimate"]) else side * item[1]["estimate"])


def rises(table: pd.DataFrame, reading: str) -> pd.DataFrame:
    """One row per step between neighbouring scales of a trajectory, at its upper scale: whether the reading rises, where both are known."""
    table = table.sort_values(tables.KEY)
    rise = table.groupby(tables.TRAJECTORY, sort=False)[reading].diff()
    return table[tables.KEY].assign(rises=rise > 0)[rise.notna()]


def by_shift(scores: pd.DataFrame, *, settings: Bootstrap) -> pd.DataFrame:
    """What the pictures of each shift show, a tidy table (shift, measure, n, estimate, low, high).

    Shares of the pictures in which the oracle names the shift at the last scale and knows the class at `KEPT_AT`, of the steps that raise
    its reading of the asked shift, and the largest step of each of `READINGS`; all are columns of `scores`.
    """
    last, rows = scores["scale"].max(), []
    for shift, part in scores.groupby("shift", sort=False):
        end = part[part["scale"] == last]
        recognised = (end["named"] == shift).astype(float).where(end["asked"].notna())
        records = {"named": bootstrap.mean(recognised.reset_index(drop=True), end, settings=settings)}
        steps = rises(part, "asked")
        records["rises"] = bootstrap.rate(steps["rises"], steps, settings=settings)
        for scale in KEPT_AT:
            at = part[part["scale"] == scale]
            records[f"known at {scale:g}"] = bootstrap.rate(at["known"].to_numpy(), at, settings=settings)
        there = [name for name in READINGS if part[name].notna().any()]
        records |= {f"step of {name}": largest_step(part, name, settings=settings) for name in there}
        rows += [{"shift": shift, "measure": measure, **record} for measure, record in records.items()]
    return pd.DataFrame(rows)


def uneven(table: pd.DataFrame) -> dict[str, dict]:
    """The largest step of each shift by any reading, of a table as of `by_shift`, where it exceeds the gate's bound."""
    steps = table[table["measure"].str.startswith("step of")].sort_values("estimate").drop_duplicates("shift", keep="last")
    bound = BOUNDS["largest_step_worst_shift"][2]
    return bootstrap.records(steps[steps["estimate"] > bound].sort_values("shift"), "shift")


def pictures(scores: pd.DataFrame, table: pd.DataFrame, *, settings: Bootstrap) -> dict[str, dict]:
    """The gates of the drawn pictures; `table` is what `by_shift` says of `scores`."""
    start = scores[scores["scale"] == 0].drop_duplicates(["class", "seed"])
    classes = {name: bootstrap.rate(part["known"].to_numpy(), part, settings=settings) for name, part in start.groupby("class", sort=False)}
    gates = {"start_worst_class": worst(classes)[1]}
    measures = bootstrap.records(table, "measure", "shift")
    gates["asked_worst_shift"] = worst(measures["named"])[1]
    for scale, key in zip(KEPT_AT, ("class_kept_scale_1_5", "class_kept_scale_2_5"), strict=True):
        at = scores[scores["scale"] == scale]
        gates[key] = bootstrap.rate(at["known"].to_numpy(), at, settings=settings)
    steps = rises(scores, "asked")
    gates["rising_mean"] = bootstrap.rate(steps["rises"], steps, settings=settings)
    gates["rising_worst_shift"] = worst(measures["rises"])[1]
    steps = {name: worst(by_shift, side=AT_MOST)[1] for name, by_shift in measures.items() if name.startswith("step of")}
    return gates | {"largest_step_worst_shift": worst(steps, side=AT_MOST)[1]}


def largest_step(scores: pd.DataFrame, reading: str, *, settings: Bootstrap) -> dict:
    """The largest share of the rise of one shift's mean reading that lies in one step, interval from a band; NaN without a rise."""
    values = scores.pivot(index=["class", "seed"], columns="scale", values=reading).sort_index(axis=1)
    weights, units = bootstrap.resampling_weights(values.index.to_frame(index=False), settings=settings)
    sums = np.stack([np.bincount(units, weights=column) for column in values.to_numpy(float).T], axis=1)
    means = (weights @ sums) / (weights @ np.bincount(units))[:, None]
    rise = means[:, -1:] - means[:, :1]
    shares = np.diff(means, axis=1) / np.where(rise > 0, rise, np.nan)
    low, high = bootstrap.joint_bounds(shares[:, None, None], settings.confidence)
    return bootstrap.as_record(len(values), shares[0].max(), low, high)


def classifiers(unfiltered: xr.DataArray, kept: xr.DataArray, heldout: xr.DataArray) -> dict[str, dict]:
    """The gates of the classifiers, from their errors on all trajectories, on the kept ones and on real held-out pictures.

    All trajectories of a class and seed begin with one picture, which counts once; of the kept ones each begin counts.
    """
    generated, begun = ((1 - errors).isel(scale=0) for errors in (unfiltered, kept))
    generated, begun, real = generated.isel(shift=0), begun.sel(shift=ALL), (1 - heldout).sel(shift=ALL).isel(scale=0)
    evaluated = real["model"][real[0].notnull()]
    return {
        "zoo_scale_0_all": metric(generated.mean("model"), within=bootstrap.SHARE),
        "zoo_scale_0_kept": metric(begun.mean("model"), within=bootstrap.SHARE),
        "real_generated_r": agreement(real.sel(model=evaluated), generated.sel(model=evaluated)),
    }


def agreement(real: xr.DataArray, generated: xr.DataArray) -> dict:
    """Pearson's R of two accuracies [resample, model] of the same classifiers; `n` counts these."""
    return bootstrap.joined(xr.corr(real, generated, "model").to_numpy(), real.sizes["model"], real["confidence"].item())
