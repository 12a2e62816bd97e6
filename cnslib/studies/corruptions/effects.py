"""ImageNet-C's three kinds of noise and four digital corruptions (Hendrycks and Dietterich 2019, section 3.1), of one picture in [0, 1].

Every corruption takes the picture, the generator that it may draw from, and its parameters in the order of `published/imagenet_c.csv`.
"""

import io
from functools import partial

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image
from scipy.ndimage import gaussian_filter, map_coordinates
from skimage.transform import AffineTransform
from skimage.util import random_noise

Pixels = Float[np.ndarray, "side side 3"]
Bytes = UInt8[np.ndarray, "side side 3"]
Random = np.random.Generator


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


def whole(picture: Pixels) -> Bytes:
    """The picture in 8 bits, rounded."""
    return np.rint(picture * 255).astype(np.uint8)
