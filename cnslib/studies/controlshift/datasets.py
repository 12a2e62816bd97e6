"""Data sets under a controlled shift: images drawn from latents of chosen regions (Control+Shift sections 3.2 and 4.1, appendix A).

A text-to-image model under DDIM without noise maps a latent from the standard normal to one image. In the tables `shift` is the kind,
`seed` the number of the image in its class, and `scale` the step of the shift, of which 0 is the training distribution.
"""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from diffusers import StableDiffusionPipeline
from jaxtyping import Float, UInt8
from PIL import Image
from scipy.special import betainc
from scipy.stats import chi2

from cnslib.core import recipes, seeds, tables, units, workers
from cnslib.core.names import PROMPT, token
from cnslib.core.settings.sections import Controlshift
from cnslib.models import text_to_image
from cnslib.models.text_to_image import Origin
from cnslib.stats import bootstrap

# The shifts in latent space and their intensity (section 4.1, appendix A). Almost all of the standard normal distribution lies near the
# sphere of radius sqrt(d), and a decoder was trained there: the paper's latents of norm 1 are therefore stretched to norm sqrt(d). Extend
# and overlap turn towards two constant codes t1 and t2 of that norm. The intensity is the share of the shifted support outside the training
# support (Definition 1); both are known in latent space. Truncation: a ball that holds 99 % of the normal distribution. Extend: the cap of
# angle pi/2 + theta around t1. Overlap: the half sphere around a pole that moves from t1 to t2. The size of a set is its volume in the
# ball, its area on the sphere.

KINDS = ("truncation", "extend", "overlap")
MASS = 0.99  # of a distribution with full support, which its support is taken to hold (section 3.1)
RIGHT = math.pi / 2
Latents = Float[np.ndarray, "images d"]
Latent = Float[np.ndarray, "d"]
Targets = Float[np.ndarray, "2 d"]


def targets(size: int, *, seed: int) -> Targets:
    """The target codes t1 and t2 of a latent space of `size` dimensions, of norm sqrt(d)."""
    return unit(start("target", range(1, 3), size, seed=seed)) * math.sqrt(size)


def start(split: str, numbers: range, size: int, *, seed: int) -> Latents:
    """The unshifted latents z of some images of a split: each from its own number, the same for every shift and intensity."""
    return np.stack([np.random.default_rng(seeds.seed_of(split, number, seed)).standard_normal(size) for number in numbers])


def shifted(z: Latents, kind: str, value: float, targets: Targets) -> Latents:
    """The latents that a shift makes of z; `value` is the factor R of a truncation, else an angle theta in [0, pi/2].

    Extend (Eq. 7) covers a growing cap around t1; as printed Eq. 7 has z and t1 in each other's place. Overlap (Eqs. 8 and 9) covers a half
    sphere whose pole moves from t1 to t2.
    """
    if kind == "truncation":
        return value * z
    path = (unit(targets[0]), unit(z), (value + RIGHT) / math.pi) if kind == "extend" else (unit(z), pole(value, targets), 0.5)
    return slerp(*path) * math.sqrt(z.shape[-1])


def pole(theta: float, targets: Targets) -> Latent:
    """The pole of the overlap shift at an angle (Eq. 8)."""
    return slerp(unit(targets[0]), unit(targets[1]), 2 * theta / math.pi)


def slerp(first: Float[np.ndarray, "*rows d"], second: Float[np.ndarray, "*rows d"], tau: float) -> Float[np.ndarray, "*rows d"]:
    """Spherical linear interpolation (Eq. 6) from `first` at tau = 0 to `second` at tau = 1, both of norm 1 and not opposite."""
    omega = np.arccos(np.clip((first * second).sum(-1, keepdims=True), -1, 1))
    near = omega < 1e-6  # sin(tau x) / sin x is tau there
    divisor = np.where(near, 1, np.sin(omega))
    left, right = (np.where(near, share, np.sin(share * omega) / divisor) for share in (1 - tau, tau))
    return left * first + right * second


