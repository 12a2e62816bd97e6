"""Slider training, fast mode: the objective of CNS-Bench section 3.2 at several points of each of fewer, shorter denoising trajectories.

`sliders.fit`, the exact form, denoises fresh noise for every update and uses its last state alone: at 50 steps an update takes 28 UNet
evaluations per sample, and 5.1 here. Adapter, prompts, optimiser and loss are the same, the result is not: it is a recipe of its own,
`base.recipe: "fast"`. Ten steps also leave out the noisiest tenth of the timesteps, where the benchmark draws without slider.
In `benchmarks/README.md` its sliders gain as much alignment as exact ones, and keep less of the structure.
"""

import copy
import dataclasses
import functools
import itertools
from collections.abc import Iterator

import torch
from diffusers import StableDiffusionPipeline
from jaxtyping import Float
from torch import Tensor, nn

from cnslib.core import recipes, seeds, units
from cnslib.core.settings.method import Sliders
from cnslib.method import sliders
from cnslib.models import adapters, text_to_image

POINTS = 4  # of a trajectory, at most: there are `denoising_steps` - 1
STEPS = 10  # of a trajectory, at most


def shortened(settings: Sliders) -> Sliders:
    """The settings with the steps that a trajectory has here."""
    return dataclasses.replace(settings, denoising_steps=min(settings.denoising_steps, STEPS))


def visited(first: int, *, steps: int, points: int) -> list[int]:
    """The states 1, ..., `steps` - 1 of a trajectory that are training points, ascending: `first` and others at equal distances from it.

    Counted around the end, as in systematic sampling: where `first` is uniform, so is each of the points, and they spread over the
    noise levels. Asked for more points than there are states, all are.
    """
    count = steps - 1
    points = min(points, count)
    return sorted(1 + (first - 1 + number * count // points) % count for number in range(points))


@torch.no_grad()
def trajectory(
    pipe: StableDiffusionPipeline, text: Float[Tensor, "1 tokens width"], *, settings: Sliders, generator: torch.Generator, points: int
) -> Iterator[sliders.Point]:
    """The training points of one denoising trajectory from fresh noise, most noise first.

    Each step is made with the adapter as it is when the step is made. So the latents of the last point come in part from an adapter
    that is `points` - 1 updates old, and the points of a trajectory share their noise: their gradients are correlated. At one point
    per trajectory both vanish, and this is `sliders.partial_denoise`.
    """
    scheduler = copy.deepcopy(pipe.scheduler)
    scheduler.set_timesteps(settings.denoising_steps, device=pipe.device)
    first = int(torch.randint(1, settings.denoising_steps, (), generator=generator))
    chosen = visited(first, steps=settings.denoising_steps, points=points)
    noise = torch.randn((settings.batch_size, *text_to_image.latent_shape(pipe)), generator=generator)
    latents = noise.to(pipe.device) * scheduler.init_noise_sigma
    text = text.expand(len(latents), -1, -1)
    for k, timestep in enumerate(scheduler.timesteps[: chosen[-1]], start=1):
        latents = scheduler.step(pipe.unet(latents, timestep, text).sample, timestep, latents).prev_sample
        if k in chosen:
            yield latents, scheduler.timesteps[k]


def fit(
    pipe: StableDiffusionPipeline,
    parameters: list[nn.Parameter],
    text: Float[Tensor, "2 tokens width"],
    *,
    settings: Sliders,
    generator: torch.Generator,
    points: int = POINTS,
) -> dict[str, list[float]]:
    """As `sliders.fit`: as many updates on as many latents, from fewer draws of noise.

    At one point per trajectory and no more than STEPS steps the two are the same, bit for bit.
    """
    settings = shortened(settings)
    draw = functools.partial(trajectory, pipe, text[:1], settings=settings, generator=generator, points=points)
    endless = itertools.chain.from_iterable(draw() for _ in itertools.count())
    return sliders.descend(pipe, parameters, text, itertools.islice(endless, settings.iterations), settings=settings)


def evaluations(settings: Sliders, *, points: int = POINTS) -> float:
    """Expected UNet evaluations of single samples for one slider: the steps to the last point of each trajectory, and three per update."""
    steps = shortened(settings).denoising_steps
    choices = [visited(first, steps=steps, points=points) for first in range(1, steps)]
    whole, rest = divmod(settings.iterations, len(choices[0]))
    denoising = sum(whole * chosen[-1] + (chosen[rest - 1] if rest else 0) for chosen in choices) / len(choices)
    return settings.batch_size * (denoising + 3 * settings.iterations)


def train(
    pipe: StableDiffusionPipeline, shift: str, name: str, unit: units.Unit, *, settings: Sliders, origin: text_to_image.Origin
) -> None:
    """Trains and writes one slider and what it was made from; everything random comes from the generator of (shift, class, seed).

    Raises FloatingPointError, naming the slider, when the loss is no longer a number.
    """
    settings, generator = sliders.own(settings, shift), seeds.generator("slider", shift, name, settings.seed)
    prompts = sliders.prompts(shift, name, texts=settings.texts)
    with adapters.fresh(pipe, rank=settings.rank, alpha=settings.alpha, generator=generator) as parameters:
        curve = fit(pipe, parameters, text_to_image.embed(pipe, list(prompts)), settings=settings, generator=generator)
        entries = {"shift": shift, "class": name, "base": origin.base, "recipe": "fast"}
        used = sliders.training_settings(shortened(settings))
        adapters.save(pipe, unit.path, sliders.told(entries, prompts=prompts, settings=used, curve=curve))
    unit.finish()


def stamp(shift: str, name: str, *, settings: Sliders, origin: text_to_image.Origin) -> str:
    """What one slider depends on; never that of another recipe. Steps beyond those of a trajectory change nothing."""
    used = sliders.training_settings(shortened(sliders.own(settings, shift)))
    return recipes.FAST_SLIDERS.stamp(sliders.prompts(shift, name, texts=settings.texts), used, origin.base, origin.tokens[name])


train_all = functools.partial(sliders.train_each, train=train, stamp=stamp)  # as `sliders.train_all`, by the fast recipe
