"""The answers of ImageNet classifiers to the corrupted photo set, beside the same objects under the rendered shifts of notebook 14.

The objects stand in their unshifted scenes of 256 px; the corruptions take the parameters of 224 px. A picture is real in both, and
no generator has touched it.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from cnslib.core import paths, recipes, tables, units, workers
from cnslib.core.names import UNSHIFTED, demand, identifier
from cnslib.core.settings.studies import Corruptions, Photos
from cnslib.method import evaluation
from cnslib.models import classifiers
from cnslib.models.classifiers import Classifier
from cnslib.studies import photos
from cnslib.studies.corruptions.levels import Pictures, corrupt, published
from cnslib.world import cutouts
from cnslib.world.cutouts import CutOut

SIDE = 224  # the parameters


def chosen(photographs: Path, settings: Corruptions, asked: Photos) -> list[CutOut]:
    """So many of the photo set's cut-outs, evenly spaced, since neighbours are alike. ValueError for more than there are."""
    found = photos.chosen(photographs, asked)
    demand(settings.cutouts <= len(found), "corruptions.cutouts", settings.cutouts, f"at most photos.cutouts, {len(found)}")
    return [found[place * len(found) // settings.cutouts] for place in range(settings.cutouts)]


def answer(*, settings: Corruptions, asked: Photos, device: str, folder: Path, photographs: Path = paths.PHOTOS) -> dict[str, Path]:
    """Makes the tables of answers that are missing or outdated, one per corruption and one for the pictures as they are.

    A unit depends on the cut-outs, the classifiers' weights and the parameters. Errors as `photos.predict_all`.
    """
    objects = [(own.label, own.seed) for own in chosen(photographs, settings, asked)]
    models = {name: [source, classifiers.digest(source)] for name, source in asked.classifiers.items()}
    graded: dict[str, list] = {UNSHIFTED: [], **{name: list(own.items()) for name, own in published(SIDE).items()}}
    inputs = [models, units.directory_digest(photographs), objects, asked.seed]
    made_from = {name: recipes.CORRUPTED_PHOTOGRAPHS.stamp(name, own, *inputs) for name, own in graded.items()}
    shelf = units.Shelf(folder, {name: (f"{identifier(name)}.parquet", one) for name, one in made_from.items()})
    pieces = [(name, settings, asked, device, photographs, shelf[name]) for name in shelf.waiting()]
    workers.each(write, pieces, device=device, desc="corrupted photographs")
    return shelf.paths


def write(name: str, settings: Corruptions, asked: Photos, device: str, photographs: Path, unit: units.Unit) -> None:
    """One unit: the answers of all classifiers under one corruption."""
    sources = asked.classifiers.items()
    found = [classifiers.own_classifier(source, name=own, labels=photos.labels(), device=device) for own, source in sources]
    tables.write_unit(ask(found, chosen(photographs, settings, asked), name, seed=asked.seed), unit, tables.predictions)


def ask(found: list[Classifier], objects: list[CutOut], name: str, *, seed: int) -> pd.DataFrame:
    """One row per classifier and picture; the pictures of one object are one batch, made once for all classifiers."""
    parts = []
    for own in objects:
        table, pictures = graded(own, name, seed=seed)
        parts += [evaluation.answers(classifier, table, classifier.logits(pictures)) for classifier in found]
    return pd.concat(parts, ignore_index=True)


def graded(own: CutOut, name: str, *, seed: int) -> tuple[pd.DataFrame, Pictures]:
    """One object under a corruption at each of its severities, or as it is: the keys and the pictures."""
    plain, key = cutouts.shifted(own, UNSHIFTED, [0.0], seed=seed), (own.label, own.seed)
    if name == UNSHIFTED:
        return pd.DataFrame([(name, *key, 0.0)], columns=tables.KEY), plain
    levels = published(SIDE)[name]
    made = [corrupt(name, plain, parameters, keys=[key]) for parameters in levels.values()]
    return pd.DataFrame([(name, *key, severity) for severity in levels], columns=tables.KEY), np.concatenate(made)
