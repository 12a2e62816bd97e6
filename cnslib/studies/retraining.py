"""What another training of the sliders would change: a variance component beside those of seeds and classes.

CNS-Bench trains one slider for each shift and class, and so does chapter 02; every interval then holds the slider fixed.
"""

import dataclasses
import functools
import itertools
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
from jaxtyping import Float

from cnslib.core import recipes, tables, workers
from cnslib.core.names import identifier
from cnslib.core.settings.method import Bootstrap, Sliders
from cnslib.method import evaluation, generation, sliders
from cnslib.models.classifiers import Classifier
from cnslib.models.text_to_image import Origin
from cnslib.stats import bootstrap

predictions = tables.schema(
    ["training", "model", *tables.KEY],
    {"training": pa.Column(int), "model": pa.Column(str), **tables.IDENTITY, "top1": pa.Column(str)},
)
PARTS = ("class", "training", "seed", "rest")


def predict(
    sampler: generation.Sampler,
    classifiers: list[Classifier],
    trainings: list[int],
    shifts: list[str],
    classes: list[str],
    *,
    scales: list[float],
    seeds: int,
    settings: Sliders,
    recipe: str,
    origin: Origin,
    folder: Path,
) -> pd.DataFrame:
    """Predictions for images of sliders that differ from the benchmark's in the seed of their training alone, at all scales but 0.

    One unit a training, shift and class; makes what is missing or outdated. Sliders and images are not kept.
    """
    if not trainings:
        return pd.DataFrame(columns=[*predictions.columns])
    networks = [[one.name, one.digest, one.labels, one.preprocessing] for one in classifiers]
    shared = sampler.settings.drawn(), sampler.identity, networks, scales, seeds
    changed = {training: dataclasses.replace(settings, seed=training) for training in trainings}
    stamps = {}
    for training, shift, name in itertools.product(trainings, shifts, classes):
        slider = sliders.stamp(shift, name, settings=changed[training], origin=origin, recipe=recipe)
        stamps[training, shift, name] = recipes.RETRAINED.stamp(slider, *shared)
    rows = functools.partial(predict_one, sampler, classifiers, changed, scales=scales, seeds=seeds, recipe=recipe, origin=origin)
    file = lambda key: f"{key[0]}/{identifier(key[1])}-{identifier(key[2])}.parquet"  # noqa: E731
    return workers.stored(stamps, rows, predictions, folder=folder, device=sampler.pipe.device, file=file, pattern="*/*.parquet")


def predict_one(
    sampler: generation.Sampler,
    classifiers: list[Classifier],
    changed: dict[int, Sliders],
    key: tuple[int, str, str],
    *,
    scales: list[float],
    seeds: int,
    recipe: str,
    origin: Origin,
) -> pd.DataFrame:
    """Trains one slider, draws its images as the benchmark's are drawn and stored, and predicts them."""
    (training, shift, name), others = key, [scale for scale in scales if scale != 0]
    with tempfile.TemporaryDirectory() as scratch:
        options = {"recipe": recipe, "settings": changed[training], "origin": origin, "folder": Path(scratch)}
        made = sliders.make_sliders(sampler.pipe, [shift], [name], **options)
        drawn = sampler.trajectories(name, made[shift, name], others, seeds)
    quality = sampler.settings.quality
    images = pd.DataFrame(
        row for seed, strip in enumerate(drawn, start=1) for row in generation.rows(shift, name, seed, others, strip, quality=quality)
    )
    pictures = [tables.decode(image, f"{key}") for image in images["image"]]
    logits = [evaluation.batch_logits(one, pictures, size=len(pictures)) for one in classifiers]
    parts = [evaluation.predictions(*pair) for pair in zip(classifiers, itertools.repeat(images), logits)]
    return pd.concat(parts, ignore_index=True).assign(training=training)[list(predictions.columns)]


def components(values: Float[np.ndarray, "classes trainings seeds"]) -> dict[str, float]:
    """Variances of a value between classes, between trainings and seeds of one class, and the rest.

    Within a class trainings and seeds are crossed. Moment estimates of the two-way analysis of variance, averaged over classes; they may be
    negative. That of classes is free of what trainings and seeds add to the mean of a class. NaN for fewer than two of anything.
    """
    if min(values.shape) < 2:
        return dict.fromkeys(PARTS, np.nan)
    _, trainings, seeds = values.shape
    by_training, by_seed, by_class = values.mean(2), values.mean(1), values.mean((1, 2))
    residual = values - by_training[:, :, None] - by_seed[:, None, :] + by_class[:, None, None]
    rest = (residual**2).sum() / ((trainings - 1) * (seeds - 1) * len(values))
    training = by_training.var(1, ddof=1).mean() - rest / seeds
    seed = by_seed.var(1, ddof=1).mean() - rest / trainings
    between = by_class.var(ddof=1) - training / trainings - seed / seeds - rest / (trainings * seeds)
    return dict(zip(PARTS, (between, training, seed, rest), strict=True))


def deviations(values: Float[np.ndarray, "classes trainings seeds"], *, settings: Bootstrap) -> pd.DataFrame:
    """Standard deviations of `components` (part, n, estimate, low, high), 0 for a negative variance; the interval resamples classes."""
    generator = np.random.default_rng(settings.seed)
    draws = generator.integers(len(values), size=(settings.resamples, len(values)))
    samples = [components(values), *(components(values[draw]) for draw in draws)]
    spread = pd.DataFrame(samples)[list(PARTS)].clip(lower=0) ** 0.5
    records = {part: bootstrap.record(spread[part].to_numpy(), values.size, settings.confidence) for part in PARTS}
    return pd.DataFrame.from_dict(records, orient="index").rename_axis("part").reset_index()
