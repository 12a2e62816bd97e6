"""The photo set's images: cut-out photographs of ImageNet classes, posed on backgrounds as scenes of the renderer, under its shifts.

A background is scenery from photographed grass, gravel or brick (scikit-image, CC0) or a blurred crop of a photograph (scikit-learn, CC
BY). Every cut-out owns one generator (seed, class, number), so its pose and background do not depend on what else is drawn.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import skimage
import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from PIL import Image
from sklearn.datasets import load_sample_image
from torch import Tensor

from cnslib.core import pictures
from cnslib.core.names import UNSHIFTED
from cnslib.world import scenes, shifts, textures
from cnslib.world.scenes import Draws, Scene
from cnslib.world.textures import blur, fractal_noise, grid, hsv, lerp, luminance, ramp, shift_by, smooth_noise

LIST = "photos.csv"
COLUMNS = ("file", "index", "wnid", "class", "seed", "source", "licence")


@dataclass(frozen=True)
class CutOut:
    """One photograph without its background: ImageNet label, number among the cut-outs of its class, RGBA picture."""

    label: str
    seed: int
    picture: Image.Image


def contents(folder: Path) -> pd.DataFrame:
    """The list of the cut-outs in the order of ImageNet's classes. FileNotFoundError for a missing one."""
    path = folder / LIST
    if not path.exists():
        raise FileNotFoundError(f"photos: {path} does not exist; `dvc pull` restores it, `python -m cnslib.world.install /` makes it")
    return pd.read_csv(path)


def read(folder: Path, *, count: int | None = None) -> list[CutOut]:
    """The first `count` cut-outs, or all. FileNotFoundError or ValueError name a picture that is missing, damaged or has no mask."""
    found = []
    for row in contents(folder).head(count).to_dict("records"):
        path = folder / row["file"]
        try:
            picture = Image.open(path, formats=pictures.FORMATS)
            picture.load()
        except FileNotFoundError:
            raise FileNotFoundError(f"photos: {path} does not exist; `dvc pull` restores it") from None
        except OSError as error:
            raise ValueError(f"photos: {path} is not a readable picture ({type(error).__name__}); accepted: RGBA in WebP or PNG") from None
        if picture.mode != "RGBA":
            raise ValueError(f"photos: {path} is {picture.mode}; accepted: RGBA, the mask as alpha")
        found.append(CutOut(row["class"], row["seed"], picture))
    return found


PHOTOGRAPHS = {"park": ("china.jpg", 1.0), "garden": ("flower.jpg", 3.0)}  # and the blur that tells near from far
KINDS = ("meadow", "path", "wall", *PHOTOGRAPHS, "haze")
EMPTY = tuple(kind for kind in KINDS if kind not in PHOTOGRAPHS)  # park and garden show a palace and a flower, which ImageNet has names for
Image3 = Float[Tensor, "1 3 side side"]


def background(draws: Draws, side: int, kinds: tuple[str, ...] = KINDS) -> Image3:
    """The background of one image (a batch of one), one of some kinds by its own draw."""
    kind = kinds[int(draws.uniforms[0, 8] * len(kinds))]
    drawn = (crop if kind in PHOTOGRAPHS else scenery)(kind, draws, side)
    return (drawn * (0.85 + 0.3 * draws.uniforms[0, 9])).clamp(0, 1)


def scenery(kind: str, draws: Draws, side: int) -> Image3:
    """Sky or wall above the horizon, grass or gravel below it; "haze" has clouds of colour alone."""
    u = draws.uniforms[0]
    if kind == "haze":
        low, high = (hsv(u[10:11] + turn, 0.25, 0.75) for turn in (0.0, 0.1))
        return lerp(low, high, ramp(smooth_noise(draws.fields[:, 2], 3, side), -1.5, 1.5))
    y, _ = grid(side, u)
    horizon = 0.35 + 0.25 * float(u[11])
    air = hsv(torch.full_like(u[12:13], 0.58), 0.1 + 0.5 * u[12:13], 0.7 + 0.25 * u[13:14])  # paler towards the horizon, with clouds
    sky = lerp(lerp(air, 0.93, (1.3 * y).clamp(0, 1)), 0.97, 0.8 * ramp(fractal_noise(draws.fields[:, 2], 3, side), 0.2, 1.6))
    above = plane("brick", draws, side, horizon=None) if kind == "wall" else sky
    below = plane("grass" if kind == "meadow" else "gravel", draws, side, horizon=horizon)
    edge = horizon + (0.004 if kind == "wall" else 0.02) * smooth_noise(draws.fields[:, 3], 6, side, tall=1)
    return blur(lerp(above, below, ramp(y - edge, -0.01, 0.01)), 0.5)  # a lens that is focused on the object


