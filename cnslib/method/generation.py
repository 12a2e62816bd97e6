"""Images of (shift, class, seed, scale): DDIM sampling whose last part runs with a slider (CNS-Bench sections 3.2 and 5.1)."""

import copy
import functools
import math
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import torch
from diffusers import DDIMScheduler, SchedulerMixin, StableDiffusionPipeline
from jaxtyping import Float, UInt8
from torch import Tensor

from cnslib.core import locks, recipes, tables, units, workers
from cnslib.core.names import PROMPT, UNSHIFTED, identifier, token
from cnslib.core.settings.method import Generation
from cnslib.method.sliders import slider_path
from cnslib.models import adapters, text_to_image

PARTS = "parts"  # folder of what is drawn of shards that are not whole yet


def steps_without_slider(settings: Generation) -> int:
    """How many steps at the noisy end run without the slider: all but the last `start_fraction`, rounded in its favour.

    Of 100 steps at 0.75 (the paper) 25, of 50 steps (the released code, t > 750) 12.
    """
    return settings.steps - math.ceil(round(settings.steps * settings.start_fraction, 6))


def evaluations(settings: Generation, *, shifts: int, images: int, scales: int) -> dict[str, int]:
    """UNet evaluations of single samples for so many unshifted images under so many shifts at so many scales, 0 included.

    "shared" is what this module does; "separate" draws every image from the beginning, scale 0 anew for each shift.
    """
    passes = [2 if acts else 1 for acts in guided_steps(settings)]
    late = sum(passes[steps_without_slider(settings) :])
    separate = images * shifts * scales * sum(passes)
    return {"shared": images * (sum(passes) + shifts * (scales - 1) * late), "separate": separate}


def guided_steps(settings: Generation) -> list[bool]:
    """Whether guidance acts in each step, from the noisiest; n steps that begin at pure noise begin at the times 1, 1 - 1/n, ..., 1/n."""
    lowest, highest = settings.guided
    times = [1 - step / settings.steps for step in range(settings.steps)]
    return [settings.guidance > 1 and lowest <= round(time, 6) <= highest for time in times]


def guidance_times(scheduler: SchedulerMixin, settings: Generation) -> dict[int, bool]:
    """Whether guidance acts, by timestep: as `guided_steps`, step by step."""
    return dict(zip(scheduler.timesteps.tolist(), guided_steps(settings), strict=True))


