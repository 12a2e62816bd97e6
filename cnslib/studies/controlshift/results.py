"""Accuracy against distance from the training images, and what Control+Shift concludes (Eq. 3, sections 4.2 and 4.3).

Distances are 1-NN distances, in pixels and in features; all classifiers share the resamples.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
import xarray as xr
from jaxtyping import Float
from sklearn.neighbors import NearestNeighbors

from cnslib.core import recipes, tables, units, workers
from cnslib.core.settings.method import Bootstrap, Evaluation
from cnslib.core.settings.sections import Controlshift
from cnslib.method import evaluation
from cnslib.models.encoders import ImageEncoder
from cnslib.stats import accuracy, bootstrap, verdicts
from cnslib.stats.accuracy import ALL
from cnslib.studies.controlshift import datasets
from cnslib.studies.controlshift.training import ON_SPHERE, SETS, flat

AUGMENTED = " + RandAugment"
STRONG, WEAK = ["resnet20"], ["svm", "mixer", "vit"]  # the paper's own four, by inductive bias (Fig. 5, centre)
BIASED = "overlap"  # the shift under which it compares them
STRONGEST, MILDER = "truncation", ("extend", "overlap")  # section 4.1
STANDARD, LARGE, FULL = "standard", "twice as many", "full support"
TRAINING_SETS = {"half sphere": STANDARD, "large": LARGE, "full support": FULL}  # the training sets that are compared
SPACES = ("pixel", "feature")
schema = tables.schema(tables.KEY, {**tables.IDENTITY, **{space: pa.Column(float, pa.Check.ge(0)) for space in SPACES}})


def distances(sets: Path, settings: Controlshift, encoder: ImageEncoder, folder: Path) -> pd.DataFrame:
    """Distance of each test image from the nearest one of the standard training set, pixels in [0, 1] or features of length 1."""
    files = [units.verified(sets / name) for name in sorted(f"{file.name}.parquet" for file in datasets.plan(settings))]
    groups = {"truncation": ("truncation",), "half sphere": ON_SPHERE}
    rows = lambda _: pd.concat([from_training(sets, settings, encoder, *group) for group in groups.items()], ignore_index=True)  # noqa: E731
    stamps = {"distances": recipes.NEIGHBOURS.stamp(files, encoder.digest)}
    return workers.stored(stamps, rows, schema, folder=folder, device=encoder.device)


def from_training(sets: Path, settings: Controlshift, encoder: ImageEncoder, training: str, kinds: tuple[str, ...]) -> pd.DataFrame:
    """Euclidean distances of the test images of some shifts from their nearest training image; their mean is the 1-NN distance (Eq. 3)."""
    table = datasets.evaluation_set(sets, settings, kinds)
    training_images, test = (tables.pictures(one, "images") for one in (datasets.load(sets, *SETS[training]), table))
    near, rows = NearestNeighbors(n_neighbors=1, algorithm="brute"), table[tables.KEY].copy()
    for space, embed in zip(SPACES, (flat, lambda pictures: encoder.features(pictures).double().numpy()), strict=True):
        rows[space] = near.fit(embed(training_images)).kneighbors(embed(test))[0][:, 0]
    return rows


def distance(wrong: xr.DataArray, away: pd.DataFrame, *, space: str, settings: Bootstrap) -> xr.DataArray:
    """Mean 1-NN distance [resample, shift, scale] of the trajectories of `wrong`, resampled with the predictions."""
    wide = away.pivot(index=tables.TRAJECTORY, columns="scale", values=space)
    wide = wide.loc[pd.MultiIndex.from_frame(accuracy.trajectories(wrong)), wrong["scale"].to_numpy()]
    return accuracy.by_shift(wrong.isel(model=0, drop=True).copy(data=wide.to_numpy()), settings)


def standard(predictions: pd.DataFrame) -> xr.DataArray:
    """Wrong predictions of the first run of every classifier on the standard training sets; augmented ones have names of their own."""
    rows = predictions[(predictions["run"] == 1) & predictions["training"].isin(["truncation", "half sphere"])]
    model = rows["network"] + np.where(rows["augmented"], AUGMENTED, "")
    return accuracy.wrong_predictions(rows[[*tables.KEY, "top1"]].assign(model=model))


def averaged(values: xr.DataArray, groups: dict[str, list[str]]) -> xr.DataArray:
    """Means over groups of models."""
    means = [values.sel(model=names).mean("model") for names in groups.values() if names]
    return xr.concat(means, pd.Index([name for name, names in groups.items() if names], name="model")).transpose(*values.dims)


def centred(values: xr.DataArray) -> xr.DataArray:
    """Values along the steps minus their mean."""
    return values - values.mean("scale")


def slope(away: xr.DataArray, changed: xr.DataArray) -> xr.DataArray:
    """Robustness slope: least-squares slope, with an intercept, of the change of accuracy on the 1-NN distance (section 4.2)."""
    return ((centred(away) * centred(changed)).sum("scale") / (centred(away) ** 2).sum("scale")).transpose(*changed.isel(scale=0).dims)


def linearity(away: xr.DataArray, changed: xr.DataArray) -> pd.DataFrame:
    """Share of the variance of the change of accuracy that lines in the 1-NN distance explain, one per classifier (Fig. 6)."""
    rest = centred(changed) - slope(away, changed) * centred(away)
    spread = (centred(changed) ** 2).sum(["model", "scale"])
    return accuracy.interval(1 - (rest**2).sum(["model", "scale"]) / spread.where(spread > 0), within=bootstrap.SHARE)


def learned(errors: xr.DataArray, least: float) -> list[str]:
    """Classifiers with at least this accuracy at step 0, all shifts: who has learned nothing can lose nothing."""
    start = 1 - errors.sel(shift=ALL).isel(resample=0, scale=0)
    return start["model"].to_numpy()[start >= least].tolist()


def findings(errors: xr.DataArray, slopes: xr.DataArray, sets: xr.DataArray, *, least: float) -> dict[str, dict]:
    """Every finding as a record, oriented so that the paper's direction is positive; n counts trajectories.

    Classifiers below `least` take no part, see `learned`; an augmented one takes part only beside its partner.
    """
    able = learned(errors, least)
    single = [name for name in able if AUGMENTED not in name]
    augmented = [name for name in able if name.endswith(AUGMENTED) and name.removesuffix(AUGMENTED) in single]
    partners = [name.removesuffix(AUGMENTED) for name in augmented]
    starts, drops = 1 - errors.isel(scale=0), accuracy.drop(errors).isel(scale=-1)
    average = accuracy.drop(sets).isel(scale=slice(1, None)).mean("scale").sel(shift=ALL)
    losses = {name: average.sel(model=name) for name in TRAINING_SETS.values()}
    certain = losses[STANDARD].where(bool((losses[STANDARD] > 0).all()))  # where a loss is not certain, there is nothing to share
    of_sets = {
        "size": (losses[STANDARD] - losses[LARGE]) / certain,
        "support": losses[LARGE] - losses[FULL],
        "complete": losses[FULL] / certain,
    }
    values = {
        "decline": mean(drops, single),
        **{f"strongest_{milder}": mean(drops, single, STRONGEST) - mean(drops, single, milder) for milder in MILDER},
        "augmented": mean(drops, augmented),
        "baseline": mean(starts, augmented) - mean(starts, partners),
        "augmentation": mean(slopes, augmented) - mean(slopes, partners),
        **of_sets,
        "bias": mean(slopes, [m for m in single if m in STRONG], BIASED) - mean(slopes, [m for m in single if m in WEAK], BIASED),
    }
    n = {name: (sets if name in of_sets else errors)["n"].sel(shift=ALL).item() for name in values}
    return {name: bootstrap.record(np.asarray(resampled), n[name], errors["confidence"].item()) for name, resampled in values.items()}


def mean(values: xr.DataArray, models: list[str], shift: str = ALL) -> Float[np.ndarray, "resamples+1"]:
    """Mean over some classifiers under a shift; NaN where there is no such shift or no classifier."""
    if shift not in values["shift"] or not models:
        return np.full(values.sizes["resample"], np.nan)
    return values.sel(shift=shift, model=models).mean("model").to_numpy()


def against(records: dict[str, dict], published: pd.DataFrame) -> pd.DataFrame:
    """Our numbers beside the paper's statements (id, finding, quantity, published, tolerance); no verdict where one is `unmeasured`."""
    table = published.set_index("id").loc[list(records)]
    ours = table[["finding", "quantity"]].join(pd.DataFrame(records).T)
    judged = verdicts.beside(ours, table["published"], tolerance=table["tolerance"].fillna(0.0))
    return set_aside(judged, table["unmeasured"])


