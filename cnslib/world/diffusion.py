"""mini-SD: a Stable Diffusion pipeline of a few million parameters, trained on captioned web scenes."""

import copy
import json
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import joblib
import torch
import torch.nn.functional as F
from diffusers import AutoencoderKL, DDIMScheduler, StableDiffusionPipeline, UNet2DConditionModel
from diffusers.models.attention_processor import AttnProcessor, AttnProcessor2_0
from jaxtyping import Float, Int
from torch import Tensor, nn
from tqdm.auto import tqdm
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer

from cnslib.core import seeds
from cnslib.core.settings.sections import Diffusion
from cnslib.world import autoencoder, scenes
from cnslib.world.training import autocast, cached, fit, halved, scheduled

CONTEXT = 16  # the longest caption has 14 tokens, begin and end included; one IN* token replaces at most three
PART = 256  # scenes that are rendered together


class Denoiser(nn.Module):
    """Text encoder and UNet, trained together."""

    def __init__(self, text_encoder: CLIPTextModel, unet: UNet2DConditionModel):
        super().__init__()
        self.text_encoder, self.unet = text_encoder, unet

    def forward(self, noisy: Tensor, timestep: Tensor, ids: Tensor) -> Float[Tensor, "batch channels 16 16"]:
        """The v-prediction for noisy latents under tokenised captions."""
        return self.unet(noisy, timestep, self.text_encoder(ids).last_hidden_state).sample


def captions(classes: Sequence[str] = scenes.CLASSES) -> list[str]:
    """Every caption of the mini world: each class under the fourteen shifts, and unshifted."""
    return [scenes.caption(name, shift) for name in classes for shift in scenes.NAMES]


def tokenizer(classes: Sequence[str] = scenes.CLASSES) -> CLIPTokenizer:
    """A CLIP tokenizer whose byte-pair vocabulary of about 400 tokens is learned from the captions.

    The learner settles its ties in another order each time, so tokens and merges are put in a fixed one afterwards.
    """
    learned = CLIPTokenizer(model_max_length=CONTEXT).train_new_from_iterator(captions(classes), vocab_size=420, show_progress=False)
    model = json.loads(learned.backend_tokenizer.to_str())["model"]
    specials = [learned.bos_token, learned.eos_token]
    tokens = specials + sorted(set(model["vocab"]) - set(specials))
    merges = sorted((tuple(pair) for pair in model["merges"]), key=lambda pair: (len("".join(pair)), pair))
    return CLIPTokenizer({token: i for i, token in enumerate(tokens)}, merges, model_max_length=CONTEXT)