class Sampler:
    """Draws the images of one trajectory at a time and remembers what all shifts share: the steps before the slider starts.

    One forward pass carries one trajectory and nothing else, so no image can depend on its neighbours.
    """

    def __init__(self, pipe: StableDiffusionPipeline, *, settings: Generation):
        """Prepares the noise schedule of the settings."""
        self.pipe, self.settings = pipe, settings
        self.scheduler: DDIMScheduler = copy.deepcopy(pipe.scheduler)  # DDIM keeps no state between steps
        self.scheduler.set_timesteps(settings.steps, device=pipe.device)
        self.guided = guidance_times(self.scheduler, settings)
        self.texts: dict[str, Tensor] = {}
        self.prefixes: dict[tuple[str, int], Tensor] = {}

    def text(self, name: str) -> Float[Tensor, "prompts tokens width"]:
        """Embeddings of the negative prompt (only with guidance) and of the class prompt; the shift is never in the prompt."""
        if name not in self.texts:
            prompt = PROMPT.format(token=token(name))
            guided = self.settings.guidance > 1
            self.texts[name] = text_to_image.embed(self.pipe, [self.settings.negative_prompt, prompt] if guided else [prompt])
        return self.texts[name]

    def denoise(self, latents: Tensor, name: str, timesteps: Tensor) -> Float[Tensor, "batch channels height width"]:
        """DDIM over some timesteps, as the plain pipeline does it, with classifier-free guidance in those where it acts."""
        return self.walk(latents, self.text(name).repeat_interleave(len(latents), dim=0), timesteps)

    def walk(self, latents: Tensor, context: Tensor, timesteps: Tensor) -> Float[Tensor, "batch channels height width"]:
        """`denoise` with a text of its own for every latent: in `context` all negative prompts (only with guidance), then all others."""
        for timestep in timesteps:
            acts = self.guided[int(timestep)]
            prompts = len(context) // len(latents) if acts else 1
            output = self.pipe.unet(latents.repeat(prompts, 1, 1, 1), timestep, context[-prompts * len(latents) :]).sample
            plain, *guided = output.chunk(prompts)
            for conditional in guided:
                plain = plain + self.settings.guidance * (conditional - plain)
            latents = self.scheduler.step(plain, timestep, latents).prev_sample
        return latents

    def prefix(self, name: str, seed: int) -> Float[Tensor, "1 channels height width"]:
        """Latent of (class, seed) when the slider starts: the same for every shift and scale."""
        if (name, seed) not in self.prefixes:
            early = self.scheduler.timesteps[: steps_without_slider(self.settings)]
            self.prefixes[name, seed] = self.denoise(text_to_image.initial_latent(self.pipe, seed), name, early)
        return self.prefixes[name, seed]

    def prepare(self, classes: list[str], *, seeds: int) -> None:
        """Draws the latents that all shifts share, where they are not remembered yet."""
        waiting = [name for name in classes if any((name, seed) not in self.prefixes for seed in range(1, seeds + 1))]
        for found in workers.each(class_prefixes, [(self, name, seeds) for name in waiting], device=self.pipe.device, desc="starts"):
            self.prefixes |= found

    @torch.no_grad()
    def unshifted(self, name: str, seed: int) -> UInt8[Tensor, "1 height width 3"]:
        """The image at scale 0, drawn without any adapter."""
        late = self.scheduler.timesteps[steps_without_slider(self.settings) :]
        return text_to_image.decode(self.pipe, self.denoise(self.prefix(name, seed), name, late))

    @torch.no_grad()
    def shifted(self, name: str, seed: int, scales: list[float]) -> UInt8[Tensor, "scales height width 3"]:
        """The images of one trajectory at several scales of the adapter that is loaded, in one batch."""
        with adapters.switched_off(self.pipe.unet):
            start = self.prefix(name, seed)
        late = self.scheduler.timesteps[steps_without_slider(self.settings) :]
        with adapters.scaled(self.pipe.unet, scales):
            return text_to_image.decode(self.pipe, self.denoise(start.repeat(len(scales), 1, 1, 1), name, late))


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
) -> dict[str, Path]:
    """Makes the shards that are missing or outdated: one of scale 0 ("unshifted") and one per shift of all other scales."""
    sampler = Sampler(pipe, settings=settings)
    paths = prepared(folder, shifts, sampler)
    unshifted_shard(sampler, classes, seeds=seeds, origin=origin, path=paths[UNSHIFTED])
    above = [scale for scale in scales if scale > 0]
    shards: dict[str, units.Unit] = {}
    pieces: dict[tuple[str, str], tuple] = {}
    for shift in shifts:
        files = {name: slider_path(sliders, shift, name) for name in classes}
        digests = [adapters.file_digest(file) for file in files.values()]
        made_from = stamp(sampler, classes, seeds=seeds, origin=origin, scales=scales, sliders=digests)
        shards[shift] = units.Unit(paths[shift], made_from)
        pieces |= {(shift, name): (sampler, shift, name, file, above, seeds) for name, file in files.items()}
    write_shards(sampler, shards, pieces, class_shifted, seeds=seeds, desc="images")
    return paths


def prepared(folder: Path, shifts: list[str], owner: object) -> dict[str, Path]:
    """The file of every shard, in a folder that is this process's as long as `owner` exists, and rid of what nobody asks for."""
    paths = {shift: folder / f"{identifier(shift)}.parquet" for shift in (UNSHIFTED, *shifts)}
    locks.hold(folder, owner)
    units.prune(folder, {path.name for path in paths.values()}, "*.parquet")
    units.prune(folder, set(), "**/.*.partial")  # what a killed run left half written
    return paths


def unshifted_shard(sampler: Sampler, classes: list[str], *, seeds: int, origin: text_to_image.Origin, path: Path) -> pd.DataFrame:
    """The table of all scale-0 images, drawn where the file is missing or outdated."""
    unit = units.Unit(path, stamp(sampler, classes, seeds=seeds, origin=origin, scales=[0.0], sliders=[]))
    pieces = {(UNSHIFTED, name): (sampler, name, seeds) for name in classes}
    write_shards(sampler, {UNSHIFTED: unit}, pieces, class_unshifted, seeds=seeds, desc=UNSHIFTED)
    return tables.read(path, tables.images)


