"""The door for weights from outside: read without running anything in them, brought to a network's names, loaded whole or not at all."""

import argparse
import json
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn

from cnslib.core.sources import document, errors_naming, require_downloaded

SUFFIXES = (".safetensors", ".pt", ".pth", ".bin", ".ckpt", ".tar")
CONTAINERS = ("model_ema", "state_dict", "model", "teacher")  # under which training scripts store weights, the evaluated ones first
PREFIX = re.compile(r"(?:_orig_mod\.|module\.(?:base_encoder\.|backbone\.)?|backbone\.|linear\.)*")  # of torch's wrappers, MoCo v3 and DINO
OTHERS = ("module.momentum_encoder.", "module.predictor.")  # of MoCo v3: beside the encoder, no part of the classifier
RENAMES = {  # OpenMMLab's vision transformer in timm's names
    r"layers\.(\d+)\.ln([12])\.": r"blocks.\1.norm\2.",
    r"layers\.(\d+)\.attn\.": r"blocks.\1.attn.",
    r"layers\.(\d+)\.ffn\.layers\.0\.0\.": r"blocks.\1.mlp.fc1.",
    r"layers\.(\d+)\.ffn\.layers\.1\.": r"blocks.\1.mlp.fc2.",
    r"patch_embed\.projection\.": "patch_embed.proj.",
    r"ln1\.": "norm.",
    r"head\.layers\.head\.": "head.",
}
SETTINGS: list[Any] = [  # which training scripts store beside weights: classes of plain values, the second not imported
    (argparse.Namespace, "argparse.Namespace"),
    (type("Settings", (), {"__new__": lambda _: OrderedDict()}), "yacs.config.CfgNode"),
]
Shapes = Mapping[str, tuple[int, ...]]  # of tensors, by name


def contents(path: Path) -> object:
    """What a safetensors or torch file holds, on the CPU: tensors, numbers, texts and containers of these; nothing in it is executed."""
    if path.suffix not in SUFFIXES:
        raise ValueError(f"{path}: suffix {path.suffix!r} is not accepted; accepted: {', '.join(SUFFIXES)}")
    require_downloaded(path)
    try:
        if path.suffix == ".safetensors":
            return safetensors.torch.load_file(path)
        with torch.serialization.safe_globals(SETTINGS):
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # the unpickler raises whatever damaged bytes lead it to
        text = " ".join(str(error).split()).rpartition("WeightsUnpickler error: ")[2]
        if foreign := re.search(r"(?:Unsupported global:|unsupported) GLOBAL (\S+)", text):
            needs = f"{path} could only be read by running code in it ({foreign[1]})"
            raise ValueError(f"{needs}, which is refused; accepted: tensors, numbers, texts and containers of these") from None
        kind = "safetensors" if path.suffix == ".safetensors" else "torch"
        raise ValueError(f"{path} is not a complete {kind} file ({type(error).__name__}: {text[:120]}); copy it again") from None


def read_weights(path: Path) -> dict[str, Tensor]:
    """Tensors by name, taken out of the container that a training script put them in. ValueError also where a file holds anything else."""
    tensors: Any = contents(path)
    if isinstance(tensors, dict):
        tensors = next((tensors[name] for name in CONTAINERS if isinstance(tensors.get(name), dict)), tensors)
    others = (
        [key for key, value in tensors.items() if not isinstance(value, Tensor)] if isinstance(tensors, dict) else [type(tensors).__name__]
    )
    if others or not tensors:
        holds = ", ".join(map(str, others[:2])) or "no tensors"
        raise ValueError(f"{path} holds {holds}; accepted: tensors by name, bare or under {', '.join(CONTAINERS)}")
    require_finite(tensors, path)
    return tensors


def require_finite(tensors: Mapping[str, Tensor], where: object) -> None:
    """Raises ValueError, naming the file and the first tensor, where one holds a NaN or an infinity."""
    broken = [name for name, value in tensors.items() if value.is_floating_point() and not torch.isfinite(value).all()]
    if broken:
        raise ValueError(f"{where}: {len(broken)} tensors hold NaN or infinity, first {broken[0]}; accepted: finite numbers")


