"""The mini world's VAE: a diffusers AutoencoderKL that maps 64 px images to 16x16 latents."""

from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from diffusers import AutoencoderKL
from jaxtyping import Float
from torch import Tensor, nn

from cnslib.core.settings.sections import Autoencoder, Leg
from cnslib.world import pool, scenes
from cnslib.world.training import autocast


@torch.no_grad()
def build(channels: Sequence[int], *, latent_channels: int) -> AutoencoderKL:
    """An untrained AutoencoderKL; three resolutions divide the side by four.

    It starts as a plain linear network of unit gain: residual branches end in zero, latents carry little noise. With PyTorch's own start
    the signal fades from layer to layer, and thousands of steps go by before colours come through.
    """
    blocks: dict = {"down_block_types": ("DownEncoderBlock2D",) * len(channels), "up_block_types": ("UpDecoderBlock2D",) * len(channels)}
    blocks |= {"block_out_channels": tuple(channels), "layers_per_block": 1, "mid_block_add_attention": False}
    # With several groups of a norm the colour of an even surface is normalised away.
    model = AutoencoderKL(**blocks, latent_channels=latent_channels, norm_num_groups=1, sample_size=64)
    for name, module in model.named_modules():
        if isinstance(module, nn.Conv2d):
            nn.init.zeros_(module.bias)  # type: ignore[arg-type]  # the stub does not know that this convolution has a bias
            nn.init.zeros_(module.weight) if name.endswith("conv2") else nn.init.kaiming_normal_(module.weight, nonlinearity="linear")
    model.quant_conv.weight[latent_channels:] = 0  # of the log variance
    model.quant_conv.bias[latent_channels:] = -6
    return model


def reconstruction_loss(output: Tensor, target: Tensor) -> Tensor:
    """L1 + L1 of the image gradients + 5 MSE: the gradients keep thin lines, the squares keep the worst pixels."""
    pairs = [(image[..., 1:, :] - image[..., :-1, :], image[..., 1:] - image[..., :-1]) for image in (output, target)]
    slopes = sum(F.l1_loss(*pair) for pair in zip(*pairs, strict=True))
    return F.l1_loss(output, target) + slopes + 5 * F.mse_loss(output, target)


def train(garments: scenes.Garments, settings: Autoencoder, *, checkpoint: Path, device: str) -> AutoencoderKL:
    """Trains the VAE on the pool's scenes; sets `scaling_factor` to give latents unit deviation.

    The pool lies on the device as bytes: 12 kB a scene.
    """
    seen = pool.parts(garments.to(device), pool.largest(settings.legs), severities=settings.severities, seed=settings.seed)
    scene = torch.cat([(part.image * 255).round().to(torch.uint8) for part in seen])
    torch.manual_seed(settings.seed)
    model = build(settings.channels, latent_channels=settings.latent_channels).to(device)

    def loss(leg: Leg, shares: list[torch.Generator]) -> Tensor:
        size = leg.batch_size // leg.ranks
        image = torch.cat([scene[torch.randint(leg.scenes, (size,), generator=g, device=device)] for g in shares]).float() / 127.5 - 1
        with autocast(device, cached=leg.ranks == 1):
            posterior = model.encode(image).latent_dist
            output = model.decode(posterior.sample()).sample
        return reconstruction_loss(output.float(), image) + settings.kl_weight * posterior.kl().float().mean()

    averaged = pool.train(model, loss, settings.legs, seed=settings.seed, checkpoint=checkpoint, device=device)
    means = [encode(averaged, part.float() / 255) for part in scene[:20000].split(2048)]
    averaged.register_to_config(scaling_factor=round(1 / torch.cat(means).std().item(), 4))
    return averaged.cpu()


@torch.no_grad()
def encode(model: AutoencoderKL, image: Float[Tensor, "batch 3 64 64"]) -> Float[Tensor, "batch channels 16 16"]:
    """Posterior means of images in [0, 1], not scaled."""
    return model.encode(image * 2 - 1).latent_dist.mean


@torch.no_grad()
def psnr(model: AutoencoderKL, image: Float[Tensor, "batch 3 64 64"]) -> Float[Tensor, "batch"]:
    """Peak signal-to-noise ratio (dB) of each image's reconstruction; images in [0, 1]."""
    output = (model.decode(encode(model, image)).sample / 2 + 0.5).clamp(0, 1)
    return -10 * (output - image).square().mean((1, 2, 3)).log10()
