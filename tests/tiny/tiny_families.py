"""Tiny text-to-image pipelines with random weights, one of each family, as small as their parts get: 32 px from 16 x 16 latents."""

from pathlib import Path
from typing import Any

from tiny_pipeline import CAPTIONS, tokenizer

SIZE = 32  # pixels of a side


def clip_encoder(*, projected: bool) -> Any:
    """A CLIP text encoder of width 16 for the tokenizer of the captions; the projected kind has pooled embeddings, too."""
    from transformers import CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection

    words = tokenizer(CAPTIONS, 24)
    ids = {f"{name}_token_id": getattr(words, f"{name}_token_id") for name in ("bos", "eos", "pad")}
    size = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "projection_dim": 16}
    config = CLIPTextConfig(vocab_size=len(words), max_position_embeddings=24, **size, **ids)
    return (CLIPTextModelWithProjection if projected else CLIPTextModel)(config)


def word_tokenizer() -> Any:
    """A token for each word of the captions, in place of T5's and Gemma's."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = ["<pad>", "</s>", "<unk>", *sorted({word for text in CAPTIONS for word in text.split()})]
    plain = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=plain, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", model_max_length=24)


def t5_encoder() -> Any:
    """A T5 encoder of width 16."""
    from transformers import T5Config, T5EncoderModel

    return T5EncoderModel(T5Config(vocab_size=32, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2))


def autoencoder(channels: int) -> Any:
    """An autoencoder that halves the sides."""
    from diffusers import AutoencoderKL

    blocks = {"down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2}
    size = {"block_out_channels": (8, 8), "latent_channels": channels, "norm_num_groups": 4, "sample_size": SIZE, "shift_factor": 0.0}
    return AutoencoderKL(**size, **blocks)


def sdxl() -> Any:
    """Stable Diffusion XL: two text encoders, pooled embeddings and time ids beside the text."""
    from diffusers import EulerDiscreteScheduler, StableDiffusionXLPipeline, UNet2DConditionModel

    layers = {"down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"), "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D")}
    added = {"addition_embed_type": "text_time", "addition_time_embed_dim": 8, "projection_class_embeddings_input_dim": 8 * 6 + 16}
    size = {"block_out_channels": (8, 16), "layers_per_block": 1, "cross_attention_dim": 32, "attention_head_dim": 2}
    return StableDiffusionXLPipeline(
        vae=autoencoder(4),
        text_encoder=clip_encoder(projected=False),
        text_encoder_2=clip_encoder(projected=True),
        tokenizer=tokenizer(CAPTIONS, 24),
        tokenizer_2=tokenizer(CAPTIONS, 24),
        unet=UNet2DConditionModel(sample_size=16, norm_num_groups=4, **size, **layers, **added),
        scheduler=EulerDiscreteScheduler(beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear", steps_offset=1),
        add_watermarker=False,
    )


def sd3() -> Any:
    """Stable Diffusion 3.5 without T5: joint attention, and attention among the picture's tokens alone in the first block."""
    from diffusers import FlowMatchEulerDiscreteScheduler, SD3Transformer2DModel, StableDiffusion3Pipeline

    size = {"num_layers": 2, "attention_head_dim": 8, "num_attention_heads": 2, "joint_attention_dim": 32, "caption_projection_dim": 16}
    return StableDiffusion3Pipeline(
        vae=autoencoder(8),
        text_encoder=clip_encoder(projected=True),
        text_encoder_2=clip_encoder(projected=True),
        text_encoder_3=None,
        tokenizer=tokenizer(CAPTIONS, 24),
        tokenizer_2=tokenizer(CAPTIONS, 24),
        tokenizer_3=None,
        transformer=SD3Transformer2DModel(
            sample_size=16, in_channels=8, out_channels=8, pooled_projection_dim=32, dual_attention_layers=(0,), qk_norm="rms_norm", **size
        ),
        scheduler=FlowMatchEulerDiscreteScheduler(shift=3.0),
    )


