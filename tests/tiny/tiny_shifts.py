"""The smallest data sets of Control+Shift that still have two steps and a validation set, and the smallest trainings on them."""

from cnslib.core.settings.method import Bootstrap
from cnslib.core.settings.sections import Controlshift

SHIFTED = Controlshift(
    bootstrap=Bootstrap(resamples=50, confidence=0.95, seed=1, target="same classes"),
    seed=1,
    factors=[0.9, 1.1],
    angles=[0.0, 90.0],
    train_images=3,
    validation_images=1,
    test_images=2,
    drawing_steps=2,
    guidance=2.0,
    side=32,
    draws=100,
    networks=["resnet20", "svm"],
    reference="resnet20",
    runs=2,
    training_steps=15,
    batch_size=8,
    learning_rate=5e-3,
    penalties=[1.0, 10.0],
    training_seed=1,
    least=0.0,
    rce_reference="a",
)
