"""The fifteen corruptions of ImageNet-C (Hendrycks and Dietterich 2019, section 3.1), of one picture in [0, 1]; lengths are pixels.

Every corruption takes the picture, the generator that it may draw from, and its parameters in the order of `published/imagenet_c.csv`.
The operations are made of SciPy, scikit-image, NumPy and Pillow. Two things differ from the released code: its frost is a crop of one of
five photographs of ice, which are not ours to pass on, so that ice is drawn; and blurs mirror or repeat the rim by these libraries' rules.
"""

import io
import math
from functools import partial

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image
from scipy.ndimage import affine_transform, convolve, gaussian_filter, map_coordinates
from skimage.color import hsv2rgb, rgb2hsv
from skimage.transform import AffineTransform
from skimage.util import random_noise

Pixels = Float[np.ndarray, "side side 3"]
Map = Float[np.ndarray, "side side"]
Random = np.random.Generator
LARGE = 8  # a disk of a larger radius is softened over two pixels in place of one
LUMINANCE = (0.299, 0.587, 0.114)  # Rec. 601
TINT = (0.85, 0.95, 1.0)  # of drawn ice
NEEDLES, DENSITY = 6, 2.2  # directions of the needles; deviations above which a point grows one


def gaussian_noise(picture: Pixels, rng: Random, deviation: float) -> Pixels:
    """Independent normal noise on every value."""
    return picture + deviation * rng.normal(size=picture.shape)


def shot_noise(picture: Pixels, rng: Random, photons: float) -> Pixels:
    """Each value counted in photons, of which a white one has so many on average."""
    return rng.poisson(picture * photons) / photons


def impulse_noise(picture: Pixels, rng: Random, share: float) -> Pixels:
    """This share of the values black or white."""
    return random_noise(picture, mode="s&p", amount=share, rng=rng)


def contrast(picture: Pixels, rng: Random, kept: float) -> Pixels:
    """Each channel drawn towards its mean over the picture, of whose distance this share is kept."""
    mean = picture.mean((0, 1))
    return mean + kept * (picture - mean)


def elastic_transform(picture: Pixels, rng: Random, strength: float, smoothness: float, reach: float) -> Pixels:
    """A picture whose corners are pulled by up to `reach` pixels, and that is then bent by a smooth random field."""
    side = len(picture)
    bent = bending(rng, side, strength, smoothness)
    down, right = affine(rng, side, reach)(bent.reshape(2, -1).T).T.reshape(2, side, side)
    sample = partial(map_coordinates, coordinates=[down, right], order=1, mode="mirror")
    return np.stack([sample(channel) for channel in np.moveaxis(picture, -1, 0)], -1)


def affine(rng: Random, side: int, reach: float) -> AffineTransform:
    """From places (down, right) of the pulled picture to those of the original: three corners of the middle third are moved."""
    centre, third = side // 2, side // 3
    corners = centre + third * np.array([[1, 1], [1, -1], [-1, -1]], float)
    return AffineTransform.from_estimate(corners + rng.uniform(-reach, reach, corners.shape), corners)


def bending(rng: Random, side: int, strength: float, smoothness: float) -> Float[np.ndarray, "2 side side"]:
    """Where each pixel of the bent picture looks: its own place, moved by `strength` times a smoothed uniform field."""
    fields = (gaussian_filter(rng.uniform(-1, 1, (side, side)), smoothness, mode="reflect", truncate=3) for _ in range(2))
    return np.indices((side, side)) + strength * np.stack(list(fields))


def pixelate(picture: Pixels, rng: Random, share: float) -> Pixels:
    """The picture at this share of its side, in blocks."""
    small = max(1, int(len(picture) * share))
    image = Image.fromarray(whole(picture)).resize((small, small), Image.Resampling.BOX)
    return np.asarray(image.resize((len(picture), len(picture)), Image.Resampling.BOX)) / 255


def jpeg_compression(picture: Pixels, rng: Random, quality: float) -> Pixels:
    """The picture after Pillow's JPEG of this quality."""
    buffer = io.BytesIO()
    Image.fromarray(whole(picture)).save(buffer, format="JPEG", quality=int(quality))
    return np.asarray(Image.open(buffer, formats=("JPEG",))) / 255


def whole(picture: Pixels) -> UInt8[np.ndarray, "side side 3"]:
    """The picture in 8 bits, rounded."""
    return np.rint(picture * 255).astype(np.uint8)


def gaussian(picture: Pixels, deviation: float) -> Pixels:
    """A Gaussian blur with the nearest pixels beyond the rim."""
    return gaussian_filter(picture, (deviation, deviation, 0), mode="nearest", truncate=4.0)


def disk(radius: float, softness: float) -> Map:
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


def ice(side: int, rng: Random) -> Pixels:
    """Drawn ice: a bluish cover of uneven thickness, with needles in a few directions."""
    cover = 0.2 + 0.5 * plasma(side, rng, 1.5)
    for angle in rng.uniform(0, 360, NEEDLES):
        seeds = (rng.normal(size=(side, side, 1)) > DENSITY).astype(float)
        cover = cover + smeared(seeds, angle, side / 16, side / 16)[..., 0]
    return np.clip(cover, 0, 1)[..., None] * TINT


def snow(
    picture: Pixels, rng: Random, mean: float, spread: float, size: float, least: float, length: float, smear: float, kept: float
) -> Pixels:
    """A whitened picture behind falling flakes and the same flakes turned upside down; `size` enlarges flakes."""
    drawn = enlarged(rng.normal(mean, spread, (*picture.shape[:2], 1)), size)
    flakes = np.clip(np.where(drawn < least, 0, drawn), 0, 1)
    fallen = smeared(flakes, rng.uniform(-135, -45), length, smear)
    white = np.maximum(picture, 1.5 * (picture @ LUMINANCE)[..., None] + 0.5)
    return kept * picture + (1 - kept) * white + fallen + np.rot90(fallen, 2)