def set_aside(table: pd.DataFrame, reasons: Iterable) -> pd.DataFrame:
    """Judged claims, of which those with a reason (one per row, in order) are not measured: it stands in the place of the rule."""
    given = pd.Series(list(reasons), table.index, dtype=object)
    judged = {"rule": table["rule"].mask(given.notna(), given), "verdict": table["verdict"].mask(given.notna(), verdicts.UNMEASURED)}
    return table.assign(**judged, smallest=table["smallest"].mask(given.notna()))


def benchmark_predictions(
    sets: Path, shifted: Controlshift, classes: list[str], *, labels: list[str], settings: Evaluation, device: str, folder: Path
) -> pd.DataFrame:
    """Predictions of the benchmark's classifiers, which the catalog trained, for all test images, one file per classifier."""
    numbers = range(1, shifted.test_images + 1)
    shards = {
        sets / f"{file.name}.parquet": [(file.kind, name, number, float(file.step)) for name in classes for number in numbers]
        for file in datasets.plan(shifted)
        if file.split == "test"
    }
    made = evaluation.evaluate(shards, labels=labels, settings=settings, device=device, folder=folder)
    predictions = tables.read_top1(made.values()).astype({"shift": str})
    start = predictions[(predictions["shift"] == "extend") & (predictions["scale"] == 0)]
    return pd.concat([predictions, start.assign(shift="overlap")], ignore_index=True)