def unit(vectors: Float[np.ndarray, "*rows d"]) -> Float[np.ndarray, "*rows d"]:
    """Vectors scaled to norm 1."""
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def exact(kind: str, value: float, trained: float, targets: Targets) -> float:
    """The intensity of a shift (Definition 1) in closed form, against training at the value `trained`, or on the half sphere around t1."""
    size = targets.shape[1]
    if kind == "truncation":
        return max(0.0, 1 - (trained / value) ** size)
    if kind == "extend":
        return 1 - 0.5 / cap(RIGHT + value, size)
    return math.acos(np.clip(unit(targets[0]) @ pole(value, targets), -1, 1)) / math.pi


def cap(angle: float, size: int) -> float:
    """The share of a sphere in `size` dimensions within an angle in [0, pi] of a pole."""
    half = betainc((size - 1) / 2, 0.5, math.sin(angle) ** 2) / 2
    return float(half if angle <= RIGHT else 1 - half)


def simulated(kind: str, value: float, trained: float, targets: Targets, *, draws: int, seed: int, confidence: float) -> dict:
    """The intensity by Monte Carlo, Wilson's interval: the share of uniform draws from the shifted support outside the training support."""
    size, generator = targets.shape[1], np.random.default_rng(seed)
    points = unit(generator.standard_normal((draws, size)))
    if kind == "truncation":
        radius = math.sqrt(chi2.ppf(MASS, size))
        norms = np.linalg.norm(points * generator.random((draws, 1)) ** (1 / size) * (value * radius), axis=1)
        return bootstrap.counted(int((norms > trained * radius).sum()), draws, confidence=confidence)
    first = unit(targets[0])
    moved, reach = (pole(value, targets), RIGHT) if kind == "overlap" else (first, RIGHT + value)
    inside = points @ moved >= math.cos(reach)
    outside = inside & ~(points @ first >= math.cos(RIGHT))
    return bootstrap.counted(int(outside.sum()), int(inside.sum()), confidence=confidence)


# The images.

TOGETHER = 10  # images of one class per forward pass, always as many: the last pass draws some that are thrown away
TRAINED = ("truncation", "extend")  # overlap is trained on the half sphere of extend
Pictures = UInt8[np.ndarray, "images height width 3"]


@dataclass(frozen=True)
class ImageFile:
    """One file: so many images per class of a split, numbered from `first`, of one shift at one step."""

    name: str
    split: str
    kind: str
    step: int
    first: int
    count: int


@dataclass(frozen=True)
class Decoder:
    """What draws: images of a class from latents of so many dimensions, where it comes from, its classes, and the settings."""

    images: Callable[[str, Latents], Pictures]
    size: int
    device: str
    origin: Origin
    classes: list[str]
    settings: Controlshift

    def stamp(self, file: ImageFile) -> str:
        """What the images of a file depend on; its step enters by its value."""
        settings = self.settings
        drawn = {"steps": settings.drawing_steps, "guidance": settings.guidance, "side": settings.side, "seed": settings.seed}
        tokens = {name: self.origin.tokens[name] for name in self.classes}
        return recipes.CONTROLSHIFT.stamp(file, value(file.kind, file.step, settings), drawn, self.classes, self.origin.base, tokens)


def value(kind: str, step: int, settings: Controlshift) -> float:
    """What a shift is set to at a step: R of a truncation, else theta in radians."""
    return settings.factors[step] if kind == "truncation" else math.radians(settings.angles[step])


def plan(settings: Controlshift) -> list[ImageFile]:
    """Every file of the data sets: training, its second half, full support, validation, and the test at every step (overlap from 1)."""
    last, many = len(settings.angles) - 1, settings.train_images
    files = [ImageFile(f"train_{kind}", "train", kind, 0, 1, many) for kind in TRAINED]
    files += [ImageFile("train_more", "train", "extend", 0, many + 1, many), ImageFile("train_full", "train", "extend", last, 1, many)]
    files += [ImageFile(f"validation_{kind}", "validation", kind, 0, 1, settings.validation_images) for kind in TRAINED]
    steps = [(kind, step) for kind in KINDS for step in range(last + 1) if kind in TRAINED or step > 0]
    return files + [ImageFile(f"test_{kind}_{step}", "test", kind, step, 1, settings.test_images) for kind, step in steps]


def make(decoder: Decoder, folder: Path) -> None:
    """Draws the files that are missing or outdated, side by side on every core; deletes those that are not in the plan."""
    files = {file.name: file for file in plan(decoder.settings)}
    stamps = {name: decoder.stamp(file) for name, file in files.items()}
    rows = lambda name: pd.concat([class_rows(decoder, files[name], label) for label in decoder.classes])  # noqa: E731
    workers.stored(stamps, rows, tables.images, folder=folder, device=decoder.device)


