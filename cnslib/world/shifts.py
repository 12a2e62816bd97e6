"""The fourteen nuisance shifts of CNS-Bench (section 5.2) as functions of a severity in [0, 1] on rendered scenes.

Eight styles, in which the object is drawn, painted, carved, sprayed or sewn, and six kinds of weather: snow, rain, four of thick air.
All share the head `(scene, severity, draws)`; severity is [batch, 1, 1, 1]. A shift may use the object mask, as weather settles on
objects and styles redraw them. `apply` guarantees that severity 0 is the bit-exact identity.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from cnslib.core.names import SHIFTS, demand, identifier
from cnslib.world import textures
from cnslib.world.textures import blur, colour, edges, fractal_noise, grid, hsv, lerp, luminance, ramp, saturate, shift_by, smooth_noise

Severity = Float[Tensor, "batch 1 1 1"]
Image = Float[Tensor, "batch 3 side side"]
SOFT = 0.75  # blur of drawn lines in pixels: at 64 px a hard line is nothing but aliasing


def apply(name: str, scene, severity: Float[Tensor, "batch"], draws) -> Float[Tensor, "batch 3 side side"]:
    """Renders the scenes under one shift. Severity 0 returns `scene.image` bit for bit.

    Raises ValueError for an unknown shift or a severity outside [0, 1].
    """
    demand(name in SHIFTS, "shift", name, ", ".join(SHIFTS))
    demand(bool(((severity >= 0) & (severity <= 1)).all()), "severity", severity.tolist(), "[0, 1]")
    amount = severity.view(-1, 1, 1, 1).to(scene.image)
    shifted = globals()[identifier(name)](scene, amount, draws).clamp(0, 1)
    return torch.where(amount == 0, scene.image, shifted)


def bend(scene, amount: Severity, draws, *, reach: float) -> tuple[Image, Float[Tensor, "batch 1 side side"]]:
    """Image and mask with hand-drawn distortion: displacement up to about `reach` at severity 1."""
    down, right = (smooth_noise(draws.fields[:, i], 4, scene.side) * amount * reach for i in (4, 5))
    return textures.warp(scene.image, down, right), textures.warp(scene.mask, down, right)


def cartoon_style(scene, amount: Severity, draws) -> Image:
    """Flat saturated fills in three tones, halftone dots behind, thick black outlines."""
    image, mask = bend(scene, amount, draws, reach=4.5)
    tones = (saturate(blur(image, 1.2), 2.2) * 3).round() / 3
    y, x = grid(scene.side, image)
    dots = ramp(torch.cos(x * 50.3) * torch.cos(y * 50.3), 0.1, 0.35)
    behind = hsv(draws.uniforms[:, 20], 0.75, 1.0)
    flat = lerp(lerp(behind, 1.0, 0.3 * dots), tones.clamp(0.1, 1), ramp(mask, 0.4, 0.6))
    lines = ramp(textures.dilate(edges(mask), 0.6), 0.25, 0.6).maximum(ramp(edges(luminance(image)) * mask, 0.22, 0.4))
    drawn = blur(lerp(flat, 0.0, lines), SOFT)
    return lerp(scene.image, drawn, ramp(amount, 0, 0.7))


def plush_toy_style(scene, amount: Severity, draws) -> Image:
    """A puffed pastel body with fuzzy rim and fur, and two button eyes."""
    image, mask = bend(scene, amount, draws, reach=3.0)
    fuzz = smooth_noise(draws.fields[:, 1], 30, scene.side)
    body = ramp(blur(mask, 1 + 1.6) + 0.10 * fuzz, 0.3, 0.55)
    height = blur(body, 4)
    light = (0.62 + 0.5 * height + 1.6 * (height - shift_by(height, 2.5, 2.5)) + 0.07 * fuzz).clamp(0, 1.12)
    tint = lerp(blur(image, 3.5), hsv(draws.uniforms[:, 21], 0.38, 1.0), 0.6)
    toy = lerp(blur(lerp(scene.background, 1.0, 0.5), 2), tint * light, body)
    total = mask.sum((2, 3), keepdim=True).clamp(min=1e-6)
    middle = [(mask * place).sum((2, 3), keepdim=True) / total for place in grid(scene.side, mask)]
    for dx in (-5.5, 5.5):
        toy = disc(toy, middle, offset=(-3.0, dx), radius=2.6, tone=0.06)
        toy = disc(toy, middle, offset=(-3.8, dx + 0.8), radius=0.9, tone=0.98)
    return lerp(scene.image, toy, ramp(amount, 0, 0.85))


def disc(image: Image, at, *, offset: tuple[float, float], radius: float, tone: float) -> Image:
    """Paints a soft grey disc at a place given as centre plus an offset in lengths."""
    y, x = grid(image.shape[-1], image)
    distance = ((y - at[0] - offset[0] / 64).square() + (x - at[1] - offset[1] / 64).square()).sqrt() * 64
    return lerp(image, tone, 1 - ramp(distance, radius - 0.6, radius + 0.6))


def pencil_sketch_style(scene, amount: Severity, draws) -> Image:
    """Grey lines on paper, hatched where the object is dark."""
    image, mask = bend(scene, amount, draws, reach=3.5)
    y, x = grid(scene.side, image)
    light = luminance(image)
    wobble = 0.02 * smooth_noise(draws.fields[:, 2], 5, scene.side)
    hatch = ramp(torch.cos((x + y + wobble) * 100), 0.0, 0.7) * (1.1 - light).clamp(0, 1) * mask
    lines = ramp(edges(mask), 0.2, 0.6).maximum(ramp(edges(light) * mask, 0.1, 0.32))
    paper = 0.94 + 0.015 * smooth_noise(draws.fields[:, 1], 24, scene.side)
    drawing = blur(paper * (1 - 0.35 * hatch) * (1 - 0.82 * lines), SOFT).expand(-1, 3, -1, -1)
    return lerp(scene.image, drawing, ramp(amount, 0, 0.8))


def painting_style(scene, amount: Severity, draws) -> Image:
    """Swirling brush strokes in rich colour: the image smeared along a flow field (line integral convolution)."""
    field = smooth_noise(draws.fields[:, 4], 4, scene.side)
    down, right = shift_by(field, 0, -1) - shift_by(field, 0, 1), shift_by(field, 1) - shift_by(field, -1)
    norm = (down.square() + right.square()).sqrt().clamp(min=1e-3)
    bristle = smooth_noise(draws.fields[:, 1], 40, scene.side)
    canvas = torch.cat([bend(scene, amount, draws, reach=6.0)[0], bristle], 1)
    steps = [[way / norm * t * (0.4 + amount) for way in (down, right)] for t in range(-4, 5)]
    smeared = torch.stack([textures.warp(canvas, *step) for step in steps]).mean(0)
    paint = saturate(smeared[:, :3], 1.9) + 0.16 * smeared[:, 3:]
    return lerp(scene.image, (paint - 0.5) * 1.2 + 0.5, ramp(amount, 0, 0.7))


def design_of_sculpture(scene, amount: Severity, draws) -> Image:
    """White veined marble relief in a dark hall, lit from the upper left, on a plinth."""
    image, mask = bend(scene, amount, draws, reach=3.0)
    y, x = grid(scene.side, image)
    height = blur(luminance(image) * mask, 0.9) + 1.4 * blur(mask, 1.6)
    relief = (0.66 + 0.9 * (height - shift_by(height, 1.5, 1.5))).clamp(0.15, 1)
    veins = ramp(fractal_noise(draws.fields[:, 1], 4, scene.side).abs(), 0.0, 0.12)
    marble = relief * (0.8 + 0.2 * veins) * colour((1.0, 0.98, 0.94), image)
    spot = 0.30 - 0.42 * ((x - 0.5).square() + (y - 0.45).square())
    hall = colour((0.8, 0.85, 1.0), image) * (spot + 0.28 * ramp(y, 0.86, 0.88))
    return lerp(scene.image, lerp(hall, marble, ramp(mask, 0.3, 0.6)), ramp(amount, 0, 0.85))


def graffiti_style(scene, amount: Severity, draws) -> Image:
    """Neon spray with dripping paint and a black contour on a brick wall."""
    image, mask = bend(scene, amount, draws, reach=4.5)
    y, x = grid(scene.side, image)
    drips = torch.stack([shift_by(mask, t) for t in range(0, 13, 2)]).amax(0)
    drips = drips * ramp(smooth_noise(draws.fields[:, 2], 20, scene.side, tall=1), 0.6, 1.0) * ramp(amount, 0.3, 1)
    paint = ramp(mask.maximum(drips), 0.4, 0.6)
    hue = draws.uniforms[:, 22]
    top, bottom = (hsv((hue + h) % 1, 0.9, 1.0) for h in (0.0, 0.28))
    fill = lerp(top, bottom, y) * (0.55 + 0.65 * luminance(image))
    rim = ramp(textures.dilate(paint, 2.2), 0.4, 0.6)
    course = (y * 6).floor()  # of red bricks in running bond
    joints = ramp((y * 6 % 1 - 0.5).abs(), 0.34, 0.46).maximum(ramp(((x * 3 + 0.5 * (course % 2)) % 1 - 0.5).abs(), 0.42, 0.48))
    clay = colour((0.6, 0.27, 0.2), image) * (1 + 0.06 * smooth_noise(draws.fields[:, 1], 8, scene.side))
    art = lerp(lerp(clay, colour((0.72, 0.5, 0.43), image), joints), colour((0.05, 0.05, 0.1), paint), rim)
    return lerp(scene.image, blur(lerp(art, fill, paint), SOFT), ramp(amount, 0, 0.75))


def video_game_renditions_style(scene, amount: Severity, draws) -> Image:
    """Coarse pixels in a small palette, some tiles before others, and a bar of hearts that fills with the severity."""
    side, palette = scene.side, 6 - 3 * amount
    early = torch.special.ndtr(draws.fields[:, None, 1, :8, :8])  # of the tiles, each of eight pixels
    coarseness = 3 * amount + 1.4 * (F.interpolate(early, size=(side, side), mode="nearest") - 0.5)
    mosaic = scene.image
    for level, block in enumerate((2, 4, 8)):
        coarse = F.avg_pool2d(scene.image, block * side // 64)
        mosaic = torch.where(coarseness > 0.3 + 0.8 * level, F.interpolate(coarse, size=(side, side), mode="nearest"), mosaic)
    pixels = (saturate(mosaic, 1.8) * palette).round() / palette
    y, x = grid(side, scene.image)
    hearts = (y > 3 / 64) & (y < 9 / 64) & (x * 64 % 9 > 3) & (x < 0.95)
    filled = 1 - ramp(x * 64 - 60 * amount, -1, 1)
    screen = lerp(pixels, colour((0.95, 0.1, 0.15), pixels), hearts * filled)
    return lerp(scene.image, screen, ramp(amount, 0, 0.5))


def style_of_a_tattoo(scene, amount: Severity, draws) -> Image:
    """Blue-black ink lines and stippled shade on skin."""
    image, mask = bend(scene, amount, draws, reach=3.5)
    _, x = grid(scene.side, image)
    skin = hsv(0.06 + 0.02 * draws.uniforms[:, 23], 0.42, 0.7 + 0.25 * draws.uniforms[:, 24])
    skin = skin * (1.08 - 0.9 * (x - 0.45).square()) * (1 + 0.02 * smooth_noise(draws.fields[:, 1], 20, scene.side))
    lines = ramp(textures.dilate(edges(mask), 0.6), 0.25, 0.6).maximum(ramp(edges(luminance(image)) * mask, 0.12, 0.3))
    stipple = ramp(smooth_noise(draws.fields[:, 2], 34, scene.side) + 1.6 * (0.55 - luminance(image)), 0.3, 0.9) * mask
    ink = (0.92 * lines).maximum(0.55 * stipple)
    return lerp(scene.image, lerp(skin, colour((0.09, 0.13, 0.2), image), ink), ramp(amount, 0, 0.8))


def veil(scene, amount: Severity, density: Tensor, air: Tensor) -> Image:
    """Koschmieder's law: light from the scene decays with density, light of the air takes its place."""
    softened = lerp(scene.image, blur(scene.image, 1.2), amount)
    return lerp(air, softened, torch.exp(-density * amount))


