"""A pipeline of Stable Diffusion 2's shape with random weights, and sliders for it: what a pass costs does not depend on weights."""

from pathlib import Path

import torch
from diffusers import AutoencoderKL, StableDiffusionPipeline, UNet2DConditionModel
from torch import Tensor
from transformers import CLIPTextConfig, CLIPTextModel

from cnslib.core import paths, seeds
from cnslib.models import adapters

UNET = {"sample_size": 96, "cross_attention_dim": 1024, "attention_head_dim": (5, 10, 20, 20), "use_linear_projection": True}
VAE = {
    "block_out_channels": (128, 256, 512, 512),
    "layers_per_block": 2,
    "down_block_types": ("DownEncoderBlock2D",) * 4,
    "up_block_types": ("UpDecoderBlock2D",) * 4,
    "latent_channels": 4,
}
TOKENS = 77  # of a prompt
TEXT = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 23, "num_attention_heads": 16}


def pipeline(mini: StableDiffusionPipeline, device: str) -> StableDiffusionPipeline:
    """UNet, autoencoder and text encoder of that shape, in fp32, with the words and the noise schedule of a mini pipeline."""
    mini.tokenizer.model_max_length = TOKENS
    torch.manual_seed(0)
    unet, vae = models(paths.ROOT / "none", device)
    text = CLIPTextConfig(**TEXT, vocab_size=len(mini.tokenizer), max_position_embeddings=TOKENS)
    with torch.device(device):
        encoder = CLIPTextModel(text)
    for part in (unet, vae, encoder):
        part.requires_grad_(False).eval()
    parts = {"vae": vae, "text_encoder": encoder, "tokenizer": mini.tokenizer, "unet": unet, "scheduler": mini.scheduler}
    pipe = StableDiffusionPipeline(**parts, safety_checker=None, feature_extractor=None, requires_safety_checker=False)
    pipe.set_progress_bar_config(disable=True)
    return pipe


def models(pipeline: Path, device: str) -> tuple[UNet2DConditionModel, AutoencoderKL]:
    """UNet and autoencoder of a pipeline, or random ones of Stable Diffusion 2's shape where its directory is empty."""
    if (pipeline / "unet").is_dir():
        how = {"use_safetensors": True, "local_files_only": True}
        unet = UNet2DConditionModel.from_pretrained(pipeline / "unet", **how)
        return unet.to(device), AutoencoderKL.from_pretrained(pipeline / "vae", **how).to(device)
    with torch.device(device):
        return UNet2DConditionModel(**UNET), AutoencoderKL(**VAE)  # type: ignore[arg-type]


def predict(unet: UNet2DConditionModel, batch: int, side: int, text: Tensor) -> Tensor:
    """The UNet on noise."""
    latents = torch.randn(batch, unet.config.in_channels, side, side, device=unet.device, dtype=unet.dtype)
    return unet(latents, 500, text.expand(batch, -1, -1)).sample


def slider(pipe: StableDiffusionPipeline, path: Path, *, rank: int, alpha: float) -> Path:
    """Writes an adapter whose second factor is random, not zero: it changes the pictures, as a trained one does."""
    generator = seeds.generator("shapes", path.stem)
    with adapters.fresh(pipe, rank=rank, alpha=alpha, generator=generator):
        for layer in adapters.layers(pipe.unet).values():
            factor = layer.lora_B[adapters.NAME].weight
            factor.data.copy_(1e-3 * torch.randn(factor.shape, generator=generator))
        adapters.save(pipe, path, {})
    return path