def text_encoder(tokens: CLIPTokenizer, *, width: int, layers: int) -> CLIPTextModel:
    """An untrained CLIP text encoder for the tokenizer."""
    size = {"hidden_size": width, "intermediate_size": 2 * width, "num_hidden_layers": layers, "num_attention_heads": 4}
    special = {name: getattr(tokens, name) for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    return CLIPTextModel(CLIPTextConfig(vocab_size=len(tokens), max_position_embeddings=CONTEXT, **size, **special))


def unet(channels: Sequence[int], *, width: int, latent_channels: int) -> UNet2DConditionModel:
    """An untrained UNet on 16x16 latents; attention at the two coarser resolutions, where it costs a third as much."""
    down = ("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D")
    blocks: dict = {"down_block_types": down, "up_block_types": ("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D")}
    blocks |= {"block_out_channels": tuple(channels), "layers_per_block": 1, "norm_num_groups": 16}
    ends = {"sample_size": 16, "in_channels": latent_channels, "out_channels": latent_channels}
    return UNet2DConditionModel(**ends, **blocks, cross_attention_dim=width, attention_head_dim=4)


def scheduler() -> DDIMScheduler:
    """The noise schedule of Stable Diffusion 2 (768-v): scaled-linear betas, v-prediction, DDIM; but it ends at zero signal.

    Sampling begins there, with "trailing" steps (Lin et al. 2024, Algorithm 1 and section 3.3).
    """
    betas = {"beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear", "rescale_betas_zero_snr": True}
    ends = {"timestep_spacing": "trailing", "clip_sample": False, "set_alpha_to_one": False, "steps_offset": 1}
    return DDIMScheduler(**betas, **ends, prediction_type="v_prediction")


def web_scenes(garments: scenes.Garments, start: int, settings: Diffusion) -> scenes.Batch:
    """The scenes of the training from one number on, so many as are rendered together; a third of them has no shift."""
    look: dict = {"style": "web", "unshifted": 0.35, "severities": settings.severities}
    return scenes.sample(garments, ("web", settings.seed, start), min(PART, settings.images - start), **look)


def web_latents(vae: AutoencoderKL, garments: scenes.Garments, settings: Diffusion, device: str) -> dict[str, Tensor]:
    """Latents [images, channels, 16, 16] (half precision, scaled) and caption indices of rendered web scenes."""

    def part(start: int) -> tuple[Tensor, Tensor]:
        batch = web_scenes(garments, start, settings)
        with autocast(device):
            latents = autoencoder.encode(vae, batch.image.to(device)).cpu()
        return (latents * vae.config.scaling_factor).half(), batch.caption

    starts, vae = range(0, settings.images, PART), vae.to(device)
    with ThreadPoolExecutor(joblib.cpu_count(), initializer=torch.set_num_threads, initargs=(1,)) as threads:
        found = list(tqdm(threads.map(part, starts), total=len(starts), desc="web latents", disable=None))
    return {name: torch.cat(parts) for name, parts in zip(("latents", "caption"), zip(*found, strict=True), strict=True)}


def timesteps(count: int, g: torch.Generator, *, noise: DDIMScheduler) -> Int[Tensor, "count"]:
    """Timesteps in [0, 1000): four fifths from a log-normal density of the noise-to-signal ratio (Karras et al. 2022), the others even.

    Its median of 0.8 and its width of 1.2 lie where class and shift take shape; the even part reaches the end, where there is no signal.
    """
    ratio = ((1 - noise.alphas_cumprod) / noise.alphas_cumprod).log() / 2
    drawn = torch.searchsorted(ratio, math.log(0.8) + 1.2 * torch.randn(count, generator=g)).clamp(max=999)
    even = torch.randint(1000, (count,), generator=g)
    return torch.where(torch.rand(count, generator=g) < 0.2, even, drawn)


def token_table(tokens: CLIPTokenizer, classes: Sequence[str] = scenes.CLASSES) -> Int[Tensor, "captions+1 context"]:
    """Token ids of every caption, in the order of `captions`, and of the empty caption last."""
    return tokens([*captions(classes), ""], padding="max_length", max_length=CONTEXT, return_tensors="pt").input_ids


def recorded(model: Denoiser, latents: Tensor, ids: Tensor) -> Callable[..., Any]:
    """The model's passes forward and backward as CUDA graphs: it is so small that a card waits for the launch of its kernels.

    They take as many latents as `latents` holds. The model itself stays as it is, and shares its weights.
    """
    count, device = len(latents), ids.device
    like = latents.to(device), torch.zeros(count, dtype=torch.int64, device=device), ids[:1].repeat(count, 1)
    fastest = torch.backends.cudnn.flags(enabled=True, benchmark=True)  # of cuDNN's algorithms, found before the recording
    with fastest, autocast(device, cached=False):
        return torch.cuda.make_graphed_callables(copy.copy(model), like)


def train(vae: AutoencoderKL, garments: scenes.Garments, settings: Diffusion, *, checkpoint: Path, device: str) -> StableDiffusionPipeline:
    """Trains text encoder and UNet by v-prediction on web latents; caption dropout enables classifier-free guidance.

    The latents lie in a file beside `checkpoint`. On a CPU `ranks` threads share each batch; a card takes it whole.
    """
    ranks, count = settings.ranks if device == "cpu" else 1, settings.batch_size
    torch.manual_seed(settings.seed)
    tokens, levels = tokenizer(garments.classes), scheduler()
    data = cached(checkpoint.with_suffix(".safetensors"), lambda: web_latents(vae, garments, settings, device))
    ids, size = token_table(tokens, garments.classes).to(device), data["latents"].shape[1:]
    denoiser = unet(settings.channels, width=settings.width, latent_channels=vae.config.latent_channels)
    model = Denoiser(text_encoder(tokens, width=settings.width, layers=settings.layers), denoiser).to(device)
    if halved(device):
        model.unet.set_attn_processor(AttnProcessor())  # in bfloat16 on a CPU the fused attention's backward is 4x slower
    predict = model if device == "cpu" else recorded(model, torch.zeros(count, *size), ids)

    def loss(step: int, rank: int = 0) -> Tensor:
        g, mine = seeds.generator("diffusion", settings.seed, step), slice(rank, None, ranks)
        rows = torch.randint(len(data["caption"]), (count,), generator=g)
        eps, t = torch.randn(count, *size, generator=g), timesteps(count, g, noise=levels)
        dropped = torch.rand(count, generator=g) < settings.caption_dropout
        caption = torch.where(dropped, len(ids) - 1, data["caption"][rows])[mine].to(device)
        latents, eps, t = data["latents"][rows[mine]].float(), eps[mine], t[mine]
        noisy, target = levels.add_noise(latents, eps, t), levels.get_velocity(latents, eps, t)
        with autocast(device, cached=ranks == 1):
            output = predict(noisy.to(device), t.to(device), ids[caption])
        return F.mse_loss(output.float(), target.to(device))

    every = 100 if device == "cpu" else 1000  # steps; a card takes a hundred in a second or two
    trained = fit(model, loss, schedule=scheduled(vars(settings)), checkpoint=checkpoint, ranks=ranks, every=every).cpu()
    trained.unet.set_attn_processor(AttnProcessor2_0())
    return assemble(vae.cpu(), tokens, trained, levels)


def assemble(vae: AutoencoderKL, tokens: CLIPTokenizer, model: Denoiser, noise: DDIMScheduler) -> StableDiffusionPipeline:
    """The standard pipeline of the trained parts, without a safety checker."""
    parts = {"vae": vae, "text_encoder": model.text_encoder, "tokenizer": tokens, "unet": model.unet, "scheduler": noise}
    return StableDiffusionPipeline(**parts, safety_checker=None, feature_extractor=None, requires_safety_checker=False)


def save(pipe: StableDiffusionPipeline, folder: Path) -> None:
    """Writes the pipeline's directory with UNet and VAE in half precision, which diffusers reads back as single precision.

    The text encoder stays in single precision: transformers keeps the precision of the file, and the parts must agree.
    """
    pipe.unet.half()
    pipe.vae.half()
    pipe.save_pretrained(folder)
