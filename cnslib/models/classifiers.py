"""Image classifiers: logits for a list of labels from uint8 pictures, each with its own preprocessing.

A classifier is the paper's (`registry:`), a directory or a name of timm, zero-shot open_clip, or one's own: any module, or a timm,
open_clip or transformers model by name.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Float, UInt8
from PIL import Image
from timm.data import create_transform, resolve_data_config
from timm.data.constants import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD
from torch import Tensor, nn
from transformers import AutoImageProcessor, AutoModelForImageClassification

from cnslib.core import paths, sources, units
from cnslib.core.names import demand
from cnslib.data import imagenet
from cnslib.models import efficientnet_lite, encoders, registry
from cnslib.models.weights import refuse_code

PROMPT = "a picture of a {label}"  # of zero-shot classifiers
HUGGING_FACE = "transformers:"
ACCEPTED = (
    "a torch module, a timm or open_clip directory, timm:<name>, open_clip:<name>/<tag>, transformers:<directory or id>, "
    f"{efficientnet_lite.ACCEPTED}"
)


@dataclass(frozen=True)
class Classifier:
    """A frozen model whose outputs are one logit per label, with the preprocessing that belongs to it."""

    name: str
    source: str
    labels: list[str]
    network: Callable[[Tensor], Tensor]
    transform: Callable[[Image.Image], Tensor]
    settings: dict[str, Any]  # of the transform
    parameters: int  # trained values that act when an image is classified; running statistics are none
    device: str
    chosen: str = "model"  # whose preprocessing that is: "model" or "paper"

    @torch.inference_mode()
    def logits(self, images: UInt8[np.ndarray, "batch height width 3"] | Sequence) -> Float[Tensor, "batch labels"]:
        """Logits in fp32, on the CPU, of uint8 images: one array, or a list of pictures of any sizes."""
        inputs = torch.stack([self.transform(Image.fromarray(np.asarray(picture))) for picture in images])
        return self.network(inputs.to(self.device)).float().cpu()

    @property
    def preprocessing(self) -> str:
        """Stored with every prediction: "paper", or a short digest of the model's own preprocessing."""
        return "paper" if self.chosen == "paper" else units.digest(self.settings)[:12]

    @property
    def digest(self) -> str:
        """A digest of the model, see the function of this name."""
        return digest(self.source)

    def class_probability(self, images: UInt8[np.ndarray, "batch height width 3"]) -> Float[Tensor, "batch labels"]:
        """Probability of each label, in the order of `labels`."""
        starts = range(0, len(images), encoders.BATCH)
        return torch.cat([self.logits(images[start : start + encoders.BATCH]) for start in starts]).softmax(dim=1)

    def describe(self) -> dict[str, Any]:
        """Where the model comes from, its size and its preprocessing."""
        return {"model": self.name, "source": self.source, "parameters": self.parameters, **self.settings}


def load(name: str, source: str, labels: list[str], device: str = "cpu", *, preprocessing: str = "model") -> Classifier:
    """The classifier called `name`: a timm or open_clip directory, "timm:<name>", "open_clip:<name>/<tag>" or "registry:<name>".

    `preprocessing` is "model" (the model's own) or "paper" (see `paper_settings`). Errors name the classifier.
    """
    key = f"evaluation.classifiers.{name}"
    demand(preprocessing in ("model", "paper"), "evaluation.preprocessing", preprocessing, "model, paper")
    network, transform, settings = read(key, source, labels, device)
    if preprocessing == "paper":
        settings = paper_settings(settings["input_size"])
        transform = create_transform(**settings)
    return Classifier(name, source, list(labels), network, transform, settings, size(network), device, preprocessing)


def read(key: str, source: str, labels: list[str], device: str) -> tuple[nn.Module, Callable, dict[str, Any]]:
    """A classifier's network, its transform, and the transform's settings."""
    if source.startswith(encoders.OPEN_CLIP) or (paths.resolve(source) / encoders.CLIP_FILES[0]).exists():
        return zero_shot(key, source, labels, device)
    if source.startswith(registry.PREFIX):
        accepted = f"ImageNet's 1000 names, published/imagenet1000.json: {source} answers with these"
        demand(labels == list(imagenet.labels()), f"{key}, names in base.labels", len(labels), accepted)
        model, settings = registry.build(source, key=key)
        return model.to(device), create_transform(**settings), settings
    model, transform = encoders.timm_model(key, source, device)
    if model.num_classes != len(labels):
        raise ValueError(f"{key}: {source} has {model.num_classes} outputs, labels name {len(labels)}; accepted: as many outputs as labels")
    return model, transform, resolve_data_config({}, model=model)


