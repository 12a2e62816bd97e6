"""The parts of a tiny text-to-image model with random weights, in the formats of the real ones.

Each function imports what it makes: tests that need no model start seconds earlier.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from diffusers import AutoencoderKL, DDIMScheduler, UNet2DConditionModel
    from transformers import CLIPTextModel, CLIPTokenizer

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
