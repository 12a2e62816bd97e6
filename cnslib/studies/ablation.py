"""How many steps and which scheduler the images need, and how many classes the benchmark (CNS-Bench supplement G.4)."""

import dataclasses
import itertools
import math
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
import xarray as xr
from diffusers import StableDiffusionPipeline
from jaxtyping import Bool, Float, UInt8

from cnslib.core import recipes, seeds, tables, units, workers
from cnslib.core.names import PROMPT, UNSHIFTED, demand, identifier
from cnslib.core.settings.method import SAME, Bootstrap, Generation
from cnslib.core.settings.sections import Scheduling
from cnslib.method import evaluation
from cnslib.method.generation import Sampler, SamplingMode
from cnslib.method.health import Judge
from cnslib.method.sliders import slider_path
from cnslib.models import adapters, text_to_image
from cnslib.models.classifiers import Classifier
from cnslib.stats import accuracy, bootstrap, ranking
from cnslib.stats.accuracy import ALL, TINY, trajectories

NAME = {"sampler": pa.Column(str)}
predictions_schema = tables.schema(
    ["sampler", "model", *tables.KEY], {**NAME, "model": pa.Column(str), **tables.IDENTITY, "top1": pa.Column(str)}
)
similarity_schema = tables.schema(
    ["sampler", *tables.KEY],
    {**NAME, **tables.IDENTITY, "alignment": pa.Column(float), "change": pa.Column(float), "likeness": pa.Column(float, tables.COSINE)},
)
pictures_schema = tables.schema(["sampler", *tables.KEY], {**NAME, **tables.IDENTITY, "image": pa.Column(object)})
Pictures = UInt8[np.ndarray, "scales height width 3"]
Errors = Sequence[xr.DataArray]  # error rates of each sampler's images with their resamples, and those of each unit alone


@dataclasses.dataclass(frozen=True)
class Bench:
    """What is drawn by whom and shown to whom: samplers by name, the one the others are compared with, judge and classifiers."""

    steppers: dict[str, Sampler]
    reference: str
    origin: text_to_image.Origin
    judge: Judge
    classifiers: list[Classifier]
    sliders: Path
    folder: Path

    @cached_property
    def digest(self) -> str:
        """What all units have in common: samplers, base model, judge and classifiers."""
        drawn = [[name, one.identity, one.settings.recorded()] for name, one in self.steppers.items()]
        evaluated = [[one.name, one.digest, one.labels, one.preprocessing] for one in self.classifiers]
        return units.digest(PROMPT, drawn, self.reference, self.origin.base, self.judge.digest, evaluated)


def steppers(pipe: StableDiffusionPipeline, samplers: dict[str, Scheduling], *, settings: Generation) -> dict[str, Sampler]:
    """The samplers of params.yaml, each a scheduler, its steps and their spacing; all else as the benchmark is drawn."""
    modes = {name: SamplingMode(scheduler=one.scheduler, spacing=one.spacing, steps=one.steps) for name, one in samplers.items()}
    return {name: Sampler(pipe, settings=mode.settings(settings), mode=mode) for name, mode in modes.items()}


