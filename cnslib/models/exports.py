"""Our sliders in the authors' released layout, for their programs (docs/interop.md); `kohya` reads theirs."""

import collections
import io
import json
from pathlib import Path

import safetensors.torch
import torch
from diffusers import UNet2DConditionModel
from torch import Tensor

from cnslib.core import units
from cnslib.models import adapters
from cnslib.models.kohya import ALPHA, DOWN, UP, stems


def to_released(unet: UNet2DConditionModel, path: Path) -> dict[str, Tensor]:
    """The tensors of an adapter file of ours under their released names, bit for bit, with alpha beside each pair of factors."""
    adapters.require_complete(unet, path)
    config = json.loads(adapters.header(path)[adapters.CONFIG])
    ours, released = safetensors.torch.load_file(path), {}
    for stem, name in stems(unet).items():
        down, up = ours[f"unet.{name}.lora_A.weight"], ours[f"unet.{name}.lora_B.weight"]
        exact = (torch.tensor(config["unet.lora_alpha"], dtype=kind) for kind in (down.dtype, torch.float32, torch.float64))
        released[f"{stem}.{ALPHA}"] = next(alpha for alpha in exact if alpha.item() == config["unet.lora_alpha"])
        released[f"{stem}.{DOWN}"], released[f"{stem}.{UP}"] = down, up
    return released


def export_slider(unet: UNet2DConditionModel, source: Path, target: Path) -> None:
    """Writes an adapter file of ours in the released layout, a .pt state dict."""
    torch.save(collections.OrderedDict(to_released(unet, source)), buffer := io.BytesIO())
    units.write_bytes(target, buffer.getvalue())