def heavy_snow(scene, amount: Severity, draws) -> Image:
    """Overcast light, snow on the ground and on upper edges, falling flakes of two sizes."""
    white = colour((0.96, 0.97, 1.0), scene.image)
    y, _ = grid(scene.side, scene.image)
    image = lerp(scene.image, colour((0.72, 0.77, 0.84), scene.image), 0.5 * amount)
    settled = scene.mask * (1 - shift_by(scene.mask, 7)).clamp(0, 1)
    image = lerp(image, white, ramp(blur(settled, 0.8), 0.15, 0.5) * ramp(amount, 0, 0.8) * 0.95)
    drift = 0.03 * smooth_noise(draws.fields[:, 0], 4, scene.side, tall=1)
    ground = ramp(y - (1.02 - 0.42 * amount) + drift, -0.02, 0.03)
    image = lerp(image, white - 0.06 * ramp(drift, -0.03, 0.03), ground * (amount > 0))
    for i, (most, size, strength) in enumerate([(2.05, 0.75, 2.4), (2.75, 1.35, 7.0)]):
        flakes = blur(textures.sparse_points(draws.fields[:, 1 + i], 4.2 - (4.2 - most) * amount.sqrt(), scene.side), size)
        image = lerp(image, white, (flakes * strength).clamp(0, 0.95))
    return image


