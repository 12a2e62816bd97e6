"""Settings of trainings on shifted data sets that are large enough to be learned."""

import dataclasses

from tiny_shifts import SHIFTED

from cnslib.core.settings.method import Bootstrap

SETTINGS = dataclasses.replace(
    SHIFTED,
    bootstrap=Bootstrap(resamples=100, confidence=0.95, seed=1, target="same classes"),
    train_images=6,
    runs=1,
    validation_images=2,
)
CLASSES = ["bag", "coat"]
