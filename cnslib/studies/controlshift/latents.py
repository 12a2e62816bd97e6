"""Shifts in the latent space of a decoder, truncation, extend and overlap, and their intensity (Control+Shift section 4.1, appendix A).

Almost all of the standard normal distribution lies near the sphere of radius sqrt(d), and a decoder was trained there: the paper's
latents of norm 1 are therefore stretched to norm sqrt(d). Extend and overlap turn towards two constant codes t1 and t2 of that norm.

The intensity is the share of the shifted support outside the training support (Definition 1); both are known in latent space.
Truncation: a ball that holds 99 % of the normal distribution. Extend: the cap of angle pi/2 + theta around t1. Overlap: the half
sphere around a pole that moves from t1 to t2. The size of a set is its volume in the ball, its area on the sphere.
"""

import math

import numpy as np
from jaxtyping import Float
from scipy.special import betainc
from scipy.stats import chi2

from cnslib.core import seeds
from cnslib.stats import bootstrap

KINDS = ("truncation", "extend", "overlap")
MASS = 0.99  # of a distribution with full support, which its support is taken to hold (section 3.1)
RIGHT = math.pi / 2
Latents = Float[np.ndarray, "images d"]
Latent = Float[np.ndarray, "d"]
Targets = Float[np.ndarray, "2 d"]


def targets(size: int, *, seed: int) -> Targets:
    """The target codes t1 and t2 of a latent space of `size` dimensions, of norm sqrt(d)."""
    return unit(start("target", range(1, 3), size, seed=seed)) * math.sqrt(size)


def start(split: str, numbers: range, size: int, *, seed: int) -> Latents:
    """The unshifted latents z of some images of a split: each from its own number, the same for every shift and intensity."""
    return np.stack([np.random.default_rng(seeds.seed_of(split, number, seed)).standard_normal(size) for number in numbers])


def shifted(z: Latents, kind: str, value: float, targets: Targets) -> Latents:
    """The latents that a shift makes of z; `value` is the factor R of a truncation, else an angle theta in [0, pi/2].

    Extend (Eq. 7) covers a growing cap around t1, at pi/2 z itself; as printed Eq. 7 has z and t1 in each other's place, and would
    return t1 for every image. Overlap (Eqs. 8 and 9) covers a half sphere whose pole moves from t1 to t2.
    """
    if kind == "truncation":
        return value * z
    path = (unit(targets[0]), unit(z), (value + RIGHT) / math.pi) if kind == "extend" else (unit(z), pole(value, targets), 0.5)
    return slerp(*path) * math.sqrt(z.shape[-1])


def pole(theta: float, targets: Targets) -> Latent:
    """The pole of the overlap shift at an angle (Eq. 8)."""
    return slerp(unit(targets[0]), unit(targets[1]), 2 * theta / math.pi)


def slerp(first: Float[np.ndarray, "*rows d"], second: Float[np.ndarray, "*rows d"], tau: float) -> Float[np.ndarray, "*rows d"]:
    """Spherical linear interpolation (Eq. 6) from `first` at tau = 0 to `second` at tau = 1, both of norm 1 and not opposite."""
    omega = np.arccos(np.clip((first * second).sum(-1, keepdims=True), -1, 1))
    near = omega < 1e-6  # sin(tau x) / sin x is tau there
    divisor = np.where(near, 1, np.sin(omega))
    left, right = (np.where(near, share, np.sin(share * omega) / divisor) for share in (1 - tau, tau))
    return left * first + right * second


def unit(vectors: Float[np.ndarray, "*rows d"]) -> Float[np.ndarray, "*rows d"]:
    """Vectors scaled to norm 1."""
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def exact(kind: str, value: float, trained: float, targets: Targets) -> float:
    """The intensity of a shift (Definition 1) in closed form, against training at the value `trained`, or on the half sphere around t1."""
    size = targets.shape[1]
    if kind == "truncation":
        return max(0.0, 1 - (trained / value) ** size)
    if kind == "extend":
        return 1 - 0.5 / cap(RIGHT + value, size)
    return math.acos(np.clip(unit(targets[0]) @ pole(value, targets), -1, 1)) / math.pi


def cap(angle: float, size: int) -> float:
    """The share of a sphere in `size` dimensions within an angle in [0, pi] of a pole."""
    half = betainc((size - 1) / 2, 0.5, math.sin(angle) ** 2) / 2
    return float(half if angle <= RIGHT else 1 - half)


def simulated(kind: str, value: float, trained: float, targets: Targets, *, draws: int, seed: int, confidence: float) -> dict:
    """The intensity by Monte Carlo: the share of uniform draws from the shifted support that fall outside the training support.

    A record with Wilson's interval; n counts the draws that fell into the shifted support.
    """
    size, generator = targets.shape[1], np.random.default_rng(seed)
    points = unit(generator.standard_normal((draws, size)))
    if kind == "truncation":
        radius = math.sqrt(chi2.ppf(MASS, size))
        norms = np.linalg.norm(points * generator.random((draws, 1)) ** (1 / size) * (value * radius), axis=1)
        return bootstrap.counted(int((norms > trained * radius).sum()), draws, confidence=confidence)
    first = unit(targets[0])
    moved, reach = (pole(value, targets), RIGHT) if kind == "overlap" else (first, RIGHT + value)
    inside = points @ moved >= math.cos(reach)
    outside = inside & ~(points @ first >= math.cos(RIGHT))
    return bootstrap.counted(int(outside.sum()), int(inside.sum()), confidence=confidence)
