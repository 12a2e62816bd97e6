"""How the benchmark is drawn: `base.drawing` is the exact default, or a quicker way whose pictures are not the same bit for bit.

The fused way merges the slider into the weights. An adapter that is attached costs every layer two more products; merged, it costs
nothing, but the sum W + scale * change is rounded once more and a batch holds the seeds of one scale instead of the scales of one
seed. Values on the edge are then rounded the other way: pictures are apart by one grey level here and there. The fast way also takes
another scheduler of diffusers, with fewer steps; `Stepper` is the benchmark's sampler with any of them, also such that remember
their last steps.
"""

import contextlib
import copy
import dataclasses
import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import diffusers
import pandas as pd
import torch
from diffusers import SchedulerMixin, StableDiffusionPipeline, UNet2DConditionModel
from jaxtyping import Float, UInt8
from torch import Tensor

from cnslib.core import recipes, tables, units, workers
from cnslib.core.names import UNSHIFTED, demand
from cnslib.core.settings.method import Generation
from cnslib.method import generation
from cnslib.method.sliders import slider_path
from cnslib.models import adapters, text_to_image


class Stepper(generation.Sampler):
    """A `Sampler` with another scheduler.

    A scheduler's memory belongs to a trajectory: every prefix begins with a scheduler that has seen nothing, and every image
    continues with what the prefix left. As the memory of one image is that of the whole batch, it is broadcast over the scales.
    """

    def __init__(self, pipe: StableDiffusionPipeline, *, settings: Generation, scheduler: str, spacing: str):
        """`scheduler` is the class's name in diffusers; it takes the pipeline's noise schedule, and its spacing where none is given.

        "leading" is made for DDIM: in 20 steps of UniPC it takes pure noise for a latent of t = 941.
        """
        super().__init__(pipe, settings=settings)
        self.unused = getattr(diffusers, scheduler).from_config(
            pipe.scheduler.config, timestep_spacing=spacing or pipe.scheduler.config.timestep_spacing
        )
        self.unused.set_timesteps(settings.steps, device=pipe.device)
        self.scheduler = copy.deepcopy(self.unused)
        self.guided = generation.guidance_times(self.scheduler, settings)
        self.states: dict[tuple[str, int], diffusers.SchedulerMixin] = {}

    def prefix(self, name: str, seed: int) -> Float[Tensor, "1 channels height width"]:
        """Latent of (class, seed) when the slider starts; the scheduler is left as it was then."""
        if (name, seed) not in self.states:
            self.prefixes.pop((name, seed), None)
            self.scheduler = copy.deepcopy(self.unused)
            super().prefix(name, seed)
            self.states[name, seed] = self.scheduler
        self.scheduler = copy.deepcopy(self.states[name, seed])
        return self.prefixes[name, seed]


def identity(sampler: generation.Sampler) -> dict[str, Any]:
    """Scheduler, spacing and recipe of a `Stepper`, for digests of what it draws; nothing for the sampler of the benchmark itself."""
    if not isinstance(sampler, Stepper):
        return {}
    told = {"scheduler": type(sampler.unused).__name__, "spacing": sampler.unused.config.timestep_spacing}
    return told | {"recipe": recipes.STEPPER.code}


PASS = 5  # seeds in one forward pass
DDIM = "DDIMScheduler"  # the scheduler of the exact default


@torch.no_grad()
def changes(pipe: StableDiffusionPipeline, path: Path) -> dict[str, Tensor]:
    """What the adapter of a file adds to the weight of each adapted layer at scale 1: alpha / rank * B A, by name of the layer.

    As large as these weights themselves. Raises ValueError, naming the file, where its tensors are not those of the adapted layers.
    """
    with adapters.loaded(pipe, path):
        return {name: layer.get_delta_weight(adapters.NAME).contiguous() for name, layer in adapters.layers(pipe.unet).items()}


@contextlib.contextmanager
def merged(unet: UNet2DConditionModel, change: dict[str, Tensor], scale: float) -> Iterator[None]:
    """The UNet with the weights W + scale * change; afterwards it has its own tensors again, which were never written to.

    Taking the change off again, as peft does, would leave a rounding error behind that grows from scale to scale.
    """
    weights = {name: unet.get_submodule(name).weight for name in change}
    kept = {name: weight.data for name, weight in weights.items()}
    try:
        for name, weight in weights.items():
            weight.data = torch.add(kept[name], change[name], alpha=scale).to(kept[name])
        yield
    finally:
        for name, weight in weights.items():
            weight.data = kept[name]


