"""Shift intensity: the share of the shifted support outside the training support (Control+Shift, Definition 1).

The supports in latent space are known. Truncation: a ball that holds 99 % of the normal distribution. Extend: the cap of angle
pi/2 + theta around t1. Overlap: the half sphere around a pole that moves from t1 to t2. The size of a set is its volume in the
ball, its area on the sphere.
"""

import math

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from scipy import stats as scipy_stats
from scipy.special import betainc

from cnslib import clustered
from cnslib.latents import Targets, check, slerp, unit

MASS = 0.99  # of a distribution with full support, which its support is taken to hold (section 3.1)


def exact(kind: str, value: float, trained: float, targets: Targets) -> float:
    """The intensity of a shift against training at the value `trained`, in closed form.

    Extend and overlap are trained on the half sphere around t1. Raises ValueError as `latents.check` does.
    """
    size = len(targets.first)
    check(kind, value, size, len(targets.second))
    if kind == "truncation":
        return max(0.0, 1 - (trained / value) ** size)
    if kind == "extend":
        return 1 - 0.5 / cap(math.pi / 2 + value, size)
    return angle(unit(targets.first), pole(value, targets)) / math.pi


def cap(angle: float, size: int) -> float:
    """The share of a sphere in `size` dimensions within an angle in [0, pi] of a pole."""
    half = betainc((size - 1) / 2, 0.5, math.sin(angle) ** 2) / 2
    return float(half if angle <= math.pi / 2 else 1 - half)


def pole(theta: float, targets: Targets) -> Float[np.ndarray, "d"]:
    """The pole of the overlap shift at an angle (Eq. 8)."""
    return slerp(unit(targets.first), unit(targets.second), 2 * theta / math.pi)


def angle(first: Float[np.ndarray, "d"], second: Float[np.ndarray, "d"]) -> float:
    """The angle between two unit vectors in radians."""
    return math.acos(np.clip(first @ second, -1, 1))


def simulated(kind: str, value: float, trained: float, targets: Targets, *, draws: int, seed: int, confidence: float) -> pd.Series:
    """The intensity by Monte Carlo: the share of uniform draws from the shifted support that fall outside the training support.

    Returns estimate, low, high (Wilson) and n, the draws that fell into the shifted support.
    """
    check(kind, value, len(targets.first), len(targets.second))
    generator = np.random.default_rng(seed)
    inside = ball if kind == "truncation" else half_sphere
    n, outside = inside(kind, value, trained, targets, draws, generator)
    return pd.Series(clustered.counted(outside, n, confidence=confidence))


def ball(kind: str, value: float, trained: float, targets: Targets, draws: int, generator: np.random.Generator) -> tuple[int, int]:
    """How many uniform draws from the ball of a truncation there are, and how many lie outside the training ball."""
    size = len(targets.first)
    points = unit(generator.standard_normal((draws, size))) * generator.random((draws, 1)) ** (1 / size) * radius(value, size)
    return draws, int((np.linalg.norm(points, axis=1) > radius(trained, size)).sum())


def radius(factor: float, size: int) -> float:
    """The radius of the ball that holds 99 % of a normal distribution with standard deviation `factor`."""
    return factor * math.sqrt(scipy_stats.chi2.ppf(MASS, size))


def half_sphere(kind: str, value: float, trained: float, targets: Targets, draws: int, generator: np.random.Generator) -> tuple[int, int]:
    """How many uniform draws from the sphere lie in the shifted support, and how many of those are outside the training support."""
    points = unit(generator.standard_normal((draws, len(targets.first))))
    training = within(points, unit(targets.first), math.pi / 2)
    moved = kind == "overlap"
    shifted = within(points, pole(value, targets) if moved else unit(targets.first), math.pi / 2 + (0 if moved else value))
    return int(shifted.sum()), int((shifted & ~training).sum())


def within(points: Float[np.ndarray, "draws d"], pole: Float[np.ndarray, "d"], angle: float) -> Bool[np.ndarray, "draws"]:
    """Which unit vectors lie within an angle of a pole."""
    return points @ pole >= math.cos(angle)
