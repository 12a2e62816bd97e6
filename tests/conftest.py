"""Tiny random-weight models in the formats of the real ones, written once per test session."""

from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:  # tests that need no model start seconds earlier: the functions import what they make
    from diffusers import AutoencoderKL, DDIMScheduler, UNet2DConditionModel
    from transformers import CLIPTextModel, CLIPTokenizer

hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("repeatable")

CAPTIONS = ["a picture of a sneaker", "a picture of a ankle boot in heavy snow", "a picture of a bag in cartoon style"]
WIDTH = 16  # of the text embeddings


def tiny_text() -> "tuple[CLIPTokenizer, CLIPTextModel]":
    """A byte-pair tokenizer learned from three captions and a one-layer text encoder, context 24."""
    from tiny_tokenizer import tokenizer as learned
    from transformers import CLIPTextConfig, CLIPTextModel

    tokenizer = learned(CAPTIONS, 24)
    config = CLIPTextConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=24,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return tokenizer, CLIPTextModel(config)


def tiny_unet() -> "UNet2DConditionModel":
    """A UNet for 4x16x16 latents with every kind of layer of the real one: resnets, both attentions, both samplers."""
    from diffusers import UNet2DConditionModel

    return UNet2DConditionModel(
        sample_size=16,
        block_out_channels=(8, 16),
        layers_per_block=1,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=WIDTH,
        attention_head_dim=2,
        norm_num_groups=4,
    )


def tiny_vae() -> "AutoencoderKL":
    """An autoencoder with factor 4: 64x64 px images, 4x16x16 latents."""
    from diffusers import AutoencoderKL

    return AutoencoderKL(
        block_out_channels=(8, 8, 8),
        down_block_types=("DownEncoderBlock2D",) * 3,
        up_block_types=("UpDecoderBlock2D",) * 3,
        latent_channels=4,
        norm_num_groups=4,
        sample_size=64,
    )


def tiny_scheduler() -> "DDIMScheduler":
    """The noise schedule of Stable Diffusion 2 (768-v)."""
    from diffusers import DDIMScheduler

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


@pytest.fixture(scope="session")
def tiny_pipeline_dir(tmp_path_factory) -> Path:
    """Directory of a StableDiffusionPipeline with random weights: runs in milliseconds, draws noise. Read only."""
    import torch
    from diffusers import StableDiffusionPipeline

    with torch.random.fork_rng():
        torch.manual_seed(0)
        tokenizer, text_encoder = tiny_text()
        pipe = StableDiffusionPipeline(
            vae=tiny_vae(),
            text_encoder=text_encoder,
            tokenizer=tokenizer,
            unet=tiny_unet(),
            scheduler=tiny_scheduler(),
            safety_checker=None,
            feature_extractor=None,
            requires_safety_checker=False,
        )
    path = tmp_path_factory.mktemp("models") / "tiny-sd"
    pipe.save_pretrained(path)
    return path


@pytest.fixture(scope="session")
def tiny_tokens_dir(tmp_path_factory) -> Path:
    """Textual-inversion files of two classes for the tiny pipeline, named as the inversion step names them. Read only."""
    import torch
    from safetensors.torch import save_file

    from cnslib.core import names as inversion
    from cnslib.core.names import identifier

    folder = tmp_path_factory.mktemp("tokens")
    generator = torch.Generator().manual_seed(0)
    for name in ("sneaker", "ankle boot"):
        vector = torch.randn(WIDTH, generator=generator)
        save_file({inversion.token(name): vector}, folder / f"{identifier(name)}.safetensors")
    return folder
