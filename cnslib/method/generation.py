"""Images of (shift, class, seed, scale): sampling whose last part runs with a slider (CNS-Bench sections 3.2 and 5.1).

`base.drawing` names the way. The exact one attaches the slider as an adapter, and a forward pass carries one trajectory and nothing
else. The fused one merges the slider into the weights, which saves two products a layer; the sum W + scale * change is rounded once
more and a pass holds five seeds of one scale, so that pictures are apart by one grey level here and there. The fast one also takes
another scheduler of diffusers, with fewer steps.
"""

import contextlib
import copy
import dataclasses
import functools
import math
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import pandas as pd
import torch
from diffusers import SchedulerMixin, StableDiffusionPipeline, UNet2DConditionModel
from jaxtyping import Float, UInt8
from PIL import Image
from torch import Tensor

from cnslib.core import recipes, tables, units, workers
from cnslib.core.names import PROMPT, UNSHIFTED, identifier, token
from cnslib.core.settings.method import Generation
from cnslib.models import adapters, text_to_image
from cnslib.models.adapters import slider_path
from cnslib.models.text_to_image import Origin

PARTS = "parts"  # folder of what is drawn of shards that are not whole yet
PASS = 5  # seeds in one forward pass of the fused way
Latents = Float[Tensor, "batch channels height width"]
Images = UInt8[Tensor, "images height width 3"]


@dataclass(frozen=True)
class SamplingMode:
    """A way to draw: whether sliders are `merged`, a scheduler of diffusers with its spacing (the pipeline's own by default).

    "leading" is made for DDIM: in 20 steps of UniPC it takes pure noise for a latent of t = 941. `steps` replace `generation.steps`,
    unless they are 0. `half` computes the UNet in bfloat16; texts, guidance, scheduler and decoder stay in float32.
    """

    merged: bool = False
    scheduler: str = ""
    spacing: str = ""
    steps: int = 0
    half: bool = False

    def settings(self, settings: Generation) -> Generation:
        """The settings of `generation` with the number of steps that this way takes."""
        return dataclasses.replace(settings, steps=self.steps or settings.steps)

    def passes(self, seeds: int) -> list[tuple[int, ...]]:
        """The seeds of each forward pass, until so many are drawn; the last pass is filled up, and its surplus thrown away."""
        size = PASS if self.merged else 1
        return [tuple(range(first, first + size)) for first in range(1, seeds + 1, size)]

    def single(self, pipe: StableDiffusionPipeline, *, settings: Generation) -> "Sampler":
        """A sampler of single trajectories, within rounding the same pictures."""
        return Sampler(pipe, settings=settings, mode=dataclasses.replace(self, merged=False))


EXACT = SamplingMode()
# "fast" is `UniPC 20` of the ablation: a solver by whose pictures classifiers are ordered about as by those of DDIM in 100 steps.
SAMPLING_MODES = {"exact": EXACT, "fused": SamplingMode(merged=True), "fast": SamplingMode(True, "UniPCMultistepScheduler", "linspace", 20)}
SAMPLING_MODES |= {f"{name} bfloat16": dataclasses.replace(mode, half=True) for name, mode in SAMPLING_MODES.items()}


def steps_without_slider(settings: Generation) -> int:
    """How many steps at the noisy end run without the slider: all but the last `start_fraction`, rounded in its favour.

    Of 100 steps at 0.75 (the paper) 25, of 50 steps (the released code, t > 750) 12.
    """
    return settings.steps - math.ceil(round(settings.steps * settings.start_fraction, 6))


def guided_steps(settings: Generation) -> list[bool]:
    """Whether guidance acts in each step, from the noisiest; n steps that begin at pure noise begin at the times 1, 1 - 1/n, ..., 1/n."""
    times = (1 - np.arange(settings.steps) / settings.steps).round(6)
    lowest, highest = settings.guided
    return ((settings.guidance > 1) & (lowest <= times) & (times <= highest)).tolist()


def evaluations(settings: Generation, *, shifts: int, images: int, scales: int) -> dict[str, int]:
    """UNet evaluations of single samples for so many unshifted images under so many shifts at so many scales, 0 included.

    "shared" is what this module does; "separate" draws every image from the beginning, scale 0 again for each shift.
    """
    passes = [1 + acts for acts in guided_steps(settings)]
    late = sum(passes[steps_without_slider(settings) :])
    return {"shared": images * (sum(passes) + shifts * (scales - 1) * late), "separate": images * shifts * scales * sum(passes)}


