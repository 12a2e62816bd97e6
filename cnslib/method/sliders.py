"""Class-conditional shift sliders: one low-rank adapter per (shift, class), trained as in CNS-Bench section 3.2 and its released code."""

import copy
import dataclasses
import functools
import itertools
import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path

import pandas as pd
import torch
import torch.nn.functional as F
from diffusers import StableDiffusionPipeline
from jaxtyping import Float
from torch import Tensor, nn

from cnslib.core import names, recipes, seeds, units, workers
from cnslib.core.names import identifier
from cnslib.core.settings.method import Sliders
from cnslib.models import adapters, text_to_image

# The released code trains with the bare class token and "<token>, in <shift>". A base model that saw nothing but whole captions
# has no meaning for a bare token, so these are the captions, which are also the paper's wording (section A.1).
SHIFT_PROMPT = names.PROMPT + " {text}"
BY_SHIFT = ("etas", "longer")  # settings that take the place of others for some shifts
HEALTH_KEYS = ("health_seeds", "health_steps", "health_guidance", "least_gain")  # settings that do not touch the weights

Point = tuple[Float[Tensor, "batch channels height width"], Tensor]  # latents and the timestep they are shown at


def prompts(shift: str, name: str, *, texts: dict[str, str]) -> tuple[str, str]:
    """The prompts of c and c+ in Eq. 2: the class token alone, and in the shift, which has its words from `texts` or its name."""
    token = names.token(name)
    return names.PROMPT.format(token=token), SHIFT_PROMPT.format(token=token, text=names.text(shift, texts))


def slider_path(folder: Path, shift: str, name: str) -> Path:
    """Where the slider of a shift and a class is kept."""
    return folder / identifier(shift) / f"{identifier(name)}.safetensors"


def train_all(
    pipe: StableDiffusionPipeline, shifts: list[str], classes: list[str], *, settings: Sliders, origin: text_to_image.Origin, folder: Path
) -> dict[tuple[str, str], Path]:
    """Trains the sliders that are missing or were made from something else; deletes those that are not asked for."""
    return train_each(pipe, shifts, classes, settings=settings, origin=origin, folder=folder, train=train, stamp=stamp)


def train_each(
    pipe: StableDiffusionPipeline,
    shifts: list[str],
    classes: list[str],
    *,
    settings: Sliders,
    origin: text_to_image.Origin,
    folder: Path,
    train: Callable[..., None],
    stamp: Callable[..., str],
) -> dict[tuple[str, str], Path]:
    """As `train_all`, by the recipe whose training of one slider, and what that depends on, are given."""
    shelf = shelf_of({pair: stamp(*pair, settings=settings, origin=origin) for pair in itertools.product(shifts, classes)}, folder)
    make = functools.partial(train, settings=settings, origin=origin)
    workers.each(make, [(pipe, *pair, shelf[pair]) for pair in shelf.waiting()], device=pipe.device, desc="sliders")
    return shelf.paths


def shelf_of(made_from: dict[tuple[str, str], str], folder: Path) -> units.Shelf[tuple[str, str]]:
    """The sliders of some (shift, class), each with what it is to be made from."""
    names = {pair: slider_path(folder, *pair).relative_to(folder).as_posix() for pair in made_from}
    return units.Shelf(folder, {pair: (names[pair], made_from[pair]) for pair in made_from}, "*/*.safetensors")


def stamp(shift: str, name: str, *, settings: Sliders, origin: text_to_image.Origin) -> str:
    """What one slider depends on: its prompts, the settings of the training, base model, and its class token."""
    texts = prompts(shift, name, texts=settings.texts)
    return recipes.SLIDERS.stamp(texts, training_settings(own(settings, shift)), origin.base, origin.tokens[name])


def training_settings(settings: Sliders) -> dict[str, int | float]:
    """The settings that the weights of every slider depend on; its text is part of its prompts."""
    return {key: value for key, value in dataclasses.asdict(settings).items() if key not in (*HEALTH_KEYS, "texts", *BY_SHIFT, "pilot")}


def own(settings: Sliders, shift: str) -> Sliders:
    """The settings with the eta and the iterations of a shift that has its own."""
    eta, iterations = settings.etas.get(shift, settings.eta), settings.longer.get(shift, settings.iterations)
    return dataclasses.replace(settings, eta=eta, iterations=iterations, etas={}, longer={})


def train(
    pipe: StableDiffusionPipeline, shift: str, name: str, unit: units.Unit, *, settings: Sliders, origin: text_to_image.Origin
) -> None:
    """Trains and writes one slider and what it was made from; everything random comes from the generator of (shift, class, seed).

    Raises FloatingPointError, naming the slider, when the loss is no longer a number.
    """
    settings, generator = own(settings, shift), seeds.generator("slider", shift, name, settings.seed)
    texts = prompts(shift, name, texts=settings.texts)
    text = text_to_image.embed(pipe, list(texts))
    with adapters.fresh(pipe, rank=settings.rank, alpha=settings.alpha, generator=generator) as parameters:
        curve = fit(pipe, parameters, text, settings=settings, generator=generator)
        entries = {"shift": shift, "class": name, "base": origin.base}
        adapters.save(pipe, unit.path, told(entries, prompts=texts, settings=training_settings(settings), curve=curve))
    unit.finish()


