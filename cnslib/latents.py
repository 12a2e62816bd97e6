"""Shifts in the latent space of a decoder: truncation, extend and overlap (Control+Shift, section 4.1 and appendix A).

A decoder maps a latent drawn from the standard normal to an image. Almost all of that distribution lies near the sphere of radius
sqrt(d), and a decoder was trained there: the paper's latents of norm 1 are therefore stretched to norm sqrt(d).
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from cnslib import seeds

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

    Extend and overlap return vectors of norm sqrt(d). Raises ValueError for an unknown kind, a factor that is not above 0, an
    angle outside its range and latents of another size than the targets'.
    """
    check(kind, value, z.shape[-1], len(targets.first))
    if kind == "truncation":
        return value * z
    return (extend if kind == "extend" else overlap)(z, value, targets) * math.sqrt(z.shape[-1])


def check(kind: str, value: float, size: int, target_size: int) -> None:
    """Raises ValueError unless a shift is one of the three, its value in range and its targets of the latents' size."""
    if kind not in KINDS:
        raise ValueError(f"shift {kind!r}; accepted: {', '.join(KINDS)}")
    if kind == "truncation" and not value > 0:
        raise ValueError(f"truncation: R is {value}; accepted: a factor above 0")
    if kind != "truncation" and not 0 <= value <= LARGEST_ANGLE + 1e-12:
        raise ValueError(f"{kind}: theta is {value}; accepted: radians from 0 to pi/2")
    if size != target_size:
        raise ValueError(f"latents have {size} dimensions, the targets {target_size}; both must be of the same decoder")


def extend(z: Latents, theta: float, targets: Targets) -> Latents:
    """Unit vectors that cover a growing cap around t1 (Eq. 7 as the text and the released code mean it): at pi/2 z itself.

    Eq. 7 as printed has z and t1 in each other's place; then theta = pi/2 would return t1 for every image.
    """
    return slerp(unit(targets.first), unit(z), (theta + math.pi / 2) / math.pi)


def overlap(z: Latents, theta: float, targets: Targets) -> Latents:
    """Unit vectors of a half sphere whose pole moves from t1 to t2 (Eqs. 8 and 9)."""
    pole = slerp(unit(targets.first), unit(targets.second), 2 * theta / math.pi)
    return slerp(unit(z), pole, 0.5)


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
