"""The answers of every classifier to corrupted held-out pictures of the catalog (CNS-Bench supplement D and E).

Rows take the form of the benchmark's: the corruption is the shift, its severity the scale, and severity 0 the picture as it is.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from cnslib.core import recipes
from cnslib.core.names import UNSHIFTED
from cnslib.core.settings.method import Evaluation
from cnslib.core.settings.studies import Corruptions
from cnslib.data import catalog
from cnslib.method import evaluation
from cnslib.studies.corruptions.levels import Levels, Pictures, corrupt, levels


def originals(pictures: Path, classes: list[str], count: int, *, side: int) -> tuple[pd.DataFrame, Pictures]:
    """The first held-out pictures of each class of the catalog at this side: their class and seed, and the pictures.

    One that is larger gives its centred square. Errors as `catalog.whole`.
    """
    found = [(name, seeds[:count], own[:count]) for name, seeds, own in catalog.whole(pictures, "heldout", classes)]
    rows = pd.DataFrame([(name, seed) for name, seeds, _ in found for seed in seeds], columns=["class", "seed"])
    return rows, np.stack([catalog.square(picture, side) for _, _, own in found for picture in own])


def evaluate(
    pictures: Path,
    classes: list[str],
    *,
    labels: list[str],
    settings: Corruptions,
    classifiers: Evaluation,
    device: str,
    folder: Path,
) -> dict[str, Path]:
    """Makes the tables of answers that are missing or outdated, one per classifier; a killed run keeps the finished ones.

    Errors are those of `evaluation.evaluate_catalog`.
    """
    evaluation.require_labels(classes, labels)
    graded = levels(settings)
    listed = [[name, *own.items()] for name, own in graded.items()]
    contents = [catalog.digest(pictures, "heldout", classes), settings.images, settings.side, listed]

    def batches() -> Iterator[evaluation.Batch]:
        rows, plain = originals(pictures, classes, settings.images, side=settings.side)
        for keys, made in corrupted(rows, plain, graded):
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
