"""Parameters of the sibling papers' chapters: one frozen dataclass per section of params.yaml, checked when it is built."""

from typing import Annotated

from pydantic import AfterValidator
from pydantic.dataclasses import dataclass

from cnslib.config import STRICT, Count, Number, Resampled, Severities, Some, Sources


def to_one(values: list[Number]) -> list[Number]:
    """The same list; ValueError unless it ends with 1."""
    if values[-1] != 1:
        raise ValueError("ascending from 0.0 to 1.0")
    return values


Whole = Annotated[Severities, AfterValidator(to_one)]  # every severity there is, from none to all


@dataclass(frozen=True, config=STRICT)
class Scenarios(Resampled):
    """XIMAGENET-12: who answers about photographs and garments, how many, at which severities; the drawing; the trainings of EX2."""

    classifiers: Sources
    cutouts: Some
    backbones: Sources
    images: Count
    severities: Whole
    photo_severities: Whole
    drawing_steps: Count
    guidance: Number
    training_images: Count
    steps: Count
    batch_size: Count
    learning_rate: Number
    average: Number
    seed: int


CHAPTERS = (Scenarios,)