def heavy_rain(scene, amount: Severity, draws) -> Image:
    """Dark wet light and slanted streaks in two layers, splashes near the ground."""
    onset = ramp(amount, 0, 0.5)  # nothing is grey or soft before the rain begins
    dark = saturate(scene.image, 1 - 0.45 * onset) * (1 - 0.5 * amount)
    image = lerp(lerp(dark, blur(dark, 0.9), onset), colour((0.25, 0.31, 0.4), dark), 0.42 * amount)
    for i, (most, length, width) in enumerate([(2.2, 9, 0.6), (2.45, 17, 0.85)]):
        points = textures.sparse_points(draws.fields[:, 1 + i], 4.2 - (4.2 - most) * amount.sqrt(), scene.side)
        along = torch.linspace(-0.5, 0.5, length).tolist()
        drops = blur(torch.stack([shift_by(points, t * length, t * length * -0.32) for t in along]).amax(0), width)
        image = lerp(image, colour((0.8, 0.87, 0.95), image), (drops * 1.5).clamp(0, 0.8))
    y, _ = grid(scene.side, scene.image)
    splash = blur(textures.sparse_points(draws.fields[:, 3], 3.6 - 2.0 * amount, scene.side), 0.9) * ramp(y, 0.78, 0.95)
    return lerp(image, colour((0.8, 0.87, 0.95), image), (splash * 3).clamp(0, 0.8) * amount)


