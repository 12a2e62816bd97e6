"""mini-CLIP: an open_clip model trained on web scenes and their captions (Radford et al. 2021), saved as an open_clip directory."""

import json
from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from open_clip.model import CustomTextCLIP
from safetensors.torch import save_file
from torch import Tensor
from transformers import CLIPTokenizer

from cnslib.core import seeds, units
from cnslib.core.names import SHIFTS
from cnslib.core.settings.sections import Contrastive
from cnslib.models.encoders import FORMAT
from cnslib.world import diffusion, redrawing, scenes
from cnslib.world.training import MEAN, STD, autocast, fit, normalise, scheduled


def config(tokens: CLIPTokenizer, *, vision: str, width: int, layers: int, pool: str = "avg") -> dict:
    """The open_clip_config.json of a small model: a timm image tower and a text tower on our own vocabulary.

    The text feature is read at the end token (`eos`), because with a small vocabulary it is not the largest id.
    """
    text = {"context_length": diffusion.CONTEXT, "vocab_size": len(tokens), "hf_tokenizer_name": "tokenizer", "width": width, "heads": 4}
    text |= {"layers": layers, "pool_type": "eos", "eos_id": tokens.eos_token_id, "pad_id": tokens.pad_token_id}
    vision_cfg = {"timm_model_name": vision, "timm_pool": pool, "timm_proj": "linear", "image_size": 64}
    preprocess = {"size": [64, 64], "mean": MEAN, "std": STD, "interpolation": "bicubic", "resize_mode": "squash"}
    return {"model_cfg": {"embed_dim": width, "vision_cfg": vision_cfg, "text_cfg": text}, "preprocess_cfg": preprocess}


def one_of_each(garments: scenes.Garments, key: tuple, *, severities: scenes.Bounds = (0.15, 1.0)) -> scenes.Batch:
    """One scene for each caption, so that no two texts of a batch are equal; two batches in five are of the catalog, the others of the web.

    A shift that can hardly be seen under its caption teaches that the plain caption means nothing; so `severities` begin above 0.
    """
    g = seeds.generator(*key, "choice")
    _, shift, rows = scenes.every_caption(garments, g)
    mild = torch.rand(len(rows), generator=g).square()  # most scenes still show their garment
    severity = scenes.between(severities, mild) * (shift < len(SHIFTS))
    style, keys = "catalog" if torch.rand(1, generator=g) < 0.4 else "web", [(*key, i) for i in range(len(rows))]
    return scenes.batch(garments, rows, keys, style=style, shift=shift, severity=severity)


def matching(similarity: Float[Tensor, "images texts"], text: Int[Tensor, "images"]) -> Tensor:
    """The symmetric InfoNCE loss of pictures and a batch's different texts (Radford et al. 2021), of which `text` is each picture's.

    A text of several pictures may choose any of them (Yang et al. 2022, UniCL).
    """
    owned = F.one_hot(text, similarity.shape[1]).to(similarity).T
    return (F.cross_entropy(similarity, text) + F.cross_entropy(similarity.T, owned / owned.sum(dim=1, keepdim=True))) / 2


def train(garments: scenes.Garments, settings: Contrastive, redrawn: dict[str, redrawing.Redrawn | None], *, device: str, **run):
    """Trains mini-CLIP with the symmetric InfoNCE loss on batches of one picture per class and shift; returns model and config.

    About a share `settings.redrawn` of each batch is `redrawn` pictures of the same captions, "web". A share `omitted` of the captions
    leaves the shift out, as those of the web often do. To each batch comes one picture per shift of what has no name, rendered or
    redrawn ("nothing").
    """
    torch.manual_seed(settings.seed)
    tokens = diffusion.tokenizer(garments.classes)
    about = config(tokens, vision=settings.vision, width=settings.width, layers=settings.layers)
    model = CustomTextCLIP(**about["model_cfg"], output_dict=False).to(device, memory_format=FORMAT)
    ids = diffusion.token_table(tokens, [*garments.classes, *scenes.NOTHING.classes])[:-1].to(device)
    sources = {"garment": (garments, redrawn["web"]), "nothing": (scenes.NOTHING, redrawn["nothing"])}

    def loss(step: int) -> Tensor:
        key, batches = ("contrastive", settings.seed, step), []
        for name, (pool, drawings) in sources.items():
            batch, g = one_of_each(pool, (*key, name), severities=settings.severities), seeds.generator(*key, name, "redrawn")
            batches.append(redrawing.same_captions(batch, drawings, settings.redrawn, g) if drawings else batch)
        shift = torch.cat([batch.shift for batch in batches])
        label = torch.cat([batches[0].label, batches[1].label + len(garments.classes)])
        named = torch.rand(len(shift), generator=seeds.generator(*key, "omitted")) >= settings.omitted
        caption = label * len(scenes.NAMES) + torch.where(named, shift, len(SHIFTS))
        told, own = caption.to(device).unique(return_inverse=True)
        picture = normalise(torch.cat([batch.image for batch in batches]))
        with autocast(device):
            image, text, scale = model(picture.to(device, memory_format=FORMAT), ids[told])
        return matching(scale.clamp(max=100) * image.float() @ text.float().T, own)

    return fit(model, loss, schedule=scheduled(vars(settings)), **run).cpu().to(memory_format=torch.contiguous_format), about


def save(model, settings: dict, folder: Path, *, classes: Sequence[str] = scenes.CLASSES) -> None:
    """Writes the open_clip directory: configuration, weights and tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    diffusion.tokenizer(classes).save_pretrained(folder)
    weights = {key: value.half() if value.is_floating_point() else value for key, value in model.state_dict().items()}
    with units.atomic(folder / "open_clip_model.safetensors") as partial:
        save_file(weights, partial)
    model_cfg = settings["model_cfg"] | {"custom_text": True}  # the text tower is a module of its own
    units.write_bytes(folder / "open_clip_config.json", json.dumps(settings | {"model_cfg": model_cfg}, indent=2).encode())
