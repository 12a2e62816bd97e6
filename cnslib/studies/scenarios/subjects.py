"""What the scenarios of XIMAGENET-12 are made from: objects with exact masks in their scenes, and scenes drawn around them (section 3.1).

Objects are garments of the mini world and the photo set's cut-outs. A subject also knows another background without any object, the
random one; one drawn around it can be added. For that the paper sends transparent images to Stable Diffusion XL. Here the base model
repaints what the mask leaves free (inpainting, the object kept), as diffusers' inpainting pipeline does for a UNet without extra
channels; that pipeline itself accepts latents of four channels alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from diffusers import StableDiffusionPipeline
from jaxtyping import Float, UInt8
from torch import Tensor

from cnslib.core import recipes, seeds, tables, units, workers
from cnslib.core.names import UNSHIFTED, demand, identifier
from cnslib.core.settings.studies import Scenarios
from cnslib.models import text_to_image
from cnslib.studies.scenarios import scenarios
from cnslib.studies.scenarios.scenarios import Image, Mask
from cnslib.world import cutouts, scenes


@dataclass(frozen=True)
class Subject:
    """One object in its scene, the exact mask, another empty background, and, where there is one, a scene drawn around the object."""

    label: str
    seed: int
    image: Image
    mask: Mask
    other: Image
    drawn: Image | None = None


def garments(pool: scenes.Garments, part: str, classes: list[str], *, count: int, seed: int) -> list[Subject]:
    """The first `count` garments of each class as catalog scenes; the other background is one of the web, saturated and cloudy.

    Scene and other background depend on (part, class, number, seed) alone. ValueError names a class with fewer garments.
    """
    found = []
    for name in classes:
        rows = np.flatnonzero(pool.labels == scenes.CLASSES.index(name))[:count]
        demand(len(rows) == count, "scenarios.images", count, f"at most {len(rows)}, the garments of class {name!r} in pool {part!r}")
        keys = [("scenarios", part, name, seed, number) for number in range(count)]
        scene = scenes.scenes(pool.grey[rows], scenes.draw(keys), style="catalog")
        others = scenes.backdrop(scenes.draw([(*key, "other") for key in keys]), scene.image.shape[-1], wide=1.0)
        parts = zip(scene.image, scene.mask, others, strict=True)
        found += [Subject(name, number, *arrays(*own)) for number, own in enumerate(parts)]
    return found


def photographs(folder: Path, *, count: int, seed: int, rows: Sequence[int] | None = None) -> list[Subject]:
    """The first cut-outs of the photo set, or some rows of these, in their scenes. Errors as `cutouts.read`.

    The other background is composed and empty. A subject does not depend on which others are composed.
    """
    objects = cutouts.read(folder, count=count)
    demand(len(objects) == count, "scenarios.cutouts", count, f"at most {len(objects)}, which is what {folder} holds")
    chosen = objects if rows is None else [objects[row] for row in rows]
    parts = [(own, cutouts.scene(own, seed=seed)[0], empty(own, seed=seed)) for own in chosen]
    return [Subject(own.label, own.seed, *arrays(scene.image[0], scene.mask[0], other[0])) for own, scene, other in parts]


def empty(own: cutouts.CutOut, *, seed: int) -> cutouts.Image3:
    """Scenery for a cut-out without any object of ImageNet in it."""
    return cutouts.background(scenes.draw([("scenarios", seed, own.label, own.seed, "other")]), cutouts.SIDE, cutouts.EMPTY)


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


NAME = "drawn background"
CHUNK = 12  # pictures per pipeline call


def draw_all(found: list[Subject], *, pipeline: Path, settings: Scenarios, device: str, folder: Path) -> list[Subject]:
    """The subjects, each with its drawn scene; what is missing or outdated is drawn, one file per class."""
    by_class = {name: [own for own in found if own.label == name] for name in dict.fromkeys(own.label for own in found)}
    made_from = digest(pipeline, settings)
    files = {name: (f"{identifier(name)}.parquet", recipes.DRAWN_BACKGROUNDS.stamp(name, made_from)) for name in by_class}
    shelf = units.Shelf(folder, files)
    pieces = [(by_class[name], pipeline, settings, device, shelf[name]) for name in shelf.waiting()]
    workers.each(write, pieces, device=device, desc=NAME)
    return [own for name, path in shelf.paths.items() for own in added(by_class[name], path)]


def digest(pipeline: Path, settings: Scenarios) -> str:
    """What the drawn scenes depend on besides their class, the recipe included: answers to them depend on it, too."""
    asked = [settings.images, settings.drawing_steps, settings.guidance, settings.seed]
    return units.digest(recipes.DRAWN_BACKGROUNDS, asked, units.directory_digest(pipeline))


def write(found: list[Subject], pipeline: Path, settings: Scenarios, device: str, unit: units.Unit) -> None:
    """One unit: the scenes drawn around the subjects of one class."""
    pipe = text_to_image.load_pipeline(pipeline, device)
    parts = [draw(pipe, found[start : start + CHUNK], settings=settings) for start in range(0, len(found), CHUNK)]
    pngs = [tables.encode(picture) for part in parts for picture in part.numpy()]
    keys = [(NAME, own.label, own.seed, 1.0) for own in found]
    tables.write_unit(pd.DataFrame(keys, columns=tables.KEY).assign(image=pngs), unit, tables.images)


def added(found: list[Subject], path: Path) -> list[Subject]:
    """The subjects with the scenes of a table. ValueError names missing and foreign rows."""
    table = tables.complete(tables.read(path, tables.images), [(NAME, own.label, own.seed, 1.0) for own in found], tables.KEY, str(path))
    pictures = dict(zip(table["seed"], tables.pictures(table, path.name), strict=True))
    return [replace(own, drawn=pictures[own.seed] / 255) for own in found]


@torch.no_grad()
def draw(pipe: StableDiffusionPipeline, found: list[Subject], *, settings: Scenarios) -> UInt8[Tensor, "images height width 3"]:
    """Scenes drawn from pure noise around some objects, prompted by their class; the noise belongs to (class, number, seed)."""
    image = torch.from_numpy(np.stack([own.image for own in found])).permute(0, 3, 1, 2).float().to(pipe.device)
    known = pipe.vae.encode(2 * image - 1).latent_dist.mode() * pipe.vae.config.scaling_factor
    mask = torch.from_numpy(np.stack([own.mask for own in found]))[:, None].float().to(pipe.device)
    kept = (F.adaptive_avg_pool2d(mask, known.shape[-2:]) > 0.5).float()
    keys = [("scenarios", settings.seed, "drawn", own.label, own.seed) for own in found]
    noise = torch.cat([torch.randn((1, *known.shape[1:]), generator=seeds.generator(*key)) for key in keys]).to(pipe.device)
    words = text_to_image.embed(pipe, [""] * len(found) + [scenes.caption(own.label) for own in found])
    return text_to_image.decode(pipe, repaint(pipe, known, kept, noise, words, settings=settings))


def repaint(
    pipe: StableDiffusionPipeline,
    known: Float[Tensor, "batch channels h w"],
    kept: Float[Tensor, "batch 1 h w"],
    noise: Float[Tensor, "batch channels h w"],
    words: Float[Tensor, "twice tokens width"],
    *,
    settings: Scenarios,
) -> Float[Tensor, "batch channels h w"]:
    """Latents denoised where they are free; where they are kept, the known ones enter every step at its noise level."""
    pipe.scheduler.set_timesteps(settings.drawing_steps)
    latents = noise * pipe.scheduler.init_noise_sigma
    for step in pipe.scheduler.timesteps:
        latents = kept * pipe.scheduler.add_noise(known, noise, step[None]) + (1 - kept) * latents
        without, told = pipe.unet(torch.cat([latents] * 2), step, encoder_hidden_states=words).sample.chunk(2)
        latents = pipe.scheduler.step(without + settings.guidance * (told - without), step, latents).prev_sample
    return kept * known + (1 - kept) * latents
