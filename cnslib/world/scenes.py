"""The mini world's renderer: real Fashion-MNIST garments as colour scenes with exact masks.

Four disjoint garment pools exist. *web* garments, captioned and in all shifts, train the text-to-image and text-image models;
*catalog* garments, unshifted, train the classifiers; *heldout* garments are never trained on; *judge* garments train the oracle.
Every image owns one generator, so its pixels depend on its key alone and not on the batch it is rendered in.
"""

import functools
import gzip
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from cnslib.core import seeds, tables
from cnslib.core.names import NAMELESS, PROMPT, SHIFTS, UNSHIFTED, demand, text
from cnslib.world import shifts
from cnslib.world.textures import blur, grid, hsv, lerp, ramp, shift_by, smooth_noise

CLASSES = ("t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")
FILES = {  # sha256 of the files of the Debian package dataset-fashion-mnist (MIT licence)
    "train-images-idx3-ubyte.gz": "b0564c3eedabfbf835052cff8503ea422014ce006caf5b757f851416ee8300c7",
    "train-labels-idx1-ubyte.gz": "0ae29f65d86684f32d1b9c85147786c547b9c6aebcaf235f0400a0cce308b056",
    "t10k-images-idx3-ubyte.gz": "cc1d090a38ace84dfa1aa66e3ada7c336ef481a96936906477e6dd344da56eaa",
    "t10k-labels-idx1-ubyte.gz": "8d3605d196f4be44669e46906da9733c8131fef761fdbfec72c424d5222f1a05",
}
POOLS = {"web": (0, 36000), "catalog": (36000, 48000), "judge": (48000, 60000), "heldout": (60000, 70000)}
UNIFORMS, FIELDS = 32, 6
NAMES = (*SHIFTS, UNSHIFTED)  # of shifts by their index
Bounds = Sequence[float]  # lowest and highest
STYLES = {"web": 1.0, "catalog": 0.6}  # share of all poses and colours over which the scenes of a style range


@dataclass(frozen=True)
class Garments:
    """Grey garments [n, 28, 28] in [0, 1] of one pool, and the index [n] of each one's class in `classes`."""

    grey: Float[Tensor, "n 28 28"]
    labels: np.ndarray
    classes: tuple[str, ...] = CLASSES

    def rows(self, label: int) -> Int[Tensor, "members"]:
        """The rows of one class."""
        return torch.from_numpy(self.labels == label).nonzero()[:, 0]

    def to(self, device: torch.device | str) -> "Garments":
        """The same garments on a device; their scenes are rendered there."""
        return replace(self, grey=self.grey.to(device))


NOTHING = Garments(torch.zeros(1, 28, 28), np.zeros(1, dtype=int), ("",))  # a garment without a name that cannot be seen


@dataclass(frozen=True)
class Draws:
    """Everything random about a batch of images: uniforms in [0, 1) and standard normal fields."""

    uniforms: Float[Tensor, "batch 32"]
    fields: Float[Tensor, "batch 6 64 64"]


@dataclass(frozen=True)
class Scene:
    """Rendered images with the exact mask, the object's colours and the background alone, all in [0, 1]."""

    image: Float[Tensor, "batch 3 side side"]
    mask: Float[Tensor, "batch 1 side side"]
    object: Float[Tensor, "batch 3 side side"]
    background: Float[Tensor, "batch 3 side side"]

    @property
    def side(self) -> int:
        """Pixels of a side."""
        return self.image.shape[-1]


@dataclass(frozen=True)
class Batch:
    """Rendered images in [0, 1] with class index, shift index (position in SHIFTS, 14 for unshifted) and severity."""

    image: Float[Tensor, "batch 3 side side"]
    label: Int[Tensor, "batch"]
    shift: Int[Tensor, "batch"]
    severity: Float[Tensor, "batch"]

    @property
    def caption(self) -> Int[Tensor, "batch"]:
        """The number of each caption in the order of `diffusion.captions`."""
        return self.label * len(NAMES) + self.shift


@functools.cache  # the four files take a third of a second to read for each pool
def read_idx(path: Path) -> np.ndarray:
    """Reads one gzipped idx file, once in a process, after checking its sha256; read only.

    Raises FileNotFoundError where it is missing (with the package to install), ValueError where its bytes differ.
    """
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: run `dvc pull`, or install the Debian package dataset-fashion-mnist and `make world`")
    data = path.read_bytes()
    if (digest := hashlib.sha256(data).hexdigest()) != FILES[path.name]:
        raise ValueError(f"{path} has sha256 {digest}, expected {FILES[path.name]}")
    raw = gzip.decompress(data)
    shape = np.frombuffer(raw, ">u4", count=raw[3], offset=4).astype(int)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(shape)


