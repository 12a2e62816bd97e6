"""Checkpoints in the layouts of their authors, brought to timm's names and loaded as a whole or not at all."""

import re
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor, nn

from cnslib.models import weights
from cnslib.models.weights import SHOWN, Match, match, shapes

CONTAINERS = ("model_ema", "state_dict", "model", "teacher")  # under which training scripts store weights, the evaluated ones first
PREFIXES = ("module.base_encoder.", "module.backbone.", "module.", "backbone.", "linear.")  # of MoCo v3, DINO and torch's wrappers
OTHERS = ("module.momentum_encoder.", "module.predictor.")  # of MoCo v3: beside the encoder, no part of the classifier
RENAMES = (  # OpenMMLab's vision transformer
    (r"layers\.(\d+)\.ln([12])\.", r"blocks.\1.norm\2."),
    (r"layers\.(\d+)\.attn\.", r"blocks.\1.attn."),
    (r"layers\.(\d+)\.ffn\.layers\.0\.0\.", r"blocks.\1.mlp.fc1."),
    (r"layers\.(\d+)\.ffn\.layers\.1\.", r"blocks.\1.mlp.fc2."),
    (r"patch_embed\.projection\.", "patch_embed.proj."),
    (r"ln1\.", "norm."),
    (r"head\.layers\.head\.", "head."),
)


def tensors(path: Path, *, key: str) -> dict[str, Tensor]:
    """The tensors of a checkpoint file, taken out of the container that a training script put them in.

    Raises ValueError, naming the key, for a file without tensors and for those that `weights.read` refuses.
    """
    checkpoint = weights.read(path, key=key)
    inside = next((checkpoint[name] for name in CONTAINERS if isinstance(checkpoint.get(name), dict)), checkpoint)
    found = {name: value for name, value in inside.items() if isinstance(value, Tensor)}
    if not found:
        raise ValueError(f"{key}: {path} holds no tensors; accepted: a mapping of names to tensors, bare or under {', '.join(CONTAINERS)}")
    return found


def renamed(path: Path, *, key: str) -> dict[str, Tensor]:
    """The tensors of a checkpoint file under timm's names: prefixes cut, OpenMMLab's names replaced, MoCo's other networks left out."""
    found = {name: value for name, value in tensors(path, key=key).items() if not name.startswith(OTHERS)}
    result = {renaming(name): value for name, value in found.items()}
    if len(result) < len(found):
        raise ValueError(f"{key}: {path} holds {len(found) - len(result)} tensors under two names; accepted: one network")
    return result


def renaming(name: str) -> str:
    """timm's name of a tensor."""
    for prefix in PREFIXES:
        name = name.removeprefix(prefix)
    for pattern, replacement in RENAMES:
        changed, count = re.subn(f"^{pattern}", replacement, name)
        if count:
            return changed
    return name


def load(model: nn.Module, path: Path, *, key: str) -> Match:
    """Puts the tensors of a checkpoint file into a model, which may lie on the meta device; returns how they met.

    Raises ValueError, naming the key and counting what differs, where they are not exactly the model's: a partial load is refused.
    """
    state = renamed(path, key=key)
    found = match(shapes(state), shapes(model.state_dict()))
    if not found.complete:
        hint = "; it looks like a backbone without its classification head" if headless(found) else ""
        raise ValueError(f"{key}: {path} does not fit the model: {found}; a partial load is refused{hint}")
    model.load_state_dict({name: value.float() if value.is_floating_point() else value for name, value in state.items()}, assign=True)
    return found


def headless(found: Match) -> bool:
    """Whether all that is missing belongs to the head."""
    return bool(found.missing) and all(name.startswith(("head.", "fc.", "classifier.", "fc_norm.")) for name in found.missing)


class Probe(nn.Module):
    """A vision transformer with a linear head on the class tokens of its last blocks and the last one's mean patch token.

    Concatenated as DINOv2 releases it (hub/classifiers.py of its repository: 4 blocks, or 1), or interleaved as DINO does.
    """

    def __init__(self, backbone: nn.Module, head: nn.Linear, *, blocks: int, interleaved: bool):
        super().__init__()
        self.backbone, self.head, self.blocks, self.interleaved = backbone, head, blocks, interleaved

    def features(self, image: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch features"]:
        """What the head sees."""
        how: dict = {"indices": self.blocks, "return_prefix_tokens": True, "norm": True, "output_fmt": "NLC"}
        found = self.backbone.forward_intermediates(image, intermediates_only=True, **how)  # type: ignore[operator]
        parts = [prefix[:, 0] for _, prefix in found] + [found[-1][0].mean(dim=1)]
        return torch.stack(parts, dim=-1 if self.interleaved else 1).flatten(1)

    def forward(self, image: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch classes"]:
        """Class scores of normalised images."""
        return self.head(self.features(image))


def probe(backbone: nn.Module, path: Path, *, features: str, key: str) -> Probe:
    """A backbone with the linear head of a file; its width says on how many blocks it stands.

    Raises ValueError, naming the key, for a head that fits neither 1 nor 4 blocks of this backbone (1 where interleaved).
    """
    interleaved = features == "interleaved"
    state = renamed(path, key=key)
    width = int(backbone.embed_dim)  # type: ignore[arg-type]
    accepted = [2 * width] if interleaved else [2 * width, 5 * width]
    there = shapes(state)
    outputs, inputs = (*there.get("weight", ()), 0, 0)[:2]
    if there != {"weight": (outputs, inputs), "bias": (outputs,)} or inputs not in accepted:
        wanted = f"a linear head, weight and bias, on {' or '.join(map(str, accepted))} features"
        raise ValueError(f"{key}: {path} holds {dict(list(there.items())[:SHOWN])}; accepted: {wanted}")
    head = nn.Linear(inputs, outputs, device="meta")
    load(head, path, key=key)
    return Probe(backbone, head, blocks=inputs // width - 1, interleaved=interleaved)
