"""Doors for classifiers of others: transformers, torchvision, a linear head on a frozen backbone, ONNX files.

Each gives a network, its transform, the transform's settings, and the names that the model itself gives its outputs, if any.
"""

import importlib
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torchvision
from PIL import Image
from torch import Tensor, nn
from transformers import AutoImageProcessor, AutoModel, AutoModelForImageClassification

from cnslib.core import paths, sources, units
from cnslib.core.names import demand
from cnslib.models import encoders, registry, weights

HUGGING_FACE, TORCHVISION, LINEAR, ONNX = "transformers:", "torchvision:", "linear:", "onnx:"
ACCEPTED = (
    f"{HUGGING_FACE}<directory or id>, {TORCHVISION}<name>[@<file>], {LINEAR}<file>@<timm or transformers backbone>, {ONNX}<directory>"
)
FAULTS = ("missing_keys", "unexpected_keys", "mismatched_keys")  # of what transformers says of a reading
CATEGORIES = 1000  # of ImageNet, in the order of the data's
LoadedClassifier = tuple[nn.Module, Callable[[Image.Image], Tensor], dict[str, Any], list[str]]


def digest(source: str) -> str:
    """A digest of such a classifier: of its files where they lie on this machine, else of its name."""
    if not source.startswith((LINEAR, TORCHVISION)):
        return encoders.source_digest(source.removeprefix(HUGGING_FACE).removeprefix(ONNX))
    parts = [part.removeprefix(HUGGING_FACE) for part in source.partition(":")[2].split("@")]
    files = [paths.resolve(part) for part in parts]
    known = [units.file_digest(file) if file.is_file() else encoders.source_digest(part) for part, file in zip(parts, files, strict=True)]
    return units.digest(source, known)


def read(key: str, source: str, labels: list[str], device: str) -> LoadedClassifier | None:
    """The classifier that a source of one of these kinds names, on a device; nothing for another source. Errors name `key`."""
    doors = {HUGGING_FACE: hugging_face, TORCHVISION: torchvision_model, LINEAR: linear_head, ONNX: onnx_file}
    for prefix, door in doors.items():
        if source.startswith(prefix):
            network, transform, settings, names = door(key, source, labels)
            return network.to(device).eval().requires_grad_(False), transform, settings, names
    return None


class Output(nn.Module):
    """A part of what a model of transformers gives out."""

    def __init__(self, model: Any, part: Callable[[Any], Tensor]):
        super().__init__()
        self.model, self.part = model, part

    def forward(self, pixels: Tensor) -> Tensor:
        """Class scores, or features, of normalised images."""
        return self.part(self.model(pixels))


def hugging_face(key: str, source: str, labels: list[str]) -> LoadedClassifier:
    """An image classifier of the transformers library, from a directory or an id; pickled weights are not accepted."""
    model, folder = pretrained(key, source, AutoModelForImageClassification)
    names = [text for _, text in sorted(model.config.id2label.items())]
    plain = names == [f"LABEL_{place}" for place in range(len(names))]
    return Output(model, lambda given: given.logits), *processor(key, source, folder), [] if plain else names


def pretrained(key: str, source: str, kind: Any, *, unused: tuple[str, ...] = ()) -> tuple[Any, str]:
    """A model of transformers in single precision, and where it lies; it must be whole, but for tensors that begin as `unused`."""
    place = source.removeprefix(HUGGING_FACE)
    if (folder := paths.resolve(place)).is_dir():
        weights.refuse_code(folder, key=key)
        place = str(folder)
    how: dict = {"use_safetensors": True, "trust_remote_code": False, "dtype": torch.float32, "output_loading_info": True}
    lacking = lambda info: {fault: n for fault in FAULTS if (n := sum(not str(name).startswith(unused) for name in info[fault]))}  # noqa: E731
    with encoders.loading_errors(key, source, "a directory or id of a transformers model of pictures with safetensors weights"):
        model, info = kind.from_pretrained(place, **how)  # the user names it  # nosec B615
        if lacking(info) and (folder / "model.safetensors").is_file():
            with tempfile.TemporaryDirectory() as unwrapped:
                shutil.copy(folder / "config.json", unwrapped)
                weights.unwrap(folder / "model.safetensors", Path(unwrapped) / "model.safetensors")
                model, info = kind.from_pretrained(unwrapped, **how)  # nosec B615
    demand(not lacking(info), f"{key}: {source}, tensors", lacking(info), "all tensors of the model, no other")
    weights.require_finite(model.state_dict(), f"{key}: {source}")
    channels = getattr(model.config, "num_channels", 3)
    demand(channels == 3, f"{key}: {source}, channels of the input", channels, "3, of colour pictures")
    return model, place


def processor(key: str, source: str, folder: str) -> tuple[Callable[[Image.Image], Tensor], dict[str, Any]]:
    """The transform of a directory or id of transformers, and its settings."""
    with encoders.loading_errors(key, source, "a model with its preprocessor_config.json"):
        processor = AutoImageProcessor.from_pretrained(folder, use_fast=False, trust_remote_code=False)  # nosec B615
    settings = {key: value for key, value in processor.to_dict().items() if isinstance(value, (int, float, str, list, dict))}
    return lambda image: processor(image, return_tensors="pt")["pixel_values"][0], settings


