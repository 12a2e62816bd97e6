import json
from pathlib import Path

import open_clip
import timm
import torch
from safetensors.torch import save_file
from tiny_pipeline import CAPTIONS as TEXTS
from tiny_pipeline import tokenizer

PREPROCESSING = {"mean": [0.5, 0.5, 0.5], "std": [0.25, 0.25, 0.25], "interpolation": "bicubic"}
VIT = {"img_size": 32, "patch_size": 8, "embed_dim": 16, "depth": 1, "num_heads": 2}


def save(model: torch.nn.Module, path: Path, config: dict) -> None:
    save_file({key: value.contiguous() for key, value in model.state_dict().items()}, path)
    name = "open_clip_config.json" if path.name.startswith("open_clip") else "config.json"
    (path.parent / name).write_text(json.dumps(config))


def write_clip(folder: Path, *, custom_text: bool = True, seed: int = 0, context: int = 24) -> torch.nn.Module:
    """An open_clip directory for 32-px pictures with its own tokenizer; returns the model that was saved."""
    folder.mkdir(parents=True)
    words = tokenizer(TEXTS, context)
    words.save_pretrained(folder)
    text = {"context_length": context, "vocab_size": len(words), "hf_tokenizer_name": "own", "width": 16, "heads": 2, "layers": 1}
    text |= {"pool_type": "eos", "eos_id": words.eos_token_id}
    vision = {"image_size": 32, "layers": 1, "width": 16, "head_width": 8, "patch_size": 8}
    config = {"embed_dim": 8, "vision_cfg": vision, "text_cfg": text}
    kind = open_clip.model.CustomTextCLIP if custom_text else open_clip.model.CLIP
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = kind(**config).eval()
    preprocess = {"size": [32, 32], "resize_mode": "squash", **PREPROCESSING}
    whole = {"model_cfg": config | {"custom_text": custom_text}, "preprocess_cfg": preprocess}
    save(model, folder / "open_clip_model.safetensors", whole)
    return model


def write_timm(folder: Path, *, outputs: int, seed: int = 0) -> torch.nn.Module:
    """A timm directory for 32-px pictures: a one-layer ViT; returns the model that was saved."""
    folder.mkdir(parents=True)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = timm.create_model("vit_tiny_patch16_224", num_classes=outputs, **VIT).eval()
    config = {"architecture": "vit_tiny_patch16_224", "num_classes": outputs, "model_args": {**VIT, "num_classes": outputs}}
    config["pretrained_cfg"] = {"input_size": [3, 32, 32], "crop_pct": 1.0, "num_classes": outputs, **PREPROCESSING}
    save(model, folder / "model.safetensors", config)
    return model


def flat(model):
    """A state dict of a model's shapes whose file is small: every tensor repeats one zero."""
    return {name: torch.zeros((), dtype=value.dtype, device="cpu").expand(value.shape) for name, value in model.state_dict().items()}