class Sampler:
    """Draws images of one class and remembers what all shifts and scales share: the steps before the slider starts.

    An image does not depend on how many seeds, scales, shifts or classes are drawn; in its last bits it may depend on the size of a
    pass and on the machine. A scheduler's memory of its last steps belongs to a pass: each begins with a scheduler that has seen nothing
    and continues with what the shared steps left.
    """

    def __init__(self, pipe: StableDiffusionPipeline, *, settings: Generation, mode: SamplingMode = EXACT):
        """Prepares the noise schedule of the settings."""
        self.pipe, self.settings, self.mode = with_rounded_unet(pipe) if mode.half else pipe, settings, mode
        config = pipe.scheduler.config
        scheduler = getattr(diffusers, mode.scheduler) if mode.scheduler else type(pipe.scheduler)
        self.unused: SchedulerMixin = scheduler.from_config(config, timestep_spacing=mode.spacing or config.timestep_spacing)
        self.unused.set_timesteps(settings.steps, device=pipe.device)
        self.scheduler = copy.deepcopy(self.unused)
        self.guided = dict(zip(self.unused.timesteps.tolist(), guided_steps(settings), strict=True))
        early = steps_without_slider(settings)
        self.early, self.late = self.unused.timesteps[:early], self.unused.timesteps[early:]
        self.texts: dict[str, Tensor] = {}
        self.starts: dict[tuple[str, tuple[int, ...]], tuple[Tensor, SchedulerMixin]] = {}

    @property
    def identity(self) -> dict[str, Any]:
        """Scheduler, spacing, recipe and precision, for digests of what it draws; nothing for the pipeline's own scheduler, exactly."""
        dtype = {"dtype": "bfloat16"} if self.mode.half else {}
        if not self.mode.merged and not self.mode.scheduler:
            return dtype
        spacing = self.unused.config.timestep_spacing
        return {"scheduler": type(self.unused).__name__, "spacing": spacing, "recipe": recipes.STEPPER.code} | dtype

    def text(self, name: str) -> Float[Tensor, "prompts tokens width"]:
        """Embeddings of the negative prompt (only with guidance) and of the class prompt; the shift is never in the prompt."""
        if name not in self.texts:
            prompts = [self.settings.negative_prompt] * (self.settings.guidance > 1) + [PROMPT.format(token=token(name))]
            self.texts[name] = text_to_image.embed(self.pipe, prompts)
        return self.texts[name]

    def denoise(self, latents: Latents, name: str, timesteps: Tensor) -> Latents:
        """Steps as the plain pipeline makes them, with classifier-free guidance in those where it acts."""
        return self.walk(latents, self.text(name).repeat_interleave(len(latents), dim=0), timesteps)

    def walk(self, latents: Latents, context: Tensor, timesteps: Tensor) -> Latents:
        """`denoise` with a text of its own for every latent: in `context` all negative prompts (only with guidance), then all others."""
        dtype = torch.bfloat16 if self.mode.half else torch.float32
        for timestep in timesteps:
            prompts = len(context) // len(latents) if self.guided[int(timestep)] else 1
            inputs, texts = latents.repeat(prompts, 1, 1, 1), context[-prompts * len(latents) :]
            output = self.pipe.unet(inputs.to(dtype), timestep, texts.to(dtype)).sample.float()
            plain, *guided = output.chunk(prompts)
            for conditional in guided:
                plain = plain + self.settings.guidance * (conditional - plain)
            latents = self.scheduler.step(plain, timestep, latents).prev_sample
        return latents

    @torch.no_grad()
    def start(self, name: str, seeds: Sequence[int]) -> Latents:
        """Latents of the seeds of a pass when the slider starts, drawn once; the scheduler is left as it was then."""
        if (key := (name, tuple(seeds))) not in self.starts:
            self.scheduler = copy.deepcopy(self.unused)
            noise = torch.cat([text_to_image.initial_latent(self.pipe, seed) for seed in seeds])
            self.starts[key] = self.denoise(noise, name, self.early), self.scheduler
        latents, scheduler = self.starts[key]
        self.scheduler = copy.deepcopy(scheduler)
        return latents

    def prepare(self, classes: list[str], *, seeds: int) -> None:
        """Draws the latents that all shifts share, where they are not remembered yet."""
        waiting = [name for name in classes if any((name, members) not in self.starts for members in self.mode.passes(seeds))]
        for starts in workers.each(class_starts, [(self, name, seeds) for name in waiting], device=self.pipe.device, desc="starts"):
            self.starts |= starts

    @torch.no_grad()
    def finish(self, name: str, seeds: Sequence[int], copies: int = 1) -> Images:
        """The images of a pass from where the slider starts, with the network as it is; so many of each start."""
        latents = self.start(name, seeds).repeat(copies, 1, 1, 1)
        return self.decode(self.denoise(latents, name, self.late))

    def decode(self, latents: Latents) -> Images:
        """The images of latents, of `side` pixels where the settings say so (bicubic; the authors store 256 of 768)."""
        images = text_to_image.decode(self.pipe, latents)
        if not self.settings.side:
            return images
        size = self.settings.side, self.settings.side
        return torch.stack([torch.from_numpy(np.array(Image.fromarray(image).resize(size))) for image in images.numpy()])

    def unshifted(self, name: str, seed: int) -> Images:
        """The image at scale 0, drawn without any adapter."""
        return self.finish(name, [seed])

    def shifted(self, name: str, seed: int, scales: list[float]) -> Images:
        """The images of one trajectory at several scales of the adapter that is loaded, in one batch."""
        with adapters.switched_off(self.pipe.unet):
            self.start(name, [seed])
        with adapters.scaled(self.pipe.unet, scales):
            return self.finish(name, [seed], len(scales))

    def images(self, name: str, seeds: int, change: dict[str, Tensor], scale: float) -> Images:
        """The images of one class at one scale of a change of the weights; without a change the unshifted ones."""
        drawn = []
        for members in self.mode.passes(seeds):
            self.start(name, members)
            with merged(self.pipe.unet, change, scale):
                drawn.append(self.finish(name, members))
        return torch.cat(drawn)[:seeds]

    def trajectories(self, name: str, slider: Path | None, scales: list[float], seeds: int) -> UInt8[Tensor, "seeds scales height width 3"]:
        """The images of seeds 1, 2, ... at some scales of the slider of a file; without a file the unshifted ones."""
        numbers = range(1, seeds + 1)
        if self.mode.merged:
            change = changes(self.pipe, slider) if slider else {}
            return torch.stack([self.images(name, seeds, change, scale) for scale in scales], dim=1)
        if slider is None:
            return torch.stack([self.unshifted(name, seed) for seed in numbers])
        with adapters.loaded(self.pipe, slider):
            return torch.stack([self.shifted(name, seed, scales) for seed in numbers])


