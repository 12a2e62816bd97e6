"""Objects with exact masks in their scenes, and what is shown of them (XIMAGENET-12, section 3.1).

Objects are garments of the mini world and the photo set's cut-outs. A subject also knows another background without any object, the
random one; one drawn around it can be added. For that the paper sends transparent images to Stable Diffusion XL. Here the base model
repaints what the mask leaves free (inpainting, the object kept), as diffusers' inpainting pipeline does for a UNet without extra
channels; that pipeline itself accepts latents of four channels alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
import torch
import torch.nn.functional as F
from diffusers import StableDiffusionPipeline
from jaxtyping import Float, UInt8
from torch import Tensor

from cnslib.core import paths, recipes, seeds, tables, units, workers
from cnslib.core.names import UNSHIFTED, demand, identifier
from cnslib.core.settings.sections import Scenarios
from cnslib.models import text_to_image
from cnslib.studies.scenarios import scenarios
from cnslib.studies.scenarios.scenarios import DRAWN, Image, Mask
from cnslib.world import cutouts, scenes

CHUNK = 12  # pictures per pipeline call
Pictures = UInt8[np.ndarray, "images height width 3"]
ENDS = [0.0, 1.0]  # an image without a scenario, and at its end


@dataclass(frozen=True)
class Subject:
    """One object in its scene, the exact mask, another empty background, and, where there is one, a scene drawn around the object."""

    label: str
    seed: int
    image: Image
    mask: Mask
    other: Image
    drawn: Image | None = None


def subject(label: str, seed: int, image: Float[Tensor, "3 h w"], mask: Float[Tensor, "1 h w"], other: Float[Tensor, "3 h w"]) -> Subject:
    """With channels last, in double precision."""
    scene, background = (one.clamp(0, 1).permute(1, 2, 0).double().numpy() for one in (image, other))
    return Subject(label, seed, scene, mask[0].clamp(0, 1).double().numpy(), background)


def garments(pool: scenes.Garments, part: str, classes: list[str], *, count: int, seed: int) -> list[Subject]:
    """The first `count` garments of each class as catalog scenes; the other background is one of the web, saturated and cloudy.

    Scene and other background depend on (part, class, number, seed) alone. ValueError names a class with fewer garments.
    """
    found = []
    for name in classes:
        demand(name in scenes.CLASSES, "base.classes", name, ", ".join(scenes.CLASSES))
        rows = np.flatnonzero(pool.labels == scenes.CLASSES.index(name))[:count]
        demand(len(rows) == count, "images", count, f"at most {len(rows)}, the garments of class {name!r} in pool {part!r}")
        keys = [("scenarios", part, name, seed, number) for number in range(count)]
        scene = scenes.scenes(pool.grey[rows], scenes.draw(keys), style="catalog")
        others = scenes.backdrop(scenes.draw([(*key, "other") for key in keys]), scene.image.shape[-1], wide=1.0)
        found += [subject(name, number, scene.image[number], scene.mask[number], others[number]) for number in range(count)]
    return found


def photographs(folder: Path, *, count: int, seed: int, rows: Sequence[int] | None = None) -> list[Subject]:
    """The first cut-outs of the photo set, or some rows of these, in their scenes; the other background is empty scenery.

    A subject does not depend on which others are composed. Errors as `cutouts.read`.
    """
    objects = cutouts.read(folder, count=count)
    demand(len(objects) == count, "photographs", count, f"at most {len(objects)}, which is what {folder} holds")
    found = []
    for one in objects if rows is None else [objects[row] for row in rows]:
        scene, draws = cutouts.scene(one, seed=seed)[0], scenes.draw([("scenarios", seed, one.label, one.seed, "other")])
        other = cutouts.background(draws, cutouts.SIDE, cutouts.EMPTY)
        found.append(subject(one.label, one.seed, scene.image[0], scene.mask[0], other[0]))
    return found


def spread(folder: Path, *, count: int, seed: int) -> list[Subject]:
    """So many photographs, spread evenly over the photo set, which is in the order of ImageNet's classes."""
    there = len(cutouts.contents(folder))
    demand(count <= there, "segmentation.photographs", count, f"at most {there}, as {folder} has")
    return photographs(folder, count=there, seed=seed, rows=np.linspace(0, there - 1, count).round().astype(int).tolist())


def shown(own: Subject, name: str, severity: float, *, seed: int) -> UInt8[np.ndarray, "height width 3"]:
    """One picture: a subject under a scenario, or "unshifted". Its random hue belongs to (seed, scenario, class, number)."""
    if name == UNSHIFTED:
        return rounded(own.image)
    generator = np.random.default_rng(seeds.seed_of("scenarios", seed, name, own.label, own.seed))
    background = own.drawn if name == DRAWN else own.other
    return rounded(scenarios.scenario(name, own.image, own.mask, severity, generator=generator, background=background))


def rounded(image: Image) -> UInt8[np.ndarray, "height width 3"]:
    """An image in [0, 1] as bytes."""
    return (image.clip(0, 1) * 255).round().astype(np.uint8)


def keys(own: Subject, severities: list[float]) -> pd.DataFrame:
    """The key of every state of a subject: the original once (severity 0), then each scenario (`shift`) at each severity (`scale`)."""
    names = scenarios.UNDRAWN if own.drawn is None else scenarios.NAMES
    states = [(UNSHIFTED, 0.0), *((name, severity) for name in names for severity in severities if severity > 0)]
    return pd.DataFrame([(name, own.label, own.seed, severity) for name, severity in states], columns=tables.KEY)