def header(path: Path) -> dict[str, str]:
    """The header entries of a safetensors file. FileNotFoundError or ValueError name a missing or truncated file."""
    require_downloaded(path)
    try:
        with safetensors.safe_open(path, "pt") as file:
            return file.metadata() or {}
    except safetensors.SafetensorError as error:
        raise ValueError(f"{path} is not a complete safetensors file ({error}); copy it again") from error


def renamed(tensors: Mapping[str, Tensor], path: Path, names: Mapping[str, str] = RENAMES) -> dict[str, Tensor]:
    """The tensors of a file under timm's names: prefixes cut, OpenMMLab's or other `names` replaced, MoCo's other networks out."""
    kept = {name: value for name, value in tensors.items() if not name.startswith(OTHERS)}
    result = {}
    for name, value in kept.items():
        name = name[PREFIX.match(name).end() :]  # type: ignore[union-attr]
        result[next((re.sub(f"^{old}", new, name) for old, new in names.items() if re.match(old, name)), name)] = value
    if len(result) < len(kept):
        raise ValueError(f"{path} holds {len(kept) - len(result)} tensors under two names; accepted: one network")
    return result


def unwrap(path: Path, target: Path) -> None:
    """Writes the tensors of a safetensors file without the prefixes of `torch.compile` and of data parallel training."""
    wrapped = read_weights(path)
    tensors = {re.sub(r"^(?:_orig_mod\.|module\.)+", "", name): value for name, value in wrapped.items()}
    if len(tensors) < len(wrapped):
        raise ValueError(f"{path} holds {len(wrapped) - len(tensors)} tensors under two names; accepted: one network")
    safetensors.torch.save_file(tensors, target, {"format": "pt"})


def load(model: nn.Module, path: Path, *, key: str) -> None:
    """Puts the tensors of a file into a model, which may lie on the meta device; they must be exactly the model's, see `require_same`.

    They are taken as they are named where that fits, else as `renamed` names them, by the model's `older_names` if it has some;
    position_ids, which older libraries stored, are none.
    """
    with errors_naming(key):
        wanted = shapes(model.state_dict())
        state = {name: value for name, value in read_weights(path).items() if name in wanted or not name.endswith(".position_ids")}
        if shapes(state) != wanted:
            state = renamed(state, path, getattr(model, "older_names", RENAMES))
            require_same(shapes(state), wanted, f"{path} does not fit the model", "all tensors of the model and no other")
    model.load_state_dict({name: value.float() if value.is_floating_point() else value for name, value in state.items()}, assign=True)


def shapes(tensors: Mapping[str, Tensor]) -> Shapes:
    """The shapes of some tensors, by name."""
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def require_same(present: Shapes, wanted: Shapes, what: str, accepted: str) -> None:
    """Raises ValueError, counting what differs, unless a file has the tensors that a network has, each of its shape, and no other."""
    both = present.keys() & wanted.keys()
    reshaped = {name for name in both if present[name] != wanted[name]}
    faults = {"missing": wanted.keys() - both, "unexpected": present.keys() - both, "of another shape": reshaped}
    if any(faults.values()):
        counts = [f"{len(names)} {fault}" + (f" ({', '.join(sorted(names)[:3])})" if names else "") for fault, names in faults.items()]
        raise ValueError(f"{what}: {len(both) - len(reshaped)} tensors match, {', '.join(counts)}; accepted: {accepted}")


def refuse_code(folder: Path, *, key: str) -> None:
    """Raises ValueError, naming the parameter `key`, file and entry, where a model directory asks to run Python of its makers.

    Libraries run the module that `auto_map` names once `trust_remote_code` is set. A directory in which open_clip finds its text tower
    counts.
    """
    todo = sorted(folder.rglob("*config*.json"))
    for path in todo:
        for name, value in entries(document(path, key=key)):
            if name == "auto_map" or (name == "trust_remote_code" and value is not False):
                fault = f"{name}: {json.dumps(value)[:80]}, which would run Python of its makers"
                raise ValueError(f"{key}: {path} has {fault}; accepted: a model without {name}")
            if name == "hf_model_name" and isinstance(value, str):
                todo += [other for other in sorted(Path(value).rglob("*config*.json")) if other not in todo]


def entries(value: Any) -> Iterator[tuple[str, Any]]:
    """Every name in a JSON value with what it names, at any depth."""
    if isinstance(value, dict):
        yield from value.items()
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from entries(part)