class Sampler(Stepper):
    """Draws the seeds of one class at one scale, `PASS` of them in a forward pass; their starts, too, are drawn in passes.

    A pass always holds the seeds 5 k + 1 to 5 k + 5, and those that nobody asked for are thrown away: an image does not depend on
    how many seeds, scales, shifts or classes are drawn. It may depend, in its last bits, on `PASS` and on the machine, since a
    batch of another size is added up in another order. The memory of a scheduler that has one belongs to a pass.
    """

    def __init__(self, pipe: StableDiffusionPipeline, *, settings: Generation, scheduler: str = DDIM, spacing: str = ""):
        """As a `Stepper`; by default with the scheduler that the exact default has."""
        super().__init__(pipe, settings=settings, scheduler=scheduler, spacing=spacing)
        self.starts: dict[tuple[str, range], tuple[Tensor, SchedulerMixin]] = {}

    def prepare(self, classes: list[str], *, seeds: int) -> None:
        """Draws the latents that all shifts share, where they are not remembered yet."""
        waiting = [name for name in classes if any((name, members) not in self.starts for members in passes(seeds))]
        for found in workers.each(class_starts, [(self, name, seeds) for name in waiting], device=self.pipe.device, desc="starts"):
            self.starts |= found

    def start(self, name: str, members: range) -> Float[Tensor, "seeds channels height width"]:
        """Latents of a pass when the slider starts, drawn once; the scheduler is left as it was then."""
        if (name, members) not in self.starts:
            self.scheduler = copy.deepcopy(self.unused)
            latents = torch.cat([text_to_image.initial_latent(self.pipe, member) for member in members])
            early = self.scheduler.timesteps[: generation.steps_without_slider(self.settings)]
            self.starts[name, members] = self.denoise(latents, name, early), self.scheduler
        latents, scheduler = self.starts[name, members]
        self.scheduler = copy.deepcopy(scheduler)
        return latents

    @torch.no_grad()
    def images(self, name: str, seeds: int, change: dict[str, Tensor], scale: float) -> UInt8[Tensor, "seeds height width 3"]:
        """The images of one class at one scale of a change of the weights; without a change the unshifted ones."""
        late = self.unused.timesteps[generation.steps_without_slider(self.settings) :]
        drawn = []
        for members in passes(seeds):
            start = self.start(name, members)
            with merged(self.pipe.unet, change, scale):
                drawn.append(text_to_image.decode(self.pipe, self.denoise(start, name, late)))
        return torch.cat(drawn)[:seeds]


def passes(seeds: int) -> list[range]:
    """The seeds of each pass until so many are drawn; the last one is filled up."""
    return [range(first, first + PASS) for first in range(1, seeds + 1, PASS)]


def generate(
    pipe: StableDiffusionPipeline,
    shifts: list[str],
    classes: list[str],
    *,
    scales: list[float],
    seeds: int,
    settings: Generation,
    origin: text_to_image.Origin,
    sliders: Path,
    folder: Path,
    scheduler: str = DDIM,
    spacing: str = "",
) -> dict[str, Path]:
    """Makes the shards that are missing or outdated, as `generation.generate` with a `Sampler` of that scheduler."""
    sampler = Sampler(pipe, settings=settings, scheduler=scheduler, spacing=spacing)
    paths = generation.prepared(folder, shifts, sampler)
    unshifted_shard(sampler, classes, seeds=seeds, origin=origin, path=paths[UNSHIFTED])
    above = [scale for scale in scales if scale > 0]
    shards: dict[str, units.Unit] = {}
    pieces: dict[tuple[str, str], tuple] = {}
    for shift in shifts:
        files = {name: slider_path(sliders, shift, name) for name in classes}
        shards[shift] = units.Unit(paths[shift], stamp(sampler, classes, seeds=seeds, origin=origin, scales=above, files=files))
        pieces |= {(shift, name): (sampler, shift, name, file, above, seeds) for name, file in files.items()}
    generation.write_shards(sampler, shards, pieces, class_rows, seeds=seeds, desc="images")
    return paths


