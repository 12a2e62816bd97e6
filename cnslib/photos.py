"""The photo set: real ImageNet classifiers under the fourteen rendered shifts of photographed objects, severity known exactly.

A trajectory is one cut-out under one shift; the column `scale` of its rows is the severity. Images are drawn when they are asked
for and not stored; the answers are.
"""

import sys
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import torch
from tqdm.auto import tqdm

from cnslib import backgrounds, classifiers, cutouts, evaluation, guests, imagenet, lite, paths, placement, tables, units, workers, world
from cnslib.classifiers import Classifier
from cnslib.config import UNSHIFTED, demand, identifier
from cnslib.cutouts import CutOut
from cnslib.studies import Photos

CODE = (sys.modules[__name__], backgrounds, placement, cutouts, evaluation, classifiers, guests, lite, imagenet, *world.RENDERER)


def answer(shifts: list[str], *, settings: Photos, device: str, folder: Path, photos: Path = paths.PHOTOS) -> dict[str, Path]:
    """Makes the tables of answers that are missing or outdated, one per shift and one for the unshifted images.

    A unit depends on the cut-outs, the classifiers' weights, the settings that draw and ask, and the code. Raises ValueError for
    more cut-outs than there are and for classifiers that cannot answer, FileNotFoundError for what is missing.
    """
    chosen(photos, settings)
    files = {shift: folder / f"{identifier(shift)}.parquet" for shift in (UNSHIFTED, *shifts)}
    models = {name: [source, guests.digest(source)] for name, source in settings.classifiers.items()}
    asked = [settings.cutouts, settings.severities, settings.seed, units.code_digest(*CODE)]
    made_from = units.digest(models, units.directory_digest(photos), asked)
    waiting = [shift for shift, path in files.items() if not units.done(path, units.digest(shift, made_from))]
    pieces = [(shift, settings, device, photos, files[shift], units.digest(shift, made_from)) for shift in waiting]
    workers.each(write, pieces, device=device, desc="photos")
    units.prune(folder, {path.name for path in files.values()}, "*.parquet")
    return files


def write(shift: str, settings: Photos, device: str, photos: Path, path: Path, made_from: str) -> None:
    """One unit: the answers of all classifiers under one shift."""
    found = [guests.guest(source, name=name, labels=labels(), device=device) for name, source in settings.classifiers.items()]
    tables.write(ask(found, chosen(photos, settings), [shift], settings=settings), path, tables.predictions)
    units.finish(path, made_from)


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
