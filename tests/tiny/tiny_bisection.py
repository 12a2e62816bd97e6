"""Settings of a small bisection, and models whose failure points are known."""

import numpy as np

from cnslib.core.settings.analyses import Bisection
from cnslib.core.settings.method import Bootstrap

GRID = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]
RESOLUTION = 1 / 32
SETTINGS = Bisection(
    bootstrap=Bootstrap(resamples=100, confidence=0.95, seed=1, target="same classes"),
    seed=1,
    shifts=["heavy snow", "heavy fog"],
    classes=["bag", "coat"],
    seeds=2,
    classifiers=["alexnet", "resnet"],
    resolution=RESOLUTION,
    scans=1,
    scan_step=1 / 16,
)


class Oracle:
    """Models that are wrong from a threshold of their own on; remembers what it was asked."""

    def __init__(self, thresholds):
        self.thresholds, self.asked = np.asarray(thresholds, dtype=float), []

    def __call__(self, scales):
        self.asked += scales
        return np.array(scales)[:, None] >= self.thresholds

    def brackets(self):
        """What the grid knows: the last right and the first wrong scale of each model."""
        edges = np.array([-np.inf, *GRID, np.inf])
        first = np.searchsorted(GRID, self.thresholds)
        return edges[first], edges[first + 1]