def with_rounded_unet(pipe: StableDiffusionPipeline) -> StableDiffusionPipeline:
    """A pipeline that shares everything with another but the UNet, which is rounded to bfloat16."""
    half = copy.copy(pipe)  # not by its constructor, which would change the scheduler that both share
    half.unet = copy.deepcopy(pipe.unet).bfloat16()
    return half


def class_starts(sampler: Sampler, name: str, seeds: int) -> dict[tuple[str, tuple[int, ...]], tuple[Tensor, SchedulerMixin]]:
    """The shared latents of one class, with what the scheduler remembers of them."""
    for members in sampler.mode.passes(seeds):
        sampler.start(name, members)
    return {key: start for key, start in sampler.starts.items() if key[0] == name}


@torch.no_grad()
def changes(pipe: StableDiffusionPipeline, path: Path) -> dict[str, Tensor]:
    """What the adapter of a file adds to the weight of each adapted layer at scale 1: alpha / rank * B A, by name of the layer."""
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


def generate(
    sampler: Sampler, shifts: list[str], classes: list[str], *, scales: list[float], seeds: int, origin: Origin, sliders: Path, folder: Path
) -> dict[str, Path]:
    """Makes the shards that are missing or outdated: one of scale 0 ("unshifted") and one per shift of all other scales."""
    others, stamped = [scale for scale in scales if scale != 0], functools.partial(stamp, sampler, classes, seeds=seeds, origin=origin)
    files = {UNSHIFTED: (f"{UNSHIFTED}.parquet", stamped(scales=[0.0]))}
    for shift in shifts:
        digests = [adapters.file_digest(slider_path(sliders, shift, name)) for name in classes]
        stamped_scales = others if sampler.mode.merged else scales  # as in the stamps of tables that are there
        files[shift] = f"{identifier(shift)}.parquet", stamped(scales=stamped_scales, sliders=digests)
    shelf = units.Shelf(folder, files)
    if waiting := shelf.waiting():
        draw_shards(sampler, {shift: shelf[shift] for shift in waiting}, classes, sliders=sliders, scales=others, seeds=seeds)
    else:
        shutil.rmtree(folder / PARTS, ignore_errors=True)  # of a run that was killed before it had
    return shelf.paths


