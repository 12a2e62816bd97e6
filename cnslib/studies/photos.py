"""The photo set: real ImageNet classifiers under the fourteen rendered shifts of photographed objects, severity known exactly.

A trajectory is one cut-out under one shift; the column `scale` of its rows is the severity. Predictions are stored, images are not. For one
classifier the severity is halved between its last right and first wrong prediction, down to `resolution`.
"""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import xarray as xr
from jaxtyping import UInt8
from skimage.measure import block_reduce
from tqdm.auto import tqdm

from cnslib.core import paths, recipes, tables, units, workers
from cnslib.core.names import UNSHIFTED, demand
from cnslib.core.settings.method import Bootstrap
from cnslib.core.settings.sections import Photos
from cnslib.data import imagenet, published
from cnslib.method import evaluation
from cnslib.models.classifiers import Classifier
from cnslib.stats import accuracy, bootstrap, failure, verdicts
from cnslib.stats.accuracy import TINY
from cnslib.studies import bisection, shared
from cnslib.world import cutouts
from cnslib.world.cutouts import CutOut

GRID = bisection.BRACKETS[:2]


def predict_all(shifts: list[str], *, settings: Photos, device: str, folder: Path) -> pd.DataFrame:
    """The predictions of all classifiers, a table for each shift and one for the unshifted images."""
    models, drawn = shared.digests(settings.classifiers), [settings.cutouts, settings.severities, settings.seed]
    stamps = {shift: recipes.PHOTOS.stamp(shift, models, units.directory_digest(paths.PHOTOS), drawn) for shift in (UNSHIFTED, *shifts)}
    judges, labels = partial(shared.judges, settings.classifiers, device=device), list(imagenet.labels())
    rows = lambda shift, objects: predict(judges(labels), objects, [shift], settings=settings)  # noqa: E731
    return workers.stored(stamps, rows, tables.predictions, device=device, folder=folder, common=lambda: [chosen(settings)])


def chosen(settings: Photos) -> list[CutOut]:
    """The cut-outs that the settings choose. ValueError for more than there are."""
    objects = cutouts.read(paths.PHOTOS, count=settings.cutouts)
    demand(
        len(objects) == settings.cutouts, "photos.cutouts", settings.cutouts, f"at most {len(objects)}, which is what {paths.PHOTOS} holds"
    )
    return objects


def predict(classifiers: list[Classifier], objects: list[CutOut], shifts: Iterable[str], *, settings: Photos) -> pd.DataFrame:
    """One row per classifier and image; the images of one cut-out under one shift are one batch, drawn once for all classifiers."""
    parts = []
    for shift in shifts:
        severities = [0.0] if shift == UNSHIFTED else settings.severities[1:]
        keys = [(shift, cutout.label, cutout.seed, value) for cutout in objects for value in severities]
        logits: dict[str, list] = {classifier.name: [] for classifier in classifiers}
        for cutout in tqdm(objects, desc=shift, disable=None, leave=False):
            images = cutouts.shifted(cutout, shift, severities, seed=settings.seed)
            for classifier in classifiers:
                logits[classifier.name].append(classifier.logits(images))
        table = pd.DataFrame(keys, columns=tables.KEY)
        parts += [evaluation.predictions(classifier, table, torch.cat(logits[classifier.name])) for classifier in classifiers]
    return pd.concat(parts, ignore_index=True)


def bisect(points: pd.DataFrame, shifts: list[str], *, settings: Photos, device: str, folder: Path) -> pd.DataFrame:
    """The first failures (Eq. 3) of the classifier `bisected` between the severities: points as of `bisection.bisect`."""
    source = {settings.bisected: settings.classifiers[settings.bisected]}
    drawn = [settings.cutouts, settings.severities, settings.seed, settings.resolution]
    made_from = [shared.digests(source), units.directory_digest(paths.PHOTOS), drawn]
    stamps = {shift: recipes.PHOTOS.stamp("bisection", shift, *made_from) for shift in shifts}
    points = points[points["model"] == settings.bisected]
    points = points.assign(grid_after=points["after"], grid_until=points["failure_point"].fillna(np.inf))[[*bisection.POINT, *GRID]]

    def rows(shift: str, objects: list[CutOut]) -> pd.DataFrame:
        (classifier,) = shared.judges(source, list(imagenet.labels()), device)
        places = {(cutout.label, cutout.seed): cutout for cutout in objects}
        part = points[points["shift"] == shift].reset_index(drop=True)
        halved = [halve(row, places[row["class"], row["seed"]], classifier, settings=settings) for row in part.to_dict("records")]
        return part.assign(after=[after for after, _ in halved], until=[until for _, until in halved])

    common = lambda: [chosen(settings)]  # noqa: E731
    return workers.stored(stamps, rows, bisection.points_schema, device=device, folder=folder, common=common)


def halve(row: dict, cutout: CutOut, classifier: Classifier, *, settings: Photos) -> tuple[float, float]:
    """The last right and the first wrong severity of one trajectory, as far apart as the resolution."""

    def wrong_at(severities: list[float]) -> np.ndarray:
        logits = classifier.logits(cutouts.shifted(cutout, row["shift"], severities, seed=settings.seed))
        return np.array([[classifier.labels[top] != cutout.label] for top in logits.argmax(1).tolist()])

    first, last = (np.array([row[name]]) for name in GRID)
    after, until = bisection.halve(first, last, wrong_at, resolution=settings.resolution)
    return float(after[0]), float(until[0])


