"""Data sets under a controlled shift: images drawn from latents of chosen regions (Control+Shift sections 3.2 and 4.1, appendix A).

A text-to-image model under DDIM without noise maps a latent from the standard normal, of norm sqrt(d), to one image. Shifts stand in
the shared tables: `shift` is the kind, `seed` the number of the image in its class, and `scale` the step of the shift, of which 0 is
the training distribution. A class, a seed and a split belong to one unshifted latent, whatever is done to it afterwards.

`plan` says which file holds which set, and to what each step of a shift is set.
"""

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from diffusers import StableDiffusionPipeline
from jaxtyping import UInt8
from PIL import Image

from cnslib.core import recipes, tables, units, workers
from cnslib.core.names import PROMPT, demand, token
from cnslib.core.settings.method import Bootstrap
from cnslib.core.settings.studies import Controlshift
from cnslib.models import text_to_image
from cnslib.stats import bootstrap
from cnslib.studies.controlshift import latents

TOGETHER = 10  # images of one class per forward pass, always as many: the last pass draws some that are thrown away
TRAINED = ("truncation", "extend")  # overlap is trained on the half sphere of extend
FULL = "full"  # training set from the whole sphere


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

    images: Callable[[str, latents.Latents], UInt8[np.ndarray, "images height width 3"]]
    size: int
    device: str
    origin: text_to_image.Origin
    classes: list[str]
    settings: Controlshift

    def draw(self, name: str, z: latents.Latents) -> UInt8[np.ndarray, "images height width 3"]:
        """Images of a class from given latents; nothing else is random."""
        demand(name in self.classes, "controlshift: class", name, ", ".join(self.classes))
        demand(z.shape[1] == self.size, "controlshift: latents", z.shape[1], f"the {self.size} dimensions of this decoder")
        return self.images(name, z)

    def stamp(self, piece: Piece) -> str:
        """What the images of a piece depend on; its step enters by its value."""
        own = self.settings
        drawn = {"steps": own.drawing_steps, "guidance": own.guidance, "side": own.side, "seed": own.seed}
        tokens = {name: self.origin.tokens[name] for name in self.classes}
        step = value(piece.kind, piece.step, own)
        return recipes.CONTROLSHIFT.stamp(piece, step, drawn, self.classes, self.origin.base, tokens)


def value(kind: str, step: int, settings: Controlshift) -> float:
    """What a shift is set to at a step: R of a truncation, else theta in radians."""
    return settings.factors[step] if kind == "truncation" else math.radians(settings.angles[step])


def plan(settings: Controlshift) -> list[Piece]:
    """Every file of the data sets: training, its second half, full support, validation, and the test at every step.

    The test of overlap at step 0 is that of extend, and is stored once.
    """
    last, many = len(settings.angles) - 1, settings.train_images
    pieces = [Piece(f"train_{kind}", "train", kind, 0, 1, many) for kind in TRAINED]
    pieces += [Piece("train_more", "train", "extend", 0, many + 1, many), Piece(f"train_{FULL}", "train", "extend", last, 1, many)]
    pieces += [Piece(f"validation_{kind}", "validation", kind, 0, 1, settings.validation_images) for kind in TRAINED]
    steps = [(kind, step) for kind in latents.KINDS for step in range(last + 1) if kind in TRAINED or step > 0]
    return pieces + [Piece(f"test_{kind}_{step}", "test", kind, step, 1, settings.test_images) for kind, step in steps]


def make(decoder: Decoder, folder: Path) -> dict[str, Path]:
    """Draws the files that are missing or outdated, one after the other on every core; deletes those that are not asked for."""
    pieces = {piece.name: piece for piece in plan(decoder.settings)}
    shelf = units.Shelf(folder, {name: (f"{name}.parquet", decoder.stamp(piece)) for name, piece in pieces.items()})
    waiting = [(decoder, pieces[name], shelf[name]) for name in shelf.waiting()]
    workers.each(store, waiting, device=decoder.device, desc="data sets")
    return shelf.paths


def store(decoder: Decoder, piece: Piece, unit: units.Unit) -> None:
    """Draws one file."""
    rows = [row for name in decoder.classes for row in class_rows(decoder, piece, name)]
    tables.write_unit(pd.DataFrame(rows), unit, tables.images)


def class_rows(decoder: Decoder, piece: Piece, name: str) -> Iterator[dict]:
    """Rows of the images table of one class, in passes of ten images."""
    for first in range(piece.first, piece.first + piece.count, TOGETHER):
        numbers = range(first, min(first + TOGETHER, piece.first + piece.count))
        z = shifted(decoder, piece, name, range(first, first + TOGETHER))
        for number, picture in zip(numbers, decoder.draw(name, z), strict=False):
            own = {"shift": piece.kind, "class": name, "seed": number, "scale": float(piece.step)}
            yield own | {"image": tables.encode(reduced(picture, decoder.settings.side))}


def shifted(decoder: Decoder, piece: Piece, name: str, numbers: range) -> latents.Latents:
    """The latents of some images of a class, shifted, of norm sqrt(d) (near it for a truncation)."""
    seed, size = decoder.settings.seed, decoder.size
    z = latents.start(f"{piece.split} {name}", numbers, size, seed=seed)
    return latents.shifted(z, piece.kind, value(piece.kind, piece.step, decoder.settings), latents.targets(size, seed=seed))


