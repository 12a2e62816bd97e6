"""Parameters of the sibling papers' chapters: one frozen dataclass per section of params.yaml, checked when it is built."""

from dataclasses import dataclass

from cnslib.analyses import Resampling
from cnslib.config import demand


@dataclass(frozen=True)
class Scenarios(Resampling):
    """XIMAGENET-12: who answers about photographs and garments, how many, at which severities; the drawing; the trainings of EX2."""

    classifiers: dict[str, str]
    cutouts: int
    backbones: dict[str, str]
    images: int
    severities: list[float]
    photo_severities: list[float]
    drawing_steps: int
    guidance: float
    training_images: int
    steps: int
    batch_size: int
    learning_rate: float
    average: float

    def __post_init__(self):
        for key in ("severities", "photo_severities"):
            values = getattr(self, key)
            rising = values == sorted(set(values)) and len(values) > 1 and values[0] == 0 and values[-1] == 1
            demand(rising, f"scenarios.{key}", values, "from 0.0 up to 1.0")
        for key in ("classifiers", "backbones"):
            demand(len(getattr(self, key)) > 0, f"scenarios.{key}", getattr(self, key), "at least one classifier")
        for key in ("images", "drawing_steps", "training_images", "steps", "batch_size"):
            demand(getattr(self, key) >= 1, f"scenarios.{key}", getattr(self, key), "at least 1")
        demand(self.cutouts >= 2, "scenarios.cutouts", self.cutouts, "at least 2")


CHAPTERS = (Scenarios,)
