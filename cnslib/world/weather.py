"""The six weather shifts of CNS-Bench (section 5.2): snow, rain and four kinds of thick air."""

import torch
from jaxtyping import Float
from torch import Tensor

from cnslib.world.textures import (
    blur,
    colour,
    fractal_noise,
    grid,
    lerp,
    ramp,
    saturate,
    shift_by,
    smooth_noise,
    sparse_points,
    streaks,
    warp,
)

Severity = Float[Tensor, "batch 1 1 1"]
Image = Float[Tensor, "batch 3 side side"]


def veil(scene, amount: Severity, density: Tensor, air: Tensor) -> Image:
    """Koschmieder's law: light from the scene decays with density, light of the air takes its place."""
    softened = lerp(scene.image, blur(scene.image, 1.2), amount)
    return lerp(air, softened, torch.exp(-density * amount))


def heavy_snow(scene, amount: Severity, draws) -> Image:
    """Overcast light, snow on the ground and on upper edges, falling flakes of two sizes."""
    side, white = scene.image.shape[-1], colour((0.96, 0.97, 1.0), scene.image)
    y, _ = grid(side, scene.image)
    image = lerp(scene.image, colour((0.72, 0.77, 0.84), scene.image), 0.5 * amount)
    settled = scene.mask * (1 - shift_by(scene.mask, 7)).clamp(0, 1)
    image = lerp(image, white, ramp(blur(settled, 0.8), 0.15, 0.5) * ramp(amount, 0, 0.8) * 0.95)
    drift = 0.03 * smooth_noise(draws.fields[:, 0], 4, side, tall=1)
    ground = ramp(y - (1.02 - 0.42 * amount) + drift, -0.02, 0.03)
    image = lerp(image, white - 0.06 * ramp(drift, -0.03, 0.03), ground * (amount > 0))
    for i, (most, size, strength) in enumerate([(2.05, 0.75, 2.4), (2.75, 1.35, 7.0)]):
        flakes = blur(sparse_points(draws.fields[:, 1 + i], 4.2 - (4.2 - most) * amount.sqrt(), side), size)
        image = lerp(image, white, (flakes * strength).clamp(0, 0.95))
    return image


def heavy_rain(scene, amount: Severity, draws) -> Image:
    """Dark wet light and slanted streaks in two layers, splashes near the ground."""
    side = scene.image.shape[-1]
    dark = saturate(scene.image, 0.55) * (1 - 0.5 * amount)
    image = lerp(blur(dark, 0.9), colour((0.25, 0.31, 0.4), dark), 0.42 * amount)
    for i, (most, length, width) in enumerate([(2.2, 9, 0.6), (2.45, 17, 0.85)]):
        points = sparse_points(draws.fields[:, 1 + i], 4.2 - (4.2 - most) * amount.sqrt(), side)
        drops = blur(streaks(points, length, -0.32), width)
        image = lerp(image, colour((0.8, 0.87, 0.95), image), (drops * 1.5).clamp(0, 0.8))
    y, _ = grid(side, scene.image)
    splash = blur(sparse_points(draws.fields[:, 3], 3.6 - 2.0 * amount, side), 0.9) * ramp(y, 0.78, 0.95)
    return lerp(image, colour((0.8, 0.87, 0.95), image), (splash * 3).clamp(0, 0.8) * amount)


def heavy_fog(scene, amount: Severity, draws) -> Image:
    """A bright, slowly varying white veil."""
    cloud = fractal_noise(draws.fields[:, 0], 3, scene.image.shape[-1])
    return veil(scene, amount, (2.7 + 0.9 * cloud).clamp(min=0.6), colour((0.9, 0.92, 0.94), scene.image))


def heavy_smog(scene, amount: Severity, draws) -> Image:
    """A dark yellow-grey veil, densest at the top, that dims the light."""
    side = scene.image.shape[-1]
    y, _ = grid(side, scene.image)
    layer = 3.0 - 1.3 * y + 0.5 * fractal_noise(draws.fields[:, 0], 2, side)
    air = colour((0.43, 0.41, 0.31), scene.image) * (0.75 + 0.35 * y)
    return veil(scene, amount, layer.clamp(min=0.6), air)


def heavy_dust(scene, amount: Severity, draws) -> Image:
    """A pale beige plume rising from the ground, with light and dark specks."""
    side = scene.image.shape[-1]
    y, _ = grid(side, scene.image)
    plume = 1.5 + 1.8 * y + 0.8 * fractal_noise(draws.fields[:, 0], 4, side)
    image = veil(scene, amount, plume.clamp(min=0.4), colour((0.8, 0.71, 0.57), scene.image))
    for i, tone in ((1, (0.36, 0.28, 0.2)), (2, (0.98, 0.94, 0.84))):
        specks = blur(sparse_points(draws.fields[:, i], 4.2 - 1.9 * amount.sqrt(), side), 0.7)
        image = lerp(image, colour(tone, image), (specks * 2.4).clamp(0, 0.8))
    return image


def heavy_sandstorm(scene, amount: Severity, draws) -> Image:
    """Orange air driven sideways in long bands of sand."""
    side = scene.image.shape[-1]
    bands = smooth_noise(draws.fields[:, 0], 3, side, tall=14) + 0.6 * smooth_noise(draws.fields[:, 1], 6, side, tall=26)
    tilted = warp(bands, smooth_noise(draws.fields[:, 2], 2, side) * 7, torch.zeros_like(bands))
    air = colour((0.84, 0.5, 0.19), scene.image) * (1 + 0.13 * tilted)
    return veil(scene, amount, (2.8 + 0.7 * tilted).clamp(min=0.7), air)
