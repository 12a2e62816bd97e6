"""The smallest slider training that tests of several recipes share."""

from cnslib.config import Sliders

SETTINGS = Sliders(
    rank=4,
    alpha=1.0,
    eta=4.0,
    learning_rate=1e-2,
    iterations=3,
    batch_size=2,
    denoising_steps=4,
    health_seeds=1,
    health_steps=4,
    health_guidance=2.0,
    least_gain=0.0,
    seed=1,
)
CLASSES = ["sneaker", "ankle boot"]
SHIFTS = ["heavy snow", "cartoon style"]
