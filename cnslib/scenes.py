"""Held-out garments and photographs with exact masks, under the scenarios of XIMAGENET-12 (section 3.1)."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, UInt8

from cnslib import backgrounds, placement, scenarios, seeds, tables, world
from cnslib.config import UNSHIFTED, demand
from cnslib.cutouts import CutOut
from cnslib.world import Draws, Scene

NAMES = tuple(name for name in scenarios.NAMES if name != "drawn background")  # which asks for a text-to-image model
ENDS = [0.0, 1.0]  # an image without a scenario, and at its end


@dataclass(frozen=True)
class Subject:
    """An image with its mask, and the background that the scenario `random background` puts behind it; all in [0, 1]."""

    label: str
    seed: int
    image: Float[np.ndarray, "height width 3"]
    mask: Float[np.ndarray, "height width"]
    background: Float[np.ndarray, "height width 3"]


def garments(pool: world.Garments, classes: list[str], *, images: int, seed: int) -> list[Subject]:
    """Catalog scenes of the first `images` garments of each class of a pool. ValueError for a class that is no garment or has fewer."""
    found = []
    for name in classes:
        demand(name in world.CLASSES, "base.classes", name, ", ".join(world.CLASSES))
        rows = np.flatnonzero(pool.labels == world.CLASSES.index(name))[:images]
        demand(len(rows) == images, "segmentation.images", images, f"at most {len(rows)}, which is what the pool has of {name}")
        draws = world.draw([("scenes", seed, name, number) for number in range(images)])
        scene = world.scenes(pool.grey[rows], draws, style="catalog")
        found += [subject(scene, place, name, place, seed=seed) for place in range(images)]
    return found


def photographs(objects: Iterable[CutOut], *, seed: int) -> list[Subject]:
    """Cut-outs on their backgrounds, as the photo set shows them without a shift."""
    return [subject(placement.scene(own, seed=seed)[0], 0, own.label, own.seed, seed=seed) for own in objects]


def subject(scene: Scene, place: int, label: str, number: int, *, seed: int) -> Subject:
    """One row of rendered scenes, with a background of photographed textures that belongs to it."""
    side = scene.image.shape[-1]
    draws: Draws = world.draw([("scenes", "background", seed, label, number)])
    image, ground = (own.permute(1, 2, 0).double().numpy() for own in (scene.image[place], backgrounds.background(draws, side)[0]))
    return Subject(label, number, image, scene.mask[place, 0].double().numpy(), ground)


def under(own: Subject, scenario: str, severity: float, *, seed: int) -> UInt8[np.ndarray, "height width 3"]:
    """A subject under a scenario, or "unshifted"; its random hue belongs to the subject and is the same at every severity."""
    if scenario == UNSHIFTED:
        return np.round(own.image * 255).astype(np.uint8)
    generator = np.random.default_rng(seeds.seed_of("scenes", scenario, seed, own.label, own.seed))
    made = scenarios.scenario(scenario, own.image, own.mask, severity, generator=generator, background=own.background)
    return np.round(made.clip(0, 1) * 255).astype(np.uint8)


def states(severities: list[float]) -> list[tuple[str, float]]:
    """The unshifted image once, and every scenario at every severity above 0."""
    return [(UNSHIFTED, 0.0), *((name, severity) for name in NAMES for severity in severities if severity > 0)]


def pictures(own: Subject, severities: list[float], *, seed: int) -> UInt8[np.ndarray, "states height width 3"]:
    """A subject in every state."""
    return np.stack([under(own, scenario, severity, seed=seed) for scenario, severity in states(severities)])


def keys(own: Subject, severities: list[float]) -> list[dict]:
    """The key of every state in the shared tables: the scenario stands in the column `shift`, its severity in `scale`."""
    return [dict(zip(tables.KEY, (scenario, own.label, own.seed, severity), strict=True)) for scenario, severity in states(severities)]