def write_shards(
    sampler: Sampler,
    shards: dict[str, units.Unit],
    pieces: dict[tuple[str, str], tuple],
    draw: Callable[..., list[dict]],
    *,
    seeds: int,
    desc: str,
) -> None:
    """Writes the shards that are missing or outdated, from parts: units of one shift and class, which last until their shard is there.

    `draw` makes the rows of a part from its piece in `pieces`, which is in the order of a shard's rows.
    """
    waiting = {shift: unit for shift, unit in shards.items() if not unit.done}
    folder = next(iter(shards.values())).path.parent / PARTS
    if not waiting:
        shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed before it had
        return
    parts = units.Shelf(folder, {key: part(key[1], waiting[key[0]]) for key in pieces if key[0] in waiting}, "*/*.parquet")
    missing = parts.waiting()
    sampler.prepare(list(dict.fromkeys(name for _, name in missing)), seeds=seeds)
    make = functools.partial(write_part, draw)
    workers.each(make, [(*pieces[key], parts[key]) for key in missing], device=sampler.pipe.device, desc=desc)
    for shift, unit in waiting.items():
        own = [path for key, path in parts.paths.items() if key[0] == shift]
        tables.write_unit(pd.concat([tables.read(path, tables.images) for path in own], ignore_index=True), unit, tables.images)
        shutil.rmtree(own[0].parent)
    shutil.rmtree(folder)


def part(name: str, shard: units.Unit) -> tuple[str, str]:
    """File and stamp of what one class has in a shard."""
    return f"{shard.path.stem}/{identifier(name)}.parquet", units.digest(shard.made_from, name)


def write_part(draw: Callable[..., list[dict]], *piece) -> None:
    """Draws a part; its unit comes last."""
    *given, unit = piece
    tables.write_unit(pd.DataFrame(draw(*given)), unit, tables.images)


def stamp(
    sampler: Sampler, classes: list[str], *, seeds: int, origin: text_to_image.Origin, scales: list[float], sliders: list[str]
) -> str:
    """What a shard depends on: its grid, the sampling settings, base model, class tokens and sliders."""
    drawn = sampler.settings.drawn()
    tokens = {name: origin.tokens[name] for name in classes}
    return recipes.GENERATION.stamp(PROMPT, classes, seeds, drawn, origin.base, tokens, scales, sliders)


@torch.no_grad()
def class_prefixes(sampler: Sampler, name: str, seeds: int) -> dict[tuple[str, int], Tensor]:
    """The shared latents of one class."""
    return {(name, seed): sampler.prefix(name, seed) for seed in range(1, seeds + 1)}


def class_unshifted(sampler: Sampler, name: str, seeds: int) -> list[dict]:
    """The rows of one class at scale 0."""
    return [
        row
        for seed in range(1, seeds + 1)
        for row in rows(UNSHIFTED, name, seed, [0.0], sampler.unshifted(name, seed), quality=sampler.settings.quality)
    ]


def class_shifted(sampler: Sampler, shift: str, name: str, path: Path, scales: list[float], seeds: int) -> list[dict]:
    """The rows of one class in one shift."""
    with adapters.loaded(sampler.pipe, path):
        return [
            row
            for seed in range(1, seeds + 1)
            for row in rows(shift, name, seed, scales, sampler.shifted(name, seed, scales), quality=sampler.settings.quality)
        ]


def rows(
    shift: str, name: str, seed: int, scales: list[float], images: UInt8[Tensor, "scales height width 3"], *, quality: int
) -> Iterator[dict]:
    """Rows of the images table. What is stored is the image: a JPEG of that quality is what every model sees; 0 stores it without loss."""
    for scale, image in zip(scales, images.numpy(), strict=True):
        yield {"shift": shift, "class": name, "seed": seed, "scale": scale, "image": tables.encode(image, quality=quality)}


def change(shard: pd.DataFrame, unshifted: pd.DataFrame) -> pd.DataFrame:
    """How far each image of a shard is from the unshifted one of its class and seed: mean absolute difference in grey levels."""
    start = dict(zip(trajectory_starts(unshifted), tables.pictures(unshifted, UNSHIFTED).astype(int), strict=True))
    if missing := sorted(set(trajectory_starts(shard)) - set(start)):
        raise ValueError(f"unshifted images: {len(missing)} missing, the first of class and seed {missing[0]}")
    pictures = tables.pictures(shard, "shard")
    distance = [abs(image - start[key]).mean() for key, image in zip(trajectory_starts(shard), pictures, strict=True)]
    return shard[tables.KEY].assign(change=distance)


def trajectory_starts(table: pd.DataFrame) -> list[tuple[str, int]]:
    """Class and seed of every row: what the unshifted image depends on."""
    return list(table[["class", "seed"]].itertuples(index=False, name=None))
