"""IN*: one new token per class, whose embedding makes the frozen model draw the class as the catalog shows it.

Textual inversion (Gal et al. 2023) of a whole class, as dataset interfaces do it (Vendrow et al. 2023; CNS-Bench section 3.1).
"""

import contextlib
import copy
import dataclasses
import hashlib
import json
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import safetensors.torch
import torch
import torch.nn.functional as F
from diffusers import StableDiffusionPipeline
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor, nn
from tqdm.auto import tqdm

from cnslib import adapters, catalog, kinds, seeds, units
from cnslib.config import Inversion, identifier

PROMPT = "a picture of a {token}"  # paper section 3.4; also the caption that the text encoder knows
TRAINING = ("learning_rate", "steps", "batch_size", "images_per_class", "seed")  # the settings that a token depends on
ENCODED = 16  # pictures per pass of the autoencoder


def token(name: str) -> str:
    """The new word that stands for a class: "ankle boot" becomes "<ankle-boot*>"; lower case, as CLIP tokenizers read it."""
    return f"<{name.lower().replace(' ', '-')}*>"


def invert_all(
    pipe: StableDiffusionPipeline, classes: list[str], *, settings: Inversion, pictures: Path, base: str, folder: Path
) -> dict[str, Path]:
    """Makes the tokens that are missing or were made from something else; deletes those that are not asked for.

    `pictures` is the catalog, `base` the digest of the pipeline's directory. Raises ValueError for two classes with one token.
    """
    require_distinct(classes)
    paths = {name: folder / f"{identifier(name)}.safetensors" for name in classes}
    units.prune(folder, {path.name for path in paths.values()}, "*.safetensors")
    for name, path in tqdm(paths.items(), desc="inversion", disable=None):
        examples = catalog.images(pictures, "train", name, count=settings.images_per_class, side=side(pipe))
        unit = units.Unit(path, stamp(name, examples, settings=settings, base=base))
        if not unit.done:
            invert(pipe, name, examples, settings=settings, path=path)
            unit.finish()
    return paths


def require_distinct(classes: list[str]) -> None:
    """Raises ValueError, naming the classes, where two would share one token."""
    first: dict[str, str] = {}
    for name in classes:
        other = first.setdefault(token(name), name)
        if other != name:
            raise ValueError(f"base.classes: {other!r} and {name!r} both become the token {token(name)}; accepted: names that differ")


def side(pipe: StableDiffusionPipeline) -> int:
    """Height and width of the model's pictures in pixels."""
    return pipe.unet.config.sample_size * pipe.vae_scale_factor


def stamp(name: str, examples: UInt8[np.ndarray, "images side side 3"], *, settings: Inversion, base: str) -> units.Stamp:
    """What a token depends on: its class, the pixels of its examples, the settings of the training, and the base model."""
    pixels = hashlib.sha256(examples.tobytes()).hexdigest()
    return kinds.TOKENS.stamp(name, PROMPT, pixels, training_settings(settings), base)


def training_settings(settings: Inversion) -> dict[str, float]:
    """The settings that a token depends on."""
    return {key: value for key, value in dataclasses.asdict(settings).items() if key in TRAINING}


def invert(
    pipe: StableDiffusionPipeline, name: str, examples: UInt8[np.ndarray, "images side side 3"], *, settings: Inversion, path: Path
) -> None:
    """Learns and writes one token; everything random comes from the generator of (class, seed).

    Raises FloatingPointError, naming the class, when the loss is no longer a number.
    """
    generator = seeds.generator("inversion", name, settings.seed)
    vector, losses = fit(pipe, name, encode(pipe, examples), settings=settings, generator=generator)
    if not all(map(math.isfinite, losses)):
        raise FloatingPointError(f"token of {name}: the loss is not a number; look at the base model and inversion.learning_rate")
    plain = {"class": name, "settings": training_settings(settings), "losses": losses}
    data = safetensors.torch.save({token(name): vector}, {"format": "pt"})
    units.write_bytes(path, adapters.with_header(data, {key: json.dumps(value) for key, value in plain.items()}))


@torch.no_grad()
def encode(
    pipe: StableDiffusionPipeline, examples: UInt8[np.ndarray, "images side side 3"]
) -> Float[Tensor, "images channels height width"]:
    """Latents of pictures: the mean of the autoencoder's posterior, scaled as the UNet expects it."""
    pixels = torch.from_numpy(examples).permute(0, 3, 1, 2) / 127.5 - 1
    parts = [pipe.vae.encode(part.to(pipe.device)).latent_dist.mean for part in pixels.split(ENCODED)]
    return torch.cat(parts) * pipe.vae.config.scaling_factor


