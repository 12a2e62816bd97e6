"""ImageNet-C's four kinds of blur (Hendrycks and Dietterich 2019, section 3.1), of one picture in [0, 1]; lengths are pixels."""

import math

import numpy as np
from jaxtyping import Float
from scipy.ndimage import affine_transform, convolve, gaussian_filter

Pixels = Float[np.ndarray, "side side 3"]
Random = np.random.Generator
LARGE = 8  # a disk of a larger radius is softened over two pixels in place of one


def gaussian(picture: Pixels, deviation: float) -> Pixels:
    """A Gaussian blur with the nearest pixels beyond the rim."""
    return gaussian_filter(picture, (deviation, deviation, 0), mode="nearest", truncate=4.0)


def disk(radius: float, softness: float) -> Float[np.ndarray, "width width"]:
    """What a lens out of focus makes of a point: a disk with a softened edge, of sum 1."""
    margin = 2 if radius > LARGE else 1
    reach = math.floor(radius) + margin
    down, right = np.indices((2 * reach + 1, 2 * reach + 1)) - reach
    inside = (down**2 + right**2 <= radius**2).astype(float)
    return gaussian_filter(inside / inside.sum(), softness, radius=margin, mode="constant")


def defocus(picture: Pixels, rng: Random, radius: float, softness: float) -> Pixels:
    """A lens out of focus."""
    return convolve(picture, disk(radius, softness)[..., None], mode="mirror")


def glass(picture: Pixels, rng: Random, deviation: float, reach: float, rounds: float) -> Pixels:
    """Frosted glass: blurred, pixels exchanged with random neighbours some rounds, blurred again."""
    seen = gaussian(picture, deviation).reshape(-1, 3)
    return gaussian(seen[exchanged(len(picture), rng, int(reach), int(rounds))].reshape(picture.shape), deviation)


def exchanged(side: int, rng: Random, reach: int, rounds: int) -> list[int]:
    """Which pixel stands where after every pixel, from the last to the first, has changed places with one up to `reach` away."""
    order = list(range(side * side))
    inner = np.arange(side - reach, reach, -1)
    places = (inner[:, None] * side + inner).ravel()
    for _ in range(rounds):
        down, right = rng.integers(-reach, reach, (2, len(places)))
        for place, other in zip(places.tolist(), (places + down * side + right).tolist(), strict=True):
            order[place], order[other] = order[other], order[place]
    return order


def motion(picture: Pixels, rng: Random, length: float, spread: float) -> Pixels:
    """A camera that moves mostly sideways, in a direction within 45 degrees."""
    return smeared(picture, rng.uniform(-45, 45), length, spread)


def smeared(picture: Pixels, angle: float, length: float, spread: float) -> Pixels:
    """Each pixel a mean of those ahead of it at this angle in degrees, up to twice the length away, with weights of half a Gaussian."""
    steps = np.arange(2 * int(length) + 1)
    weights = np.exp(-(steps**2) / (2 * spread**2))
    down, right = (np.rint(steps * turn(math.radians(angle))).astype(int) for turn in (math.sin, math.cos))
    rim, side = len(steps), len(picture)
    wide = np.pad(picture, [(rim, rim), (rim, rim), (0, 0)], mode="edge")
    parts = zip(weights / weights.sum(), rim + down, rim + right, strict=True)
    return sum(weight * wide[top : top + side, left : left + side] for weight, top, left in parts)


def zoom(picture: Pixels, rng: Random, end: float, step: float) -> Pixels:
    """A camera that comes nearer: the mean of the picture and of its enlargements from 1 up to `end`."""
    factors = np.arange(1, end, step)
    return (picture + sum(enlarged(picture, factor) for factor in factors)) / (len(factors) + 1)


def enlarged(picture: Pixels, factor: float) -> Pixels:
    """The middle of a picture at its full size, interpolated linearly."""
    centre = (len(picture) - 1) / 2 * (1 - 1 / factor)
    return affine_transform(picture, [1 / factor, 1 / factor, 1], [centre, centre, 0], order=1, mode="nearest")
