"""A pipeline of Stable Diffusion 2's shape with random weights, and sliders for it: what a pass costs does not depend on weights."""

from pathlib import Path

import torch
from diffusers import StableDiffusionPipeline
from transformers import CLIPTextConfig, CLIPTextModel

from cnslib.core import paths, seeds
from cnslib.models import adapters
from cnslib.tools import rates

TEXT = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 23, "num_attention_heads": 16}


def pipeline(mini: StableDiffusionPipeline, device: str) -> StableDiffusionPipeline:
    """UNet, autoencoder and text encoder of that shape, in fp32, with the words and the noise schedule of a mini pipeline."""
    mini.tokenizer.model_max_length = rates.TOKENS
    torch.manual_seed(0)
    unet, vae, _ = rates.models(paths.ROOT / "none", device)
    text = CLIPTextConfig(**TEXT, vocab_size=len(mini.tokenizer), max_position_embeddings=rates.TOKENS)
    with torch.device(device):
        encoder = CLIPTextModel(text)
    for part in (unet, vae, encoder):
        part.requires_grad_(False).eval()
    parts = {"vae": vae, "text_encoder": encoder, "tokenizer": mini.tokenizer, "unet": unet, "scheduler": mini.scheduler}
    pipe = StableDiffusionPipeline(**parts, safety_checker=None, feature_extractor=None, requires_safety_checker=False)
    pipe.set_progress_bar_config(disable=True)
    return pipe


def slider(pipe: StableDiffusionPipeline, path: Path, *, rank: int, alpha: float) -> Path:
    """Writes an adapter whose second factor is random, not zero: it changes the pictures, as a trained one does."""
    generator = seeds.generator("shapes", path.stem)
    with adapters.fresh(pipe, rank=rank, alpha=alpha, generator=generator):
        for layer in adapters.layers(pipe.unet).values():
            factor = layer.lora_B[adapters.NAME].weight
            factor.data.copy_(1e-3 * torch.randn(factor.shape, generator=generator))
        adapters.save(pipe, path, {})
    return path