def flux() -> Any:
    """FLUX.1 [dev]: packed latents, the guidance as an embedding, a schedule that moves with the number of tokens."""
    from diffusers import FlowMatchEulerDiscreteScheduler, FluxPipeline, FluxTransformer2DModel

    size = {"num_layers": 1, "num_single_layers": 1, "attention_head_dim": 16, "num_attention_heads": 2, "axes_dims_rope": (4, 4, 8)}
    return FluxPipeline(
        vae=autoencoder(4),
        text_encoder=clip_encoder(projected=False),
        text_encoder_2=t5_encoder(),
        tokenizer=tokenizer(CAPTIONS, 24),
        tokenizer_2=word_tokenizer(),
        transformer=FluxTransformer2DModel(
            patch_size=1, in_channels=16, joint_attention_dim=16, pooled_projection_dim=16, guidance_embeds=True, **size
        ),
        scheduler=FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True, shift=3.0),
    )


def pixart() -> Any:
    """PixArt-Sigma: cross-attention to T5, and an output that has the variance behind the noise."""
    from diffusers import DPMSolverMultistepScheduler, PixArtSigmaPipeline, PixArtTransformer2DModel

    size = {"num_layers": 2, "attention_head_dim": 8, "num_attention_heads": 2, "cross_attention_dim": 16, "caption_channels": 16}
    return PixArtSigmaPipeline(
        vae=autoencoder(4),
        text_encoder=t5_encoder(),
        tokenizer=word_tokenizer(),
        transformer=PixArtTransformer2DModel(sample_size=16, in_channels=4, out_channels=8, use_additional_conditions=False, **size),
        scheduler=DPMSolverMultistepScheduler(),
    )


def sana() -> Any:
    """Sana: linear attention, convolutions in place of dense layers, an autoencoder of its own, Gemma as text encoder."""
    from diffusers import AutoencoderDC, DPMSolverMultistepScheduler, SanaPipeline, SanaTransformer2DModel
    from transformers import Gemma2Config, Gemma2Model

    layers = {"encoder_layers_per_block": (1, 1), "decoder_layers_per_block": (1, 1), "downsample_block_type": "conv"}
    size = {"num_layers": 1, "num_attention_heads": 2, "attention_head_dim": 8, "num_cross_attention_heads": 2}
    cross = {"cross_attention_head_dim": 8, "cross_attention_dim": 16, "caption_channels": 8}
    text = {"hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1}
    return SanaPipeline(
        vae=AutoencoderDC(
            latent_channels=4,
            attention_head_dim=2,
            encoder_block_out_channels=(8, 8),
            decoder_block_out_channels=(8, 8),
            encoder_qkv_multiscales=((), ()),
            decoder_qkv_multiscales=((), ()),
            upsample_block_type="interpolate",
            decoder_norm_types="rms_norm",
            decoder_act_fns="silu",
            scaling_factor=0.41,
            encoder_block_types="ResBlock",
            decoder_block_types="ResBlock",
            **layers,
        ),
        text_encoder=Gemma2Model(Gemma2Config(vocab_size=32, head_dim=4, max_position_embeddings=512, **text)),
        tokenizer=word_tokenizer(),
        transformer=SanaTransformer2DModel(patch_size=1, in_channels=4, out_channels=4, sample_size=16, **size, **cross),
        scheduler=DPMSolverMultistepScheduler(use_flow_sigmas=True, prediction_type="flow_prediction", flow_shift=3.0),
    )


FAMILIES = {"sdxl": sdxl, "sd3": sd3, "flux": flux, "pixart": pixart, "sana": sana}


def write_family(name: str, folder: Path) -> None:
    """Writes the pipeline of a family, always with the same weights; those of its denoiser are doubled, so that texts matter."""
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(0)
        pipe = FAMILIES[name]()
    for weight in (getattr(pipe, "transformer", None) or pipe.unet).parameters():
        weight.data.mul_(2 if weight.ndim == 2 else 1)
    pipe.save_pretrained(folder)
