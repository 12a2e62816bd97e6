"""Low-rank adapters (LoRA) on the UNet: which modules they touch, their scale per sample, and their files."""

import contextlib
import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from diffusers import StableDiffusionPipeline, UNet2DConditionModel
from peft import LoraConfig
from peft.tuners.lora import LoraLayer
from peft.utils import get_peft_model_state_dict
from safetensors import safe_open
from torch import Tensor, nn

from cnslib.core import units
from cnslib.core.names import demand, identifier
from cnslib.core.sources import errors_naming
from cnslib.models import weights

NAME = "slider"
CONFIG = "lora_adapter_metadata"  # the header entry that holds rank and alpha
# Everything but cross-attention, as in the released code: self-attention, residual blocks, down- and upsampling.
TARGETS = (
    r".*attn1\.(to_q|to_k|to_v|to_out\.0)"
    r"|.*resnets\.\d+\.(conv1|conv2|time_emb_proj|conv_shortcut)"
    r"|.*(downsamplers|upsamplers)\.\d+\.conv"
)


def slider_path(folder: Path, shift: str, name: str) -> Path:
    """Where the slider of a shift and a class is kept."""
    return folder / identifier(shift) / f"{identifier(name)}.safetensors"


def layers(unet: UNet2DConditionModel, adapter: str = NAME) -> dict[str, LoraLayer]:
    """The modules that an adapter touches, by name."""
    return {name: module for name, module in unet.named_modules() if isinstance(module, LoraLayer) and adapter in module.lora_A}


@contextlib.contextmanager
def fresh(pipe: StableDiffusionPipeline, *, rank: int, alpha: float, generator: torch.Generator) -> Iterator[list[nn.Parameter]]:
    """The pipeline with a new adapter, which changes nothing yet; yields its trainable parameters, removes it afterwards."""
    try:
        yield attach(pipe.unet, rank=rank, alpha=alpha, generator=generator)
    finally:
        pipe.unload_lora_weights()


def attach(
    unet: UNet2DConditionModel, *, rank: int, alpha: float, generator: torch.Generator, targets: str = TARGETS
) -> list[nn.Parameter]:
    """Adds an adapter whose first factor is uniform (He, slope 1, as in the released code) and whose second is zero."""
    unet.add_adapter(LoraConfig(r=rank, lora_alpha=alpha, target_modules=targets), adapter_name=NAME)
    for layer in layers(unet).values():
        down, up = layer.lora_A[NAME].weight, layer.lora_B[NAME].weight
        drawn = torch.empty(down.shape)
        down.data.copy_(nn.init.kaiming_uniform_(drawn, a=1, generator=generator))
        nn.init.zeros_(up)
    return [p for p in unet.parameters() if p.requires_grad]


@contextlib.contextmanager
def switched_off(unet: UNet2DConditionModel) -> Iterator[None]:
    """The UNet without its adapter, bit for bit the base model."""
    unet.disable_adapters()
    try:
        yield
    finally:
        unet.enable_adapters()


