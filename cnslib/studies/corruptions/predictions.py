"""Predictions for corrupted pictures: every classifier on the catalog, ImageNet classifiers on the photo set (supplement D and E).

Rows take the form of the benchmark's: the corruption is the shift, its severity the scale, and severity 0 the picture as it is. The
photo set's objects stand in their unshifted scenes of 256 px, as in notebook 14; the corruptions take the parameters of 224 px.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from cnslib.core import paths, recipes, tables, units, workers
from cnslib.core.names import UNSHIFTED, demand, identifier
from cnslib.core.settings.method import Evaluation
from cnslib.core.settings.sections import Corruptions, Photos
from cnslib.data import catalog, imagenet
from cnslib.method import evaluation
from cnslib.models import classifiers
from cnslib.studies import photos
from cnslib.studies.corruptions.effects import Levels, Pictures, corrupt, levels, published
from cnslib.world import cutouts
from cnslib.world.cutouts import CutOut

SIDE = 224  # the parameters of photographs


def originals(pictures: Path, classes: list[str], count: int, *, side: int) -> tuple[pd.DataFrame, Pictures]:
    """The first held-out pictures of each class of the catalog, centred squares at this side: their class and seed, and the pictures."""
    found = [(name, seeds[:count], own[:count]) for name, seeds, own in catalog.whole(pictures, "heldout", classes)]
    rows = pd.DataFrame([(name, seed) for name, seeds, _ in found for seed in seeds], columns=["class", "seed"])
    return rows, np.stack([catalog.square(picture, side) for _, _, own in found for picture in own])


def evaluate(
    pictures: Path, classes: list[str], *, labels: list[str], settings: Corruptions, classifiers: Evaluation, device: str, folder: Path
) -> dict[str, Path]:
    """Makes the tables of predictions that are missing or outdated, one per classifier; a killed run keeps the finished ones."""
    evaluation.require_labels(classes, labels)
    graded = levels(settings)
    listed = [[name, *own.items()] for name, own in graded.items()]
    contents = [catalog.digest(pictures, "heldout", classes), settings.images, settings.side, listed]

    def batches() -> Iterator[evaluation.Batch]:
        for keys, made in corrupted(*originals(pictures, classes, settings.images, side=settings.side), graded):
            yield from evaluation.array_batches(keys, made, size=classifiers.batch_size)

    return evaluation.answered(
        recipes.CORRUPTIONS, contents, batches, labels=labels, settings=classifiers, device=device, folder=folder, desc="corruptions"
    )


def corrupted(rows: pd.DataFrame, plain: Pictures, graded: Levels) -> Iterator[tuple[pd.DataFrame, Pictures]]:
    """The originals (shift "unshifted", scale 0), then every corruption at every severity: the key of each picture, and the pictures."""
    keys = list(rows[["class", "seed"]].itertuples(index=False, name=None))
    yield rows.assign(shift=UNSHIFTED, scale=0.0), plain
    for name, own in graded.items():
        for severity, parameters in own.items():
            yield rows.assign(shift=name, scale=severity), corrupt(name, plain, parameters, keys=keys)


def chosen(photographs: Path, settings: Corruptions, shown: Photos) -> list[CutOut]:
    """So many of the photo set's cut-outs, evenly spaced, since neighbours are alike. ValueError for more than there are."""
    found = photos.chosen(photographs, shown)
    demand(settings.cutouts <= len(found), "corruptions.cutouts", settings.cutouts, f"at most photos.cutouts, {len(found)}")
    return [found[place * len(found) // settings.cutouts] for place in range(settings.cutouts)]


def evaluate_photographs(
    *, settings: Corruptions, shown: Photos, device: str, folder: Path, photographs: Path = paths.PHOTOS
) -> dict[str, Path]:
    """Makes the tables of predictions that are missing or outdated, one per corruption and one for the pictures as they are."""
    objects = [(own.label, own.seed) for own in chosen(photographs, settings, shown)]
    models = {name: [source, classifiers.digest(source)] for name, source in shown.classifiers.items()}
    graded: dict[str, list] = {UNSHIFTED: [], **{name: list(own.items()) for name, own in published(SIDE).items()}}
    inputs = [models, units.directory_digest(photographs), objects, shown.seed]
    stamps = {name: recipes.CORRUPTED_PHOTOGRAPHS.stamp(name, own, *inputs) for name, own in graded.items()}
    shelf = units.Shelf(folder, {name: (f"{identifier(name)}.parquet", stamp) for name, stamp in stamps.items()})
    pieces = [(name, settings, shown, device, photographs, shelf[name]) for name in shelf.waiting()]
    workers.each(write, pieces, device=device, desc="corrupted photographs")
    return shelf.paths


def write(name: str, settings: Corruptions, shown: Photos, device: str, photographs: Path, unit: units.Unit) -> None:
    """One unit: the predictions of all classifiers under one corruption; the pictures of one object are one batch."""
    sources, parts = shown.classifiers.items(), []
    judges = [classifiers.own_classifier(source, name=own, labels=list(imagenet.labels()), device=device) for own, source in sources]
    graded = {} if name == UNSHIFTED else {name: published(SIDE)[name]}  # before its batches comes the picture as it is
    for own in chosen(photographs, settings, shown):
        rows = pd.DataFrame([(own.label, own.seed)], columns=["class", "seed"])
        batches = list(corrupted(rows, cutouts.shifted(own, UNSHIFTED, [0.0], seed=shown.seed), graded))[len(graded) :]
        keys, pictures = pd.concat([keys for keys, _ in batches], ignore_index=True), np.concatenate([made for _, made in batches])
        parts += [evaluation.answers(judge, keys, judge.logits(pictures)) for judge in judges]
    tables.write_unit(pd.concat(parts, ignore_index=True), unit, tables.predictions)