def pictures(own: Subject, severities: list[float], *, seed: int) -> Pictures:
    """A subject in the states of `keys`."""
    rows = keys(own, severities)
    return np.stack([shown(own, name, severity, seed=seed) for name, severity in zip(rows["shift"], rows["scale"], strict=True)])


def stored(
    stamps: dict[str, str], make: Callable, compose: Callable[[], list[Subject]], kind: pa.DataFrameSchema, *, device: str, folder: Path
) -> pd.DataFrame:
    """The rows of a table in parts, a file for each name; `make(name, subjects)` gives those that are missing or outdated."""
    shelf = units.Shelf(folder, {name: (f"{identifier(name)}.parquet", stamp) for name, stamp in stamps.items()})
    waiting = shelf.waiting()
    found = compose() if waiting else []  # once: where scenes are drawn for them, that folder is one process's
    workers.each(write, [(make, name, found, kind, shelf[name]) for name in waiting], device=device, desc=folder.name)
    return tables.read_units(shelf, kind)


def write(make: Callable, name: str, found: list[Subject], kind: pa.DataFrameSchema, unit: units.Unit) -> None:
    """One unit."""
    tables.write_unit(make(name, found), unit, kind)


@dataclass(frozen=True)
class Experiment:
    """What all experiments on garments share: settings, classes, labels of the outputs, and with what and where scenes are drawn.

    `folder` keeps the scenes that `pipeline` draws around held-out garments, one file per class.
    """

    settings: Scenarios
    classes: list[str]
    labels: list[str]
    pipeline: Path
    device: str
    folder: Path

    @property
    def digest(self) -> str:
        """What the drawn scenes depend on besides their class, the recipe included: predictions for them depend on it, too."""
        drawn = [self.settings.images, self.settings.drawing_steps, self.settings.guidance, self.settings.seed]
        return units.digest(recipes.DRAWN_BACKGROUNDS, drawn, units.directory_digest(self.pipeline))

    def subjects(self, part: str, count: int) -> list[Subject]:
        """The first garments of every class from one pool, without drawn scenes."""
        return garments(scenes.garments(paths.GARMENTS, part), part, self.classes, count=count, seed=self.settings.seed)

    def garments(self) -> list[Subject]:
        """The first held-out garments of every class, each with the scene drawn around it; draws what is missing or outdated."""
        found = self.subjects("heldout", self.settings.images)
        stamps = {name: recipes.DRAWN_BACKGROUNDS.stamp(name, self.digest) for name in self.classes}
        rows = stored(stamps, self.draw, lambda: found, tables.images, device=self.device, folder=self.folder)
        drawn = dict(zip(zip(rows["class"], rows["seed"], strict=True), tables.pictures(rows, DRAWN), strict=True))
        return [replace(own, drawn=drawn[own.label, own.seed] / 255) for own in found]

    def draw(self, name: str, found: list[Subject]) -> pd.DataFrame:
        """The scenes around the subjects of one class."""
        pipe, own = text_to_image.load_pipeline(self.pipeline, self.device), [one for one in found if one.label == name]
        parts = [draw(pipe, own[start : start + CHUNK], settings=self.settings) for start in range(0, len(own), CHUNK)]
        rows = pd.DataFrame([(DRAWN, name, one.seed, 1.0) for one in own], columns=tables.KEY)
        return rows.assign(image=[tables.encode(picture) for part in parts for picture in part.numpy()])


@torch.no_grad()
def draw(pipe: StableDiffusionPipeline, found: list[Subject], *, settings: Scenarios) -> UInt8[Tensor, "images height width 3"]:
    """Scenes drawn from pure noise around some objects, prompted by their class; the noise belongs to (class, number, seed)."""
    image = torch.from_numpy(np.stack([own.image for own in found])).permute(0, 3, 1, 2).float().to(pipe.device)
    known = pipe.vae.encode(2 * image - 1).latent_dist.mode() * pipe.vae.config.scaling_factor
    mask = torch.from_numpy(np.stack([own.mask for own in found]))[:, None].float().to(pipe.device)
    kept = (F.adaptive_avg_pool2d(mask, known.shape[-2:]) > 0.5).float()
    noises = [("scenarios", settings.seed, "drawn", own.label, own.seed) for own in found]
    noise = torch.cat([torch.randn((1, *known.shape[1:]), generator=seeds.generator(*key)) for key in noises]).to(pipe.device)
    words = text_to_image.embed(pipe, [""] * len(found) + [scenes.caption(own.label) for own in found])
    return text_to_image.decode(pipe, repaint(pipe, known, kept, noise, words, settings=settings))


def repaint(pipe: StableDiffusionPipeline, known: Tensor, kept: Tensor, noise: Tensor, words: Tensor, *, settings: Scenarios) -> Tensor:
    """Latents denoised where they are free; where they are kept, the known ones enter every step at its noise level."""
    pipe.scheduler.set_timesteps(settings.drawing_steps)
    latents = noise * pipe.scheduler.init_noise_sigma
    for step in pipe.scheduler.timesteps:
        latents = kept * pipe.scheduler.add_noise(known, noise, step[None]) + (1 - kept) * latents
        without, told = pipe.unet(torch.cat([latents] * 2), step, encoder_hidden_states=words).sample.chunk(2)
        latents = pipe.scheduler.step(without + settings.guidance * (told - without), step, latents).prev_sample
    return kept * known + (1 - kept) * latents
