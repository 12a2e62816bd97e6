"""The mini world's VAE: a diffusers AutoencoderKL that maps 64 px images to 16x16 latents."""

from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from diffusers import AutoencoderKL
from jaxtyping import Float
from torch import Tensor, nn

from cnslib.core import names
from cnslib.core.names import SHIFTS
from cnslib.world import scenes
from cnslib.world.training import Schedule, autocast, fit


@torch.no_grad()
def build(channels: Sequence[int], *, latent_channels: int) -> AutoencoderKL:
    """An untrained AutoencoderKL; three resolutions divide the side by four.

    It starts as a plain linear network of unit gain: residual branches end in zero, latents carry little noise. With PyTorch's own start
    the signal fades from layer to layer, and thousands of steps go by before colours come through.
    """
    model = AutoencoderKL(
        down_block_types=("DownEncoderBlock2D",) * len(channels),
        up_block_types=("UpDecoderBlock2D",) * len(channels),
        block_out_channels=tuple(channels),
        layers_per_block=1,
        latent_channels=latent_channels,
        norm_num_groups=1,  # with several groups the colour of an even surface is normalised away
        sample_size=64,
        mid_block_add_attention=False,
    )
    for name, module in model.named_modules():
        if isinstance(module, nn.Conv2d):
            nn.init.zeros_(module.bias)  # type: ignore[arg-type]  # the stub does not know that this convolution has a bias
            nn.init.zeros_(module.weight) if name.endswith("conv2") else nn.init.kaiming_normal_(module.weight, nonlinearity="linear")
    log_variance = slice(model.config.latent_channels, None)
    model.quant_conv.weight[log_variance] = 0
    model.quant_conv.bias[log_variance] = -6
    return model


def gradients(image: Float[Tensor, "batch 3 side side"]) -> tuple[Tensor, Tensor]:
    """Differences of neighbouring pixels, down and right."""
    return image[..., 1:, :] - image[..., :-1, :], image[..., 1:] - image[..., :-1]


def reconstruction_loss(output: Tensor, target: Tensor) -> Tensor:
    """L1 + L1 of the image gradients + 5 MSE: the gradients keep thin lines, the squares keep the worst pixels."""
    slopes = sum(F.l1_loss(a, b) for a, b in zip(gradients(output), gradients(target), strict=True))
    return F.l1_loss(output, target) + slopes + 5 * F.mse_loss(output, target)


def train(garments: scenes.Garments, *, kl_weight: float, schedule: Schedule, checkpoint: Path, device: str, **network) -> AutoencoderKL:
    """Trains the VAE on scenes of all shifts, one batch in five of the catalog; sets `scaling_factor` to give latents unit deviation."""
    torch.manual_seed(schedule.seed)
    model = build(**network).to(device)

    def loss(step: int) -> Tensor:
        key = ("autoencoder", schedule.seed, step)
        style = "web" if step % 5 else "catalog"
        image = scenes.sample(garments, key, schedule.batch_size, style=style, lowest=0.0).image * 2 - 1
        image = image.to(device)
        with autocast(device):
            posterior = model.encode(image).latent_dist
            output = model.decode(posterior.sample()).sample
        return reconstruction_loss(output.float(), image) + kl_weight * posterior.kl().float().mean()

    averaged = fit(model, loss, schedule=schedule, checkpoint=checkpoint).cpu()
    sample = scenes.sample(garments, ("autoencoder", "scale", schedule.seed), 256, style="web")
    averaged.register_to_config(scaling_factor=round(1 / encode(averaged, sample.image).std().item(), 4))
    return averaged


@torch.no_grad()
def encode(model: AutoencoderKL, image: Float[Tensor, "batch 3 64 64"]) -> Float[Tensor, "batch channels 16 16"]:
    """Posterior means of images in [0, 1], not scaled."""
    return model.encode(image * 2 - 1).latent_dist.mean


@torch.no_grad()
def psnr(model: AutoencoderKL, image: Float[Tensor, "batch 3 64 64"]) -> Float[Tensor, "batch"]:
    """Peak signal-to-noise ratio (dB) of each image's reconstruction; images in [0, 1]."""
    output = (model.decode(encode(model, image)).sample / 2 + 0.5).clamp(0, 1)
    return -10 * (output - image).square().mean((1, 2, 3)).log10()


def psnr_by_shift(model: AutoencoderKL, garments: scenes.Garments, *, images: int, seed: int) -> dict[str, Tensor]:
    """PSNR of each of `images` held-out web scenes per shift (severity uniform in [0.35, 1]) and unshifted."""
    values = {}
    for index, name in enumerate((*SHIFTS, names.UNSHIFTED)):
        keys = [("psnr", seed, name, i) for i in range(images)]
        severity = torch.linspace(0.35, 1, images) * (name != names.UNSHIFTED)
        grey = garments.grey[index * images : (index + 1) * images]
        values[name] = psnr(model, scenes.render(grey, keys, style="web", shift=[name] * images, severity=severity))
    return values
