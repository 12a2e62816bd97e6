"""Seconds per pass of a UNet on this device, in batches as the steps use them."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from diffusers import AutoencoderKL, UNet2DConditionModel
from jaxtyping import Float
from torch import Tensor

from cnslib.method import sliders
from cnslib.models import adapters

# Shapes of Stable Diffusion 2 (768-v), for the time of a pass; weights do not change it.
UNET = {
    "sample_size": 96,
    "cross_attention_dim": 1024,
    "attention_head_dim": (5, 10, 20, 20),
    "use_linear_projection": True,
}
VAE = {
    "block_out_channels": (128, 256, 512, 512),
    "layers_per_block": 2,
    "down_block_types": ("DownEncoderBlock2D",) * 4,
    "up_block_types": ("UpDecoderBlock2D",) * 4,
    "latent_channels": 4,
}
TOKENS = 77  # of a prompt


@dataclass(frozen=True)
class Rate:
    """Seconds per sample of a pass without and with gradient, at the size of the pictures and of the sliders' training."""

    passing: float
    slider_passing: float
    slider_training: float
    inversion_training: float
    decoding: float
    memory: int  # bytes of the device at its fullest; 0 where it keeps no account


def guided(guidance: float) -> int:
    """Passes per step of one image: two with classifier-free guidance."""
    return 2 if guidance > 1 else 1


def models(pipeline: Path, device: str) -> tuple[UNet2DConditionModel, AutoencoderKL, str]:
    """UNet and autoencoder to measure on, and where they come from."""
    if (pipeline / "unet").is_dir():
        options: dict[str, Any] = {"use_safetensors": True, "local_files_only": True}
        parts = [
            kind.from_pretrained(pipeline / name, **options) for kind, name in ((UNet2DConditionModel, "unet"), (AutoencoderKL, "vae"))
        ]
        return parts[0].to(device), parts[1].to(device), "its own models"
    with torch.device(device):
        parts = [UNet2DConditionModel(**UNET), AutoencoderKL(**VAE)]  # type: ignore[arg-type]
    return parts[0], parts[1], "random models of Stable Diffusion 2's shape, since base.pipeline is not here"


def side_of(unet: UNet2DConditionModel, vae: AutoencoderKL) -> int:
    """Height and width of a picture in pixels."""
    return int(unet.config.sample_size) * scale_of(vae)


def scale_of(vae: AutoencoderKL) -> int:
    """Pixels per latent along a side."""
    return 2 ** (len(vae.config.block_out_channels) - 1)


def measure(unet: UNet2DConditionModel, vae: AutoencoderKL, sections: dict[str, Any], *, device: str, seconds: float) -> Rate:
    """Times a few real passes of each kind, in batches as the steps use them; `seconds` are shared by the kinds.

    Training is measured with an adapter, in 16 bits where the recipe is the released one.
    """
    base, settings = sections["base"], sections["sliders"]
    full = unet.config.sample_size
    small = min(full, sliders.RESOLUTION // scale_of(vae)) if base.recipe == "released" else full
    unet.requires_grad_(False).eval()
    share = seconds / 5
    batch = guided(sections["generation"].guidance) * max(1, len(base.scales) - 1)
    passing = timed(lambda: forward(unet, batch, full), batch, device, share)
    latents = torch.randn(1, vae.config.latent_channels, full, full, device=device)
    vae.requires_grad_(False).eval()
    decoding = timed(lambda: vae.decode(latents).sample, 1, device, share)
    text = torch.randn(1, TOKENS, unet.config.cross_attention_dim, device=device, requires_grad=True)
    given = min(sections["inversion"].batch_size, batch)
    inverting = timed(lambda: train(unet, given, full, text), given, device, share) if not base.in_star else 0.0
    adapters.attach(unet, rank=settings.rank, alpha=settings.alpha, generator=torch.Generator())
    if base.recipe == "released":
        unet.bfloat16()
    slider_passing = timed(lambda: forward(unet, settings.batch_size, small), settings.batch_size, device, share)
    training = timed(lambda: train(unet, settings.batch_size, small), settings.batch_size, device, share)
    memory = torch.cuda.max_memory_allocated() if device.startswith("cuda") else 0
    return Rate(passing, slider_passing, training, inverting, decoding, memory)


@torch.no_grad()
def forward(unet: UNet2DConditionModel, batch: int, side: int) -> None:
    """One pass without gradient."""
    predict(unet, batch, side)


def train(unet: UNet2DConditionModel, batch: int, side: int, text: Tensor | None = None) -> None:
    """One pass with its gradient."""
    predict(unet, batch, side, text).square().mean().backward()


def predict(unet: UNet2DConditionModel, batch: int, side: int, text: Tensor | None = None) -> Float[Tensor, "batch channels side side"]:
    """The UNet on noise."""
    place = {"device": unet.device, "dtype": unet.dtype}
    text = torch.randn(1, TOKENS, unet.config.cross_attention_dim, **place) if text is None else text
    latents = torch.randn(batch, unet.config.in_channels, side, side, **place)
    return unet(latents, 500, text.expand(batch, -1, -1)).sample


def timed(run: Callable[[], object], samples: int, device: str, seconds: float) -> float:
    """Seconds per sample: the fastest of the passes that fit into the time, at least two of which the first is not counted."""
    spent: list[float] = []
    begin = time.perf_counter()
    while len(spent) < 2 or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        run()
        if device.startswith("cuda"):
            torch.cuda.synchronize()
        spent.append(time.perf_counter() - start)
    return min(spent[1:]) / samples
