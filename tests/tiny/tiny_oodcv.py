"""Settings and garments of the smallest OOD-CV comparison."""

import numpy as np
from tiny_garments import garments

from cnslib.core.settings.method import Bootstrap
from cnslib.core.settings.sections import Oodcv
from cnslib.world import scenes

CLASSES = ["sneaker", "ankle boot"]
SETTINGS = Oodcv(
    bootstrap=Bootstrap(resamples=10, confidence=0.95, seed=1, target="same classes"),
    seed=1,
    root="",
    shifts=["heavy snow", "heavy fog"],
    scales=[0.0, 1.0, 3.0],
    seeds=1,
    start_fraction=0.85,
    unknown="a picture of a {name}",
    reference_images=4,
    ladder_images=2,
    severities=2,
    networks={"one": "", "two": ""},
    training_images=2,
    validation_images=1,
    epochs=3,
    patience=1,
    batch_size=2,
    learning_rate=1e-3,
    rotation=15.0,
    zoom=1.2,
)


def plentiful(_folder=None, _pool=None) -> scenes.Garments:
    """Ten copies of the synthetic garments: enough of every class."""
    few = garments()
    return scenes.Garments(few.grey.repeat(10, 1, 1), np.tile(few.labels, 10))