def torchvision_model(key: str, source: str, labels: list[str]) -> LoadedClassifier:
    """A model of torchvision with its newest ImageNet weights and their transform; with the weights of a file, under the same transform."""
    name, _, file = source.removeprefix(TORCHVISION).partition("@")
    with encoders.loading_errors(key, source, "torchvision:<name> of a classifier, or torchvision:<name>@<file of weights>"):
        newest = torchvision.models.get_model_weights(name).DEFAULT
        how = {"transform_input": True, "init_weights": False} if name in ("googlenet", "inception_v3") else {}  # as their weights ask
        model = torchvision.models.get_model(name, weights=None, num_classes=len(labels) if file else CATEGORIES, **how)
        if not file:
            model.load_state_dict(newest.get_state_dict(check_hash=True, weights_only=True))
    if file:
        weights.load(model, paths.resolve(file), key=key)
    transform = newest.transforms()
    settings = {key: value for key, value in vars(transform).items() if not key.startswith("_") and key != "training"}
    return model, transform, settings | {"interpolation": transform.interpolation.value}, []


def features(given: Any, model: Any, *, both: bool) -> Tensor:
    """What a linear head sees of a transformers backbone: the class token (with `both` then the mean patch), else the mean."""
    hidden = given.last_hidden_state
    if hidden.ndim == 4:
        return hidden.mean(dim=(2, 3))
    if not any(name.endswith("cls_token") for name, _ in model.named_parameters()):
        return hidden.mean(dim=1)
    patches = hidden[:, 1 + getattr(model.config, "num_register_tokens", 0) :]
    return torch.cat([hidden[:, 0], patches.mean(dim=1)], dim=1) if both else hidden[:, 0]


def linear_head(key: str, source: str, labels: list[str]) -> LoadedClassifier:
    """The linear head of a file (weight [classes, features], bias) on frozen features: pooled ones of timm, or `features` of transformers.

    On a timm vision transformer also what `registry.probe` reads: class token and mean patch, of the last block or the last four.
    """
    file, _, backbone = source.removeprefix(LINEAR).partition("@")
    path = paths.resolve(file)
    with sources.errors_naming(key):
        shape = weights.shapes(weights.renamed(weights.read_weights(path), path)).get("weight", (0, 0))
    if backbone.startswith(HUGGING_FACE):
        model, folder = pretrained(key, backbone, AutoModel, unused=("pooler.", "classifier.", "head."))
        transform, settings = processor(key, backbone, folder)
        width = model.config.hidden_sizes[-1] if hasattr(model.config, "hidden_sizes") else model.config.hidden_size
        frozen: Any = Output(model, partial(features, model=model, both=shape[-1] == 2 * width))
    else:
        frozen, transform = encoders.timm_model(key, backbone, "cpu")
        settings, width = encoders.preprocessing(frozen, key), frozen.num_features
        frozen.reset_classifier(0)
        if shape[-1] != width and hasattr(frozen, "forward_intermediates") and hasattr(frozen, "embed_dim"):
            return registry.probe(frozen, path, features="", key=key), transform, settings, []
    demand(shape[-1] in (width, 2 * width), f"{key}: {path}, features of the linear head", shape[-1], f"{width}, those of {backbone}")
    head = nn.Linear(shape[-1], shape[0], device="meta")
    weights.load(head, path, key=key)
    return nn.Sequential(frozen, head), transform, settings, []


class Session(nn.Module):
    """An ONNX file as a network: its first input takes the pictures, its first output are the scores; on the CPU."""

    def __init__(self, path: Path):
        super().__init__()
        try:
            runtime = importlib.import_module("onnxruntime")
        except ImportError:
            raise ValueError("the package onnxruntime is not installed; `pip install onnxruntime` adds it") from None
        self.session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
        self.input = self.session.get_inputs()[0]

    def forward(self, pixels: Tensor) -> Tensor:
        """Class scores of normalised images, one by one where the file says so."""
        size = self.input.shape[0] if isinstance(self.input.shape[0], int) else len(pixels)
        parts = [self.session.run(None, {self.input.name: part.cpu().numpy()})[0] for part in pixels.split(size)]
        return torch.from_numpy(np.concatenate(parts)).to(pixels.device)


def onnx_file(key: str, source: str, labels: list[str]) -> LoadedClassifier:
    """A directory with model.onnx and, as optimum exports it, preprocessor_config.json; config.json may name its outputs (id2label)."""
    folder = paths.resolve(source.removeprefix(ONNX))
    weights.refuse_code(folder, key=key)
    with encoders.loading_errors(key, source, "a directory with model.onnx and preprocessor_config.json"):
        network = Session(folder / "model.onnx")
    config = folder / "config.json"
    by_place = sources.document(config, key=key).get("id2label", {}) if config.exists() else {}
    names = [by_place[place] for place in sorted(by_place, key=int)]
    return network, *processor(key, source, str(folder)), [] if names == [f"LABEL_{place}" for place in by_place] else names