def heavy_fog(scene, amount: Severity, draws) -> Image:
    """A bright, slowly varying white veil."""
    cloud = fractal_noise(draws.fields[:, 0], 3, scene.side)
    return veil(scene, amount, (1.8 + 0.6 * cloud).clamp(min=0.5), colour((0.9, 0.92, 0.94), scene.image))


def heavy_smog(scene, amount: Severity, draws) -> Image:
    """A dark yellow-grey veil, densest at the top, that dims the light."""
    y, _ = grid(scene.side, scene.image)
    layer = 2.1 - 0.8 * y + 0.35 * fractal_noise(draws.fields[:, 0], 2, scene.side)
    air = colour((0.43, 0.41, 0.31), scene.image) * (0.75 + 0.35 * y)
    return veil(scene, amount, layer.clamp(min=0.6), air)


def heavy_dust(scene, amount: Severity, draws) -> Image:
    """A pale beige plume rising from the ground, with light and dark specks."""
    y, _ = grid(scene.side, scene.image)
    plume = 1.1 + 1.2 * y + 0.55 * fractal_noise(draws.fields[:, 0], 4, scene.side)
    image = veil(scene, amount, plume.clamp(min=0.4), colour((0.8, 0.71, 0.57), scene.image))
    for i, tone in ((1, (0.36, 0.28, 0.2)), (2, (0.98, 0.94, 0.84))):
        specks = blur(textures.sparse_points(draws.fields[:, i], 4.2 - 1.9 * amount.sqrt(), scene.side), 0.7)
        image = lerp(image, colour(tone, image), (specks * 2.4).clamp(0, 0.8))
    return image


def heavy_sandstorm(scene, amount: Severity, draws) -> Image:
    """Orange air driven sideways in long bands of sand."""
    bands = smooth_noise(draws.fields[:, 0], 3, scene.side, tall=14) + 0.6 * smooth_noise(draws.fields[:, 1], 6, scene.side, tall=26)
    tilted = textures.warp(bands, smooth_noise(draws.fields[:, 2], 2, scene.side) * 7, torch.zeros_like(bands))
    air = colour((0.84, 0.5, 0.19), scene.image) * (1 + 0.13 * tilted)
    return veil(scene, amount, (1.9 + 0.5 * tilted).clamp(min=0.5), air)
