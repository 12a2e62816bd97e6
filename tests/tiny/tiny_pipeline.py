"""A tiny text-to-image model with random weights, in the format of the real one, and a tokenizer that is the same in every process.

Tests that need no model start seconds earlier: what it is made of is imported when it is made.
"""

import json
from pathlib import Path
from typing import Any

CAPTIONS = ["a picture of a sneaker", "a picture of a ankle boot in heavy snow", "a picture of a bag in cartoon style"]
WIDTH = 16  # of the text embeddings
END = "</w>"


def tokenizer(texts: list[str], context: int) -> Any:
    """A CLIP tokenizer: every letter, and a token for each word of the texts, which grows from left to right.

    The library's learner settles its ties in another order each time.
    """
    from transformers import CLIPTokenizer

    learned = CLIPTokenizer(model_max_length=context).train_new_from_iterator(texts, vocab_size=300, show_progress=False)
    vocabulary = json.loads(learned.backend_tokenizer.to_str())["model"]["vocab"]
    letters = sorted(token for token in vocabulary if len(token.removesuffix(END)) == 1)
    merges = []
    for word in sorted({word for text in texts for word in text.split()}):
        parts = [*word[:-1], word[-1] + END]
        merges += [("".join(parts[:number]), parts[number]) for number in range(1, len(parts))]
    merges = list(dict.fromkeys(merges))
    tokens = [learned.bos_token, learned.eos_token, *letters, *dict.fromkeys(map("".join, merges))]
    return CLIPTokenizer({token: number for number, token in enumerate(tokens)}, merges, model_max_length=context)


def write_pipeline(folder: Path) -> int:
    """Writes a StableDiffusionPipeline that runs in milliseconds and draws noise; returns how many words its tokenizer knows.

    Its UNet has every kind of layer of the real one for 4x16x16 latents, its autoencoder makes 64x64 px of them, and its noise schedule
    is that of Stable Diffusion 2 (768-v).
    """
    import torch
    from diffusers import AutoencoderKL, DDIMScheduler, StableDiffusionPipeline, UNet2DConditionModel
    from transformers import CLIPTextConfig, CLIPTextModel

    words = tokenizer(CAPTIONS, 24)
    ids = {f"{name}_token_id": getattr(words, f"{name}_token_id") for name in ("bos", "eos", "pad")}
    size = {"hidden_size": WIDTH, "intermediate_size": 2 * WIDTH, "num_hidden_layers": 1, "num_attention_heads": 2}
    schedule = {"beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear", "clip_sample": False}
    blocks = {"down_block_types": ("DownEncoderBlock2D",) * 3, "up_block_types": ("UpDecoderBlock2D",) * 3}
    layers = {"down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"), "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D")}
    widths = {"block_out_channels": (8, 16), "layers_per_block": 1, "attention_head_dim": 2, "norm_num_groups": 4}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        pipe = StableDiffusionPipeline(
            tokenizer=words,
            text_encoder=CLIPTextModel(CLIPTextConfig(vocab_size=len(words), max_position_embeddings=24, **size, **ids)),
            vae=AutoencoderKL(block_out_channels=(8, 8, 8), latent_channels=4, norm_num_groups=4, sample_size=64, **blocks),
            unet=UNet2DConditionModel(sample_size=16, cross_attention_dim=WIDTH, **widths, **layers),
            scheduler=DDIMScheduler(set_alpha_to_one=False, steps_offset=1, prediction_type="v_prediction", **schedule),
            safety_checker=None,
            feature_extractor=None,
            requires_safety_checker=False,
        )
    pipe.save_pretrained(folder)
    return len(words)