def median_severity(points: pd.DataFrame, settings: Bootstrap) -> pd.DataFrame:
    """The severity by which half of the objects have failed under each shift (infinite: fewer do), by points as of `bisect`."""
    rows = []
    for shift, part in points.groupby("shift"):
        order = np.argsort(part["until"].to_numpy())
        middle = ((part["after"].clip(lower=0) + part["until"]) / 2).to_numpy()[order]
        weights, units = bootstrap.resampling_weights(part, settings=settings)
        shares = weights[:, units[order]].cumsum(1) / len(part)
        values = np.append(middle, np.inf)[np.argmax(np.pad(shares, ((0, 0), (0, 1)), constant_values=1) >= 0.5, axis=1)]
        tail = (1 - settings.confidence) / 2
        bounds = np.quantile(values[1:], [tail, 1 - tail], method="inverted_cdf")
        rows.append({"shift": shift, **bootstrap.as_record(len(part), values[0], *bounds)})
    return pd.DataFrame(rows).sort_values("estimate", ignore_index=True)


def samples(objects: list[CutOut], *, columns: int, seed: int) -> tuple[UInt8[np.ndarray, "rows columns side side 3"], pd.DataFrame]:
    """All unshifted images row by row, the last row filled up with white, and which object stands where."""
    images = np.concatenate([shrunk(cutouts.shifted(cutout, UNSHIFTED, [0.0], seed=seed)) for cutout in objects])
    columns = min(columns, len(objects))
    rows = -(-len(objects) // columns)
    white = np.full((rows * columns - len(objects), *images.shape[1:]), 255, np.uint8)
    sheet = np.concatenate([images, white]).reshape(rows, columns, *images.shape[1:])
    places = [(place // columns + 1, place % columns + 1, cutout.label, cutout.seed) for place, cutout in enumerate(objects)]
    return sheet, pd.DataFrame(places, columns=["row", "column", "class", "seed"])


def strips(
    objects: list[CutOut], shifts: list[str], predictions: pd.DataFrame, *, model: str, settings: Photos
) -> tuple[UInt8[np.ndarray, "shifts shown side side 3"], pd.DataFrame]:
    """One object per shift at the `shown` severities, and where `model` fails on it; objects it misses without a shift are passed over."""
    points = failure.failure_points(accuracy.wrong_predictions(predictions)).query("model == @model").set_index(["shift", "class", "seed"])
    sheet, rows = [], []
    for number, shift in enumerate(shifts):
        start = number * len(objects) // len(shifts)
        turned = [*objects[start:], *objects[:start]]
        shown = next((one for one in turned if points.loc[(shift, one.label, one.seed), "failure_point"] != 0), turned[0])
        sheet.append(shrunk(cutouts.shifted(shown, shift, settings.shown, seed=settings.seed)))
        point = points.loc[(shift, shown.label, shown.seed)]
        rows.append([shift, shown.label, shown.seed, model, point["failure_point"], point["failed"]])
    return np.stack(sheet), pd.DataFrame(rows, columns=["shift", "class", "seed", "model", "failure_point", "failed"])


def shrunk(images: UInt8[np.ndarray, "images side side 3"]) -> UInt8[np.ndarray, "images half half 3"]:
    """Images at half their side, as contact sheets show them: means of 2 x 2 pixels."""
    return block_reduce(images, (1, 2, 2, 1), np.mean).round().astype(np.uint8)


def by_severity(errors: xr.DataArray) -> pd.DataFrame:
    """The mean accuracy over the models and shifts along the severity (column scale)."""
    mean = accuracy.mean_accuracy(errors).query("shift == @accuracy.ALL").drop(columns=["shift", "model"])
    return mean.assign(n=mean["n"].mask(mean["scale"] == 0, errors["n"].to_numpy()[:-1].max()))


def against_paper(errors: xr.DataArray, first: str, last: str) -> pd.DataFrame:
    """Ours beside the published values on generated images (Table 5, section 5.3), the last severity beside scale 2.5.

    `first` and `last` are the smallest and the largest classifier of one family.
    """
    table, drop = published.by_scale("cns_table5"), accuracy.drop(errors).sel(shift=accuracy.ALL)
    later = drop.isel(scale=slice(1, None)).mean("scale")
    rows = {
        "mean accuracy without a shift": (by_severity(errors).iloc[0].drop("scale").to_dict(), "Table 5"),
        "mean accuracy drop at the end": (accuracy.metric(drop.isel(scale=-1).mean("model")), "Table 5"),
        f"mean drop of {last} minus that of {first}": (
            accuracy.metric(later.sel(model=last, drop=True) - later.sel(model=first, drop=True)),
            "section 5.3, size",
        ),
        f"shifts of {errors.sizes['shift'] - 1} with another order": (other_orders(errors), "section 5.3, shifts"),
    }
    findings = pd.DataFrame([{"quantity": name, **record, "source": source} for name, (record, source) in rows.items()])
    findings, lost = findings.rename(columns={"estimate": "ours"}), (table[0.0] - table[2.5]).mean()
    judged = verdicts.beside(findings[:3], [table[0.0].mean(), lost, "below 0"], null=[None, None, 0.0])
    counted = verdicts.beside(findings[3:], "above 0", within=(0.0, errors.sizes["shift"] - 1.0))
    return pd.concat([judged, counted], ignore_index=True)


def other_orders(errors: xr.DataArray) -> dict:
    """Under how many shifts the summed errors order the models otherwise than over all shifts; the interval is `bootstrap.joined`."""
    summed, (first, second) = errors.sum("scale").to_numpy(), np.triu_indices(errors.sizes["model"], 1)
    gap = summed[..., first] - summed[..., second]
    side = np.where(np.abs(gap) > TINY, np.sign(gap), 0.0)
    changed = (side[:, :-1] * side[:, -1:] < 0).any(-1).sum(-1).astype(float)
    n, most = errors["n"].to_numpy()[-1], errors.sizes["shift"] - 1.0
    return bootstrap.joined(changed, n, errors["confidence"].item(), within=(0.0, most))