def unshifted_shard(sampler: Sampler, classes: list[str], *, seeds: int, origin: text_to_image.Origin, path: Path) -> pd.DataFrame:
    """The table of all scale-0 images, drawn where the file is missing or outdated."""
    unit = units.Unit(path, stamp(sampler, classes, seeds=seeds, origin=origin, scales=[0.0], files={}))
    pieces = {(UNSHIFTED, name): (sampler, UNSHIFTED, name, None, [0.0], seeds) for name in classes}
    generation.write_shards(sampler, {UNSHIFTED: unit}, pieces, class_rows, seeds=seeds, desc=UNSHIFTED)
    return tables.read(path, tables.images)


def stamp(
    sampler: Sampler, classes: list[str], *, seeds: int, origin: text_to_image.Origin, scales: list[float], files: dict[str, Path]
) -> str:
    """What a shard depends on: all that one of generation does, and that its weights were merged."""
    sliders = [adapters.file_digest(file) for file in files.values()]
    exact = generation.stamp(sampler, classes, seeds=seeds, origin=origin, scales=scales, sliders=sliders)
    return recipes.FUSED.stamp(exact, identity(sampler))


@torch.no_grad()
def class_starts(sampler: Sampler, name: str, seeds: int) -> dict[tuple[str, range], tuple[Tensor, SchedulerMixin]]:
    """The shared latents of one class, with what the scheduler remembers of them."""
    for members in passes(seeds):
        sampler.start(name, members)
    return {key: start for key, start in sampler.starts.items() if key[0] == name}


def class_rows(sampler: Sampler, shift: str, name: str, path: Path | None, scales: list[float], seeds: int) -> list[dict]:
    """The rows of one class in one shift, or of its unshifted images where there is no slider file."""
    change = changes(sampler.pipe, path) if path else {}
    images = torch.stack([sampler.images(name, seeds, change, scale) for scale in scales], dim=1)
    drawn = zip(range(1, seeds + 1), images, strict=True)
    return [
        row
        for seed, trajectory in drawn
        for row in generation.rows(shift, name, seed, scales, trajectory, quality=sampler.settings.quality)
    ]


# `UniPC 20` of the ablation: one of the two solvers by whose pictures classifiers are ordered about as by those of DDIM in 100 steps.
STEPS = 20
UNIPC: dict[str, Any] = {"scheduler": "UniPCMultistepScheduler", "spacing": "linspace"}


@dataclasses.dataclass(frozen=True)
class Drawing:
    """A way to draw: what makes all tables of images and the one of scale 0, and a sampler of single trajectories that agrees with them.

    `sampler` is that of the tables, `single` draws one trajectory in its own pass, within rounding the same pictures. Seeds are drawn
    `together`. `steps` replace `generation.steps`, unless they are 0.
    """

    generate: Callable[..., dict[str, Path]]
    unshifted_shard: Callable[..., pd.DataFrame]
    sampler: Callable[..., generation.Sampler]
    single: Callable[..., generation.Sampler]
    together: int = 1
    steps: int = 0

    def settings(self, settings: Generation) -> Generation:
        """The settings of `generation` with the number of steps that this way takes."""
        return dataclasses.replace(settings, steps=self.steps or settings.steps)

    def drawn(self, seeds: int) -> int:
        """How many seeds are drawn where so many are asked for: a pass is filled up."""
        return math.ceil(seeds / self.together) * self.together


WAYS = {
    "exact": Drawing(generation.generate, generation.unshifted_shard, generation.Sampler, generation.Sampler),
    "fused": Drawing(generate, unshifted_shard, Sampler, generation.Sampler, PASS),
    "fast": Drawing(
        partial(generate, **UNIPC),
        unshifted_shard,
        partial(Sampler, **UNIPC),
        partial(Stepper, **UNIPC),
        PASS,
        STEPS,
    ),
}


def chosen(name: str) -> Drawing:
    """The way of that name; ValueError names `base.drawing` and what it accepts."""
    demand(name in WAYS, "base.drawing", name, ", ".join(WAYS))
    return WAYS[name]
