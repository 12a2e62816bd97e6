"""Weights from outside, read without running anything in them: torch files of tensors and plain values, safetensors, directories.

Where a file comes from and what it is checked against is decided before, in `core.sources`.
"""

import argparse
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from cnslib.core.sources import document, named, require_downloaded

TORCH_SUFFIXES = (".pt", ".pth", ".bin", ".ckpt")
SHOWN = 3  # names of tensors in an error

Shapes = Mapping[str, tuple[int, ...]]  # of tensors, by name


@dataclass(frozen=True)
class Match:
    """How the tensors of a file meet those that a network has: names in both with one shape, and the rest."""

    matched: list[str]
    missing: list[str]
    unexpected: list[str]
    reshaped: list[str]

    @property
    def complete(self) -> bool:
        """Whether the file holds what the network has and nothing else."""
        return not (self.missing or self.unexpected or self.reshaped)

    def __str__(self) -> str:
        parts = [f"{len(self.matched)} tensors match"]
        for word, names in (("missing", self.missing), ("unexpected", self.unexpected), ("of another shape", self.reshaped)):
            parts.append(f"{len(names)} {word}" + (f" ({', '.join(names[:SHOWN])})" if names else ""))
        return ", ".join(parts)


def match(found: Shapes, wanted: Shapes) -> Match:
    """Compares the tensors of a file with those that a network has, by name and shape."""
    both = sorted(found.keys() & wanted.keys())
    fitting = [name for name in both if found[name] == wanted[name]]
    reshaped = [name for name in both if found[name] != wanted[name]]
    return Match(fitting, sorted(wanted.keys() - found.keys()), sorted(found.keys() - wanted.keys()), reshaped)


def shapes(tensors: Mapping[str, Tensor]) -> Shapes:
    """The shapes of some tensors, by name."""
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def read_weights(path: Path, *, sha256: str | None = None) -> dict[str, Tensor]:
    """Tensors by name of a .safetensors file or, by any other accepted suffix, of a torch file, on the CPU.

    Errors as those of `read`; ValueError also for a suffix that is none of these.
    """
    if path.suffix in TORCH_SUFFIXES:
        return read_torch(path, sha256=sha256)
    if path.suffix != ".safetensors":
        raise ValueError(f"{path}: suffix {path.suffix!r} is not accepted; accepted: .safetensors, {', '.join(TORCH_SUFFIXES)}")
    require_downloaded(path, sha256=sha256)
    try:
        return safetensors.torch.load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path} is not a complete safetensors file ({error}); copy it again") from error


def read_torch(path: Path, *, sha256: str | None = None) -> dict[str, Tensor]:
    """Tensors by name of a torch file. Errors as those of `load_torch`; ValueError also where it holds anything else."""
    found = load_torch(path, sha256=sha256)
    if not isinstance(found, dict):
        raise ValueError(f"{path} holds one {type(found).__name__}; accepted: tensors by name")
    others = [key for key, value in found.items() if not isinstance(key, str) or not isinstance(value, Tensor)]
    if others:
        shown = ", ".join(f"{key!r}: {type(found[key]).__name__}" for key in others[:2])
        raise ValueError(f"{path}: {len(others)} of {len(found)} entries are not tensors by name ({shown}); accepted: tensors by name")
    return dict(found)


def load_torch(path: Path, *, sha256: str | None = None) -> object:
    """What a torch file holds, on the CPU: tensors, numbers, texts and containers of these; nothing in it is executed.

    Raises FileNotFoundError for a missing file, and ValueError, naming the file, for a web page or a Git LFS pointer in its
    place, bytes of another sha256 than expected, a truncated file, and one that could only be read by running its code.
    """
    require_downloaded(path, sha256=sha256)
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # the unpickler raises whatever damaged bytes lead it to
        text = " ".join(str(error).split()).rpartition("WeightsUnpickler error: ")[2]
        if foreign := re.search(r"(?:Unsupported global:|unsupported) GLOBAL (\S+)", text):
            needs = f"{path} could only be read by running code in it ({foreign[1]})"
            raise ValueError(f"{needs}, which is refused; accepted: tensors, numbers, texts and containers of these") from None
        raise ValueError(f"{path} is not a complete torch file ({type(error).__name__}: {text[:120]}); copy it again") from None


def refuse_code(folder: Path, *, key: str) -> None:
    """Raises ValueError, naming the parameter `key`, file and entry, where a model directory asks to run Python of its makers.

    transformers, open_clip and diffusers run the module that `auto_map` names once a configuration or a caller sets
    `trust_remote_code`. A directory in which open_clip finds its text tower is looked through too.
    """
    for path in configurations(folder):
        found = document(path, key=key)
        elsewhere = [Path(value) for name, value in entries(found) if name == "hf_model_name" and isinstance(value, str)]
        refuse_entries(path, found, key=key)
        for other in (other for place in elsewhere for other in configurations(place)):
            refuse_entries(other, document(other, key=key), key=key)


def configurations(folder: Path) -> list[Path]:
    """The configurations in a directory and those below it; none where there is no directory."""
    return sorted(folder.rglob("*config*.json"))


def refuse_entries(path: Path, found: Any, *, key: str) -> None:
    """Raises ValueError for the first entry of a configuration that leads to code."""
    for name, value in entries(found):
        if name == "auto_map" or (name == "trust_remote_code" and value is not False):
            shown = json.dumps(value)[:80]
            raise ValueError(f"{key}: {path} has {name}: {shown}, which would run Python of its makers; accepted: a model without {name}")


def entries(value: Any) -> Iterator[tuple[str, Any]]:
    """Every name in a JSON value with what it names, at any depth."""
    if isinstance(value, dict):
        yield from value.items()
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from entries(part)


def read(path: Path, *, key: str) -> dict[str, Any]:
    """What a safetensors file or a torch checkpoint holds, on the CPU; nothing in it is executed.

    Raises ValueError, naming the key, for a damaged file and for a checkpoint that holds more than tensors and plain values.
    """
    with named(key):
        if path.suffix == ".safetensors":
            return dict(read_weights(path))
        with torch.serialization.safe_globals([argparse.Namespace]):  # training scripts store their settings in one; plain values
            found = load_torch(path)
    if not isinstance(found, dict):
        raise ValueError(f"{key}: {path} holds a {type(found).__name__}; accepted: a mapping of names to tensors")
    return found