def compare(bench: Bench, shifts: list[str], classes: list[str], *, scales: list[float], seeds: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Predictions of every classifier and the similarity by the judge at the first seeds of each class; a unit per (class, seed).

    `change` is the mean absolute difference in grey levels from the reference sampler's picture, `likeness` the cosine of their
    features.
    """
    keys = list(itertools.product(classes, range(1, seeds + 1)))
    files = {key: (f"{identifier(key[0])}_{key[1]}.parquet", stamp(bench, shifts, *key, scales)) for key in keys}
    predictions, similarity = (units.Shelf(bench.folder / kind, files) for kind in ("predictions", "similarity"))
    waiting = {*predictions.waiting(), *similarity.waiting()}
    jobs = [(bench, shifts, *key, scales, predictions[key], similarity[key]) for key in keys if key in waiting]
    workers.each(measure, jobs, device=bench.steppers[bench.reference].pipe.device, desc="samplers")
    return tables.read_units(predictions, predictions_schema), tables.read_units(similarity, similarity_schema)


def stamp(bench: Bench, shifts: list[str], name: str, seed: int, scales: list[float]) -> str:
    """What a unit depends on: the bench, the sliders of its class, its token and its grid."""
    files = [adapters.file_digest(slider_path(bench.sliders, shift, name)) for shift in shifts]
    return recipes.ABLATION.stamp(bench.digest, files, bench.origin.tokens[name], shifts, name, seed, scales)


def measure(
    bench: Bench, shifts: list[str], name: str, seed: int, scales: list[float], predictions: units.Unit, similarity: units.Unit
) -> None:
    """Writes the predictions and the similarity of one class and seed."""
    drawn = draw(bench, shifts, name, seed, scales)
    tables.write_unit(answer(bench, drawn), predictions, predictions_schema)
    tables.write_unit(look(bench, drawn), similarity, similarity_schema)


def draw(bench: Bench, shifts: list[str], name: str, seed: int, scales: list[float]) -> pd.DataFrame:
    """The pictures of one class and seed by every sampler: sampler, key and `picture`; the unshifted one once per sampler."""
    above, rows = [scale for scale in scales if scale > 0], []
    for sampler, stepper in bench.steppers.items():
        drawn = {UNSHIFTED: ([0.0], stepper.unshifted(name, seed))}
        for shift in shifts:
            with adapters.loaded(stepper.pipe, slider_path(bench.sliders, shift, name)):
                drawn[shift] = above, stepper.shifted(name, seed, above)
        for shift, (places, pictures) in drawn.items():
            key = {"sampler": sampler, "shift": shift, "class": name, "seed": seed}
            rows += [key | {"scale": scale, "picture": picture} for scale, picture in zip(places, pictures.numpy(), strict=True)]
    return pd.DataFrame(rows)


def answer(bench: Bench, drawn: pd.DataFrame) -> pd.DataFrame:
    """The first answer of every classifier to every picture."""
    pictures, parts = list(drawn["picture"]), []
    for classifier in bench.classifiers:
        logits = evaluation.batch_logits(classifier, pictures, size=len(pictures))
        parts.append(evaluation.predictions(classifier, drawn, logits).assign(sampler=drawn["sampler"]))
    return pd.concat(parts, ignore_index=True)[list(predictions_schema.columns)]


def look(bench: Bench, drawn: pd.DataFrame) -> pd.DataFrame:
    """Alignment of every picture with its shift, and how far it is from the reference sampler's; unshifted rows under every shift."""
    features = bench.judge.image_encoder.features(np.stack(list(drawn["picture"])))
    shifts = [shift for shift in drawn["shift"].unique() if shift != UNSHIFTED]
    rows = tables.trajectories(drawn.assign(feature=list(features.numpy()), alignment=np.nan), shifts)
    for (shift, name), part in rows.groupby(["shift", "class"]):
        rows.loc[part.index, "alignment"] = bench.judge.alignment(np.stack(list(part["picture"])), shift, name).double().numpy().round(6)
    both = rows.merge(rows[rows["sampler"] == bench.reference], on=tables.KEY, suffixes=("", "_reference"), validate="many_to_one")
    pictures, views = (zip(both[key], both[f"{key}_reference"], strict=True) for key in ("picture", "feature"))
    both["change"] = [abs(one.astype(int) - other).mean().round(6) for one, other in pictures]
    both["likeness"] = [float((one * other).sum().round(6)) for one, other in views]
    return both[list(similarity_schema.columns)]


def films(bench: Bench, shift: str, name: str, seed: int, scales: list[float]) -> dict[str, Pictures]:
    """The pictures of one trajectory by every sampler, scale 0 first; kept on file, since a figure shows them."""
    file = f"{identifier(shift)}_{identifier(name)}_{seed}.parquet"
    shelf = units.Shelf(bench.folder / "pictures", {name: (file, stamp(bench, [shift], name, seed, scales))})
    for _ in shelf.waiting():
        drawn = draw(bench, [shift], name, seed, scales)
        drawn["image"] = [tables.encode(picture) for picture in drawn["picture"]]
        tables.write_unit(drawn.drop(columns="picture"), shelf[name], pictures_schema)
    stored = tables.read_units(shelf, pictures_schema).sort_values("scale", kind="stable")
    return {sampler: tables.pictures(stored[stored["sampler"] == sampler], file) for sampler in bench.steppers}


def by_sampler(predictions: pd.DataFrame, *, settings: Bootstrap) -> Errors:
    """Error rates of each sampler's images, [resample, sampler, shift, model, scale], and those of each unit alone."""
    parts = {name: accuracy.wrong_predictions(part.drop(columns="sampler")) for name, part in predictions.groupby("sampler", sort=False)}
    both = (xr.Dataset({k: average(wrong, settings) for k, wrong in parts.items()}) for average in (accuracy.by_shift, accuracy.by_unit))
    rates, units = (one.to_array("sampler") for one in both)
    return rates.transpose("resample", "sampler", ...), units.transpose("unit", "sampler", ...)


def minus(values: Sequence[xr.DataArray], reference: str) -> pd.DataFrame:
    """Values of each other sampler, with those of each unit alone, minus the reference's on the same images, a table."""
    samples, units = ((one - one.sel(sampler=reference, drop=True)).drop_sel(sampler=reference) for one in values)
    table = accuracy.interval(samples, units=units)
    return table.assign(sampler=table.pop("sampler"))


def orders(errors: Errors, reference: str) -> dict[str, dict]:
    """Kendall's tau of the models' order by accuracy over all scales above 0 with the reference's order, as records."""
    means = errors[0].sel(shift=ALL).isel(scale=slice(1, None)).mean("scale").round(9)
    first, n, confidence = means.sel(sampler=reference).to_numpy(), means["n"].item(), means["confidence"].item()
    others = [name for name in means["sampler"].to_numpy() if name != reference]
    return {name: ranking.order_record(means.sel(sampler=name).to_numpy(), first, n, confidence) for name in others}


def other_seeds(wrong: xr.DataArray, seeds: int, *, confidence: float) -> dict:
    """What drawing other garments changes: tau between the orders of two disjoint sets of `seeds` seeds, by the same sampler.

    The mean over all pairs of sets and their middle range; NaN where there are too few seeds. n counts pairs.
    """
    numbers = np.unique(wrong["seed"])
    groups = [numbers[start : start + seeds] for start in range(0, len(numbers) - seeds + 1, seeds)]
    scored = [wrong[wrong["seed"].isin(group)][..., 1:].mean(["trajectory", "scale"]).to_numpy() for group in groups]
    pairs = [ranking.kendall(one[None], other[None])[0] for one, other in itertools.combinations(scored, 2)]
    return bootstrap.record(np.array([np.mean(pairs), *pairs]), len(pairs), confidence) if pairs else dict(bootstrap.NOTHING)


# How many classes: the benchmark's numbers on every subset of them.

MEASURES = ("accuracy at scale 0", "accuracy drop", "rCE", "Kendall's tau with all classes")
Sums = tuple[Float[np.ndarray, "classes shifts models scales"], Float[np.ndarray, "classes shifts"]]
MOST = 1000  # subsets of one size; the 252 halves of ten classes are all taken, those of a hundred could not be


def sums(wrong: xr.DataArray) -> Sums:
    """Wrong predictions and trajectories of each class under each shift, added up."""
    (classes, number), (shifts, shift) = (np.unique(wrong[key], return_inverse=True) for key in ("class", "shift"))
    total = np.zeros([len(classes), len(shifts), *wrong.shape[1:]])
    count = np.zeros(total.shape[:2])
    np.add.at(total, (number, shift), wrong.to_numpy())
    np.add.at(count, (number, shift), 1)
    return total, count


def members(classes: int, count: int) -> Bool[np.ndarray, "subsets classes"]:
    """Every subset of this size, one row each, or `MOST` drawn ones if there are more. ValueError for a size that no subset has."""
    demand(1 <= count <= classes, "ablation.counts", count, f"1 to the {classes} classes")
    if math.comb(classes, count) > MOST:
        generator = np.random.default_rng(seeds.seed_of("subsets", classes, count))
        return generator.permuted(np.tile(np.arange(classes) < count, (MOST, 1)), axis=1)
    chosen = list(itertools.combinations(range(classes), count))
    rows = np.zeros((len(chosen), classes), bool)
    np.put_along_axis(rows, np.array(chosen), True, axis=1)
    return rows


def errors(total: Sums, chosen: Bool[np.ndarray, "subsets classes"]) -> Float[np.ndarray, "subsets models scales"]:
    """Error rate over the trajectories of each subset, all shifts pooled."""
    wrong = np.tensordot(chosen.astype(float), total[0].sum(1), 1)
    return wrong / (chosen @ total[1].sum(1))[:, None, None]


def relative_error(total: Sums, chosen: Bool[np.ndarray, "subsets classes"], reference: int) -> Float[np.ndarray, "subsets models"]:
    """rCE (Eq. 6) of every model on each subset, averaged over the shifts under which the reference loses something there; else NaN."""
    counts = np.tensordot(chosen.astype(float), total[1], 1)[..., None, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = np.tensordot(chosen.astype(float), total[0], 1) / counts
        drops = (rates - rates[..., :1]).sum(-1)
        below = drops[:, :, [reference]]
        ratio = np.where(below > TINY, drops / below, np.nan)
    defined = np.isfinite(ratio)
    summed = np.where(defined, ratio, 0).sum(1)
    return np.divide(summed, defined.sum(1), out=np.full(summed.shape, np.nan), where=defined.any(1))


def measures(wrong: xr.DataArray, counts: list[int], *, reference: str) -> pd.DataFrame:
    """Every subset's numbers: (classes, subset, measure, value); accuracy, drop and rCE are means over the models.

    The drop is that at the last scale. The order is by accuracy over all scales above 0. rCE leaves the reference out of its mean.
    """
    total, classes = sums(wrong), np.unique(wrong["class"])
    place = wrong["model"].to_numpy().tolist().index(reference)
    whole = errors(total, members(len(classes), len(classes)))[..., 1:].mean(-1)
    parts = []
    for count in counts:
        chosen = members(len(classes), count)
        rates = errors(total, chosen)
        values = [1 - rates[..., 0].mean(1), (rates[..., -1] - rates[..., 0]).mean(1)]
        values.append(np.delete(relative_error(total, chosen, place), place, axis=1).mean(1))
        values.append(ranking.kendall(rates[..., 1:].mean(-1), whole))
        names = [" + ".join(classes[row]) for row in chosen]
        table = pd.DataFrame(dict(zip(MEASURES, values, strict=True))).assign(classes=count, subset=names)
        parts.append(table.melt(["classes", "subset"], var_name="measure"))
    return pd.concat(parts, ignore_index=True)


def spread(table: pd.DataFrame, *, confidence: float) -> pd.DataFrame:
    """Median and range of the middle `confidence` of the subsets: (classes, measure, n, estimate, low, high), n subsets.

    It is no confidence interval: subsets share their classes.
    """
    rows = []
    for (count, measure), values in table.dropna().groupby(["classes", "measure"], sort=False)["value"]:
        record = bootstrap.record(np.array([values.median(), *values]), len(values), confidence)
        rows.append({"classes": count, "measure": measure, **record})
    return pd.DataFrame(rows)


def steadier(wrong: xr.DataArray, count: int, *, settings: Bootstrap) -> dict:
    """Deviation over the subsets of the accuracy at scale 0 minus that of the drop at the last scale (Fig. 25); seeds are resampled."""
    classes, number = np.unique(wrong["class"], return_inverse=True)
    weights, units = bootstrap.resampling_weights(trajectories(wrong), settings=settings.of(SAME))
    weights = weights[:, units]
    start, end = (1 - wrong[..., place].mean("model").to_numpy() for place in (0, -1))
    chosen = members(len(classes), count).astype(float)
    membership = np.eye(len(classes))[number]
    counts = (weights @ membership) @ chosen.T
    first, last = ((weights * values) @ membership @ chosen.T / counts for values in (start, end))
    gap = first.std(1) - (first - last).std(1)
    return bootstrap.record(gap, len(wrong), settings.confidence)