def unshifted_shard(sampler: Sampler, classes: list[str], *, seeds: int, origin: Origin, path: Path) -> pd.DataFrame:
    """The table of all scale-0 images, drawn where the file is missing or outdated."""
    unit = units.Unit(path, stamp(sampler, classes, seeds=seeds, origin=origin, scales=[0.0]))
    if not unit.done:
        draw_shards(sampler, {UNSHIFTED: unit}, classes, sliders=path.parent, scales=[], seeds=seeds)
    return tables.read(path, tables.images)


def stamp(sampler: Sampler, classes: list[str], *, seeds: int, origin: Origin, scales: list[float], sliders: Sequence[str] = ()) -> str:
    """What a shard depends on: its grid, the sampling settings, base model, class tokens and sliders."""
    tokens = {name: origin.tokens[name] for name in classes}
    exact = recipes.GENERATION.stamp(PROMPT, classes, seeds, sampler.settings.drawn(), origin.base, tokens, scales, sliders)
    return recipes.FUSED.stamp(exact, sampler.identity) if sampler.mode.merged or sampler.mode.half else exact


def draw_shards(
    sampler: Sampler, shards: dict[str, units.Unit], classes: list[str], *, sliders: Path, scales: list[float], seeds: int
) -> None:
    """Writes shards from parts: units of one shift and class, which last until all shards are there."""
    files = {}
    for shift, unit in shards.items():
        for name in classes:
            files[shift, name] = f"{unit.path.stem}/{identifier(name)}.parquet", units.digest(unit.made_from, name)
    parts = units.Shelf(next(iter(shards.values())).path.parent / PARTS, files, "*/*.parquet")
    missing = parts.waiting()
    sampler.prepare(list(dict.fromkeys(name for _, name in missing)), seeds=seeds)
    jobs = []
    for shift, name in missing:
        drawn = (None, [0.0]) if shift == UNSHIFTED else (slider_path(sliders, shift, name), scales)
        jobs.append((sampler, shift, name, *drawn, seeds, parts[shift, name]))
    workers.each(draw_part, jobs, device=sampler.pipe.device, desc="images")
    for shift, unit in shards.items():
        images_of_shift = [tables.read(parts.paths[shift, name], tables.images) for name in classes]
        tables.write_unit(pd.concat(images_of_shift, ignore_index=True), unit, tables.images)
    shutil.rmtree(parts.folder)


def draw_part(sampler: Sampler, shift: str, name: str, slider: Path | None, scales: list[float], seeds: int, unit: units.Unit) -> None:
    """Draws and writes the rows of one class in one shift, or of its unshifted images where there is no slider."""
    drawn = enumerate(sampler.trajectories(name, slider, scales, seeds), start=1)
    records = [row for seed, images in drawn for row in rows(shift, name, seed, scales, images, quality=sampler.settings.quality)]
    tables.write_unit(pd.DataFrame(records), unit, tables.images)


def rows(shift: str, name: str, seed: int, scales: list[float], images: Images, *, quality: int) -> Iterator[dict]:
    """Rows of the images table. What is stored is the image: a JPEG of that quality is what every model sees; 0 stores it without loss."""
    for scale, image in zip(scales, images.numpy(), strict=True):
        yield {"shift": shift, "class": name, "seed": seed, "scale": scale, "image": tables.encode(image, quality=quality)}
