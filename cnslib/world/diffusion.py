"""mini-SD: a Stable Diffusion pipeline of a few million parameters, trained on captioned web scenes (design section 2)."""

import json
from pathlib import Path

import torch
import torch.nn.functional as F
from diffusers import AutoencoderKL, DDIMScheduler, StableDiffusionPipeline, UNet2DConditionModel
from diffusers.models.attention_processor import AttnProcessor, AttnProcessor2_0
from jaxtyping import Float, Int
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from tqdm.auto import trange
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer

from cnslib.core import seeds, units
from cnslib.core.names import SHIFTS, UNSHIFTED
from cnslib.world import autoencoder, scenes
from cnslib.world.training import Schedule, fit

CONTEXT = 16  # the longest caption has 14 tokens, begin and end included; one IN* token replaces at most three


class Denoiser(nn.Module):
    """Text encoder and UNet, trained together."""

    def __init__(self, text_encoder: CLIPTextModel, unet: UNet2DConditionModel):
        super().__init__()
        self.text_encoder, self.unet = text_encoder, unet

    def forward(self, noisy: Tensor, timestep: Tensor, ids: Tensor) -> Float[Tensor, "batch channels 16 16"]:
        """The v-prediction for noisy latents under tokenised captions."""
        return self.unet(noisy, timestep, self.text_encoder(ids).last_hidden_state).sample


def captions() -> list[str]:
    """Every caption of the mini world: ten classes, unshifted and under the fourteen shifts."""
    return [scenes.caption(name, shift) for name in scenes.CLASSES for shift in (*SHIFTS, UNSHIFTED)]


def tokenizer() -> CLIPTokenizer:
    """A CLIP tokenizer whose byte-pair vocabulary of about 400 tokens is learned from the captions.

    The learner settles its ties in another order each time, so tokens and merges are put in a fixed one afterwards.
    """
    learned = CLIPTokenizer(model_max_length=CONTEXT).train_new_from_iterator(captions(), vocab_size=420, show_progress=False)
    model = json.loads(learned.backend_tokenizer.to_str())["model"]
    specials = [learned.bos_token, learned.eos_token]
    tokens = specials + sorted(set(model["vocab"]) - set(specials))
    merges = sorted((tuple(pair) for pair in model["merges"]), key=lambda pair: (len("".join(pair)), pair))
    return CLIPTokenizer({token: i for i, token in enumerate(tokens)}, merges, model_max_length=CONTEXT)


def text_encoder(tokens: CLIPTokenizer, *, width: int, layers: int) -> CLIPTextModel:
    """An untrained CLIP text encoder for the tokenizer."""
    return CLIPTextModel(
        CLIPTextConfig(
            vocab_size=len(tokens),
            hidden_size=width,
            intermediate_size=2 * width,
            num_hidden_layers=layers,
            num_attention_heads=4,
            max_position_embeddings=CONTEXT,
            bos_token_id=tokens.bos_token_id,
            eos_token_id=tokens.eos_token_id,
            pad_token_id=tokens.pad_token_id,
        )
    )


def unet(channels: list[int], *, width: int, latent_channels: int) -> UNet2DConditionModel:
    """An untrained UNet on 16x16 latents; attention at the two coarser resolutions, where it costs a third as much."""
    return UNet2DConditionModel(
        sample_size=16,
        in_channels=latent_channels,
        out_channels=latent_channels,
        block_out_channels=tuple(channels),
        layers_per_block=1,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=width,
        attention_head_dim=4,
        norm_num_groups=16,
    )


def scheduler() -> DDIMScheduler:
    """The noise schedule of Stable Diffusion 2 (768-v): scaled-linear betas, v-prediction, DDIM."""
    return DDIMScheduler(
        beta_start=0.00085,
        beta_end=0.012,
        beta_schedule="scaled_linear",
        clip_sample=False,
        set_alpha_to_one=False,
        steps_offset=1,
        prediction_type="v_prediction",
        timestep_spacing="leading",
    )


