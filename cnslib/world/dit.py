"""mini-DiT: a class-conditional diffusion transformer (Peebles and Xie 2023) on the latents of unshifted catalog scenes.

It plays the part of the paper's DiT, the generative model that classifies (section 5.3): it learns the labels and the pictures from which
the classifiers of the zoo learn, and never sees the text-to-image model that draws the benchmark, whose VAE it shares.
"""

from pathlib import Path

import torch
import torch.nn.functional as F
from diffusers import AutoencoderKL, DDIMScheduler, DiTTransformer2DModel
from torch import Tensor
from tqdm.auto import trange

from cnslib.core import seeds
from cnslib.core.settings.sections import Dit
from cnslib.world import autoencoder, diffusion, pool, scenes
from cnslib.world.training import autocast, cached, fit, flip, scheduled


def scheduler() -> DDIMScheduler:
    """DiT's noise schedule, of which it predicts the noise: a thousand linear betas."""
    return DDIMScheduler(beta_start=1e-4, beta_end=0.02, beta_schedule="linear", prediction_type="epsilon", clip_sample=False)


def network(classes: int, settings: Dit, *, latent_channels: int, side: int) -> DiTTransformer2DModel:
    """An untrained DiT on patches of 2 x 2 latent pixels, with the frequencies of its authors' timestep embedding."""
    size = {"num_attention_heads": settings.heads, "attention_head_dim": settings.width // settings.heads, "num_layers": settings.layers}
    ends = {"in_channels": latent_channels, "out_channels": latent_channels, "sample_size": side, "num_embeds_ada_norm": classes}
    model = DiTTransformer2DModel(**size, **ends, patch_size=2, norm_eps=1e-6)
    for block in model.transformer_blocks:
        block.norm1.emb.time_proj.downscale_freq_shift = 0
    return model


@torch.no_grad()
def catalog_latents(vae: AutoencoderKL, garments: scenes.Garments, settings: Dit) -> dict[str, Tensor]:
    """Scaled latents and class numbers of catalog scenes without a shift, half of them mirrored, in parts of one generator each."""
    latents, labels = [], []
    for number in trange(-(-settings.scenes // pool.PART), desc="catalog scenes", disable=None):
        g = seeds.generator("dit", settings.seed, number)
        batch = scenes.together(garments, g, pool.PART, style="catalog", unshifted=1.0, severities=(0.0, 0.0))
        image = (flip(batch.image, g) * 255).round() / 255
        latents.append(torch.cat([autoencoder.encode(vae, part) for part in image.split(256)]) * vae.config.scaling_factor)
        labels.append(batch.label)
    return {"latents": torch.cat(latents)[: settings.scenes], "label": torch.cat(labels)[: settings.scenes]}


def train(vae: AutoencoderKL, garments: scenes.Garments, settings: Dit, *, checkpoint: Path, device: str) -> DiTTransformer2DModel:
    """Trains a DiT by the squared error of the noise; its embedding drops one label in ten, as DiT's does. Latents lie by `checkpoint`."""
    data = cached(checkpoint.with_suffix(".safetensors"), lambda: catalog_latents(vae, garments, settings))
    latents, labels, levels = data["latents"].to(device), data["label"].to(device), scheduler()
    levels.alphas_cumprod = levels.alphas_cumprod.to(device)
    torch.manual_seed(settings.seed)
    model = network(len(garments.classes), settings, latent_channels=latents.shape[1], side=latents.shape[-1]).to(device)

    def loss(step: int) -> Tensor:
        g = seeds.generator("dit", settings.seed, "step", step, device=device)
        rows = torch.randint(len(latents), (settings.batch_size,), generator=g, device=device)
        noise = torch.randn(latents[rows].shape, generator=g, device=device)
        t = diffusion.timesteps(settings.batch_size, g, noise=levels)
        with autocast(device):
            output = model(levels.add_noise(latents[rows], noise, t), t, class_labels=labels[rows]).sample
        return F.mse_loss(output.float(), noise)

    return fit(model, loss, schedule=scheduled(vars(settings)), checkpoint=checkpoint).cpu()


def save(model: DiTTransformer2DModel, vae: AutoencoderKL, folder: Path) -> None:
    """Writes a DiT directory of diffusers in half precision: transformer, VAE, scheduler."""
    for part, name in ((model.half(), "transformer"), (vae.half(), "vae")):
        part.save_pretrained(folder / name)
    scheduler().save_pretrained(folder / "scheduler")