def told(
    entries: dict[str, str], *, prompts: tuple[str, str], settings: dict[str, int | float], curve: dict[str, list[float]]
) -> dict[str, str]:
    """The header entries of a slider file. FloatingPointError names the slider when the loss is no longer a number."""
    if not all(map(math.isfinite, curve["loss"])):
        raise FloatingPointError(
            f"slider of {entries['class']} in {entries['shift']}: the loss is not a number; lower sliders.learning_rate"
        )
    plain = {"prompts": prompts, "settings": settings, "curve": curve}
    return entries | {key: json.dumps(value) for key, value in plain.items()}


def fit(
    pipe: StableDiffusionPipeline,
    parameters: list[nn.Parameter],
    text: Float[Tensor, "2 tokens width"],
    *,
    settings: Sliders,
    generator: torch.Generator,
) -> dict[str, list[float]]:
    """Trains the attached adapter as `descend`, each time on other latents: k + 2 + 1 UNet evaluations per sample, one with gradient."""
    points = (partial_denoise(pipe, text[:1], settings=settings, generator=generator) for _ in range(settings.iterations))
    return descend(pipe, parameters, text, points, settings=settings)


def descend(
    pipe: StableDiffusionPipeline,
    parameters: list[nn.Parameter],
    text: Float[Tensor, "2 tokens width"],
    points: Iterable[Point],
    *,
    settings: Sliders,
) -> dict[str, list[float]]:
    """One update of AdamW (the released code's optimiser, constant rate) towards Eq. 2 on each of `points`, drawn as they are needed.

    `text` holds the embeddings of c and c+. Returns the loss of each update, and what it would be without slider: the noise levels
    differ, so neither says much alone.
    """
    optimizer = torch.optim.AdamW(parameters, settings.learning_rate)
    curve: dict[str, list[float]] = {"loss": [], "untrained": []}
    for latents, timestep in points:
        plain, target = teacher(pipe, latents, timestep, text, eta=settings.eta)
        loss = F.mse_loss(pipe.unet(latents, timestep, text[:1].expand(len(latents), -1, -1)).sample, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        curve["loss"].append(round(loss.item(), 8))
        curve["untrained"].append(round(F.mse_loss(plain, target).item(), 8))
    return curve


@torch.no_grad()
def partial_denoise(
    pipe: StableDiffusionPipeline, text: Float[Tensor, "prompts tokens width"], *, settings: Sliders, generator: torch.Generator
) -> tuple[Float[Tensor, "batch channels height width"], Tensor]:
    """Latents after k ~ U{1, ..., steps - 1} DDIM steps from fresh noise with the adapter on, and their timestep.

    `text` is one prompt for all samples, or one for each.

    The released code mixes conditional and unconditional predictions of one and the same prompt here, which is the
    conditional prediction at any guidance: leaving that out, and the unused halves of the later batches, saves 2.07x of its
    UNet work. Its timestep for the next predictions is 19 steps above the latents' noise level; ours is that level.
    """
    scheduler = copy.deepcopy(pipe.scheduler)
    scheduler.set_timesteps(settings.denoising_steps, device=pipe.device)
    k = int(torch.randint(1, settings.denoising_steps, (), generator=generator))
    noise = torch.randn((settings.batch_size, *text_to_image.latent_shape(pipe)), generator=generator)
    latents = noise.to(pipe.device) * scheduler.init_noise_sigma
    text = text.expand(len(latents), -1, -1)
    for timestep in scheduler.timesteps[:k]:
        latents = scheduler.step(pipe.unet(latents, timestep, text).sample, timestep, latents).prev_sample
    return latents, scheduler.timesteps[k]


@torch.no_grad()
def teacher(
    pipe: StableDiffusionPipeline,
    latents: Float[Tensor, "batch channels height width"],
    timestep: Tensor,
    text: Float[Tensor, "2 tokens width"],
    *,
    eta: float,
) -> tuple[Float[Tensor, "batch channels height width"], Float[Tensor, "batch channels height width"]]:
    """The base model's prediction at c, and what the slider shall make of it: eta c+ - (eta - 1) c (Eq. 2, neutral = unconditional).

    Both are the model's own output (v or epsilon), as in the released code.
    """
    neutral, positive = (row.expand(len(latents), -1, -1) for row in text.split(1))
    with adapters.switched_off(pipe.unet):
        plain, shifted = pipe.unet(latents.repeat(2, 1, 1, 1), timestep, torch.cat([neutral, positive])).sample.chunk(2)
    return plain, plain + eta * (shifted - plain)


def evaluations(settings: Sliders) -> float:
    """Expected UNet evaluations of single samples for one slider: k on average, two teacher and one student predictions."""
    return settings.iterations * settings.batch_size * (settings.denoising_steps / 2 + 3)


def loss_curve(path: Path) -> pd.DataFrame:
    """Loss and untrained loss of every iteration, from the slider's own file."""
    return pd.DataFrame(json.loads(adapters.header(path)["curve"])).rename_axis("iteration").reset_index()
