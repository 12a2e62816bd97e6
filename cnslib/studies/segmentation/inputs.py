"""What segmentation and saliency are asked about: some of the scenarios' subjects in every state (XIMAGENET-12, section 3.1)."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from cnslib.core import paths, tables
from cnslib.core.names import UNSHIFTED, demand
from cnslib.core.settings.studies import Scenarios, Segmentation
from cnslib.studies.scenarios import scenarios, subjects
from cnslib.studies.scenarios.subjects import Subject
from cnslib.world import cutouts, scenes

NAMES = scenarios.NAMES
ENDS = [0.0, 1.0]  # an image without a scenario, and at its end


@dataclass(frozen=True)
class Drawing:
    """What scenes around the garments are drawn with, as for the scenarios' own, and where they are kept."""

    pipeline: Path
    scenarios: Scenarios
    device: str
    folder: Path

    @property
    def digest(self) -> str:
        """What the drawn scenes depend on besides their class."""
        return subjects.digest(self.pipeline, self.scenarios)


def drawing(settings: Segmentation, scenarios: Scenarios, *, pipeline: Path, device: str, folder: Path) -> Drawing:
    """Drawing as the scenarios' own notebook does it, for the garments that are segmented."""
    return Drawing(pipeline, replace(scenarios, images=settings.images, seed=settings.seed), device, folder)


def garments(classes: list[str], *, settings: Segmentation, drawing: Drawing) -> list[Subject]:
    """The first held-out garments of each class as catalog scenes, each with a scene drawn around it; what is missing is drawn.

    ValueError for a class that is no garment or has fewer.
    """
    pool = scenes.garments(paths.GARMENTS, "heldout")
    for name in classes:
        demand(name in scenes.CLASSES, "base.classes", name, ", ".join(scenes.CLASSES))
        count = int((pool.labels == scenes.CLASSES.index(name)).sum())
        demand(settings.images <= count, "segmentation.images", settings.images, f"at most {count}, which is what the pool has of {name}")
    plain = subjects.garments(pool, "heldout", classes, count=settings.images, seed=settings.seed)
    return subjects.draw_all(plain, pipeline=drawing.pipeline, settings=drawing.scenarios, device=drawing.device, folder=drawing.folder)


def photographs(folder: Path, *, settings: Segmentation) -> list[Subject]:
    """Photographs spread evenly over the photo set, in the order of ImageNet's classes. ValueError for more than there are."""
    count = len(cutouts.contents(folder))
    demand(settings.photographs <= count, "segmentation.photographs", settings.photographs, f"at most {count}, as {folder} has")
    rows = np.linspace(0, count - 1, settings.photographs).round().astype(int).tolist()
    return subjects.photographs(folder, count=count, seed=settings.seed, rows=rows)


def names(own: Subject) -> tuple[str, ...]:
    """The scenarios of a subject: one without a drawn scene has none of that name."""
    return scenarios.UNDRAWN if own.drawn is None else NAMES


def states(own: Subject, severities: list[float]) -> list[tuple[str, float]]:
    """The unshifted image once, and every scenario at every severity above 0."""
    return [(UNSHIFTED, 0.0), *((name, severity) for name in names(own) for severity in severities if severity > 0)]


def pictures(own: Subject, severities: list[float], *, seed: int) -> UInt8[np.ndarray, "states height width 3"]:
    """A subject in every state."""
    return np.stack([subjects.shown(own, scenario, severity, seed=seed) for scenario, severity in states(own, severities)])


def keys(own: Subject, severities: list[float]) -> list[dict]:
    """The key of every state in the shared tables: the scenario stands in the column `shift`, its severity in `scale`."""
    return [dict(zip(tables.KEY, (scenario, own.label, own.seed, severity), strict=True)) for scenario, severity in states(own, severities)]
