"""Settings of the smallest trainings on shifted data sets."""

import dataclasses

import tiny_shifts

from cnslib.core.settings.method import Bootstrap
from cnslib.core.settings.studies import Degradation

SHIFTED = dataclasses.replace(tiny_shifts.SHIFTED, train_images=6, validation_images=2)
SETTINGS = Degradation(
    bootstrap=Bootstrap(resamples=100, confidence=0.95, seed=1, target="same classes"),
    seed=1,
    networks=["resnet20", "svm"],
    runs=2,
    reference="resnet20",
    rce_reference="a",
    steps=15,
    batch_size=8,
    learning_rate=5e-3,
    penalties=[1.0, 10.0],
    least=0.0,
)
CLASSES = ["bag", "coat"]
