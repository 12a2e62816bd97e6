"""ImageNet-C's four kinds of weather (Hendrycks and Dietterich 2019, section 3.1), of one picture in [0, 1].

Its frost is a crop of one of five photographs of ice. These are not ours to pass on, so that ice is drawn here.
"""

import numpy as np
from jaxtyping import Float
from skimage.color import hsv2rgb, rgb2hsv

from cnslib.studies.corruptions import blurs
from cnslib.studies.corruptions.effects import Pixels, Random

LUMINANCE = (0.299, 0.587, 0.114)  # Rec. 601
Map = Float[np.ndarray, "side side"]


def brightness(picture: Pixels, rng: Random, added: float) -> Pixels:
    """The value of every pixel raised by as much, its hue and saturation kept."""
    hue, saturation, value = np.moveaxis(rgb2hsv(picture), -1, 0)
    return hsv2rgb(np.stack([hue, saturation, np.clip(value + added, 0, 1)], -1))


def fog(picture: Pixels, rng: Random, thickness: float, decay: float) -> Pixels:
    """Clouds added, and the whole darkened so that its brightest value stays."""
    brightest = picture.max()
    return (picture + thickness * plasma(len(picture), rng, decay)[..., None]) * brightest / (brightest + thickness)


def plasma(side: int, rng: Random, decay: float) -> Map:
    """A fractal surface from 0 to 1 by midpoint displacement; displacements fall by the square of `decay` at each halving.

    The square is that of the released code, whose displacements are drawn from a range that falls, times the range.
    """
    heights, swing = np.zeros((1, 1)), 1.0
    while len(heights) < side:
        heights, swing = finer(heights, swing, rng), swing / decay**2
    heights = (heights - heights.min()) / np.ptp(heights)
    return heights[:side, :side]


def finer(heights: Float[np.ndarray, "n n"], swing: float, rng: Random) -> Float[np.ndarray, "2n 2n"]:
    """The surface, which repeats itself, at twice the resolution: each new point is the mean of four neighbours, displaced."""
    found = np.repeat(np.repeat(heights, 2, 0), 2, 1)
    displaced = swing * rng.uniform(-1, 1, (3, *heights.shape))
    below, right = np.roll(heights, -1, 0), np.roll(heights, -1, 1)
    middle = (heights + below + right + np.roll(below, -1, 1)) / 4 + displaced[0]
    found[1::2, 1::2] = middle
    found[::2, 1::2] = (heights + right + middle + np.roll(middle, 1, 0)) / 4 + displaced[1]
    found[1::2, ::2] = (heights + below + middle + np.roll(middle, 1, 1)) / 4 + displaced[2]
    return found


def frost(picture: Pixels, rng: Random, kept: float, added: float) -> Pixels:
    """A share of the picture and a share of ice."""
    return kept * picture + added * ice(len(picture), rng)


TINT = (0.85, 0.95, 1.0)
NEEDLES, DENSITY = 6, 2.2  # directions of the needles; deviations above which a point grows one


def ice(side: int, rng: Random) -> Pixels:
    """Drawn ice: a bluish cover of uneven thickness, with needles in a few directions."""
    cover = 0.2 + 0.5 * plasma(side, rng, 1.5)
    for angle in rng.uniform(0, 360, NEEDLES):
        seeds = (rng.normal(size=(side, side, 1)) > DENSITY).astype(float)
        cover = cover + blurs.smeared(seeds, angle, side / 16, side / 16)[..., 0]
    return np.clip(cover, 0, 1)[..., None] * TINT


def snow(
    picture: Pixels, rng: Random, mean: float, spread: float, size: float, least: float, length: float, smear: float, kept: float
) -> Pixels:
    """A whitened picture behind falling flakes and the same flakes turned upside down; `size` enlarges flakes."""
    drawn = blurs.enlarged(rng.normal(mean, spread, (*picture.shape[:2], 1)), size)
    flakes = np.clip(np.where(drawn < least, 0, drawn), 0, 1)
    fallen = blurs.smeared(flakes, rng.uniform(-135, -45), length, smear)
    white = np.maximum(picture, 1.5 * (picture @ LUMINANCE)[..., None] + 0.5)
    return kept * picture + (1 - kept) * white + fallen + np.rot90(fallen, 2)
