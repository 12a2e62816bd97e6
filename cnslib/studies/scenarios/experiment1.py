"""EX1 of XIMAGENET-12 (section 5.1): classifiers trained on original images answer under every scenario and severity.

Two sets are asked: photographs by real ImageNet classifiers, garments by classifiers that were trained on the catalog. Rows take the
form of the benchmark's: the scenario is the shift, its severity the scale, and severity 0 the original. Answers are stored, not images.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd
import pandera.pandas as pa
import torch
from tqdm.auto import tqdm

from cnslib.core import paths, recipes, tables, units, workers
from cnslib.core.names import UNSHIFTED, identifier
from cnslib.core.settings.studies import Scenarios
from cnslib.data import imagenet
from cnslib.models import classifiers, encoders
from cnslib.models.classifiers import Classifier
from cnslib.studies.scenarios import scenarios, subjects
from cnslib.studies.scenarios.subjects import Subject
from cnslib.world import scenes

GARMENTS, PHOTOGRAPHS = "garments", "photographs"
EVERY = (UNSHIFTED, *scenarios.NAMES, scenarios.SUMMED)
OF_PHOTOGRAPHS = (UNSHIFTED, *scenarios.UNDRAWN, scenarios.SUMMED)  # nothing is drawn around them at this scale
CHUNK = 16  # subjects whose pictures are asked at once
replies = tables.schema(["model", *tables.KEY], {"model": pa.Column(str), **tables.IDENTITY, "top1": pa.Column(str)})


def garments(
    classes: list[str], *, labels: list[str], settings: Scenarios, device: str, folder: Path, drawn: Path, pipeline: Path
) -> pd.DataFrame:
    """The backbones' answers about held-out garments, one row per model, scenario, garment and severity."""
    found = partial(drawn_garments, classes, pipeline=pipeline, settings=settings, device=device, folder=drawn)
    asked = [classes, labels, settings.images, settings.severities, settings.seed, subjects.digest(pipeline, settings)]
    sources = {name: [source, encoders.source_digest(source)] for name, source in settings.backbones.items()}
    made_from = {name: recipes.EX1.stamp(name, asked, sources) for name in EVERY}
    return answered(made_from, (load_backbones, labels, found), settings, device, folder)


def drawn_garments(classes: list[str], *, pipeline: Path, settings: Scenarios, device: str, folder: Path) -> list[Subject]:
    """Held-out garments of every class, each with the scene drawn around it."""
    pool = scenes.garments(paths.GARMENTS, "heldout")
    plain = subjects.garments(pool, "heldout", classes, count=settings.images, seed=settings.seed)
    return subjects.draw_all(plain, pipeline=pipeline, settings=settings, device=device, folder=folder)


def photographs(*, settings: Scenarios, device: str, folder: Path, photos: Path = paths.PHOTOS) -> pd.DataFrame:
    """The ImageNet classifiers' answers about the photo set."""
    found = partial(subjects.photographs, photos, count=settings.cutouts, seed=settings.seed)
    asked = [settings.cutouts, settings.photo_severities, settings.seed, units.directory_digest(photos)]
    sources = {name: [source, classifiers.digest(source)] for name, source in settings.classifiers.items()}
    made_from = {name: recipes.EX1_PHOTOGRAPHS.stamp(name, asked, sources) for name in OF_PHOTOGRAPHS}
    return answered(made_from, (load_imagenet_classifiers, list(imagenet.labels()), found), settings, device, folder)


def load_backbones(labels: list[str], settings: Scenarios, device: str) -> list[Classifier]:
    """The classifiers of the garments."""
    return [classifiers.load(name, source, labels, device) for name, source in settings.backbones.items()]


def load_imagenet_classifiers(labels: list[str], settings: Scenarios, device: str) -> list[Classifier]:
    """The classifiers of the photographs."""
    return [classifiers.own_classifier(source, name=name, labels=labels, device=device) for name, source in settings.classifiers.items()]


def answered(
    made_from: dict[str, str],
    work: tuple[Callable, list[str], Callable[[], list[Subject]]],
    settings: Scenarios,
    device: str,
    folder: Path,
) -> pd.DataFrame:
    """All answers; makes the tables that are missing or outdated, one per scenario, and composes the subjects only for these."""
    shelf = units.Shelf(folder, {name: (f"{identifier(name)}.parquet", one) for name, one in made_from.items()})
    load, labels, compose = work
    waiting = shelf.waiting()
    found = compose() if waiting else []
    pieces = [(name, load, labels, found, settings, device, shelf[name]) for name in waiting]
    workers.each(write, pieces, device=device, desc=folder.name)
    return tables.read_units(shelf, replies)


def write(name: str, load: Callable, labels: list[str], found: list[Subject], settings: Scenarios, device: str, unit: units.Unit) -> None:
    """One unit: the answers of all classifiers under one scenario, or about the originals."""
    graded = settings.photo_severities if load is load_imagenet_classifiers else settings.severities
    tables.write_unit(ask(load(labels, settings, device), found, name, graded, seed=settings.seed), unit, replies)


def ask(judges: list[Classifier], found: list[Subject], name: str, severities: list[float], *, seed: int) -> pd.DataFrame:
    """One row per classifier, subject and severity above 0; severity 0 for the originals alone."""
    graded = [0.0] if name == UNSHIFTED else severities[1:]
    parts = []
    for start in tqdm(range(0, len(found), CHUNK), desc=name, disable=None, leave=False):
        keys = [(own, severity) for own in found[start : start + CHUNK] for severity in graded]
        pictures = [subjects.shown(own, name, severity, seed=seed) for own, severity in keys]
        rows = pd.DataFrame([(name, own.label, own.seed, severity) for own, severity in keys], columns=tables.KEY)
        parts += [rows.assign(model=judge.name, top1=first(judge, pictures)) for judge in judges]
    return pd.concat(parts, ignore_index=True)


def first(judge: Classifier, pictures: list) -> list[str]:
    """The first answer to every picture; of equal logits the first label wins."""
    best = torch.argmax(judge.logits(pictures).double(), dim=1)
    return [judge.labels[place] for place in best.tolist()]
