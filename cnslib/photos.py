"""The photo set: real ImageNet classifiers under the fourteen rendered shifts of photographed objects, severity known exactly.

A trajectory is one cut-out under one shift; the column `scale` of its rows is the severity. Images are drawn when they are asked
for and not stored; the answers are.
"""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import torch
from tqdm.auto import tqdm

from cnslib import cutouts, evaluation, guests, imagenet, kinds, paths, placement, tables, units, workers
from cnslib.classifiers import Classifier
from cnslib.config import UNSHIFTED, demand, identifier
from cnslib.cutouts import CutOut
from cnslib.studies import Photos


def answer(shifts: list[str], *, settings: Photos, device: str, folder: Path, photos: Path = paths.PHOTOS) -> dict[str, Path]:
    """Makes the tables of answers that are missing or outdated, one per shift and one for the unshifted images.

    A unit depends on the cut-outs, the classifiers' weights, and the settings that draw and ask. Raises ValueError for
    more cut-outs than there are and for classifiers that cannot answer, FileNotFoundError for what is missing.
    """
    chosen(photos, settings)
    models = {name: [source, guests.digest(source)] for name, source in settings.classifiers.items()}
    asked = [settings.cutouts, settings.severities, settings.seed]
    made_from = {one: kinds.PHOTOS.stamp(one, models, units.directory_digest(photos), asked) for one in (UNSHIFTED, *shifts)}
    shelf = units.Shelf(folder, {shift: (f"{identifier(shift)}.parquet", one) for shift, one in made_from.items()})
    pieces = [(shift, settings, device, photos, shelf[shift]) for shift in shelf.waiting()]
    workers.each(write, pieces, device=device, desc="photos")
    return shelf.paths


def write(shift: str, settings: Photos, device: str, photos: Path, unit: units.Unit) -> None:
    """One unit: the answers of all classifiers under one shift."""
    found = [guests.guest(source, name=name, labels=labels(), device=device) for name, source in settings.classifiers.items()]
    tables.write_unit(ask(found, chosen(photos, settings), [shift], settings=settings), unit, tables.predictions)


def chosen(photos: Path, settings: Photos) -> list[CutOut]:
    """The cut-outs that the settings ask for."""
    found = cutouts.read(photos, count=settings.cutouts)
    demand(len(found) == settings.cutouts, "photos.cutouts", settings.cutouts, f"at most {len(found)}, which is what {photos} holds")
    return found


def labels() -> list[str]:
    """What the 1,000 outputs of an ImageNet classifier are called."""
    return list(imagenet.labels())


def severities(shift: str, settings: Photos) -> list[float]:
    """The severities at which a shift is asked: 0 for the unshifted images alone."""
    return [0.0] if shift == UNSHIFTED else settings.severities[1:]


def ask(found: list[Classifier], objects: list[CutOut], shifts: Iterable[str], *, settings: Photos) -> pd.DataFrame:
    """One row per classifier and image; the images of one cut-out under one shift are one batch, drawn once for all classifiers."""
    parts = []
    for shift in shifts:
        values = severities(shift, settings)
        keys = [(shift, own.label, own.seed, value) for own in objects for value in values]
        logits: dict[str, list] = {classifier.name: [] for classifier in found}
        for own in tqdm(objects, desc=shift, disable=None, leave=False):
            images = placement.shifted(own, shift, values, seed=settings.seed)
            for classifier in found:
                logits[classifier.name].append(classifier.logits(images))
        table = pd.DataFrame(keys, columns=tables.KEY)
        parts += [evaluation.answers(classifier, table, torch.cat(logits[classifier.name])) for classifier in found]
    return pd.concat(parts, ignore_index=True)