def class_rows(decoder: Decoder, file: ImageFile, name: str) -> pd.DataFrame:
    """The images of one class, drawn in passes of ten and shrunk to `side`, each pixel the mean of those that it covers."""
    rows, settings = [], decoder.settings
    aims, side = targets(decoder.size, seed=settings.seed), (settings.side, settings.side)
    numbers = range(file.first, file.first + file.count)
    for first in numbers[::TOGETHER]:
        z = start(f"{file.split} {name}", range(first, first + TOGETHER), decoder.size, seed=settings.seed)
        drawn = decoder.images(name, shifted(z, file.kind, value(file.kind, file.step, settings), aims))
        shrunk = [np.asarray(Image.fromarray(picture).resize(side, Image.Resampling.BOX)) for picture in drawn]
        rows += [(file.kind, name, first + i, float(file.step), tables.encode(picture)) for i, picture in enumerate(shrunk)]
    return pd.DataFrame(rows[: file.count], columns=[*tables.KEY, "image"])


def text_to_image_decoder(pipe: StableDiffusionPipeline, origin: Origin, classes: list[str], settings: Controlshift) -> Decoder:
    """A text-to-image model whose vocabulary holds the classes' tokens, in the place of the paper's EDM."""
    size = math.prod(text_to_image.latent_shape(pipe))
    return Decoder(partial(ddim, pipe, settings), size, str(pipe.device), origin, classes, settings)


@torch.no_grad()
def ddim(pipe: StableDiffusionPipeline, settings: Controlshift, name: str, z: Latents) -> Pictures:
    """Images of a class, told by its IN* token, by DDIM with classifier-free guidance; no noise is added on the way."""
    scheduler = copy.deepcopy(pipe.scheduler)
    scheduler.set_timesteps(settings.drawing_steps, device=pipe.device)
    text = text_to_image.embed(pipe, ["", PROMPT.format(token=token(name))]).repeat_interleave(len(z), dim=0)
    noisy = torch.from_numpy(z).float().reshape(-1, *text_to_image.latent_shape(pipe)).to(pipe.device)
    for timestep in scheduler.timesteps:
        plain, conditional = pipe.unet(noisy.repeat(2, 1, 1, 1), timestep, text).sample.chunk(2)
        noisy = scheduler.step(plain + settings.guidance * (conditional - plain), timestep, noisy).prev_sample
    return text_to_image.decode(pipe, noisy).numpy()


def load(folder: Path, *names: str) -> pd.DataFrame:
    """The images of some files of the data sets, in their order; a file without a record of its bytes is named."""
    for name in names:
        units.verified(folder / f"{name}.parquet")
    return pd.concat([tables.read(folder / f"{name}.parquet", tables.images) for name in names], ignore_index=True)


def tested(settings: Controlshift, kind: str) -> list[str]:
    """The files of a shift's test set, step by step; overlap begins with extend's."""
    return [f"test_{'extend' if kind == 'overlap' and step == 0 else kind}_{step}" for step in range(len(settings.angles))]


def evaluation_set(folder: Path, settings: Controlshift, kinds: tuple[str, ...] = KINDS) -> pd.DataFrame:
    """The test images of some shifts at every step."""
    return pd.concat([load(folder, *tested(settings, kind)).assign(shift=kind) for kind in kinds], ignore_index=True)


def strength(settings: Controlshift, size: int) -> pd.DataFrame:
    """What each step of each shift is set to (R, or degrees), and its intensity of Definition 1 in closed form and by Monte Carlo.

    Columns shift, scale, set_to, exact, n, estimate, low, high; `size` is that of the latent space.
    """
    aims, rows = targets(size, seed=settings.seed), []
    for kind in KINDS:
        for step, shown in enumerate(settings.factors if kind == "truncation" else settings.angles):
            arguments = (kind, value(kind, step, settings), value(kind, 0, settings), aims)
            drawn = simulated(*arguments, draws=settings.draws, seed=settings.seed, confidence=settings.bootstrap.confidence)
            rows.append({"shift": kind, "scale": float(step), "set_to": shown, "exact": exact(*arguments), **drawn})
    return pd.DataFrame(rows)
