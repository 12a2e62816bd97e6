"""A classifier of your own as the benchmark asks classifiers: any module, or a timm, open_clip or transformers model by name."""

from collections.abc import Callable
from typing import Any

import torch
from PIL import Image
from timm.data import create_transform, resolve_data_config
from torch import Tensor, nn
from transformers import AutoImageProcessor, AutoModelForImageClassification

from cnslib import classifiers, encoders, lite, paths, pickles, units
from cnslib.classifiers import Classifier
from cnslib.config import demand

HUGGING_FACE = "transformers:"
ACCEPTED = (
    f"a torch module, a timm or open_clip directory, timm:<name>, open_clip:<name>/<tag>, transformers:<directory or id>, {lite.ACCEPTED}"
)


def guest(
    model: nn.Module | str,
    *,
    name: str,
    labels: list[str],
    transform: Callable[[Image.Image], Tensor] | None = None,
    device: str = "cpu",
) -> Classifier:
    """A classifier called `name`, whose outputs are one logit for each of `labels`, in their order.

    `transform` turns a picture into the module's input; timm modules bring their own. Weights are frozen. Raises ValueError for a
    module without a transform, a transform beside a name, outputs that do not fit the labels, and logits that are no numbers.
    """
    if isinstance(model, str):
        demand(transform is None, "transform", transform, f"none beside the name {model!r}: a named model has its own")
        found = named(model, name, labels, device)
    elif isinstance(model, nn.Module):
        found = module(model, name, labels, transform, device)
    else:
        raise ValueError(f"model: {model!r} is not accepted; accepted: {ACCEPTED}")
    require_logits(found)
    return found


def named(source: str, name: str, labels: list[str], device: str) -> Classifier:
    """A classifier by the name of its source."""
    if source.startswith(lite.PREFIX):
        return module(lite.network(source), name, labels, None, device)
    if source.startswith(HUGGING_FACE):
        return hugging_face(source, name, labels, device)
    return classifiers.load(name, source, labels, device)


def digest(source: str) -> str:
    """A digest of a named model: of its weights where they lie on this machine, else of its name."""
    if source.startswith(lite.PREFIX):
        return units.file_digest(lite.weights_file(source.removeprefix(lite.PREFIX)))
    return encoders.source_digest(source.removeprefix(HUGGING_FACE))


def module(model: nn.Module, name: str, labels: list[str], transform: Callable | None, device: str) -> Classifier:
    """A module with its transform."""
    if transform is not None:
        settings: dict[str, Any] = {"transform": getattr(transform, "__qualname__", repr(transform))}
    else:
        demand(hasattr(model, "pretrained_cfg"), "transform", None, "a function from a PIL picture to the module's input tensor")
        settings = resolve_data_config({}, model=model)
        transform = create_transform(**settings)
    frozen = model.to(device).eval().requires_grad_(False)
    return Classifier(name, type(model).__name__, list(labels), frozen, transform, settings, classifiers.weights(model), device)


def hugging_face(source: str, name: str, labels: list[str], device: str) -> Classifier:
    """An image classifier of the transformers library, from a directory or an id; pickled weights are not accepted."""
    place = source.removeprefix(HUGGING_FACE)
    if (folder := paths.resolve(place)).is_dir():
        pickles.refuse_code(folder, key=name)
        place = str(folder)
    with encoders.named_errors(name, source, "a directory or id of a transformers image classifier with safetensors weights"):
        model = AutoModelForImageClassification.from_pretrained(place, use_safetensors=True, trust_remote_code=False)
        processor = AutoImageProcessor.from_pretrained(place, use_fast=False, trust_remote_code=False)
    frozen = model.to(device).eval().requires_grad_(False)

    def transform(image: Image.Image) -> Tensor:
        return processor(image, return_tensors="pt")["pixel_values"][0]

    def network(pixels: Tensor) -> Tensor:
        return frozen(pixels).logits

    settings = {key: value for key, value in processor.to_dict().items() if isinstance(value, (int, float, str, list, dict))}
    return Classifier(name, source, list(labels), network, transform, settings, classifiers.weights(model), device)


def require_logits(classifier: Classifier) -> None:
    """Raises ValueError, naming the classifier, unless it answers a grey picture with one number per label."""
    grey = torch.full((1, 64, 64, 3), 128, dtype=torch.uint8).numpy()
    logits = classifier.logits(grey)
    wanted = (1, len(classifier.labels))
    if tuple(logits.shape) != wanted:
        raise ValueError(f"{classifier.name}: outputs of shape {tuple(logits.shape)} for one picture; accepted: {wanted}, one per label")
    if not torch.isfinite(logits).all():
        raise ValueError(f"{classifier.name}: outputs {logits.flatten()[:3].tolist()} are not finite; accepted: logits")
