"""Data sets under a controlled shift: images drawn from latents of chosen regions (Control+Shift sections 3.2 and 4.1, appendix A).

A text-to-image model under DDIM without noise maps a latent from the standard normal, of norm sqrt(d), to one image. Shifts stand in
the shared tables: `shift` is the kind, `seed` the number of the image in its class, and `scale` the step of the shift, of which 0 is
the training distribution. A class, a seed and a split belong to one unshifted latent, whatever is done to it afterwards.

`plan` says which file holds which set, and to what each step of a shift is set.
"""

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from diffusers import StableDiffusionPipeline
from jaxtyping import Float, UInt8
from PIL import Image
from torch import Tensor

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
    """What draws: a pipeline whose vocabulary holds the classes' tokens, where it comes from, its classes, and the settings."""

    pipe: StableDiffusionPipeline
    origin: text_to_image.Origin
    classes: list[str]
    settings: Controlshift

    @property
    def size(self) -> int:
        """Dimensions of the latent space."""
        return math.prod(text_to_image.latent_shape(self.pipe))

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
    workers.each(store, waiting, device=decoder.pipe.device, desc="data sets")
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
        for number, picture in zip(numbers, draw(decoder, name, z), strict=False):
            own = {"shift": piece.kind, "class": name, "seed": number, "scale": float(piece.step)}
            yield own | {"image": tables.encode(shrunk(picture, decoder.settings.side))}


def shifted(decoder: Decoder, piece: Piece, name: str, numbers: range) -> latents.Latents:
    """The latents of some images of a class, shifted, of norm sqrt(d) (near it for a truncation)."""
    seed, size = decoder.settings.seed, decoder.size
    z = latents.start(f"{piece.split} {name}", numbers, size, seed=seed)
    return latents.shifted(z, piece.kind, value(piece.kind, piece.step, decoder.settings), latents.targets(size, seed=seed))


@torch.no_grad()
def draw(decoder: Decoder, name: str, z: latents.Latents) -> UInt8[np.ndarray, "images height width 3"]:
    """Images of a class from given latents by DDIM with classifier-free guidance; no noise is added on the way.

    Raises ValueError for no latents and for latents of another size than the decoder's.
    """
    demand(len(z) > 0, "controlshift: latents", len(z), "at least one")
    demand(z.shape[1] == decoder.size, "controlshift: latents", z.shape[1], f"the {decoder.size} dimensions of this decoder")
    pipe, guidance = decoder.pipe, decoder.settings.guidance
    scheduler = copy.deepcopy(pipe.scheduler)
    scheduler.set_timesteps(decoder.settings.drawing_steps, device=pipe.device)
    text = texts(pipe, name).repeat_interleave(len(z), dim=0)
    noisy = torch.from_numpy(z).float().reshape(-1, *text_to_image.latent_shape(pipe)).to(pipe.device)
    for timestep in scheduler.timesteps:
        plain, conditional = pipe.unet(noisy.repeat(2, 1, 1, 1), timestep, text).sample.chunk(2)
        noisy = scheduler.step(plain + guidance * (conditional - plain), timestep, noisy).prev_sample
    return text_to_image.decode(pipe, noisy).numpy()


def texts(pipe: StableDiffusionPipeline, name: str) -> Float[Tensor, "2 tokens width"]:
    """Embeddings of no text and of the class's IN* token."""
    return text_to_image.embed(pipe, ["", PROMPT.format(token=token(name))])


def shrunk(picture: UInt8[np.ndarray, "height width 3"], side: int) -> UInt8[np.ndarray, "side side 3"]:
    """A picture at another size, each pixel the mean of those that it covers."""
    return np.asarray(Image.fromarray(picture).resize((side, side), Image.Resampling.BOX))


def load(folder: Path, *names: str) -> pd.DataFrame:
    """The images of some files of the data sets, in their order. ValueError for no file; errors as those of `tables.read`."""
    demand(len(names) > 0, "controlshift: data set", list(names), "one or more files")
    for name in names:
        units.verified(folder / f"{name}.parquet")
    return pd.concat([tables.read(folder / f"{name}.parquet", tables.images) for name in names], ignore_index=True)


def tested(settings: Controlshift, kind: str) -> list[str]:
    """The files of a shift's test set, step by step; overlap begins with extend's."""
    return [f"test_{'extend' if kind == 'overlap' and step == 0 else kind}_{step}" for step in range(len(settings.angles))]


def evaluation_set(folder: Path, settings: Controlshift, kinds: tuple[str, ...] = latents.KINDS) -> pd.DataFrame:
    """The test images of some shifts at every step. ValueError for a file that holds another step or shift than its name says."""
    found = {(kind, step, name): load(folder, name) for kind in kinds for step, name in enumerate(tested(settings, kind))}
    for (_, step, name), table in found.items():
        own = {(name.removeprefix("test_").rpartition("_")[0], float(step))}
        said = set(zip(table["shift"], table["scale"], strict=True))
        demand(said == own, f"{folder / name}.parquet", sorted(said), f"{sorted(own)}, as its name says")
    parts = [table.assign(shift=kind) for (kind, _, _), table in found.items()]
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


def along(images: pd.DataFrame, kind: str) -> tuple[pd.DataFrame, UInt8[np.ndarray, "trajectories steps side side 3"]]:
    """The class and seed of every trajectory of a shift, and its pictures from step 0 on."""
    chosen = images[images["shift"] == kind].sort_values(["class", "seed", "scale"])
    pictures = tables.pictures(chosen, "test set")
    keys = chosen[["class", "seed"]].drop_duplicates().reset_index(drop=True)
    return keys, pictures.reshape(len(keys), -1, *pictures.shape[1:])


def strips(images: pd.DataFrame, kind: str, seed: int) -> UInt8[np.ndarray, "classes steps side side 3"]:
    """The pictures of one shift with one seed: a row per class in the order of their names, a column per step."""
    return along(images[images["seed"] == seed], kind)[1]


def change(images: pd.DataFrame, *, settings: Bootstrap) -> pd.DataFrame:
    """Mean absolute difference from the picture at step 0 in grey levels (shift, scale, n, estimate, low, high), n trajectories."""
    rows = []
    for kind in images["shift"].unique():
        keys, pictures = along(images, kind)
        away = np.abs(pictures.astype(int) - pictures[:, :1]).mean((2, 3, 4))
        weights, units = bootstrap.resampling_weights(keys, settings=settings)
        means = weights[:, units] @ away / weights[:, units].sum(1, keepdims=True)
        columns = bootstrap.estimates(means, len(keys), settings.confidence)
        rows.append(pd.DataFrame({"shift": kind, "scale": np.arange(away.shape[1], dtype=float), **columns}))
    return pd.concat(rows, ignore_index=True)


def against(ours: dict[str, float], published: pd.Series) -> pd.DataFrame:
    """Some of our numbers beside those of the paper's text (`id`, `value`): difference, and whether they are the same.

    These are settings and bounds, no findings. "less than 1" is met up to the rounding of 64 bits: in many dimensions an intensity is
    closer to 1 than they can tell.
    """
    table = pd.DataFrame({"ours": ours, "published": published.loc[list(ours)]})
    number = pd.to_numeric(table["published"], errors="coerce")
    table["difference"] = table["ours"] - number
    return table.assign(same=np.where(number.isna(), table["ours"] <= 1, np.isclose(table["difference"], 0)))
