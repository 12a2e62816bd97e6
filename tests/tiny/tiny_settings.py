import dataclasses
from typing import Any

from cnslib.core.settings import read
from cnslib.core.settings.method import Bootstrap
from cnslib.core.settings.sections import Controlshift, Corruptions


def changed(settings: Any, **changes) -> Any:
    plain = dataclasses.asdict(settings) | changes
    return read.build(type(settings).__name__.lower(), plain, {})


def resampled(resamples: int, target: str = "same classes", *, seed: int = 1) -> Bootstrap:
    return Bootstrap(resamples=resamples, confidence=0.95, seed=seed, target=target)


RESAMPLED = resampled(50)


def corruption_settings() -> Corruptions:
    """Two pictures per class, with supplement D's seven levels of contrast."""
    levels = {"contrast": [0.15, 0.075], "contrast_severities": [3.5, 4.5]}
    return Corruptions(bootstrap=RESAMPLED, official="", images=2, side=64, cutouts=2, reference="alexnet", **levels)


# Control+Shift: the smallest data sets that still have two steps and a validation set, and such that are large enough to be learned
SETS = {"factors": [0.9, 1.1], "angles": [0.0, 90.0], "train_images": 3, "validation_images": 1, "test_images": 2, "drawing_steps": 2}
LEARNED = {"runs": 2, "training_steps": 15, "batch_size": 8, "learning_rate": 5e-3, "penalties": [1.0, 10.0], "training_seed": 1}
NETWORKS = {"networks": ["resnet20", "svm"], "reference": "resnet20", "rce_reference": "a", "least": 0.0}
DRAWN = {"decoder": "", "classes": [], "guidance": 2.0}
SHIFTED = Controlshift(bootstrap=RESAMPLED, seed=1, side=32, draws=100, **DRAWN, **SETS, **LEARNED, **NETWORKS)
TRAINED = dataclasses.replace(SHIFTED, bootstrap=dataclasses.replace(RESAMPLED, resamples=100), train_images=6, validation_images=2, runs=1)
TRAINED_CLASSES = ["bag", "coat"]