def garments(folder: Path, pool: str, classes: Sequence[str] = CLASSES) -> Garments:
    """The garments of a pool and of `classes`, in which labels are positions. ValueError for an unknown pool or what is no garment."""
    demand(pool in POOLS, "pool", pool, ", ".join(POOLS))
    for name in classes:
        demand(name in CLASSES, "base.classes", name, ", ".join(CLASSES))
    grey, labels = (
        np.concatenate([read_idx(folder / f"{part}-{kind}.gz") for part in ("train", "t10k")])[slice(*POOLS[pool])]
        for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")
    )
    position = np.array([list(classes).index(name) if name in classes else -1 for name in CLASSES])[labels]
    return Garments(torch.from_numpy(grey[position >= 0].astype(np.float32) / 255), position[position >= 0], tuple(classes))


def every_caption(garments: Garments, g: torch.Generator, *, each: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    """Class, shift and a random garment of that class, `each` times for every caption in the order of `diffusion.captions`."""
    members = [garments.rows(label) for label in range(len(garments.classes))]
    labels = torch.arange(len(members)).repeat_interleave(len(NAMES) * each)
    shifts = torch.arange(len(NAMES)).repeat_interleave(each).repeat(len(members))
    rows = torch.stack([members[c][torch.randint(len(members[c]), (), generator=g)] for c in labels.tolist()])
    return labels, shifts, rows


def draw(keys: list[tuple]) -> Draws:
    """Random numbers of a batch of images: one generator per key, so that neighbours do not matter."""
    generators = [seeds.generator(*key) for key in keys]
    uniforms = torch.stack([torch.rand(UNIFORMS, generator=g) for g in generators])
    return Draws(uniforms, torch.stack([torch.randn(FIELDS, 64, 64, generator=g) for g in generators]))


def scenes(grey: Float[Tensor, "batch 28 28"], draws: Draws, *, style: str, side: int = 64) -> Scene:
    """Renders garments as scenes of one style: from "web" (any pose, any colour) to "catalog" (a narrower range of both)."""
    u, centred, wide = draws.uniforms, 2 * draws.uniforms - 1, STYLES[style]
    scale = 0.98 - 0.12 * wide + (0.06 + 0.14 * wide) * centred[:, 0]
    angle, (down, right) = centred[:, 1] * (0.06 + 0.34 * wide), centred[:, 2:4].T * (0.02 + 0.06 * wide)  # radian, shares of the side
    cos, sin = torch.cos(angle) / scale, torch.sin(angle) / scale
    theta = torch.stack([torch.stack([cos, sin, -right * 2], 1), torch.stack([-sin, cos, -down * 2], 1)], 1)
    flow, grey = F.affine_grid(theta, [len(grey), 2, side, side], align_corners=False), F.pad(grey[:, None], (2, 2, 2, 2))
    solid = -F.max_pool2d(-F.max_pool2d(ramp(grey, 0.02, 0.14), 3, 1, 1), 3, 1, 1)  # close pinholes inside dark garments
    placed = F.grid_sample(torch.cat([grey, solid], 1), flow, mode="bicubic", align_corners=False).clamp(0, 1)
    light, mask = placed[:, :1], ramp(placed[:, 1:], 0.4, 0.95)
    tint = hsv(u[:, 4], 0.3 + 0.35 * u[:, 5] + 0.3 * wide * u[:, 6], 0.75 + 0.25 * u[:, 7])
    folds = 1 + 0.05 * smooth_noise(draws.fields[:, 3], 5, side)
    body = (tint * (0.28 + 0.85 * light) * folds).clamp(0, 1)
    ground = backdrop(draws, side, wide=wide) * (1 - 0.42 * blur(shift_by(mask, 2.5, 2.0), 2.2))  # a soft shadow
    return Scene(lerp(ground, body, mask).clamp(0, 1), mask, body, ground)


def backdrop(draws: Draws, side: int, *, wide: float) -> Float[Tensor, "batch 3 side side"]:
    """A two-colour procedural background: paler and more even in the catalog than on the web."""
    u, (y, _) = draws.uniforms, grid(side, draws.uniforms)
    saturation, value = 0.08 + 0.5 * wide * u[:, 8], 0.82 - 0.42 * wide * u[:, 9] + 0.14 * u[:, 10]
    first = hsv(u[:, 11], saturation, value)
    second = hsv((u[:, 11] + 0.08 + 0.3 * wide * u[:, 12]) % 1, saturation, (value - 0.12 - 0.12 * wide * u[:, 13]).clamp(0, 1))
    cloud = smooth_noise(draws.fields[:, 2], 4, side) * (0.06 + 0.22 * wide)
    return lerp(first, second, (y[None, None] + cloud).clamp(0, 1))


def render(
    grey: Float[Tensor, "batch 28 28"], keys: list[tuple], *, style: str, shift: Sequence[str] = (), severity: Tensor | None = None
) -> Tensor:
    """Images [batch, 3, 64, 64] in [0, 1] of garments under one shift each (or "unshifted", as all are where nothing is said).

    They lie on the garments' device.
    """
    return render_draws(grey, draw(keys), style=style, shift=shift, severity=torch.zeros(len(grey)) if severity is None else severity)


def render_draws(grey: Float[Tensor, "batch 28 28"], drawn: Draws, *, style: str, shift: Sequence[str], severity: Tensor) -> Tensor:
    """As `render`, from random numbers that are there."""
    draws, severity = Draws(drawn.uniforms.to(grey.device), drawn.fields.to(grey.device)), severity.to(grey.device)
    scene = scenes(grey, draws, style=style)
    image = scene.image.clone()
    for name in sorted(set(shift) - {UNSHIFTED}):
        rows = torch.tensor([s == name for s in shift]).nonzero()[:, 0].to(grey.device)
        part = Scene(*(own[rows] for own in (scene.image, scene.mask, scene.object, scene.background)))
        image[rows] = shifts.apply(name, part, severity[rows], Draws(draws.uniforms[rows], draws.fields[rows]))
    return image


def between(bounds: Bounds, share: Tensor) -> Tensor:
    """From the lower bound at share 0 to the higher one at 1."""
    lowest, highest = bounds
    return lowest + (highest - lowest) * share


def batch(pool: Garments, rows: Tensor, keys: list[tuple], *, style: str, shift: Int[Tensor, "batch"], severity: Tensor) -> Batch:
    """The garments in some rows of a pool, each under the shift of its number, with what is known about them."""
    image = render(pool.grey[rows], keys, style=style, shift=[NAMES[i] for i in shift.tolist()], severity=severity)
    return Batch(image, torch.from_numpy(pool.labels)[rows], shift, severity)


def sample(pool: Garments, key: tuple, count: int, *, style: str, unshifted: float = 0.3, severities: Bounds = (0.35, 1.0)) -> Batch:
    """Random scenes, of which image i depends on (key, i) alone: a share is `unshifted`, the others lie within `severities`."""
    rows, which, severity = chosen(pool, seeds.generator(*key, "choice"), count, unshifted=unshifted, severities=severities)
    return batch(pool, rows, [(*key, i) for i in range(count)], style=style, shift=which, severity=severity)


def chosen(pool: Garments, g: torch.Generator, count: int, *, unshifted: float, severities: Bounds) -> tuple[Tensor, Tensor, Tensor]:
    """Random rows of a pool, the number of each one's shift, and its severity."""
    rows = torch.randint(len(pool.labels), (count,), generator=g)
    plain = torch.rand(count, generator=g) < unshifted
    which = torch.where(plain, len(SHIFTS), torch.randint(len(SHIFTS), (count,), generator=g))
    return rows, which, torch.where(plain, 0.0, between(severities, torch.rand(count, generator=g)))


def together(pool: Garments, g: torch.Generator, count: int, *, style: str, unshifted: float, severities: Bounds) -> Batch:
    """Random scenes that share one generator: quicker than `sample`, and rendered where the garments lie."""
    rows, which, severity = chosen(pool, g, count, unshifted=unshifted, severities=severities)
    draws = Draws(torch.rand(count, UNIFORMS, generator=g), torch.randn(count, FIELDS, 64, 64, generator=g))
    names = [NAMES[i] for i in which.tolist()]
    image = render_draws(pool.grey[rows.to(pool.grey.device)], draws, style=style, shift=names, severity=severity)
    return Batch(image, torch.from_numpy(pool.labels)[rows], which, severity)


def catalog(pool: Garments, split: str, *, classes: list[str], images: int, seed: int) -> pd.DataFrame:
    """Unshifted catalog scenes, `images` per class, as a table (split, class, seed, image). ValueError for a class that is no garment."""
    parts = []
    for name in classes:
        demand(name in pool.classes, "base.classes", name, ", ".join(pool.classes))
        rows = pool.rows(pool.classes.index(name))[:images]
        image = render(pool.grey[rows], [("catalog", split, name, seed, i) for i in range(len(rows))], style="catalog")
        pngs = [tables.encode(picture) for picture in to_uint8(image).numpy()]
        parts.append(pd.DataFrame({"split": split, "class": name, "seed": range(len(rows)), "image": pngs}))
    return pd.concat(parts, ignore_index=True)


def severity_sheet(pool: Garments, *, shifts_shown: list[str], steps: int, seed: int) -> Float[Tensor, "shifts steps 3 64 64"]:
    """One garment per shift at `steps` severities from 0 to 1: the contact sheet that shows what a shift means."""
    rows, severity = [], torch.linspace(0, 1, steps)
    for index, name in enumerate(shifts_shown):
        grey = pool.grey[index * 11].expand(steps, -1, -1)
        rows.append(render(grey, [("sheet", seed, name)] * steps, style="web", shift=[name] * steps, severity=severity))
    return torch.stack(rows)


def to_uint8(image: Float[Tensor, "batch 3 side side"]) -> UInt8[Tensor, "batch side side 3"]:
    """Rounds images in [0, 1] to bytes, channels last."""
    return (image * 255).round().to(torch.uint8).permute(0, 2, 3, 1).contiguous()


def caption(name: str, shift: str = UNSHIFTED) -> str:
    """The caption of an image (paper A.1): "a picture of a {class}", with " in {shift}" under a shift; "a picture" of what has no name."""
    return (PROMPT.format(token=name) if name else NAMELESS) + ("" if shift == UNSHIFTED else f" {text(shift, {})}")
