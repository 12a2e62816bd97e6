"""The photo set's images: a cut-out in a random pose on a background, as a scene of the mini world's renderer, under its shifts.

Every cut-out owns one generator (seed, class, number), so its pose and background do not depend on what else is drawn.
"""

import contextlib
from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Float, UInt8
from PIL import Image
from torch import Tensor

from cnslib import backgrounds, shifts, textures, world
from cnslib.config import UNSHIFTED
from cnslib.cutouts import CutOut
from cnslib.textures import blur, lerp, shift_by
from cnslib.world import Draws, Scene

SIDE = 256  # pixels
EXTENT = (0.6, 0.85)  # longer side of the placed cut-out, as a share of the image's side
TILT = 12.0  # degrees to either side
FINENESS = 160  # lengths of the renderer are this fraction of the side; 64 is right for garments at 64 px, too coarse for a photograph
REACH = {  # the renderer's severity at severity 1: what most people can still name, judged by eye; 1.0 where none is told
    "plush toy style": 0.9,
    "video game renditions style": 0.5,  # its blocks are literal 64ths: beyond, a picture has 8 x 8 of them
    "heavy snow": 0.85,
    "heavy fog": 0.8,
    "heavy smog": 0.9,
    "heavy dust": 0.9,
    "heavy sandstorm": 0.65,
}


def scene(cutout: CutOut, *, seed: int) -> tuple[Scene, Draws]:
    """The unshifted scene of one cut-out (a batch of one) and the random numbers that its shifts will use."""
    draws = world.draw([("photos", seed, cutout.label, cutout.seed)])
    placed = torch.from_numpy(np.array(posed(cutout.picture, draws.uniforms[0]))).permute(2, 0, 1)[None].float() / 255
    body, mask = placed.split([3, 1], dim=1)
    ground = backgrounds.background(draws, SIDE)
    ground = ground * (1 - 0.4 * blur(shift_by(mask, 2.0, 1.5), 2.0))  # a soft shadow
    return Scene(lerp(ground, body, mask), mask, body, ground), draws


def posed(picture: Image.Image, uniforms: Float[Tensor, "32"]) -> Image.Image:
    """The cut-out mirrored or not, tilted, scaled and shifted on a transparent square, whole."""
    mirror, tilt, extent, right, down = uniforms[:5].tolist()
    picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirror < 0.5 else picture
    picture = picture.rotate((2 * tilt - 1) * TILT, Image.Resampling.BICUBIC, expand=True)
    picture = picture.crop(picture.getchannel("A").getbbox())
    factor = SIDE * (EXTENT[0] + (EXTENT[1] - EXTENT[0]) * extent) / max(picture.size)
    picture = picture.resize([max(1, round(length * factor)) for length in picture.size], Image.Resampling.BICUBIC)
    canvas = Image.new("RGBA", (SIDE, SIDE))
    rooms = [(SIDE - length) / 2 for length in picture.size]
    canvas.paste(picture, tuple(round(room + (share - 0.5) * room) for room, share in zip(rooms, (right, down), strict=True)))
    return canvas


def shifted(cutout: CutOut, shift: str, severities: list[float], *, seed: int) -> UInt8[np.ndarray, "severities 256 256 3"]:
    """One cut-out under one shift (or "unshifted") at each severity."""
    (whole, draws), count = scene(cutout, seed=seed), len(severities)
    if shift == UNSHIFTED:
        return world.to_uint8(whole.image).numpy()
    many = Scene(*(getattr(whole, name).expand(count, -1, -1, -1) for name in ("image", "mask", "object", "background")))
    repeated = Draws(draws.uniforms.expand(count, -1), draws.fields.expand(count, -1, -1, -1))
    with fine_lengths():
        images = shifts.apply(shift, many, REACH.get(shift, 1.0) * torch.tensor(severities), repeated)
    return world.to_uint8(images).numpy()


@contextlib.contextmanager
def fine_lengths() -> Iterator[None]:
    """Lets the renderer draw flakes, strokes and outlines in 160ths of the side instead of 64ths, as long as the context lasts."""
    usual, textures.FIELD = textures.FIELD, FINENESS
    try:
        yield
    finally:
        textures.FIELD = usual
