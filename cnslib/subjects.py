"""What scenarios are made from: objects with exact masks, garments of the mini world and the photo set's cut-outs, in their scenes.

A subject also knows another picture of its set, the random background; one drawn around it can be added.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from cnslib import cutouts, placement, scenarios, seeds, world
from cnslib.config import UNSHIFTED, demand
from cnslib.scenarios import Image, Mask


@dataclass(frozen=True)
class Subject:
    """One object in its scene, the exact mask, another picture of the set, and, where there is one, a scene drawn around the object."""

    label: str
    seed: int
    image: Image
    mask: Mask
    other: Image
    drawn: Image | None = None


def garments(pool: world.Garments, part: str, classes: list[str], *, count: int, seed: int) -> list[Subject]:
    """The first `count` garments of each class as catalog scenes; the other picture is a scene of the web, any garment's.

    Scene and other picture depend on (part, class, number, seed) alone. ValueError names a class with fewer garments.
    """
    found = []
    for name in classes:
        rows = np.flatnonzero(pool.labels == world.CLASSES.index(name))[:count]
        demand(len(rows) == count, "scenarios.images", count, f"at most {len(rows)}, the garments of class {name!r} in pool {part!r}")
        keys = [("scenarios", part, name, seed, number) for number in range(count)]
        scene = world.scenes(pool.grey[rows], world.draw(keys), style="catalog")
        strangers = [int(torch.randint(len(pool.labels), (1,), generator=seeds.generator(*key, "other"))) for key in keys]
        others = world.scenes(pool.grey[strangers], world.draw([(*key, "other") for key in keys]), style="web").image
        parts = zip(scene.image, scene.mask, others, strict=True)
        found += [Subject(name, number, *arrays(*own)) for number, own in enumerate(parts)]
    return found


def photographs(folder: Path, *, count: int, seed: int) -> list[Subject]:
    """The first cut-outs of the photo set in their scenes; the other picture is the scene of another cut-out. Errors as `cutouts.read`."""
    objects = cutouts.read(folder, count=count)
    demand(len(objects) == count, "scenarios.cutouts", count, f"at most {len(objects)}, which is what {folder} holds")
    scenes = [placement.scene(own, seed=seed)[0] for own in objects]
    turns = [seeds.generator("scenarios", seed, own.label, own.seed, "other") for own in objects]
    steps = [1 + int(torch.randint(count - 1, (1,), generator=turn)) for turn in turns]
    others = [scenes[(place + step) % count].image[0] for place, step in enumerate(steps)]
    parts = zip(objects, scenes, others, strict=True)
    return [Subject(own.label, own.seed, *arrays(scene.image[0], scene.mask[0], other)) for own, scene, other in parts]


def arrays(
    image: Float[Tensor, "3 height width"], mask: Float[Tensor, "1 height width"], other: Float[Tensor, "3 height width"]
) -> tuple[Image, Mask, Image]:
    """Channels last, in double precision."""
    colours = [own.clamp(0, 1).permute(1, 2, 0).double().numpy() for own in (image, other)]
    return colours[0], mask[0].clamp(0, 1).double().numpy(), colours[1]


def shown(subject: Subject, name: str, severity: float, *, seed: int) -> UInt8[np.ndarray, "height width 3"]:
    """One picture: a subject under a scenario, or "unshifted". Its random hue belongs to (seed, scenario, class, number)."""
    if name == UNSHIFTED:
        return rounded(subject.image)
    generator = np.random.default_rng(seeds.seed_of("scenarios", seed, name, subject.label, subject.seed))
    background = subject.drawn if name == "drawn background" else subject.other
    made = scenarios.scenario(name, subject.image, subject.mask, severity, generator=generator, background=background)
    return rounded(made)


def rounded(image: Image) -> UInt8[np.ndarray, "height width 3"]:
    """An image in [0, 1] as bytes."""
    return (image.clip(0, 1) * 255).round().astype(np.uint8)
