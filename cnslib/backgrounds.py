"""Backgrounds of the photo set: scenery from photographed grass, gravel and brick, and blurred crops of two sample photographs.

Textures come with scikit-image (CC0), the photographs with scikit-learn (china.jpg and flower.jpg, CC BY). Sky, light and colour
are drawn; all random numbers are those of the image.
"""

import math
from functools import cache
from pathlib import Path

import numpy as np
import skimage
import torch
import torch.nn.functional as F
from jaxtyping import Float
from PIL import Image
from sklearn.datasets import load_sample_image
from torch import Tensor

from cnslib.textures import blur, fractal_noise, grid, hsv, lerp, luminance, ramp, smooth_noise
from cnslib.world import Draws

PHOTOGRAPHS = {"park": ("china.jpg", 1.0), "garden": ("flower.jpg", 3.0)}  # and the blur that tells near from far
KINDS = ("meadow", "path", "wall", *PHOTOGRAPHS, "haze")
Image3 = Float[Tensor, "1 3 side side"]


def background(draws: Draws, side: int) -> Image3:
    """The background of one image (a batch of one), one of KINDS by its own draw."""
    kind = KINDS[int(draws.uniforms[0, 8] * len(KINDS))]
    drawn = crop(kind, draws, side) if kind in PHOTOGRAPHS else scenery(kind, draws, side)
    return (drawn * (0.85 + 0.3 * draws.uniforms[0, 9])).clamp(0, 1)


def scenery(kind: str, draws: Draws, side: int) -> Image3:
    """Sky or wall above the horizon, grass or gravel below it; "haze" has clouds of colour alone."""
    u = draws.uniforms[0]
    if kind == "haze":
        low, high = (hsv(u[10:11] + turn, 0.25, 0.75) for turn in (0.0, 0.1))
        return lerp(low, high, ramp(smooth_noise(draws.fields[:, 2], 3, side), -1.5, 1.5))
    y, _ = grid(side, u)
    horizon = 0.35 + 0.25 * float(u[11])
    above = plane("brick", draws, side, horizon=None) if kind == "wall" else sky(draws, side)
    below = plane("grass" if kind == "meadow" else "gravel", draws, side, horizon=horizon)
    edge = horizon + (0.004 if kind == "wall" else 0.02) * smooth_noise(draws.fields[:, 3], 6, side, tall=1)
    return blur(lerp(above, below, ramp(y - edge, -0.01, 0.01)), 0.5)  # a lens that is focused on the object


def sky(draws: Draws, side: int) -> Image3:
    """Blue or grey, paler towards the horizon, with clouds."""
    u = draws.uniforms[:, 12:14]
    y, _ = grid(side, u)
    air = hsv(torch.full_like(u[:, 0], 0.58), 0.1 + 0.5 * u[:, 0], 0.7 + 0.25 * u[:, 1])
    return lerp(lerp(air, 0.93, (1.3 * y).clamp(0, 1)), 0.97, 0.8 * ramp(fractal_noise(draws.fields[:, 2], 3, side), 0.2, 1.6))


def plane(name: str, draws: Draws, side: int, *, horizon: float | None) -> Image3:
    """A coloured texture: upright, or as ground that recedes to the horizon, where its detail fades."""
    u = draws.uniforms[0]
    y, x = grid(side, u)
    depth = torch.ones_like(y) if horizon is None else 0.25 / (y - horizon).clamp(min=0.03)
    place = torch.stack([(x - 0.5) * depth + u[14] - 0.5, (y if horizon is None else depth) + u[15]], -1)[None]
    light = F.grid_sample(texture(name), place, padding_mode="reflection", align_corners=False)
    light = lerp(light, light.mean(), (depth / 8).clamp(0, 1))
    hue, saturation, value = {"grass": (0.24, 0.55, 0.95), "gravel": (0.09, 0.2, 1.1), "brick": (0.03, 0.4, 1.1)}[name]
    return (hsv((hue + 0.06 * (u[16:17] - 0.5)) % 1, saturation, 1.0) * light * value).clamp(0, 1)


def crop(kind: str, draws: Draws, side: int) -> Image3:
    """A square of a photograph, mirrored or not, out of focus."""
    u = draws.uniforms[0]
    name, length = PHOTOGRAPHS[kind]
    whole = photograph(name)
    size = int((0.5 + 0.4 * float(u[14])) * min(whole.shape[2:]))
    top, left = (math.floor(float(place) * (extent - size)) for place, extent in zip(u[15:17], whole.shape[2:], strict=True))
    part = F.interpolate(whole[..., top : top + size, left : left + size], size=(side, side), mode="bilinear", antialias=True)
    return blur(part.flip(-1) if u[17] < 0.5 else part, length)


@cache
def texture(name: str) -> Float[Tensor, "1 1 height width"]:
    """A grey texture of scikit-image's wheel."""
    path = Path(skimage.__file__).parent / "data" / f"{name}.png"
    grey = luminance(tensor(np.asarray(Image.open(path).convert("RGB"))))
    return grey.transpose(2, 3) if name == "brick" else grey  # its courses stand upright


@cache
def photograph(name: str) -> Float[Tensor, "1 3 height width"]:
    """A sample photograph of scikit-learn's wheel."""
    return tensor(load_sample_image(name))


def tensor(picture: np.ndarray) -> Float[Tensor, "1 3 height width"]:
    """A uint8 picture as a batch of one in [0, 1]."""
    return torch.from_numpy(picture.copy()).permute(2, 0, 1)[None].float() / 255