def text_to_image_decoder(
    pipe: StableDiffusionPipeline, origin: text_to_image.Origin, classes: list[str], settings: Controlshift
) -> Decoder:
    """A text-to-image model whose vocabulary holds the classes' tokens, in the place of the paper's EDM."""
    size = math.prod(text_to_image.latent_shape(pipe))
    return Decoder(partial(ddim, pipe, settings), size, str(pipe.device), origin, classes, settings)


@torch.no_grad()
def ddim(
    pipe: StableDiffusionPipeline, settings: Controlshift, name: str, z: latents.Latents
) -> UInt8[np.ndarray, "images height width 3"]:
    """Images of a class, told by its IN* token, by DDIM with classifier-free guidance; no noise is added on the way."""
    scheduler = copy.deepcopy(pipe.scheduler)
    scheduler.set_timesteps(settings.drawing_steps, device=pipe.device)
    text = text_to_image.embed(pipe, ["", PROMPT.format(token=token(name))]).repeat_interleave(len(z), dim=0)
    noisy = torch.from_numpy(z).float().reshape(-1, *text_to_image.latent_shape(pipe)).to(pipe.device)
    for timestep in scheduler.timesteps:
        plain, conditional = pipe.unet(noisy.repeat(2, 1, 1, 1), timestep, text).sample.chunk(2)
        noisy = scheduler.step(plain + settings.guidance * (conditional - plain), timestep, noisy).prev_sample
    return text_to_image.decode(pipe, noisy).numpy()


def reduced(picture: UInt8[np.ndarray, "height width 3"], side: int) -> UInt8[np.ndarray, "side side 3"]:
    """A picture at another size, each pixel the mean of those that it covers."""
    return np.asarray(Image.fromarray(picture).resize((side, side), Image.Resampling.BOX))


def load(folder: Path, *names: str) -> pd.DataFrame:
    """The images of some files of the data sets, in their order; a file without a record of its bytes is named."""
    for name in names:
        units.verified(folder / f"{name}.parquet")
    return pd.concat([tables.read(folder / f"{name}.parquet", tables.images) for name in names], ignore_index=True)


def tested(settings: Controlshift, kind: str) -> list[str]:
    """The files of a shift's test set, step by step; overlap begins with extend's."""
    return [f"test_{'extend' if kind == 'overlap' and step == 0 else kind}_{step}" for step in range(len(settings.angles))]


def evaluation_set(folder: Path, settings: Controlshift, kinds: tuple[str, ...] = latents.KINDS) -> pd.DataFrame:
    """The test images of some shifts at every step. ValueError for a file that holds another step or shift than its name says."""
    parts = []
    for kind in kinds:
        for step, name in enumerate(tested(settings, kind)):
            table, own = load(folder, name), {(name.split("_")[1], float(step))}
            said = set(zip(table["shift"], table["scale"], strict=True))
            demand(said == own, f"{folder / name}.parquet", sorted(said), f"{sorted(own)}, as its name says")
            parts.append(table.assign(shift=kind))
    return pd.concat(parts, ignore_index=True)


def strength(settings: Controlshift, size: int) -> pd.DataFrame:
    """What each step of each shift is set to (R, or degrees), and its intensity of Definition 1 in closed form and by Monte Carlo.

    Columns shift, scale, set_to, exact, n, estimate, low, high; `size` is that of the latent space.
    """
    aims = latents.targets(size, seed=settings.seed)
    rows = []
    for kind in latents.KINDS:
        trained = value(kind, 0, settings)
        for step, shown in enumerate(settings.factors if kind == "truncation" else settings.angles):
            own = (kind, value(kind, step, settings), trained, aims)
            drawn = latents.simulated(*own, draws=settings.draws, seed=settings.seed, confidence=settings.bootstrap.confidence)
            rows.append({"shift": kind, "scale": float(step), "set_to": shown, "exact": latents.exact(*own), **drawn})
    return pd.DataFrame(rows)


def change(images: pd.DataFrame, *, settings: Bootstrap) -> pd.DataFrame:
    """Mean absolute difference from the picture at step 0 in grey levels (shift, scale, n, estimate, low, high), n trajectories."""
    parts = []
    for kind in images["shift"].unique():
        rows = images[images["shift"] == kind].sort_values(["class", "seed", "scale"])
        pictures = tables.pictures(rows, "test set").astype(int)
        pictures = pictures.reshape(-1, rows["scale"].nunique(), *pictures.shape[1:])
        away = np.abs(pictures - pictures[:, :1]).mean((2, 3, 4))
        weights, units = bootstrap.resampling_weights(rows[["class", "seed"]].drop_duplicates().reset_index(drop=True), settings=settings)
        means = weights[:, units] @ away / weights[:, units].sum(1, keepdims=True)
        numbers = bootstrap.estimates(means, len(away), settings.confidence)
        parts.append(pd.DataFrame({"shift": kind, "scale": sorted(rows["scale"].unique()), **numbers}))
    return pd.concat(parts, ignore_index=True)