def fit(
    pipe: StableDiffusionPipeline,
    name: str,
    latents: Float[Tensor, "images channels height width"],
    *,
    settings: Inversion,
    generator: torch.Generator,
) -> tuple[Float[Tensor, "width"], list[float]]:
    """The embedding after AdamW, and the loss of each step; nothing but the embedding changes.

    Its length stays that of its start, since text encoders know embeddings of that length only. The rate falls linearly to zero:
    at a constant one, where a class ends up depends on the last few batches.
    """
    start, prompt = initial_vector(pipe, name), prompt_ids(pipe, name)
    vector = nn.Parameter(start.clone())
    optimizer = torch.optim.AdamW([vector], settings.learning_rate)
    decay = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=1.0, end_factor=0.0, total_iters=settings.steps)
    losses = []
    for _ in range(settings.steps):
        rows = torch.randint(len(latents), (settings.batch_size,), generator=generator)
        loss = denoising_loss(pipe, latents[rows.to(latents.device)], text(pipe, *prompt, vector), generator=generator)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        decay.step()
        with torch.no_grad():
            vector.mul_(start.norm() / vector.norm())
        losses.append(round(loss.item(), 6))
    return vector.detach().cpu(), losses


@torch.no_grad()
def initial_vector(pipe: StableDiffusionPipeline, name: str) -> Float[Tensor, "width"]:
    """The mean of the embeddings of the tokens that the class name consists of."""
    ids = pipe.tokenizer(name, add_special_tokens=False, return_tensors="pt").input_ids[0]
    return pipe.text_encoder.get_input_embeddings()(ids.to(pipe.device)).mean(dim=0)


def denoising_loss(
    pipe: StableDiffusionPipeline,
    latents: Float[Tensor, "batch channels height width"],
    embedding: Float[Tensor, "1 tokens width"],
    *,
    generator: torch.Generator,
) -> Float[Tensor, ""]:
    """The model's own training loss (section 3.1): mean squared error of its prediction at a random noise level per picture."""
    noise = torch.randn(latents.shape, generator=generator).to(latents)
    steps = torch.randint(pipe.scheduler.config.num_train_timesteps, (len(latents),), generator=generator).to(latents.device)
    noisy = pipe.scheduler.add_noise(latents, noise, steps)
    velocity = pipe.scheduler.config.prediction_type == "v_prediction"
    target = pipe.scheduler.get_velocity(latents, noise, steps) if velocity else noise
    return F.mse_loss(pipe.unet(noisy, steps, embedding.expand(len(latents), -1, -1)).sample, target)


def text(
    pipe: StableDiffusionPipeline, ids: Int[Tensor, "1 tokens"], places: Bool[Tensor, "1 tokens"], vector: Float[Tensor, "width"]
) -> Float[Tensor, "1 tokens width"]:
    """What the text encoder makes of a prompt with `vector` as the embedding at `places`."""
    with replaced(pipe, places, vector):
        return pipe.text_encoder(ids).last_hidden_state


def prompt_ids(pipe: StableDiffusionPipeline, name: str) -> tuple[Int[Tensor, "1 tokens"], Bool[Tensor, "1 tokens"]]:
    """Token ids of the class's prompt and where its token stands; a stand-in id is there, and the pipeline stays as it is."""
    tokenizer = copy.deepcopy(pipe.tokenizer)
    tokenizer.add_tokens(token(name))
    prompt = PROMPT.format(token=token(name))
    ids = tokenizer(prompt, padding="max_length", max_length=tokenizer.model_max_length, return_tensors="pt").input_ids
    places = ids == tokenizer.convert_tokens_to_ids(token(name))
    return ids.masked_fill(places, 0).to(pipe.device), places.to(pipe.device)


@contextlib.contextmanager
def replaced(pipe: StableDiffusionPipeline, places: Bool[Tensor, "1 tokens"], vector: Float[Tensor, "width"]) -> Iterator[None]:
    """The text encoder with `vector` in place of some of its input embeddings; gradients reach the vector alone."""

    def hook(module: nn.Module, inputs: tuple, output: Tensor) -> Tensor:
        return torch.where(places[..., None], vector, output)

    handle = pipe.text_encoder.get_input_embeddings().register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()


def loss_curve(path: Path) -> list[float]:
    """The loss of every step, from the token's own file."""
    with safetensors.safe_open(path, "pt") as file:
        return json.loads(file.metadata()["losses"])
