"""mini-SD: a Stable Diffusion pipeline of a few million parameters, trained on captioned web scenes."""

import copy
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from diffusers import AutoencoderKL, DDIMScheduler, StableDiffusionPipeline, UNet2DConditionModel
from diffusers.models.attention_processor import AttnProcessor, AttnProcessor2_0
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer

from cnslib.core.settings.sections import Diffusion, Leg
from cnslib.world import autoencoder, pool, scenes
from cnslib.world.training import autocast, cached, halved

CONTEXT = 16  # the longest caption has 14 tokens, begin and end included; one IN* token replaces at most three


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


def pool_latents(vae: AutoencoderKL, garments: scenes.Garments, settings: Diffusion, device: str) -> dict[str, Tensor]:
    """Latents [scenes, channels, 16, 16] (half precision, scaled) and caption indices of the pool's scenes."""
    vae, found = vae.to(device), []
    for part in pool.parts(garments.to(device), pool.largest(settings.legs), severities=settings.severities, seed=settings.seed):
        image = (part.image * 255).round() / 255  # as the VAE saw them
        with autocast(device):
            latents = [autoencoder.encode(vae, own).float() * vae.config.scaling_factor for own in image.split(256)]
        found.append((torch.cat(latents).half().cpu(), part.caption))
    return {name: torch.cat(parts) for name, parts in zip(("latents", "caption"), zip(*found, strict=True), strict=True)}


def timesteps(count: int, g: torch.Generator, *, noise: DDIMScheduler) -> Int[Tensor, "count"]:
    """Timesteps in [0, 1000): four fifths from a log-normal density of the noise-to-signal ratio (Karras et al. 2022), the others even.

    Its median of 0.8 and its width of 1.2 lie where class and shift take shape; the even part reaches the end, where there is no signal.
    """
    ratio, at = ((1 - noise.alphas_cumprod) / noise.alphas_cumprod).log().to(g.device) / 2, {"generator": g, "device": g.device}
    drawn = torch.searchsorted(ratio, math.log(0.8) + 1.2 * torch.randn(count, **at)).clamp(max=999)  # type: ignore[call-overload]
    even = torch.randint(1000, (count,), **at)  # type: ignore[call-overload]
    return torch.where(torch.rand(count, **at) < 0.2, even, drawn)  # type: ignore[call-overload]


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
    """Trains text encoder and UNet by v-prediction on the pool's latents; caption dropout enables classifier-free guidance.

    The latents lie in a file beside `checkpoint`, and on the device.
    """
    tokens, levels = tokenizer(garments.classes), scheduler()
    data = cached(checkpoint.with_suffix(".safetensors"), lambda: pool_latents(vae, garments, settings, device))
    torch.manual_seed(settings.seed)
    denoiser = unet(settings.channels, width=settings.width, latent_channels=vae.config.latent_channels)
    model = Denoiser(text_encoder(tokens, width=settings.width, layers=settings.layers), denoiser).to(device)
    trained = learn(model, data, token_table(tokens, garments.classes), settings, checkpoint=checkpoint, device=device).cpu()
    trained.unet.set_attn_processor(AttnProcessor2_0())
    return assemble(vae.cpu(), tokens, trained, levels)


def learn(model: Denoiser, data: dict[str, Tensor], ids: Tensor, settings: Diffusion, *, checkpoint: Path, device: str) -> Denoiser:
    """All legs of mini-SD's training on latents and their captions' numbers, of which `ids` are the tokens, those of no caption last."""
    latents, caption, ids, levels = data["latents"].to(device), data["caption"].to(device), ids.to(device), scheduler()
    levels.alphas_cumprod = levels.alphas_cumprod.to(device)
    if device == "cpu" and halved(device):
        model.unet.set_attn_processor(AttnProcessor())  # in bfloat16 on a CPU the fused attention's backward is 4x slower
    recordings: dict[int, Callable] = {}

    def drawn(leg: Leg, g: torch.Generator) -> tuple[Tensor, ...]:
        size, at = leg.batch_size // leg.ranks, {"generator": g, "device": device}
        rows = torch.randint(leg.scenes, (size,), **at)  # type: ignore[call-overload]
        eps, t = torch.randn(size, *latents.shape[1:], **at), timesteps(size, g, noise=levels)  # type: ignore[call-overload]
        dropped = torch.rand(size, **at) < settings.caption_dropout  # type: ignore[call-overload]
        return latents[rows].float(), eps, t, torch.where(dropped, len(ids) - 1, caption[rows])

    def loss(leg: Leg, shares: list[torch.Generator]) -> Tensor:
        x, eps, t, shown = (torch.cat(part) for part in zip(*(drawn(leg, g) for g in shares), strict=True))
        noisy, target = levels.add_noise(x, eps, t), levels.get_velocity(x, eps, t)
        if device != "cpu" and len(x) not in recordings:
            recordings[len(x)] = recorded(model, x, ids)
        with autocast(device, cached=False):
            output = recordings.get(len(x), model)(noisy, t, ids[shown])
        return F.mse_loss(output.float(), target)

    return pool.train(model, loss, settings.legs, seed=settings.seed, checkpoint=checkpoint, device=device)


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
