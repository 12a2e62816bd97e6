"""What segmentation and saliency are asked about: some of the scenarios' subjects in every state (XIMAGENET-12, section 3.1)."""

from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from cnslib.core import paths, tables
from cnslib.core.names import UNSHIFTED, demand
from cnslib.core.settings.studies import Segmentation
from cnslib.studies.scenarios import scenarios, subjects
from cnslib.studies.scenarios.subjects import Subject
from cnslib.world import cutouts, scenes

NAMES = tuple(name for name in scenarios.NAMES if name != "drawn background")  # which asks for a text-to-image model
ENDS = [0.0, 1.0]  # an image without a scenario, and at its end


def garments(classes: list[str], *, settings: Segmentation) -> list[Subject]:
    """The first held-out garments of each class as catalog scenes. ValueError for a class that is no garment or has fewer."""
    pool = scenes.garments(paths.GARMENTS, "heldout")
    for name in classes:
        demand(name in scenes.CLASSES, "base.classes", name, ", ".join(scenes.CLASSES))
        count = int((pool.labels == scenes.CLASSES.index(name)).sum())
        demand(settings.images <= count, "segmentation.images", settings.images, f"at most {count}, which is what the pool has of {name}")
    return subjects.garments(pool, "heldout", classes, count=settings.images, seed=settings.seed)


def photographs(folder: Path, *, settings: Segmentation) -> list[Subject]:
    """Photographs spread evenly over the photo set, in the order of ImageNet's classes. ValueError for more than there are."""
    count = len(cutouts.contents(folder))
    demand(settings.photographs <= count, "segmentation.photographs", settings.photographs, f"at most {count}, as {folder} has")
    found = subjects.photographs(folder, count=count, seed=settings.seed)
    return [found[row] for row in np.linspace(0, count - 1, settings.photographs).round().astype(int)]


def states(severities: list[float]) -> list[tuple[str, float]]:
    """The unshifted image once, and every scenario at every severity above 0."""
    return [(UNSHIFTED, 0.0), *((name, severity) for name in NAMES for severity in severities if severity > 0)]


def pictures(own: Subject, severities: list[float], *, seed: int) -> UInt8[np.ndarray, "states height width 3"]:
    """A subject in every state."""
    return np.stack([subjects.shown(own, scenario, severity, seed=seed) for scenario, severity in states(severities)])


def keys(own: Subject, severities: list[float]) -> list[dict]:
    """The key of every state in the shared tables: the scenario stands in the column `shift`, its severity in `scale`."""
    return [dict(zip(tables.KEY, (scenario, own.label, own.seed, severity), strict=True)) for scenario, severity in states(severities)]
