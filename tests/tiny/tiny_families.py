"""Tiny text-to-image pipelines with random weights, one of each family, as small as their parts get: 32 px from 16 x 16 latents."""

from pathlib import Path
from typing import Any

import diffusers
import torch
import transformers
from tiny_pipeline import CAPTIONS, tokenizer
from tokenizers import Tokenizer, models, pre_tokenizers

SIZE = 32  # pixels of a side
WIDTHS = {"block_out_channels": (8, 16), "layers_per_block": 1, "cross_attention_dim": 32, "attention_head_dim": 2, "norm_num_groups": 4}
LAYERS = {"down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"), "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D")}
ENCODER = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "projection_dim": 16}
GEMMA = {"hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1}
HEADS = {"num_attention_heads": 2, "attention_head_dim": 8}


def clip(*numbers: str, projected: bool) -> dict[str, Any]:
    """CLIP text encoders with their tokenizers, as the parts of a pipeline that end in some numbers; the projected kind pools."""
    words = tokenizer(CAPTIONS, 24)
    ids = {f"{name}_token_id": getattr(words, f"{name}_token_id") for name in ("bos", "eos", "pad")}
    config = transformers.CLIPTextConfig(vocab_size=len(words), max_position_embeddings=24, **ENCODER, **ids)
    kind = transformers.CLIPTextModelWithProjection if projected else transformers.CLIPTextModel
    return {f"text_encoder{n}": kind(config) for n in numbers} | {f"tokenizer{n}": words for n in numbers}


def by_words() -> Any:
    words = ["<pad>", "</s>", "<unk>", *sorted({word for text in CAPTIONS for word in text.split()})]
    plain = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    special = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=plain, model_max_length=24, **special)


def t5() -> Any:
    return transformers.T5EncoderModel(transformers.T5Config(vocab_size=32, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2))


def autoencoder(channels: int) -> Any:
    blocks = {"down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2}
    size = {"block_out_channels": (8, 8), "latent_channels": channels, "norm_num_groups": 4, "sample_size": SIZE, "shift_factor": 0.0}
    return diffusers.AutoencoderKL(**size, **blocks)


def sdxl() -> Any:
    """Stable Diffusion XL: two text encoders, pooled embeddings and time ids beside the text."""
    added = {"addition_embed_type": "text_time", "addition_time_embed_dim": 8, "projection_class_embeddings_input_dim": 8 * 6 + 16}
    return diffusers.StableDiffusionXLPipeline(
        vae=autoencoder(4),
        **clip("", projected=False),
        **clip("_2", projected=True),
        unet=diffusers.UNet2DConditionModel(sample_size=16, **WIDTHS, **LAYERS, **added),
        scheduler=diffusers.EulerDiscreteScheduler(beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear", steps_offset=1),
        add_watermarker=False,
    )


def sd3() -> Any:
    """Stable Diffusion 3.5 without T5: joint attention, and attention among the picture's tokens alone in the first block."""
    size = {"num_layers": 2, "joint_attention_dim": 32, "caption_projection_dim": 16, "pooled_projection_dim": 32}
    kind = {"dual_attention_layers": (0,), "qk_norm": "rms_norm"}
    return diffusers.StableDiffusion3Pipeline(
        vae=autoencoder(8),
        **clip("", "_2", projected=True),
        text_encoder_3=None,
        tokenizer_3=None,
        transformer=diffusers.SD3Transformer2DModel(sample_size=16, in_channels=8, out_channels=8, **HEADS, **size, **kind),
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(shift=3.0),
    )


def flux() -> Any:
    """FLUX.1 [dev]: packed latents, the guidance as an embedding, a schedule that moves with the number of tokens."""
    size = {"num_layers": 1, "num_single_layers": 1, "attention_head_dim": 16, "num_attention_heads": 2, "axes_dims_rope": (4, 4, 8)}
    text = {"joint_attention_dim": 16, "pooled_projection_dim": 16}
    return diffusers.FluxPipeline(
        vae=autoencoder(4),
        **clip("", projected=False),
        text_encoder_2=t5(),
        tokenizer_2=by_words(),
        transformer=diffusers.FluxTransformer2DModel(patch_size=1, in_channels=16, guidance_embeds=True, **size, **text),
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True, shift=3.0),
    )


def pixart() -> Any:
    """PixArt-Sigma: cross-attention to T5, and an output that has the variance behind the noise."""
    size = {"num_layers": 2, "cross_attention_dim": 16, "caption_channels": 16, "use_additional_conditions": False}
    return diffusers.PixArtSigmaPipeline(
        vae=autoencoder(4),
        text_encoder=t5(),
        tokenizer=by_words(),
        transformer=diffusers.PixArtTransformer2DModel(sample_size=16, in_channels=4, out_channels=8, **HEADS, **size),
        scheduler=diffusers.DPMSolverMultistepScheduler(),
    )


def sana() -> Any:
    """Sana: linear attention, convolutions in place of dense layers, an autoencoder of its own, Gemma as text encoder."""
    sides = {f"{side}_{key}": value for side in ("encoder", "decoder") for key, value in SANA.items()}
    cross = {"num_cross_attention_heads": 2, "cross_attention_head_dim": 8, "cross_attention_dim": 16, "caption_channels": 8}
    return diffusers.SanaPipeline(
        vae=diffusers.AutoencoderDC(latent_channels=4, attention_head_dim=2, downsample_block_type="conv", **sides),
        text_encoder=transformers.Gemma2Model(transformers.Gemma2Config(vocab_size=32, head_dim=4, max_position_embeddings=512, **GEMMA)),
        tokenizer=by_words(),
        transformer=diffusers.SanaTransformer2DModel(
            patch_size=1, in_channels=4, out_channels=4, sample_size=16, num_layers=1, **HEADS, **cross
        ),
        scheduler=diffusers.DPMSolverMultistepScheduler(use_flow_sigmas=True, prediction_type="flow_prediction", flow_shift=3.0),
    )


SANA = {"block_out_channels": (8, 8), "layers_per_block": (1, 1), "block_types": "ResBlock", "qkv_multiscales": ((), ())}
FAMILIES = {"sdxl": sdxl, "sd3": sd3, "flux": flux, "pixart": pixart, "sana": sana}


def write_family(name: str, folder: Path) -> None:
    """Writes the pipeline of a family, always with the same weights; those of its denoiser are doubled, so that texts matter."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        pipe = FAMILIES[name]()
    for weight in (getattr(pipe, "transformer", None) or pipe.unet).parameters():
        weight.data.mul_(2 if weight.ndim == 2 else 1)
    pipe.save_pretrained(folder)
