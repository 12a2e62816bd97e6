"""Simulated answers with the benchmark's own structure: 8 classes by seeds by 14 shifts, models that see the same images.

The logit of an error is the sum of what a model has at scale 0 and per scale, of how hard a class, a seed (whose noise all classes
share), a (class, seed) and a trajectory are, and of what each model finds hard in a class and in a (class, seed).
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float
from scipy.special import expit
from tiny_answers import wrong_array

CLASSES, SHIFTS, SCALES = 8, 14, np.array([0.0, 0.5, 1.0, 1.5, 2.0, 2.5])
CLASS, OWN_CLASS, SEED, PAIR, OWN_PAIR, TRAJECTORY = 1.0, 0.3, 0.5, 1.2, 0.5, 0.6  # standard deviations
KEPT = np.linspace(0.25, 0.75, SHIFTS)  # share of trajectories that the filter keeps, by shift
POINTS, WEIGHTS = np.polynomial.hermite_e.hermegauss(40)


@dataclass(frozen=True)
class World:
    """What does not change with the seeds: start and growth of each model's logit, and how hard classes are, also for each model."""

    start: Float[np.ndarray, "models"]
    steep: Float[np.ndarray, "shifts models"]
    classes: Float[np.ndarray, "classes"]
    own: Float[np.ndarray, "classes models"]

    @property
    def logit(self) -> Float[np.ndarray, "shifts models scales"]:
        return self.start[:, None] + self.steep[..., None] * SCALES


def world(rng: np.random.Generator, *, models: int) -> World:
    start, growth = rng.normal(-1.0, 0.6, models), rng.normal(1.0, 0.25, (SHIFTS, 1)) + rng.normal(0, 0.2, (1, models))
    steep = np.abs(growth + rng.normal(0, 0.15, (SHIFTS, models)))
    return World(start, steep, rng.normal(0, CLASS, CLASSES), rng.normal(0, OWN_CLASS, (CLASSES, models)))


def answers(rng: np.random.Generator, given: World, *, seeds: int) -> xr.DataArray:
    models = len(given.start)
    shift, label, seed = np.nonzero(rng.random((SHIFTS, CLASSES, seeds)) < KEPT[:, None, None])
    shared = rng.normal(0, SEED, seeds)[seed] + rng.normal(0, PAIR, (CLASSES, seeds))[label, seed] + rng.normal(0, TRAJECTORY, len(shift))
    own = rng.normal(0, OWN_PAIR, (CLASSES, seeds, models))[label, seed] + given.own[label]
    hardness = (given.classes[label] + shared)[:, None] + own
    wrong = rng.random((len(shift), models, len(SCALES))) < expit(given.logit[shift] + hardness[..., None])
    names = pd.DataFrame({"shift": [f"shift {i:02d}" for i in shift], "class": label.astype(str), "seed": seed})
    return wrong_array(names, [f"m{i:02d}" for i in range(models)], SCALES.tolist(), wrong)


def benchmark(rng: np.random.Generator, *, models: int, seeds: int, start: np.ndarray, steep: np.ndarray) -> xr.DataArray:
    """Answers of models with this start and growth, whose classes and seeds are drawn."""
    given = World(start, steep, rng.normal(0, CLASS, CLASSES), np.zeros((CLASSES, models)))
    return answers(rng, given, seeds=seeds)


def wrong_given(given: World, *, other_classes: bool = False) -> Float[np.ndarray, "shifts classes models scales points"]:
    """How probably an answer is wrong at every point of a Gauss-Hermite quadrature over all that is random, which is normal and adds up."""
    variances = [SEED, PAIR, OWN_PAIR, TRAJECTORY, *([CLASS, OWN_CLASS] if other_classes else [])]
    fixed = np.zeros((1, 1)) if other_classes else given.classes[:, None] + given.own
    logit = given.logit[:, None] + fixed[..., None]
    return expit(logit[..., None] + np.sqrt(np.square(variances).sum()) * POINTS)


def integrated(values: Float[np.ndarray, "shifts classes models bins points"]) -> Float[np.ndarray, "groups models bins"]:
    """Means over the quadrature and the classes, per shift and, as the last group, over all kept trajectories."""
    part = ((values @ WEIGHTS) / WEIGHTS.sum()).mean(1)
    return np.concatenate([part, np.average(part, axis=0, weights=KEPT)[None]])


def truth(given: World, *, other_classes: bool = False) -> tuple[Float[np.ndarray, "groups models scales"], np.ndarray]:
    """Errors and shares of first failures (and of none) that endless seeds, or endless classes, would show; the last group pools all."""
    wrong = wrong_given(given, other_classes=other_classes)
    alive = np.cumprod(1 - wrong, axis=3)
    first = np.concatenate([wrong[:, :, :, :1], alive[:, :, :, :-1] * wrong[:, :, :, 1:], alive[:, :, :, -1:]], 3)
    return integrated(wrong), integrated(first)


PROMISED = (0.92, 0.98)  # coverage of 95 % intervals


def error(hits: pd.Series) -> float:
    """The standard error of a mean over data sets, not below that of as many single intervals at the upper end of the band."""
    return max(hits.std(), np.sqrt(0.98 * 0.02)) / np.sqrt(len(hits))


def covers(hits: pd.Series, *, whole: bool = False) -> bool:
    """Whether the coverage lies in the band, up to three standard errors; numbers of `whole` steps may be covered more often.

    `hits` has one value per data set: whether its interval holds the truth, or the share of its intervals of one kind that do.
    """
    low, high = PROMISED
    return bool(low - 3 * error(hits) <= hits.mean() <= (np.inf if whole else high + 3 * error(hits)))