@contextlib.contextmanager
def scaled(unet: UNet2DConditionModel, scales: Sequence[float] | Tensor, adapter: str = NAME) -> Iterator[None]:
    """Gives every sample of a batch its own slider scale: sample i of a forward pass gets `scales[i]`, and so on from the first again.

    The factor alpha / rank stays; peft has one scale per batch, so the second factor's output is multiplied by a hook. A tensor of
    scales can be changed in between.
    """
    factors = torch.as_tensor(scales, dtype=torch.float32)

    def hook(module: nn.Module, inputs: tuple, output: Tensor) -> Tensor:
        repeated = factors.repeat(len(output) // len(factors)).to(output)
        return output * repeated.reshape(-1, *[1] * (output.ndim - 1))

    handles = [layer.lora_B[adapter].register_forward_hook(hook) for layer in layers(unet, adapter).values()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def save(pipe: StableDiffusionPipeline, path: Path, entries: dict[str, str]) -> None:
    """Writes the adapter in half precision as `pipe.load_lora_weights` reads it, with rank, alpha and further header entries."""
    factors = {key: value.half() for key, value in get_peft_model_state_dict(pipe.unet, adapter_name=NAME).items()}
    units.write_recorded(path, packed(factors, pipe.unet.peft_config[NAME], entries))


def write(path: Path, factors: dict[str, Tensor], *, rank: int, alpha: float, entries: dict[str, str]) -> None:
    """Writes factors by `<module>.lora_A.weight` and `.lora_B.weight` as `save` does, but in the types they have and without a record."""
    config = LoraConfig(r=rank, lora_alpha=alpha, target_modules=TARGETS)  # type: ignore[arg-type]
    units.write_bytes(path, packed(factors, config, entries))


def packed(factors: dict[str, Tensor], config: LoraConfig, entries: dict[str, str]) -> bytes:
    """The bytes of an adapter file."""
    plain = {key: value.detach().cpu().contiguous() for key, value in factors.items()}
    with tempfile.TemporaryDirectory() as folder:
        how = {"weight_name": "slider.safetensors", "unet_lora_adapter_metadata": config.to_dict()}
        StableDiffusionPipeline.save_lora_weights(folder, plain, **how)
        return with_header((Path(folder) / "slider.safetensors").read_bytes(), entries)


def with_header(data: bytes, entries: dict[str, str]) -> bytes:
    """A safetensors file with further header entries, in sorted order: the library's own order changes from run to run."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header["__metadata__"] |= entries
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data[8 + length :]


def file_digest(path: Path) -> str:
    """The digest of an adapter file that is as it was written, and lies in the place of its shift and class."""
    digest = units.verified(path)
    with safe_open(path, "pt") as file:
        entries = file.metadata()
    for entry, place in (("shift", path.parent.name), ("class", path.stem)):
        written = identifier(entries.get(entry, place))
        demand(written == place, f"slider {path}: {entry} in its header", written, f"{place}, as its place says")
    return digest


def header(path: Path) -> dict[str, str]:
    """The header entries of an adapter file. FileNotFoundError or ValueError name a missing or truncated file."""
    with errors_naming("slider, which the sliders step makes"):
        return weights.header(path)


@contextlib.contextmanager
def loaded(pipe: StableDiffusionPipeline, *paths: Path) -> Iterator[list[str]]:
    """The pipeline with the adapters of some files, active at scale 1; yields their names, the first of which is NAME.

    The base model is restored bit for bit afterwards. ValueError names a file that does not fit the adapted modules.
    """
    names = [NAME, *(f"{NAME}_{number}" for number in range(1, len(paths)))]
    for path in paths:
        require_complete(pipe.unet, path)
    try:
        for name, path in zip(names, paths, strict=True):
            pipe.unet.load_lora_adapter(path, prefix="unet", adapter_name=name, use_safetensors=True, local_files_only=True)
        if len(names) > 1:
            pipe.unet.set_adapters(names)
        yield names
    finally:
        pipe.unload_lora_weights()


def require_complete(unet: UNet2DConditionModel, path: Path) -> None:
    """Raises ValueError unless the file holds both factors, of fitting shapes, of each module to adapt and nothing else."""
    rank = int(json.loads(header(path).get(CONFIG, "{}")).get("unet.r", 0))
    tensors, accepted = weights.read_weights(path), "both factors of each module to adapt, and nothing else"
    weights.require_same(weights.shapes(tensors), factor_shapes(unet, rank), f"slider {path} does not fit this UNet", accepted)


def factor_shapes(network: nn.Module, rank: int, targets: str = TARGETS, prefix: str = "unet.") -> dict[str, tuple[int, ...]]:
    """Name and shape of every tensor that an adapter file of this rank holds for a network without adapter."""
    shapes = {}
    for name, module in network.named_modules():
        if re.fullmatch(targets, name):
            rows, columns, *kernel = module.weight.shape
            shapes[f"{prefix}{name}.lora_A.weight"] = (rank, columns, *kernel)
            shapes[f"{prefix}{name}.lora_B.weight"] = (rows, rank, *(1 for _ in kernel))
    return shapes
