"""Image primitives of the mini world's renderer: noise, blur, edges, warps and colour, batched in torch.

Images are float tensors in [0, 1] of shape [batch, channels, side, side]. Lengths are given in sixty-fourths of the image
side, so that a scene looks the same at 64 and at 256 pixels.
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torchvision.transforms.v2 import functional as tvf

FIELD = 64  # side of the random fields that every image owns

Images = Float[Tensor, "batch channels side side"]
Maps = Float[Tensor, "batch 1 side side"]


def lerp(start: Tensor, end: Tensor | float, weight: Tensor | float) -> Tensor:
    """Mixes two tensors or constants; weight 0 gives `start`, 1 gives `end`."""
    return start + (end - start) * weight


def ramp(value: Tensor, low: float, high: float) -> Tensor:
    """Smoothstep of `value`, 0 below `low`, 1 above `high`."""
    t = ((value - low) / (high - low)).clamp(0, 1)
    return t * t * (3 - 2 * t)


def colour(rgb: tuple[float, float, float], like: Tensor) -> Float[Tensor, "1 3 1 1"]:
    """A constant colour that broadcasts over a batch of images."""
    return torch.tensor(rgb, dtype=like.dtype, device=like.device).view(1, 3, 1, 1)


def hsv(hue: Tensor, saturation: Tensor | float, value: Tensor | float) -> Float[Tensor, "batch 3 1 1"]:
    """RGB colours from a vector of hues and vectors or constants of saturation and value, all in [0, 1]."""
    saturation, value = (torch.as_tensor(v, device=hue.device).expand_as(hue) for v in (saturation, value))
    phase = (hue[:, None] * 6 + torch.tensor([5.0, 3.0, 1.0], device=hue.device)) % 6
    chroma = torch.minimum(phase, 4 - phase).clamp(0, 1)
    return (value[:, None] - value[:, None] * saturation[:, None] * chroma)[:, :, None, None]


def luminance(image: Images) -> Maps:
    """Rec. 601 luminance."""
    return (image * colour((0.299, 0.587, 0.114), image)).sum(1, keepdim=True)


def saturate(image: Images, factor: Tensor | float) -> Images:
    """Moves colours away from (factor > 1) or towards (< 1) their luminance."""
    return (luminance(image) + (image - luminance(image)) * factor).clamp(0, 1)


def blur(image: Images, length: float) -> Images:
    """Gaussian blur with standard deviation `length`."""
    sigma = length * image.shape[-1] / FIELD
    return tvf.gaussian_blur(image, kernel_size=2 * math.ceil(2 * sigma) + 1, sigma=sigma)


def dilate(mask: Maps, length: float) -> Maps:
    """Grows a soft mask by `length` in every direction."""
    radius = max(1, round(length * mask.shape[-1] / FIELD))
    return F.max_pool2d(mask, 2 * radius + 1, stride=1, padding=radius)


def shift_by(image: Images, down: float, right: float = 0.0) -> Images:
    """Translates by lengths, repeating the border."""
    dy, dx = (round(v * image.shape[-1] / FIELD) for v in (down, right))
    pad = max(abs(dy), abs(dx), 1)
    padded = F.pad(image, (pad,) * 4, mode="replicate")
    side = image.shape[-1]
    return padded[..., pad - dy : pad - dy + side, pad - dx : pad - dx + side]


def edges(image: Maps, length: float = 0.7) -> Maps:
    """Gradient magnitude after a light blur, about 1 at a full black-white edge."""
    smooth = blur(image, length)
    down, right = shift_by(smooth, -1) - shift_by(smooth, 1), shift_by(smooth, 0, -1) - shift_by(smooth, 0, 1)
    return (down.square() + right.square()).sqrt()


def smooth_noise(field: Float[Tensor, "batch 64 64"], cells: int, side: int, *, tall: int | None = None) -> Maps:
    """Value noise with mean 0 and deviation about 1: the first `tall` x `cells` draws of a field, interpolated."""
    return F.interpolate(field[:, None, : tall or cells, :cells], size=(side, side), mode="bicubic", align_corners=False)


def fractal_noise(field: Float[Tensor, "batch 64 64"], cells: int, side: int) -> Maps:
    """Three octaves of value noise, deviation about 1."""
    return torch.stack([smooth_noise(field.roll(7 * i, -1), cells * 2**i, side) * 0.55**i for i in range(3)]).sum(0) / 1.2


def grid(side: int, like: Tensor) -> tuple[Float[Tensor, "side side"], Float[Tensor, "side side"]]:
    """Row and column coordinates in [0, 1]."""
    axis = (torch.arange(side, dtype=like.dtype, device=like.device) + 0.5) / side
    row, column = torch.meshgrid(axis, axis, indexing="ij")
    return row, column


def warp(image: Images, down: Maps, right: Maps) -> Images:
    """Samples the image at positions displaced by maps of lengths."""
    side = image.shape[-1]
    y, x = grid(side, image)
    flow = torch.stack([x * 2 - 1 + right[:, 0] * 2 / FIELD, y * 2 - 1 + down[:, 0] * 2 / FIELD], -1)
    return F.grid_sample(image, flow, mode="bilinear", padding_mode="border", align_corners=False)


def sparse_points(field: Float[Tensor, "batch 64 64"], threshold: Tensor | float, side: int) -> Maps:
    """1 where a normal field exceeds the threshold, else 0, at the field's own resolution."""
    points = (field[:, None] > threshold).to(field.dtype)
    return points if side == FIELD else F.interpolate(points, size=(side, side), mode="bilinear")