def zero_shot(key: str, source: str, labels: list[str], device: str) -> tuple[nn.Module, Callable, dict[str, Any]]:
    """An open_clip model as a classifier, with one prompt per label."""
    with sources.named(key):
        clip = encoders.Clip(source, device=device)
        texts = clip.text_features([PROMPT.format(label=label) for label in labels]).to(device)
    settings = dict(clip.model.visual.preprocess_cfg)
    side = settings.pop("size")
    settings["input_size"] = (3, *((side, side) if isinstance(side, int) else side))
    return encoders.ZeroShot(clip, texts.T).eval(), clip.transform, settings


def size(model: nn.Module) -> int:
    """Number of trained values of a module."""
    return sum(parameter.numel() for parameter in model.parameters())


def paper_settings(input_size: tuple[int, int, int]) -> dict[str, Any]:
    """The authors' preprocessing of every model: Resize 256, CenterCrop 224, bicubic, ImageNet mean and standard deviation.

    Scaled to the model's input size. Inputs above 224 px, that is the authors' one 336-px model, are not cropped.
    """
    crop = 224 / 256 if input_size[-1] <= 224 else 1.0
    statistics = {"mean": IMAGENET_DEFAULT_MEAN, "std": IMAGENET_DEFAULT_STD}
    return {"input_size": tuple(input_size), "interpolation": "bicubic", "crop_pct": crop, "crop_mode": "center", **statistics}


def own_classifier(
    model: nn.Module | str,
    *,
    name: str,
    labels: list[str],
    transform: Callable[[Image.Image], Tensor] | None = None,
    device: str = "cpu",
) -> Classifier:
    """A classifier called `name`, whose outputs are one logit for each of `labels`, in their order.

    `transform` turns a picture into the module's input; models by name and timm modules bring their own. Weights are frozen.
    """
    demand(isinstance(model, (str, nn.Module)), "model", model, ACCEPTED)
    demand(isinstance(model, nn.Module) or transform is None, "transform", transform, f"none beside the name {model!r}, which has its own")
    if isinstance(model, str) and model.startswith(efficientnet_lite.PREFIX):
        model = efficientnet_lite.network(model)
    if isinstance(model, nn.Module):
        found = module(model, name, labels, transform, device)
    else:
        found = (hugging_face if model.startswith(HUGGING_FACE) else load)(name, model, labels, device)
    logits, wanted = found.logits(np.full((1, 64, 64, 3), 128, np.uint8)), (1, len(labels))
    if tuple(logits.shape) != wanted:
        raise ValueError(f"{name}: outputs of shape {tuple(logits.shape)} for one picture; accepted: {wanted}, one per label")
    if not torch.isfinite(logits).all():
        raise ValueError(f"{name}: outputs {logits.flatten()[:3].tolist()} are not finite; accepted: logits")
    return found


def digest(source: str) -> str:
    """A digest of a named model: of its files where they lie on this machine, else of its name; of the registry also how it is built."""
    if source.startswith(efficientnet_lite.PREFIX):
        return units.file_digest(efficientnet_lite.weights_file(source.removeprefix(efficientnet_lite.PREFIX)))
    if source.startswith(registry.PREFIX):
        return registry.source_digest(source)
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
    return Classifier(name, type(model).__name__, list(labels), frozen, transform, settings, size(model), device)


def hugging_face(name: str, source: str, labels: list[str], device: str) -> Classifier:
    """An image classifier of the transformers library, from a directory or an id; pickled weights are not accepted."""
    place = source.removeprefix(HUGGING_FACE)
    if (folder := paths.resolve(place)).is_dir():
        refuse_code(folder, key=name)
        place = str(folder)
    with encoders.named_errors(name, source, "a directory or id of a transformers image classifier with safetensors weights"):
        model = AutoModelForImageClassification.from_pretrained(place, use_safetensors=True, trust_remote_code=False)  # the user names it  # nosec B615
        processor = AutoImageProcessor.from_pretrained(place, use_fast=False, trust_remote_code=False)  # nosec B615
    frozen = model.to(device).eval().requires_grad_(False)
    settings = {key: value for key, value in processor.to_dict().items() if isinstance(value, (int, float, str, list, dict))}
    pair = lambda pixels: frozen(pixels).logits, lambda image: processor(image, return_tensors="pt")["pixel_values"][0]
    return Classifier(name, source, list(labels), *pair, settings, size(model), device)


def load_oracle(source: str, *, labels: list[str], device: str = "cpu") -> encoders.Oracle:
    """The oracle in a directory, or in its place one of the paper's classifiers ("registry:<model>"), not one of those that are judged."""
    if not source.startswith(registry.PREFIX):
        return encoders.Oracle(source, labels=labels, device=device)
    return cast(encoders.Oracle, load("oracle", source, labels, device))  # which knows no shift and no severity
