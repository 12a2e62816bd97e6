"""Slider training as the authors' released code does it, where that differs from the paper: prompts, timestep, size and precision.

The rest (adapter, optimiser, objective) is the same mathematics and comes from `method.sliders`. That includes the released
guidance of 7.5 in the partial denoise: it mixes two predictions of one prompt, c + 7.5 (c - c), which is c.
"""

import copy
import functools
import itertools
from pathlib import Path

import torch
from diffusers import DDIMScheduler, StableDiffusionPipeline
from jaxtyping import Float
from peft.utils import get_peft_model_state_dict
from torch import Tensor, nn

from cnslib.core import names, recipes, seeds, units, workers
from cnslib.core.settings.method import Sliders
from cnslib.method import sliders
from cnslib.models import adapters, kohya, text_to_image

RESOLUTION = 512  # pixels, whatever the model's own size


def prompts(shift: str, name: str, *, texts: dict[str, str]) -> tuple[str, str]:
    """The prompts of c and c+: the bare class token, and token, comma, "in", shift, or its text. No "a picture of a"."""
    token = names.token(name)
    return token, f"{token}, {names.text(shift, texts)}"


def pipeline(pipe: StableDiffusionPipeline) -> StableDiffusionPipeline:
    """The pipeline to train on: a copy in bf16 with the released scheduler (no step offset); the given one stays as it is.

    UNet and text encoder are rounded, and with them the adapter and the optimiser's state: nothing is kept in single precision.
    Raises ValueError unless the model predicts v, on which the released loss is defined.
    """
    if (found := pipe.scheduler.config.prediction_type) != "v_prediction":
        raise ValueError(f"base.recipe: 'released' trains on v, the pipeline predicts {found}; accepted here: paper, fast, graded")
    copies = {name: copy.deepcopy(getattr(pipe, name)).bfloat16() for name in ("unet", "text_encoder")}
    rounded = StableDiffusionPipeline(**(pipe.components | copies), requires_safety_checker=False)
    # Put in place afterwards: the constructor sets the offset of any scheduler to 1.
    released = {"timestep_spacing": "leading", "steps_offset": 0, "set_alpha_to_one": True}  # as Stable Diffusion 2 has it
    rounded.scheduler = DDIMScheduler.from_config(pipe.scheduler.config, **released)
    return rounded


def latent_shape(pipe: StableDiffusionPipeline) -> tuple[int, int, int]:
    """Channels, height and width of the latents of the training: those of 512 px, or the model's own where it is smaller."""
    channels, side, _ = text_to_image.latent_shape(pipe)
    side = min(side, RESOLUTION // pipe.vae_scale_factor)
    return channels, side, side


def teacher_timestep(k: int, *, steps: int, training_steps: int = 1000) -> int:
    """The timestep of the four predictions after k of `steps` steps: entry 1000 k / steps of the descending list 999, 998, ... 0.

    The latents' own level is 1000 - (k + 1) 1000 / steps, which is 1000 / steps - 1 lower: 19 at the released 50 steps.
    """
    return training_steps - 1 - k * training_steps // steps


@torch.no_grad()
def partial_denoise(
    pipe: StableDiffusionPipeline, text: Float[Tensor, "1 tokens width"], *, settings: Sliders, generator: torch.Generator
) -> tuple[Float[Tensor, "batch channels height width"], Tensor]:
    """Latents after k ~ U{1, ..., steps - 1} DDIM steps from fresh noise with the adapter on, and the teacher's timestep.

    Steps run from 980 down by 20 at 50 steps. The noise is drawn in single precision on the CPU and rounded, as released.
    """
    schedule, steps = copy.deepcopy(pipe.scheduler), settings.denoising_steps
    schedule.set_timesteps(steps, device=pipe.device)
    k = int(torch.randint(1, steps, (), generator=generator))
    noise = torch.randn((settings.batch_size, *latent_shape(pipe)), generator=generator)
    latents = (noise * schedule.init_noise_sigma).to(pipe.device, pipe.unet.dtype)
    text = text.expand(len(latents), -1, -1)
    for timestep in schedule.timesteps[:k]:
        latents = schedule.step(pipe.unet(latents, timestep, text).sample, timestep, latents).prev_sample
    chosen = teacher_timestep(k, steps=steps, training_steps=schedule.config.num_train_timesteps)
    return latents, torch.tensor(chosen, device=pipe.device)


def fit(
    pipe: StableDiffusionPipeline,
    parameters: list[nn.Parameter],
    text: Float[Tensor, "2 tokens width"],
    *,
    settings: Sliders,
    generator: torch.Generator,
) -> dict[str, list[float]]:
    """As `sliders.fit`, on latents and timesteps of the released code: AdamW on the mean squared error of the v prediction."""
    points = (partial_denoise(pipe, text[:1], settings=settings, generator=generator) for _ in range(settings.iterations))
    return sliders.descend(pipe, parameters, text, points, settings=settings)


def train(
    pipe: StableDiffusionPipeline, shift: str, name: str, unit: units.Unit, *, settings: Sliders, origin: text_to_image.Origin
) -> None:
    """Trains and writes one slider and what it was made from, in bf16 as the released files are; `pipe` is what `pipeline` gives.

    The released runs have no seed; here the generator of (shift, class, seed) decides everything random. Raises
    FloatingPointError, naming the slider, when the loss is no longer a number.
    """
    settings, generator = sliders.own(settings, shift), seeds.generator("slider", shift, name, settings.seed)
    texts = prompts(shift, name, texts=settings.texts)
    text = text_to_image.embed(pipe, list(texts))
    with adapters.fresh(pipe, rank=settings.rank, alpha=settings.alpha, generator=generator) as parameters:
        curve = fit(pipe, parameters, text, settings=settings, generator=generator)
        entries = {"shift": shift, "class": name, "base": origin.base, "recipe": "released"}
        used = sliders.training_settings(settings)
        told = sliders.told(entries, prompts=texts, settings=used, curve=curve)
        weights = get_peft_model_state_dict(pipe.unet, adapter_name=adapters.NAME)
        kohya.write(unit.path, weights, rank=settings.rank, alpha=settings.alpha, entries=told)
    unit.finish()


def train_all(
    pipe: StableDiffusionPipeline, shifts: list[str], classes: list[str], *, settings: Sliders, origin: text_to_image.Origin, folder: Path
) -> dict[tuple[str, str], Path]:
    """As `sliders.train_all`, by the released recipe; `pipe` is the plain pipeline, which stays as it is."""
    pairs = itertools.product(shifts, classes)
    shelf = sliders.shelf_of({pair: stamp(*pair, settings=settings, origin=origin) for pair in pairs}, folder)
    waiting = shelf.waiting()
    rounded = pipeline(pipe) if waiting else pipe
    make = functools.partial(train, settings=settings, origin=origin)
    workers.each(make, [(rounded, *pair, shelf[pair]) for pair in waiting], device=pipe.device, desc="sliders")
    return shelf.paths


def stamp(shift: str, name: str, *, settings: Sliders, origin: text_to_image.Origin) -> str:
    """What one slider depends on; never that of the paper's recipe."""
    texts, used = prompts(shift, name, texts=settings.texts), sliders.training_settings(sliders.own(settings, shift))
    return recipes.RELEASED_SLIDERS.stamp(texts, used, origin.base, origin.tokens[name])
