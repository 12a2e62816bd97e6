"""Image classifiers at the edge of the library: timm, zero-shot open_clip, the paper's 43; each with its own preprocessing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from PIL import Image
from timm.data import create_transform, resolve_data_config
from timm.data.constants import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD
from torch import Tensor, nn

import cnslib.alexnet
import cnslib.backbones  # noqa: F401  (registers mixer_64 and vit_64)
from cnslib import encoders, imagenet, paths, registry, units
from cnslib.config import demand

PROMPT = "a picture of a {label}"  # of zero-shot classifiers
CLIP_CONFIG = "open_clip_config.json"


@dataclass(frozen=True)
class Classifier:
    """A frozen model whose outputs are one logit per label, with the preprocessing that belongs to it."""

    name: str
    source: str
    labels: list[str]
    network: Callable[[Tensor], Tensor]
    transform: Callable[[Image.Image], Tensor]
    settings: dict[str, Any]  # of the transform
    parameters: int  # weights that act when an image is classified
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

    def describe(self) -> dict[str, Any]:
        """What a reader wants to know: where the model comes from, its size and its preprocessing."""
        return {"model": self.name, "source": self.source, "parameters": self.parameters, **self.settings}


def load(name: str, source: str, labels: list[str], device: str = "cpu", *, preprocessing: str = "model") -> Classifier:
    """The classifier called `name`: a timm or open_clip directory, "timm:<name>", "open_clip:<name>/<tag>" or "registry:<name>".

    `preprocessing` is "model" (the model's own) or "paper" (ImageNet statistics for all, see `paper_settings`). Raises
    FileNotFoundError for a missing directory or file, ValueError for unreadable weights and for a model whose number of
    outputs is not the number of labels; both name the classifier.
    """
    key = f"evaluation.classifiers.{name}"
    demand(preprocessing in ("model", "paper"), "evaluation.preprocessing", preprocessing, "model, paper")
    network, transform, settings, size = reader(source)(key, source, labels, device)
    if preprocessing == "paper":
        settings = paper_settings(settings["input_size"])
        transform = create_transform(**settings)
    return Classifier(name, source, list(labels), network, transform, settings, size, device, preprocessing)


def reader(source: str) -> Callable:
    """What reads such a source."""
    if source.startswith(registry.PREFIX):
        return published
    return zero_shot if is_open_clip(source) else supervised


def source_digest(source: str) -> str:
    """A digest of a classifier: of its files, or of its name where they are not at a path."""
    return registry.source_digest(source) if source.startswith(registry.PREFIX) else encoders.source_digest(source)


def is_open_clip(source: str) -> bool:
    """Whether a source names an open_clip model or is the directory of one."""
    return source.startswith("open_clip:") or (paths.resolve(source) / CLIP_CONFIG).exists()


def supervised(key: str, source: str, labels: list[str], device: str) -> tuple[Callable, Callable, dict[str, Any], int]:
    """A timm classifier: its network, transform, the transform's settings and the number of weights."""
    model, _ = encoders.timm_model(key, source, device)
    if model.num_classes != len(labels):
        raise ValueError(f"{key}: {source} has {model.num_classes} outputs, labels name {len(labels)}; accepted: as many outputs as labels")
    settings = resolve_data_config({}, model=model)
    return model, create_transform(**settings), settings, weights(model)


def published(key: str, source: str, labels: list[str], device: str) -> tuple[Callable, Callable, dict[str, Any], int]:
    """One of the paper's 43 classifiers of ImageNet, as `supervised`."""
    if labels != list(imagenet.labels()):
        accepted = "ImageNet's 1000 names, published/imagenet1000.json"
        raise ValueError(f"{key}: {source} answers with ImageNet's classes, base.labels names {len(labels)} others; accepted: {accepted}")
    model, settings = registry.build(source, key=key)
    return model.to(device), create_transform(**settings), settings, weights(model)


def zero_shot(key: str, source: str, labels: list[str], device: str) -> tuple[Callable, Callable, dict[str, Any], int]:
    """An open_clip model as a classifier (Radford et al. 2021): scaled cosine of the image with one prompt per label.

    Its weights are those of the image tower and the labels' text features, which play the head; the text tower is done by then.
    """
    try:
        clip = encoders.Clip(source, device=device)
        texts = clip.text_features([PROMPT.format(label=label) for label in labels]).to(device)
    except (ValueError, FileNotFoundError) as error:
        raise type(error)(f"{key}: {error}") from error
    settings = dict(clip.model.visual.preprocess_cfg)
    size = settings.pop("size")
    settings["input_size"] = (3, *((size, size) if isinstance(size, int) else size))

    def network(pixels: Tensor) -> Tensor:
        features = nn.functional.normalize(clip.model.encode_image(pixels), dim=1)
        return clip.model.logit_scale.exp() * features @ texts.T

    return network, clip.transform, settings, weights(clip.model.visual) + texts.numel()


def weights(model: nn.Module) -> int:
    """Number of trained values of a module; running statistics are none."""
    return sum(parameter.numel() for parameter in model.parameters())


def paper_settings(input_size: tuple[int, int, int]) -> dict[str, Any]:
    """The authors' preprocessing of every model: Resize 256, CenterCrop 224, bicubic, ImageNet mean and standard deviation.

    Scaled to the model's input size. Inputs above 224 px, that is the authors' one 336-px model, are not cropped.
    """
    crop = 224 / 256 if input_size[-1] <= 224 else 1.0
    statistics = {"mean": IMAGENET_DEFAULT_MEAN, "std": IMAGENET_DEFAULT_STD}
    return {"input_size": tuple(input_size), "interpolation": "bicubic", "crop_pct": crop, "crop_mode": "center", **statistics}
