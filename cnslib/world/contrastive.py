"""mini-CLIP: an open_clip model trained on web scenes and their captions (Radford et al. 2021), saved as an open_clip directory."""

import json
from collections.abc import Sequence
from pathlib import Path

import torch
from open_clip.loss import ClipLoss
from open_clip.model import CustomTextCLIP
from safetensors.torch import save_file
from torch import Tensor
from transformers import CLIPTokenizer

from cnslib.core import seeds, units
from cnslib.core.names import SHIFTS, UNSHIFTED
from cnslib.world import diffusion, redrawing, scenes
from cnslib.world.training import Schedule, fit

MEAN, STD = (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)
SEVERITIES = (0.15, 1.0)  # of the shifts of rendered scenes, where nothing else is said


def config(tokens: CLIPTokenizer, *, vision: str, width: int, layers: int) -> dict:
    """The open_clip_config.json of a small model: a timm image tower and a text tower on our own vocabulary.

    The text feature is read at the end token (`eos`), because with a small vocabulary it is not the largest id.
    """
    text = {
        "context_length": diffusion.CONTEXT,
        "vocab_size": len(tokens),
        "hf_tokenizer_name": "tokenizer",
        "width": width,
        "heads": 4,
        "layers": layers,
        "pool_type": "eos",
        "eos_id": tokens.eos_token_id,
        "pad_id": tokens.pad_token_id,
    }
    vision_cfg = {"timm_model_name": vision, "timm_pool": "avg", "timm_proj": "linear", "image_size": 64}
    preprocess = {"size": [64, 64], "mean": MEAN, "std": STD, "interpolation": "bicubic", "resize_mode": "squash"}
    return {
        "model_cfg": {"embed_dim": width, "vision_cfg": vision_cfg, "text_cfg": text},
        "preprocess_cfg": preprocess,
    }


def one_of_each(garments: scenes.Garments, key: tuple, *, severities: Sequence[float] = SEVERITIES) -> scenes.Batch:
    """One scene for each caption, so that no two texts of a batch are equal; two batches in five are of the catalog, the others of the web.

    A shift that can hardly be seen under its caption teaches that the plain caption means nothing; so `severities` begin above 0.
    """
    g = seeds.generator(*key, "choice")
    pairs = [(c, s) for c in range(len(garments.classes)) for s in range(len(SHIFTS) + 1)]
    labels, shifts = (torch.tensor(column) for column in zip(*pairs, strict=True))
    members = [torch.from_numpy(garments.labels == c).nonzero()[:, 0] for c in range(len(garments.classes))]
    rows = torch.stack([members[c][torch.randint(len(members[c]), (1,), generator=g)[0]] for c in labels.tolist()])
    mild = torch.rand(len(pairs), generator=g).square()  # most scenes still show their garment
    lowest, highest = severities
    severity = (lowest + (highest - lowest) * mild) * (shifts < len(SHIFTS))
    names = [(*SHIFTS, UNSHIFTED)[s] for s in shifts.tolist()]
    keys = [(*key, i) for i in range(len(pairs))]
    style = "catalog" if torch.rand(1, generator=g) < 0.4 else "web"
    image = scenes.render(garments.grey[rows], keys, style=style, shift=names, severity=severity)
    return scenes.Batch(image, labels, shifts, severity, garments.classes)


def normalise(image: Tensor) -> Tensor:
    """Images in [0, 1] to the model's input."""
    return (image - MEAN[0]) / STD[0]


def train(
    garments: scenes.Garments,
    *,
    vision: str,
    width: int,
    layers: int,
    schedule: Schedule,
    checkpoint: Path,
    device: str,
    redrawn: redrawing.Redrawn | None = None,
    share: float = 0.0,
    severities: Sequence[float] = SEVERITIES,
):
    """Trains mini-CLIP with the symmetric InfoNCE loss on batches of all distinct captions; returns model and config.

    About a `share` of each batch is replaced by pictures of the same captions that mini-SD drew again.
    """
    torch.manual_seed(schedule.seed)
    tokens = diffusion.tokenizer(garments.classes)
    settings = config(tokens, vision=vision, width=width, layers=layers)
    model = CustomTextCLIP(**settings["model_cfg"], output_dict=False).to(device)
    ids = diffusion.token_table(tokens, garments.classes)[:-1].to(device)
    nce, members = ClipLoss(), redrawn.of_captions(len(ids)) if redrawn else []

    def loss(step: int) -> Tensor:
        key = ("contrastive", schedule.seed, step)
        batch = one_of_each(garments, key, severities=severities)
        if redrawn and share:
            batch = redrawing.same_captions(batch, redrawn, members, share, seeds.generator(*key, "redrawn"))
        with torch.autocast(device, torch.bfloat16):
            image, text, scale = model(normalise(batch.image).to(device), ids[batch.label * (len(SHIFTS) + 1) + batch.shift])
        return nce(image.float(), text.float(), scale.clamp(max=100))

    return fit(model, loss, schedule=schedule, checkpoint=checkpoint).cpu(), settings


def save(model, settings: dict, folder: Path, *, classes: Sequence[str] = scenes.CLASSES) -> None:
    """Writes the open_clip directory: configuration, weights and tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    diffusion.tokenizer(classes).save_pretrained(folder)
    weights = {key: value.half() if value.is_floating_point() else value for key, value in model.state_dict().items()}
    with units.atomic(folder / "open_clip_model.safetensors") as partial:
        save_file(weights, partial)
    model_cfg = settings["model_cfg"] | {"custom_text": True}  # the text tower is a module of its own
    units.write_bytes(folder / "open_clip_config.json", json.dumps(settings | {"model_cfg": model_cfg}, indent=2).encode())
