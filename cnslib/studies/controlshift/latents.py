"""Shifts in the latent space of a decoder, truncation, extend and overlap, and their intensity (Control+Shift section 4.1, appendix A).

A decoder maps a latent drawn from the standard normal to an image. Almost all of that distribution lies near the sphere of radius
sqrt(d), and a decoder was trained there: the paper's latents of norm 1 are therefore stretched to norm sqrt(d).

The intensity is the share of the shifted support outside the training support (Definition 1); both are known in latent space.
Truncation: a ball that holds 99 % of the normal distribution. Extend: the cap of angle pi/2 + theta around t1. Overlap: the half
sphere around a pole that moves from t1 to t2. The size of a set is its volume in the ball, its area on the sphere.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import betainc
from scipy.stats import chi2

from cnslib.core import seeds
from cnslib.core.names import demand
from cnslib.stats import bootstrap

KINDS = ("truncation", "extend", "overlap")
LARGEST_ANGLE = math.pi / 2
Latents = Float[np.ndarray, "images d"]
Latent = Float[np.ndarray, "d"]


@dataclass(frozen=True)
class Targets:
    """The constant codes t1 and t2 that extend and overlap turn towards, of norm sqrt(d)."""

    first: Latent
    second: Latent


def targets(size: int, *, seed: int) -> Targets:
    """The target codes of a latent space of `size` dimensions: draws from the standard normal with seeds of their own."""
    first, second = (unit(draw(("target", number, seed), size)) * math.sqrt(size) for number in (1, 2))
    return Targets(first, second)


def draw(key: tuple[str | int, ...], size: int) -> Latent:
    """One draw from the standard normal that belongs to a key."""
    return np.random.default_rng(seeds.seed_of(*key)).standard_normal(size)


def start(split: str, numbers: range, size: int, *, seed: int) -> Latents:
    """The unshifted latents z of some images of a split: each from its own number, the same for every shift and intensity."""
    return np.stack([draw((split, number, seed), size) for number in numbers])


def shifted(z: Latents, kind: str, value: float, targets: Targets) -> Latents:
    """The latents that a shift makes of z; `value` is the factor R of a truncation, else an angle theta in [0, pi/2].

    Extend and overlap return vectors of norm sqrt(d).
    """
    check(kind, value, z.shape[-1], len(targets.first))
    if kind == "truncation":
        return value * z
    return (extend if kind == "extend" else overlap)(z, value, targets) * math.sqrt(z.shape[-1])


def check(kind: str, value: float, size: int, target_size: int) -> None:
    """Raises ValueError unless a shift is one of the three, its value in range and its targets of the latents' size."""
    demand(kind in KINDS, "shift", kind, ", ".join(KINDS))
    if kind == "truncation":
        demand(value > 0, "truncation: R", value, "a factor above 0")
    else:
        demand(0 <= value <= LARGEST_ANGLE + 1e-12, f"{kind}: theta", value, "radians from 0 to pi/2")
    demand(size == target_size, "dimensions of the latents", size, f"{target_size}, as the targets have")


def extend(z: Latents, theta: float, targets: Targets) -> Latents:
    """Unit vectors that cover a growing cap around t1 (Eq. 7 as the text and the released code mean it): at pi/2 z itself.

    Eq. 7 as printed has z and t1 in each other's place; then theta = pi/2 would return t1 for every image.
    """
    return slerp(unit(targets.first), unit(z), (theta + math.pi / 2) / math.pi)


def overlap(z: Latents, theta: float, targets: Targets) -> Latents:
    """Unit vectors of a half sphere whose pole moves from t1 to t2 (Eqs. 8 and 9)."""
    return slerp(unit(z), pole(theta, targets), 0.5)


def pole(theta: float, targets: Targets) -> Latent:
    """The pole of the overlap shift at an angle (Eq. 8)."""
    return slerp(unit(targets.first), unit(targets.second), 2 * theta / math.pi)


def slerp(first: Float[np.ndarray, "*rows d"], second: Float[np.ndarray, "*rows d"], tau: float) -> Float[np.ndarray, "*rows d"]:
    """Spherical linear interpolation (Eq. 6) from `first` at tau = 0 to `second` at tau = 1, both of norm 1.

    Raises ValueError for opposite vectors, between which no shortest path is marked out.
    """
    cosine = np.clip((first * second).sum(-1, keepdims=True), -1, 1)
    if (cosine <= -1 + 1e-12).any():
        raise ValueError("slerp: the two vectors are opposite; accepted: any others")
    omega = np.arccos(cosine)
    near = omega < 1e-6  # sin(tau x) / sin x is tau there
    divisor = np.where(near, 1, np.sin(omega))
    left, right = (np.where(near, share, np.sin(share * omega) / divisor) for share in (1 - tau, tau))
    return left * first + right * second


def unit(vectors: Float[np.ndarray, "*rows d"]) -> Float[np.ndarray, "*rows d"]:
    """Vectors scaled to norm 1."""
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


MASS = 0.99  # of a distribution with full support, which its support is taken to hold (section 3.1)


def exact(kind: str, value: float, trained: float, targets: Targets) -> float:
    """The intensity of a shift (Definition 1) against training at the value `trained`, in closed form.

    Extend and overlap are trained on the half sphere around t1.
    """
    size = len(targets.first)
    check(kind, value, size, len(targets.second))
    if kind == "truncation":
        return max(0.0, 1 - (trained / value) ** size)
    if kind == "extend":
        return 1 - 0.5 / cap(math.pi / 2 + value, size)
    return math.acos(np.clip(unit(targets.first) @ pole(value, targets), -1, 1)) / math.pi


def cap(angle: float, size: int) -> float:
    """The share of a sphere in `size` dimensions within an angle in [0, pi] of a pole."""
    half = betainc((size - 1) / 2, 0.5, math.sin(angle) ** 2) / 2
    return float(half if angle <= math.pi / 2 else 1 - half)


def simulated(kind: str, value: float, trained: float, targets: Targets, *, draws: int, seed: int, confidence: float) -> dict:
    """The intensity by Monte Carlo: the share of uniform draws from the shifted support that fall outside the training support.

    A record with Wilson's interval; n counts the draws that fell into the shifted support. The ball of a truncation holds 99 % of a
    normal distribution with standard deviation R.
    """
    size = len(targets.first)
    check(kind, value, size, len(targets.second))
    generator = np.random.default_rng(seed)
    points = unit(generator.standard_normal((draws, size)))
    if kind == "truncation":
        radius = math.sqrt(chi2.ppf(MASS, size))
        norms = np.linalg.norm(points * generator.random((draws, 1)) ** (1 / size) * (value * radius), axis=1)
        return bootstrap.counted(int((norms > trained * radius).sum()), draws, confidence=confidence)
    first, angle = unit(targets.first), math.pi / 2
    moved, reach = (pole(value, targets), angle) if kind == "overlap" else (first, angle + value)
    shifted = points @ moved >= math.cos(reach)
    outside = shifted & ~(points @ first >= math.cos(angle))
    return bootstrap.counted(int(outside.sum()), int(shifted.sum()), confidence=confidence)
