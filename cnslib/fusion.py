"""Images of (shift, class, seed, scale) with the slider merged into the weights: quicker than generation, and not bit for bit the same.

A named option beside the exact default, called as `fusion.generate` with the arguments of `generation.generate`. An adapter that is
attached costs every layer two more products; merged, it costs nothing, but the sum W + scale * change is rounded once more and a
batch holds the seeds of one scale instead of the scales of one seed. Values on the edge are then rounded the other way: pictures
are apart by one grey level here and there.
"""

import contextlib
import itertools
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import torch
from diffusers import StableDiffusionPipeline, UNet2DConditionModel
from jaxtyping import Float, UInt8
from torch import Tensor

from cnslib import adapters, generation, models, tables, units, workers
from cnslib.config import UNSHIFTED, Generation, identifier
from cnslib.sliders import slider_path

PASS = 5  # seeds in one forward pass


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


class Sampler(generation.Sampler):
    """Draws the seeds of one class at one scale, `PASS` of them in a forward pass; their starts, too, are drawn in passes.

    A pass always holds the seeds 5 k + 1 to 5 k + 5, and those that nobody asked for are thrown away: an image does not depend on
    how many seeds, scales, shifts or classes are drawn. It may depend, in its last bits, on `PASS` and on the machine, since a
    batch of another size is added up in another order.
    """

    @torch.no_grad()
    def prefix(self, name: str, seed: int) -> Float[Tensor, "1 channels height width"]:
        """Latent of (class, seed) when the slider starts, drawn and remembered together with the other seeds of its pass."""
        if (name, seed) not in self.prefixes:
            members = passes(seed)[-1]
            latents = torch.cat([models.initial_latent(self.pipe, member) for member in members])
            early = self.scheduler.timesteps[: generation.steps_without_slider(self.settings)]
            starts = self.denoise(latents, name, early).split(1)
            self.prefixes |= {(name, member): start for member, start in zip(members, starts, strict=True)}
        return self.prefixes[name, seed]

    @torch.no_grad()
    def images(self, name: str, seeds: int, change: dict[str, Tensor], scale: float) -> UInt8[Tensor, "seeds height width 3"]:
        """The images of one class at one scale of a change of the weights; without a change the unshifted ones."""
        late = self.scheduler.timesteps[generation.steps_without_slider(self.settings) :]
        starts = [torch.cat([self.prefix(name, seed) for seed in members]) for members in passes(seeds)]
        with merged(self.pipe.unet, change, scale):
            drawn = [models.decode(self.pipe, self.denoise(start, name, late)) for start in starts]
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
    origin: models.Origin,
    sliders: Path,
    folder: Path,
) -> dict[str, Path]:
    """Makes the shards that are missing or outdated: one of scale 0 ("unshifted") and one per shift of all other scales."""
    paths = {shift: folder / f"{identifier(shift)}.parquet" for shift in (UNSHIFTED, *shifts)}
    units.prune(folder, {path.name for path in paths.values()}, "*.parquet")
    units.prune(folder, set(), "**/.*.partial")  # what a killed run left half written
    sampler = Sampler(pipe, settings=settings)
    for shift, path in paths.items():
        files = {name: slider_path(sliders, shift, name) for name in classes} if shift != UNSHIFTED else {}
        shard(sampler, shift, classes, files, scales=scales, seeds=seeds, origin=origin, path=path)
    return paths


def shard(
    sampler: Sampler,
    shift: str,
    classes: list[str],
    files: dict[str, Path],
    *,
    scales: list[float],
    seeds: int,
    origin: models.Origin,
    path: Path,
) -> None:
    """Draws all images of one shift from the slider file of each class, or the unshifted ones where there is no file."""
    wanted = [scale for scale in scales if scale > 0] if files else [0.0]
    made_from = shard_digest(sampler, classes, seeds=seeds, origin=origin, scales=wanted, files=files)
    if not units.done(path, made_from):
        found = shift_rows(sampler, shift, classes, files, scales=wanted, seeds=seeds)
        tables.write(pd.DataFrame(found), path, tables.images)
        units.finish(path, made_from)


def shard_digest(
    sampler: Sampler, classes: list[str], *, seeds: int, origin: models.Origin, scales: list[float], files: dict[str, Path]
) -> str:
    """What a shard depends on: all that one of generation does, that its weights were merged, and the code of this module."""
    sliders = [adapters.file_digest(file) for file in files.values()]
    exact = generation.shard_digest(sampler, classes, seeds=seeds, origin=origin, scales=scales, sliders=sliders)
    return units.digest("fused", exact, units.code_digest(sys.modules[__name__]))


def shift_rows(
    sampler: Sampler, shift: str, classes: list[str], files: dict[str, Path], *, scales: list[float], seeds: int
) -> Iterator[dict]:
    """One row per class, seed and scale."""
    sampler.prepare(classes, seeds=math.ceil(seeds / PASS) * PASS)
    pieces = [(sampler, shift, name, files.get(name), scales, seeds) for name in classes]
    yield from itertools.chain(*workers.each(class_rows, pieces, device=sampler.pipe.device, desc=shift))


def class_rows(sampler: Sampler, shift: str, name: str, path: Path | None, scales: list[float], seeds: int) -> list[dict]:
    """The rows of one class in one shift, or of its unshifted images where there is no slider file."""
    change = changes(sampler.pipe, path) if path else {}
    images = torch.stack([sampler.images(name, seeds, change, scale) for scale in scales], dim=1)
    drawn = zip(range(1, seeds + 1), images, strict=True)
    return [row for seed, trajectory in drawn for row in generation.rows(shift, name, seed, scales, trajectory)]
