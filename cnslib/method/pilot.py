"""The sliders' pilot: which eta suits each shift (CNS-Bench Eq. 2), by what the oracle sees along the scales of a few pictures.

The paper takes one eta for all shifts. A small network has less room: with the same eta one shift has replaced the garment when
another has only begun.
"""

import dataclasses
import functools
import itertools
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa

from cnslib.core import recipes, tables, units, workers
from cnslib.core.names import SHIFTS, demand, identifier
from cnslib.core.settings.method import Pilot, Sliders
from cnslib.method import generation, sliders
from cnslib.method.filtering import KNOWN
from cnslib.method.health import images_of
from cnslib.models.encoders import Oracle
from cnslib.models.text_to_image import Origin

SHARE = pa.Check.in_range(0, 1)
SEEN = {"eta": pa.Column(float), "asked": pa.Column(float, SHARE), "named": pa.Column(bool), "kept": pa.Column(bool)}
schema = tables.schema(["eta", *tables.KEY], {**tables.IDENTITY, **SEEN})
BOUNDS = {"named": 1, "kept": 1, "largest_step": -1}  # criteria, and whether more or less of each is wanted


def readings(
    sampler: generation.Sampler, *, scales: list[float], recipe: str, settings: Sliders, origin: Origin, oracle: Oracle, folder: Path
) -> pd.DataFrame:
    """What the oracle sees in pictures of each shift at the etas, classes and seeds of `settings.pilot`, at all scales.

    `asked` is its severity times the probability of the asked shift, `named` whether that shift is the most probable, `kept` whether
    the class has at least one half. Computes the tables in `folder` that are missing or outdated. The sliders themselves are not kept.
    """
    pilot, files, own = settings.pilot, {}, {}
    if not pilot.etas:
        return pd.DataFrame(columns=[*schema.columns])
    demand(recipe in sliders.RECIPES, "base.recipe", recipe, f"{', '.join(sliders.RECIPES)}: a pilot trains its sliders itself")
    demand(hasattr(oracle, "parts"), "base.oracle", type(oracle).__name__, "an oracle that names shifts, which a pilot reads")
    shared = scales, pilot.seeds, sampler.settings.drawn(), oracle.digest, oracle.labels
    for (shift, etas), name in itertools.product(pilot.etas.items(), pilot.classes):
        for eta in etas:
            own[eta, shift, name] = dataclasses.replace(settings, eta=eta, etas={})
            trained = sliders.stamp(shift, name, settings=own[eta, shift, name], origin=origin, recipe=recipe)
            files[eta, shift, name] = f"{identifier(shift)}/{identifier(name)}-{eta}.parquet", recipes.PILOT.stamp(trained, *shared)
    shelf = units.Shelf(folder, files, "*/*.parquet")
    make = functools.partial(measure, sampler, scales=scales, recipe=recipe, origin=origin, oracle=oracle)
    pieces = [(shift, name, own[eta, shift, name], shelf[eta, shift, name]) for eta, shift, name in shelf.waiting()]
    workers.each(make, pieces, device=sampler.pipe.device, desc="pilot")
    return tables.read_units(shelf, schema)


def measure(
    sampler: generation.Sampler,
    shift: str,
    name: str,
    settings: Sliders,
    unit: units.Unit,
    *,
    scales: list[float],
    recipe: str,
    origin: Origin,
    oracle: Oracle,
) -> None:
    """Trains one slider, and writes what the oracle predicts for its pictures."""
    parts, place = [], SHIFTS.index(shift)
    with tempfile.TemporaryDirectory() as scratch:
        made = sliders.make_sliders(sampler.pipe, [shift], [name], recipe=recipe, settings=settings, origin=origin, folder=Path(scratch))
        for seed in range(1, settings.pilot.seeds + 1):
            classes, shifts, severity = oracle.parts(images_of(sampler, made[shift, name], name, seed, scales))
            asked = severity[:, 0].sigmoid() * shifts.softmax(dim=1)[:, place]
            kept = classes.softmax(dim=1)[:, oracle.labels.index(name)] >= KNOWN
            seen = {"scale": [float(scale) for scale in scales], "asked": asked.double().numpy().round(6), "kept": kept.tolist()}
            parts.append(pd.DataFrame(seen | {"named": (shifts.argmax(dim=1) == place).tolist()}).assign(seed=seed))
    key = {"shift": shift, "class": name, "eta": float(settings.eta)}
    tables.write_unit(pd.concat(parts, ignore_index=True).assign(**key), unit, schema)


def criteria(seen: pd.DataFrame) -> pd.DataFrame:
    """One row per (shift, eta): shares of the pictures at the last scale whose shift and whose class are named, and how even the way is.

    `largest_step` is the part of the whole rise of the mean reading that lies between two neighbouring scales; nan without a rise.
    """
    if seen.empty:
        return pd.DataFrame(columns=["shift", "eta", *BOUNDS, "n"])
    last = seen[seen["scale"] == seen["scale"].max()].groupby(["shift", "eta"], sort=False)
    mean = seen.groupby(["shift", "eta", "scale"], sort=False)["asked"].mean().unstack("scale").sort_index(axis=1)
    rise = mean.iloc[:, -1] - mean.iloc[:, 0]
    found = last[["named", "kept"]].mean().assign(n=last.size(), largest_step=mean.diff(axis=1).max(axis=1) / rise.where(rise > 0))
    return found.reset_index()


def chosen(found: pd.DataFrame, pilot: Pilot) -> pd.DataFrame:
    """The row of each shift's eta: the one that misses the bounds of `pilot` by least, all shortfalls together, and of such the greatest.

    A shift shall be as plain to see as the class allows.
    """
    bounds = {"named": pilot.named, "kept": pilot.kept, "largest_step": pilot.largest_step}
    short = sum((BOUNDS[key] * (bound - found[key].fillna(np.inf))).clip(lower=0) for key, bound in bounds.items())
    ranked = found.assign(shortfall=short).round({"shortfall": 9}).sort_values(["shortfall", "eta"], ascending=[True, False], kind="stable")
    return ranked.groupby("shift", sort=False).head(1).sort_index().reset_index(drop=True)
