"""Text-to-image model at the edge of the library: loading a local pipeline, embedding prompts, latents in and images out."""

from dataclasses import dataclass
from pathlib import Path

import torch
from diffusers import DDIMScheduler, StableDiffusionPipeline
from diffusers.utils import logging as diffusers_logging
from jaxtyping import Float, UInt8
from torch import Tensor
from tqdm.auto import trange
from transformers.utils import logging as transformers_logging

from cnslib.core import units
from cnslib.core.names import demand, identifier, token
from cnslib.core.settings.method import STRIDES
from cnslib.core.sources import document, errors_naming, require_recorded
from cnslib.models import weights

CHUNK = 10  # prompts per pipeline call
PREDICTIONS = ("v_prediction", "epsilon")
NETWORKS = ("unet", "transformer", "vae", "text_encoder", "text_encoder_2", "text_encoder_3")
LIBRARIES = ("diffusers", "transformers", "stable_diffusion")  # of the parts of a pipeline


@dataclass(frozen=True)
class Origin:
    """What sliders and images are made from: digest of the base model's directory, and of each class's token file."""

    base: str
    tokens: dict[str, str]


def origin(directory: Path, tokens: Path, classes: list[str]) -> Origin:
    """Digests of a pipeline directory and of the token files of the classes. FileNotFoundError names a missing token file."""
    made = {name: units.verified(tokens / f"{identifier(name)}.safetensors") for name in classes}
    return Origin(units.directory_digest(directory), made)


def load_pipeline(directory: Path, device: str) -> StableDiffusionPipeline:
    """The text-to-image model of a local diffusers directory: fp32, frozen, no safety checker, no progress bar.

    ValueError for a scheduler other than DDIM with evenly spaced steps, "leading" or "trailing", whose noise levels the slider training
    relies on.
    """
    require_recorded(directory, key="pipeline")
    require_whole(directory)
    diffusers_logging.disable_progress_bar()
    transformers_logging.disable_progress_bar()
    pipe = StableDiffusionPipeline.from_pretrained(
        directory, dtype=torch.float32, safety_checker=None, use_safetensors=True, local_files_only=True
    )
    name, spacing = type(pipe.scheduler).__name__, pipe.scheduler.config.timestep_spacing
    even = isinstance(pipe.scheduler, DDIMScheduler) and spacing in STRIDES
    demand(even, f"pipeline: scheduler of {directory}", [name, spacing], f"DDIMScheduler, timestep_spacing {' or '.join(STRIDES)}")
    for part in (pipe.unet, pipe.vae, pipe.text_encoder):
        part.requires_grad_(False).eval()
    pipe.set_progress_bar_config(disable=True)
    return pipe.to(device)


def require_whole(directory: Path) -> None:
    """FileNotFoundError or ValueError name what a diffusers pipeline lacks, what is truncated, and Python of its makers."""
    index, wanted = directory / "model_index.json", "accepted: a local diffusers directory, as save_pretrained writes it"
    if not index.exists():
        raise FileNotFoundError(f"pipeline: {index} does not exist; {wanted}")
    parts = {part: value for part, value in document(index, key="pipeline").items() if isinstance(value, list) and value[0]}
    for part, value in parts.items():
        if value[0] not in LIBRARIES:
            raise ValueError(f"pipeline: {index} has {part}: {value}, Python of its makers; accepted: classes of {', '.join(LIBRARIES)}")
        if part not in ("safety_checker", "feature_extractor") and not (directory / part).is_dir():
            raise FileNotFoundError(f"pipeline: {directory} has no folder {part}; {wanted}")
    weights.refuse_code(directory, key="pipeline")
    for part in [part for part in NETWORKS if part in parts]:
        if not (files := list((directory / part).glob("*.safetensors"))):
            raise FileNotFoundError(f"pipeline: {directory / part} has no .safetensors file; pickled weights are not accepted")
        with errors_naming("pipeline"):
            for path in files:
                weights.header(path)


def load_tokens(pipe: StableDiffusionPipeline, tokens: Path, classes: list[str]) -> None:
    """Adds the IN* tokens of the classes to the pipeline's vocabulary, from their textual-inversion files."""
    for name in classes:
        file = tokens / f"{identifier(name)}.safetensors"
        if not file.exists():
            raise FileNotFoundError(f"{file} does not exist, the token of {name!r}; the inversion step makes those of base.classes")
        pipe.load_textual_inversion(file, use_safetensors=True, local_files_only=True)
        present = token(name) in pipe.tokenizer.get_vocab()  # an unknown one would be spelled out silently
        demand(present, f"{file}, tokens", None, f"{token(name)}, which the inversion step defines")


@torch.no_grad()
def embed(pipe: StableDiffusionPipeline, prompts: list[str]) -> Float[Tensor, "prompts tokens width"]:
    """Text embeddings that condition the UNet; ValueError for a prompt that the text encoder's context would cut off silently."""
    longest = pipe.tokenizer.model_max_length
    for prompt in prompts:
        if len(pipe.tokenizer(prompt).input_ids) > longest:
            raise ValueError(f"prompt {prompt!r} is longer than the {longest} tokens of the text encoder")
    return pipe.encode_prompt(prompts, pipe.device, 1, False)[0]


def latent_shape(pipe: StableDiffusionPipeline) -> tuple[int, int, int]:
    """Channels, height and width of a latent."""
    side = pipe.unet.config.sample_size
    return pipe.unet.config.in_channels, side, side


def initial_latent(pipe: StableDiffusionPipeline, seed: int) -> Float[Tensor, "1 channels height width"]:
    """The noise that image `seed` starts from, drawn as diffusers draws it: the same for every scale, shift and class."""
    noise = torch.randn((1, *latent_shape(pipe)), generator=torch.Generator().manual_seed(seed))
    return noise.to(pipe.device) * pipe.scheduler.init_noise_sigma


@torch.no_grad()
def decode(pipe: StableDiffusionPipeline, latents: Float[Tensor, "batch channels h w"]) -> UInt8[Tensor, "batch height width 3"]:
    """Images in [0, 255] of final latents, rounded as diffusers rounds them."""
    images = pipe.vae.decode(latents / pipe.vae.config.scaling_factor).sample
    return as_bytes(pipe.image_processor.postprocess(images, output_type="pt"))


def as_bytes(images: Float[Tensor, "batch 3 height width"]) -> UInt8[Tensor, "batch height width 3"]:
    """Images in [0, 255] of a pipeline's in [0, 1], rounded as diffusers rounds them."""
    return (images.float() * 255).round().to(torch.uint8).permute(0, 2, 3, 1).contiguous().cpu()


@torch.no_grad()
def sample(
    pipe: StableDiffusionPipeline, prompts: list[str], numbers: list[int], *, steps: int, guidance: float, chunk: int = CHUNK
) -> UInt8[Tensor, "prompts height width 3"]:
    """Images of prompts by the plain pipeline, image i from the initial latent of seed `numbers[i]`."""
    parts = []
    for start in trange(0, len(prompts), chunk, desc="images", disable=None):
        rows = slice(start, start + chunk)
        latents = torch.cat([initial_latent(pipe, number) for number in numbers[rows]])
        output = pipe(prompts[rows], latents=latents, num_inference_steps=steps, guidance_scale=guidance, output_type="pt").images
        parts.append(as_bytes(output))
    return torch.cat(parts)
