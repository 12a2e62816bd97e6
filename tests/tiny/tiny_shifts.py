"""The smallest data sets of Control+Shift that still have two steps, two classes and a validation set."""

from cnslib.core.settings.method import Bootstrap
from cnslib.core.settings.studies import Controlshift

SHIFTED = Controlshift(
    bootstrap=Bootstrap(resamples=50, confidence=0.95, seed=1, target="same classes"),
    seed=1,
    factors=[0.9, 1.1],
    angles=[0.0, 90.0],
    train_images=3,
    validation_images=1,
    test_images=2,
    steps=2,
    guidance=2.0,
    side=32,
    draws=100,
)