def plane(name: str, draws: Draws, side: int, *, horizon: float | None) -> Image3:
    """A coloured texture: upright, or as ground that recedes to the horizon, where its detail fades."""
    u = draws.uniforms[0]
    y, x = grid(side, u)
    depth = torch.ones_like(y) if horizon is None else 0.25 / (y - horizon).clamp(min=0.03)
    place = torch.stack([(x - 0.5) * depth + u[14] - 0.5, (y if horizon is None else depth) + u[15]], -1)[None]
    grey = luminance(tensor(np.asarray(Image.open(Path(skimage.__file__).parent / "data" / f"{name}.png").convert("RGB"))))
    grey = grey.transpose(2, 3) if name == "brick" else grey  # its courses stand upright
    light = F.grid_sample(grey, place, padding_mode="reflection", align_corners=False)
    light = lerp(light, light.mean(), (depth / 8).clamp(0, 1))
    hue, saturation, value = {"grass": (0.24, 0.55, 0.95), "gravel": (0.09, 0.2, 1.1), "brick": (0.03, 0.4, 1.1)}[name]
    return (hsv((hue + 0.06 * (u[16:17] - 0.5)) % 1, saturation, 1.0) * light * value).clamp(0, 1)


def crop(kind: str, draws: Draws, side: int) -> Image3:
    """A square of a photograph, mirrored or not, out of focus."""
    u = draws.uniforms[0]
    name, length = PHOTOGRAPHS[kind]
    whole = tensor(load_sample_image(name))
    size = int((0.5 + 0.4 * float(u[14])) * min(whole.shape[2:]))
    top, left = (math.floor(float(place) * (extent - size)) for place, extent in zip(u[15:17], whole.shape[2:], strict=True))
    part = F.interpolate(whole[..., top : top + size, left : left + size], size=(side, side), mode="bilinear", antialias=True)
    return blur(part.flip(-1) if u[17] < 0.5 else part, length)


def tensor(picture: np.ndarray) -> Float[Tensor, "1 channels height width"]:
    """A uint8 picture as a batch of one in [0, 1]."""
    return torch.from_numpy(picture.copy()).permute(2, 0, 1)[None].float() / 255


SIDE = 256  # pixels
EXTENT = (0.6, 0.85)  # longer side of the placed cut-out, as a share of the image's side
TILT = 12.0  # degrees to either side
FINENESS = 160  # lengths of the renderer are this fraction of the side; 64 is right for garments at 64 px, too coarse for a photograph
# The renderer's severity at severity 1: what most people can still name, judged by eye; 1.0 where none is told. A game's blocks are literal
# 64ths: beyond 0.5, a picture has 8 x 8 of them.
REACH = {"video game renditions style": 0.5, "heavy snow": 0.85, "heavy fog": 0.8, "heavy rain": 0.65, "heavy sandstorm": 0.65}
REACH |= dict.fromkeys(("plush toy style", "heavy smog", "heavy dust"), 0.9)


def scene(cutout: CutOut, *, seed: int) -> tuple[Scene, Draws]:
    """The unshifted scene of one cut-out (a batch of one) and the random numbers that its shifts will use."""
    draws = scenes.draw([("photos", seed, cutout.label, cutout.seed)])
    body, mask = tensor(np.asarray(posed(cutout.picture, draws.uniforms[0]))).split([3, 1], dim=1)
    ground = background(draws, SIDE) * (1 - 0.4 * blur(shift_by(mask, 2.0, 1.5), 2.0))  # a soft shadow
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
        return scenes.to_uint8(whole.image).numpy()
    many = Scene(*(own.expand(count, -1, -1, -1) for own in (whole.image, whole.mask, whole.object, whole.background)))
    repeated = Draws(draws.uniforms.expand(count, -1), draws.fields.expand(count, -1, -1, -1))
    usual, textures.FIELD = textures.FIELD, FINENESS
    try:
        return scenes.to_uint8(shifts.apply(shift, many, REACH.get(shift, 1.0) * torch.tensor(severities), repeated)).numpy()
    finally:
        textures.FIELD = usual
