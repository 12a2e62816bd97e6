"""Data sets under a controlled shift: images drawn from latents of chosen regions (Control+Shift sections 3.2 and 4.1, appendix A).

A text-to-image model under DDIM without noise maps a latent from the standard normal to one image. Shifts stand in the shared tables:
`shift` is the kind, `seed` the number of the image in its class, and `scale` the step of the shift, of which 0 is the training
distribution. A class, a seed and a split belong to one unshifted latent, whatever is done to it afterwards.
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
import xarray as xr
from diffusers import StableDiffusionPipeline
from jaxtyping import UInt8
from PIL import Image

from cnslib.core import recipes, tables, units, workers
from cnslib.core.names import PROMPT, token
from cnslib.core.settings.method import Bootstrap
from cnslib.core.settings.sections import Controlshift
from cnslib.models import text_to_image
from cnslib.models.text_to_image import Origin
from cnslib.stats import accuracy
from cnslib.studies.controlshift import latents

TOGETHER = 10  # images of one class per forward pass, always as many: the last pass draws some that are thrown away
TRAINED = ("truncation", "extend")  # overlap is trained on the half sphere of extend
Pictures = UInt8[np.ndarray, "images height width 3"]


@dataclass(frozen=True)
class Piece:
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

    images: Callable[[str, latents.Latents], Pictures]
    size: int
    device: str
    origin: Origin
    classes: list[str]
    settings: Controlshift

    def stamp(self, piece: Piece) -> str:
        """What the images of a file depend on; its step enters by its value."""
        own = self.settings
        drawn = {"steps": own.drawing_steps, "guidance": own.guidance, "side": own.side, "seed": own.seed}
        tokens = {name: self.origin.tokens[name] for name in self.classes}
        return recipes.CONTROLSHIFT.stamp(piece, value(piece.kind, piece.step, own), drawn, self.classes, self.origin.base, tokens)


def value(kind: str, step: int, settings: Controlshift) -> float:
    """What a shift is set to at a step: R of a truncation, else theta in radians."""
    return settings.factors[step] if kind == "truncation" else math.radians(settings.angles[step])


def plan(settings: Controlshift) -> list[Piece]:
    """Every file of the data sets: training, its second half, full support, validation, and the test at every step.

    The test of overlap at step 0 is that of extend, and is stored once.
    """
    last, many = len(settings.angles) - 1, settings.train_images
    pieces = [Piece(f"train_{kind}", "train", kind, 0, 1, many) for kind in TRAINED]
    pieces += [Piece("train_more", "train", "extend", 0, many + 1, many), Piece("train_full", "train", "extend", last, 1, many)]
    pieces += [Piece(f"validation_{kind}", "validation", kind, 0, 1, settings.validation_images) for kind in TRAINED]
    steps = [(kind, step) for kind in latents.KINDS for step in range(last + 1) if kind in TRAINED or step > 0]
    return pieces + [Piece(f"test_{kind}_{step}", "test", kind, step, 1, settings.test_images) for kind, step in steps]


def make(decoder: Decoder, folder: Path) -> dict[str, Path]:
    """Draws the files that are missing or outdated, side by side on every core; deletes those that are not in the plan."""
    pieces = {piece.name: piece for piece in plan(decoder.settings)}
    shelf = units.Shelf(folder, {name: (f"{name}.parquet", decoder.stamp(piece)) for name, piece in pieces.items()})
    waiting = [(decoder, pieces[name], shelf[name]) for name in shelf.waiting()]
    workers.each(store, waiting, device=decoder.device, desc="data sets")
    return shelf.paths


def store(decoder: Decoder, piece: Piece, unit: units.Unit) -> None:
    """Draws one file."""
    tables.write_unit(pd.concat([class_rows(decoder, piece, name) for name in decoder.classes]), unit, tables.images)


def class_rows(decoder: Decoder, piece: Piece, name: str) -> pd.DataFrame:
    """The images of one class, drawn in passes of ten and shrunk to `side`, each pixel the mean of those that it covers."""
    rows, settings = [], decoder.settings
    targets, side = latents.targets(decoder.size, seed=settings.seed), (settings.side, settings.side)
    numbers = range(piece.first, piece.first + piece.count)
    for first in numbers[::TOGETHER]:
        z = latents.start(f"{piece.split} {name}", range(first, first + TOGETHER), decoder.size, seed=settings.seed)
        drawn = decoder.images(name, latents.shifted(z, piece.kind, value(piece.kind, piece.step, settings), targets))
        shrunk = [np.asarray(Image.fromarray(picture).resize(side, Image.Resampling.BOX)) for picture in drawn]
        rows += [(piece.kind, name, first + i, float(piece.step), tables.encode(picture)) for i, picture in enumerate(shrunk)]
    return pd.DataFrame(rows[: piece.count], columns=[*tables.KEY, "image"])


def text_to_image_decoder(pipe: StableDiffusionPipeline, origin: Origin, classes: list[str], settings: Controlshift) -> Decoder:
    """A text-to-image model whose vocabulary holds the classes' tokens, in the place of the paper's EDM."""
    size = math.prod(text_to_image.latent_shape(pipe))
    return Decoder(partial(ddim, pipe, settings), size, str(pipe.device), origin, classes, settings)


@torch.no_grad()
def ddim(pipe: StableDiffusionPipeline, settings: Controlshift, name: str, z: latents.Latents) -> Pictures:
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


def evaluation_set(folder: Path, settings: Controlshift, kinds: tuple[str, ...] = latents.KINDS) -> pd.DataFrame:
    """The test images of some shifts at every step."""
    return pd.concat([load(folder, *tested(settings, kind)).assign(shift=kind) for kind in kinds], ignore_index=True)


def strength(settings: Controlshift, size: int) -> pd.DataFrame:
    """What each step of each shift is set to (R, or degrees), and its intensity of Definition 1 in closed form and by Monte Carlo.

    Columns shift, scale, set_to, exact, n, estimate, low, high; `size` is that of the latent space.
    """
    targets, rows = latents.targets(size, seed=settings.seed), []
    for kind in latents.KINDS:
        for step, shown in enumerate(settings.factors if kind == "truncation" else settings.angles):
            own = (kind, value(kind, step, settings), value(kind, 0, settings), targets)
            drawn = latents.simulated(*own, draws=settings.draws, seed=settings.seed, confidence=settings.bootstrap.confidence)
            rows.append({"shift": kind, "scale": float(step), "set_to": shown, "exact": latents.exact(*own), **drawn})
    return pd.DataFrame(rows)


def change(images: pd.DataFrame, *, settings: Bootstrap) -> pd.DataFrame:
    """Mean absolute difference from the picture at step 0 in grey levels (shift, scale, n, estimate, low, high), n trajectories."""
    rows = images.sort_values([*tables.TRAJECTORY, "scale"])
    scales, keys = np.unique(rows["scale"]), rows[tables.TRAJECTORY].drop_duplicates()
    pictures = tables.pictures(rows, "test set").astype(int)
    pictures = pictures.reshape(len(keys), len(scales), *pictures.shape[1:])
    labels = {name: ("trajectory", keys[name].to_numpy()) for name in keys} | {"scale": scales}
    away = xr.DataArray(np.abs(pictures - pictures[:, :1]).mean((2, 3, 4)), labels, ["trajectory", "scale"])
    return accuracy.interval(accuracy.by_shift(away, settings).drop_sel(shift=accuracy.ALL))