def web_latents(vae: AutoencoderKL, garments: scenes.Garments, *, images: int, seed: int, cache: Path) -> dict[str, Tensor]:
    """Latents [images, channels, 16, 16] (half precision, scaled) and caption indices of rendered web scenes, cached in one file."""
    if cache.exists():
        return load_file(cache)
    parts: dict[str, list[Tensor]] = {"latents": [], "caption": []}
    for start in trange(0, images, 256, desc="web latents", disable=None):
        batch = scenes.sample(garments, ("web", seed, start), min(256, images - start), style="web", unshifted=0.35, lowest=0.4)
        with torch.autocast("cpu", torch.bfloat16):  # three times as fast as single precision
            latents = autoencoder.encode(vae, batch.image)
        parts["latents"].append((latents * vae.config.scaling_factor).half())
        parts["caption"].append(batch.label * (len(SHIFTS) + 1) + batch.shift)
    data = {key: torch.cat(values) for key, values in parts.items()}
    with units.atomic(cache) as partial:
        save_file(data, partial)
    return data


def noise_levels(count: int, g: torch.Generator) -> Int[Tensor, "count"]:
    """Timesteps in [0, 1000), drawn with a density that grows in proportion to the timestep.

    The caption decides what is drawn while there is mostly noise; near the image it hardly matters what it says.
    """
    return (1000 * torch.rand(count, generator=g).sqrt()).long().clamp(max=999)


def token_table(tokens: CLIPTokenizer) -> Int[Tensor, "captions+1 context"]:
    """Token ids of every caption, in the order of `captions`, and of the empty caption last."""
    return tokens([*captions(), ""], padding="max_length", max_length=CONTEXT, return_tensors="pt").input_ids


def train(
    vae: AutoencoderKL,
    garments: scenes.Garments,
    *,
    channels: list[int],
    width: int,
    layers: int,
    images: int,
    caption_dropout: float,
    schedule: Schedule,
    folder: Path,
    device: str = "cpu",
) -> StableDiffusionPipeline:
    """Trains text encoder and UNet by v-prediction on web latents; caption dropout enables classifier-free guidance."""
    torch.manual_seed(schedule.seed)
    tokens, noise = tokenizer(), scheduler()
    data = web_latents(vae, garments, images=images, seed=schedule.seed, cache=folder / "web_latents.safetensors")
    ids = token_table(tokens).to(device)
    denoiser = unet(channels, width=width, latent_channels=vae.config.latent_channels)
    model = Denoiser(text_encoder(tokens, width=width, layers=layers), denoiser).to(device)
    model.unet.set_attn_processor(AttnProcessor())  # in bfloat16 on a CPU the fused attention's backward is 4x slower

    def loss(step: int) -> Tensor:
        g = seeds.generator("diffusion", schedule.seed, step)
        rows = torch.randint(len(data["caption"]), (schedule.batch_size,), generator=g)
        latents = data["latents"][rows].float()
        eps, t = torch.randn(latents.shape, generator=g), noise_levels(len(rows), g)
        dropped = torch.rand(len(rows), generator=g) < caption_dropout
        caption = torch.where(dropped, len(ids) - 1, data["caption"][rows]).to(device)
        noisy, target = noise.add_noise(latents, eps, t), noise.get_velocity(latents, eps, t)
        with torch.autocast(device, torch.bfloat16):
            output = model(noisy.to(device), t.to(device), ids[caption])
        return F.mse_loss(output.float(), target.to(device))

    trained = fit(model, loss, schedule=schedule, checkpoint=folder / "diffusion.pt").cpu()
    trained.unet.set_attn_processor(AttnProcessor2_0())
    return assemble(vae, tokens, trained, noise)


def assemble(vae: AutoencoderKL, tokens: CLIPTokenizer, model: Denoiser, noise: DDIMScheduler) -> StableDiffusionPipeline:
    """The standard pipeline of the trained parts, without a safety checker."""
    return StableDiffusionPipeline(
        vae=vae,
        text_encoder=model.text_encoder,
        tokenizer=tokens,
        unet=model.unet,
        scheduler=noise,
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )


def save(pipe: StableDiffusionPipeline, folder: Path) -> None:
    """Writes the pipeline's directory with UNet and VAE in half precision, which diffusers reads back as single precision.

    The text encoder stays in single precision: transformers keeps the precision of the file, and the parts must agree.
    """
    pipe.unet.half()
    pipe.vae.half()
    pipe.save_pretrained(folder)
