"""Image classifiers: logits for a list of labels from uint8 pictures, each with its own preprocessing.

A classifier is the paper's (`registry:`), a directory or a name of timm, zero-shot open_clip, or one's own: any module, or a timm,
open_clip or transformers model by name.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import open_clip
import torch
from jaxtyping import Float, UInt8
from PIL import Image
from timm.data import create_transform
from timm.data.constants import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD
from torch import Tensor, nn

from cnslib.core import paths, sources, units
from cnslib.core.names import demand
from cnslib.data import imagenet
from cnslib.models import efficientnet_lite, encoders, outside, registry

PROMPT = "a picture of a {label}"  # of zero-shot classifiers
ACCEPTED = (
    f"a torch module, a timm or open_clip directory, timm:<name>, open_clip:<name>/<tag>, {outside.ACCEPTED}, {efficientnet_lite.ACCEPTED}"
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
    probabilities: bool = False  # whether the network gives these, whose logarithms are the logits

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

    def class_probability(self, images: UInt8[np.ndarray, "batch height width 3"] | Sequence) -> Float[Tensor, "batch labels"]:
        """Probability of each label, in the order of `labels`."""
        starts = range(0, len(images), encoders.BATCH)
        return torch.cat([self.logits(images[start : start + encoders.BATCH]) for start in starts]).softmax(dim=1)

    def describe(self) -> dict[str, Any]:
        """Where the model comes from, its size and its preprocessing."""
        return {"model": self.name, "source": self.source, "parameters": self.parameters, **self.settings}


def load(name: str, source: str, labels: list[str], device: str = "cpu", *, preprocessing: str = "model") -> Classifier:
    """The classifier called `name`: a timm or open_clip directory, "timm:<name>", "open_clip:<name>/<tag>" or "registry:<name>".

    `labels` are the data's; outputs that a model names itself are called so (see `output_names`). `preprocessing` is "model" (the
    model's own) or "paper" (see `paper_settings`).
    """
    key = f"evaluation.classifiers.{name}"
    demand(preprocessing in ("model", "paper"), "evaluation.preprocessing", preprocessing, "model, paper")
    network, transform, settings, output_labels = read(key, source, labels, device, templates=False)
    if preprocessing == "paper":
        demand("input_size" in settings, "evaluation.preprocessing", preprocessing, f"model, which {source} needs")
        settings = paper_settings(settings["input_size"])
        transform = create_transform(**settings)
    names = output_names(key, output_labels, labels)
    return tried(key, Classifier(name, source, names, network, transform, settings, size(network), device, preprocessing), count=1)


def read(key: str, source: str, labels: list[str], device: str, *, templates: bool) -> outside.LoadedClassifier:
    """A classifier's network, its transform, the transform's settings, and its own names of outputs; `templates` are for `zero_shot`."""
    if loaded := outside.read(key, source, labels, device):
        return loaded
    if source.startswith(encoders.OPEN_CLIP) or (paths.resolve(source) / encoders.CLIP_FILES[0]).exists():
        return *zero_shot(key, source, labels, device, templates=templates), []
    if source.startswith(registry.PREFIX):
        accepted = f"ImageNet's 1000 names, published/imagenet1000.json: {source} answers with these"
        demand(labels == list(imagenet.labels()), f"{key}, names in base.labels", len(labels), accepted)
        model, settings = registry.build(source, key=key)
        return model.to(device), create_transform(**settings), settings, timm_names(model)
    model, transform = encoders.timm_model(key, source, device)
    return model, transform, encoders.preprocessing(model, key), timm_names(model)


def timm_names(model: nn.Module) -> list[str]:
    """How a timm model describes its outputs, or names them; none where it does neither."""
    config = getattr(model, "pretrained_cfg", {})
    descriptions = config.get("label_descriptions") or {}
    return [descriptions.get(name, name) for name in config.get("label_names") or ()]


def output_names(key: str, model_names: Sequence[str], labels: list[str]) -> list[str]:
    """What each output is called: by the names a model has itself (`model_names`), in the data's spelling, else by the data's `labels`.

    A name may list synonyms, as those of ImageNet do. ValueError where a label of the data is none of the model's names.
    """
    words = [[word.strip().casefold() for word in name.split(",")] for name in model_names]
    plain = [label.rpartition(" (n")[0] or label for label in labels]  # of ImageNet's, two pairs of which share their first word
    if not model_names or (
        len(model_names) == len(labels) and all(label.casefold() in synonyms for label, synonyms in zip(plain, words, strict=True))
    ):
        return list(labels)
    spelled = {label.casefold(): label for label in labels}
    names = [next((spelled[word] for word in synonyms if word in spelled), name) for name, synonyms in zip(model_names, words, strict=True)]
    for label in labels:
        accepted = f"names among which are the data's, {', '.join(labels[:3])} ...; or a list of what its outputs are (--labels)"
        demand(label in names, f"{key}: no output is called {label!r}, names that the model gives itself", names[:3], accepted)
    return names


def zero_shot(key: str, source: str, labels: list[str], device: str, *, templates: bool) -> tuple[nn.Module, Callable, dict[str, Any]]:
    """An open_clip model as a classifier, with one prompt per label, or with `templates` the 80 that the paper's CLIPs got.

    ImageNet's classes then have open_clip's cleaned names. A text encoder whose context would cut a template off gets the one prompt.
    """
    with sources.errors_naming(key):
        clip = encoders.Clip(source, device=device)
        settings = dict(clip.model.visual.preprocess_cfg)
        side = settings.pop("size")
        settings["input_size"] = (3, *((side, side) if isinstance(side, int) else side))
        names = open_clip.IMAGENET_CLASSNAMES if labels == list(imagenet.labels()) else labels
        if templates and not clip.cut([template(name) for name in names for template in open_clip.OPENAI_IMAGENET_TEMPLATES]):
            return registry.zero_shot(clip, names).eval(), clip.transform, settings | {"prompts": "the 80 of CLIP for ImageNet"}
        texts = clip.text_features([PROMPT.format(label=label) for label in labels]).to(device)
    return encoders.ZeroShot(clip, texts.T).eval(), clip.transform, settings | ({"prompts": PROMPT} if templates else {})


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


def user_classifier(
    model: nn.Module | str,
    *,
    name: str,
    labels: list[str],
    outputs: list[str] | None = None,
    transform: Callable[[Image.Image], Tensor] | None = None,
    device: str = "cpu",
) -> Classifier:
    """A classifier called `name` of pictures of `labels`; `outputs` names its outputs, else it does (see `output_names`).

    `transform` turns a picture into the module's input; models by name and timm modules bring their own. Weights are frozen.
    """
    require_device(device)
    demand(isinstance(model, (str, nn.Module)), "model", model, ACCEPTED)
    demand(isinstance(model, nn.Module) or transform is None, "transform", transform, f"none beside the name {model!r}, which has its own")
    if isinstance(model, str) and model.startswith(efficientnet_lite.PREFIX):
        model = efficientnet_lite.network(model)
    if isinstance(model, nn.Module):
        classifier = module(model, name, outputs or labels, transform, device)
    else:
        network, transform, settings, output_labels = read(name, model, outputs or labels, device, templates=True)
        names = outputs or output_names(name, output_labels, labels)
        classifier = Classifier(name, model, list(names), network, transform, settings, size(network), device)
    return tried(name, classifier)


def require_device(device: str) -> None:
    """Raises ValueError unless torch can compute on a device of this name."""
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        first = str(error).splitlines()[0][:100]
        raise ValueError(f"device: {device!r} is not accepted ({first}); accepted: cpu, or a device of this machine") from None


@torch.inference_mode()
def tried(key: str, classifier: Classifier, *, count: int = 4) -> Classifier:
    """The classifier after a look at its outputs for pictures of noise: together and, of more than one, alone and together again.

    ValueError for outputs that are not one finite number per label. Rows that are probabilities become logits. Warns if the outputs
    for a picture depend on the others of its batch, as with batch normalisation in training mode, or on chance.
    """
    pictures = np.random.default_rng(0).integers(0, 256, (count, 64, 64, 3), dtype=np.uint8)
    with encoders.loading_errors(key, classifier.source, "a model that classifies colour pictures"):
        logits = classifier.logits(pictures)
        others = [classifier.logits(pictures), torch.cat([classifier.logits(one[None]) for one in pictures])] if count > 1 else []
    if tuple(logits.shape) != (count, len(classifier.labels)):
        has = f"{logits.shape[1]} outputs" if logits.ndim == 2 else f"outputs of shape {tuple(logits.shape[1:])}"
        raise ValueError(f"{key}: {classifier.source} has {has}, labels name {len(classifier.labels)}; accepted: as many outputs as labels")
    if not torch.isfinite(logits).all():
        raise ValueError(f"{key}: outputs {logits.flatten()[:3].tolist()} are not finite; accepted: logits")
    differences = torch.stack([other - logits for other in [logits, *others]]).abs().amax(dim=(0, 2))
    if changed := int((differences > 1e-2 * logits.std()).sum()):
        fault = f"the outputs for {changed} of {count} pictures depend on the other pictures of the batch, or on chance"
        warnings.warn(f"{key}: {fault}; is a layer in training mode?", stacklevel=3)
    if (logits >= 0).all() and torch.allclose(logits.sum(dim=1), torch.ones(count), atol=1e-3):
        network = classifier.network
        return replace(classifier, network=lambda pixels: network(pixels).clamp(min=1e-12).log(), probabilities=True)
    return classifier


def digest(source: str) -> str:
    """A digest of a named model: of its files where they lie on this machine, else of its name; of the registry also how it is built."""
    if source.startswith(efficientnet_lite.PREFIX):
        return units.file_digest(efficientnet_lite.weights_file(source.removeprefix(efficientnet_lite.PREFIX)))
    if source.startswith(registry.PREFIX):
        return registry.source_digest(source)
    return outside.digest(source)


def module(model: nn.Module, name: str, labels: list[str], transform: Callable | None, device: str) -> Classifier:
    """A module with its transform."""
    if transform is not None:
        settings: dict[str, Any] = {"transform": getattr(transform, "__qualname__", repr(transform))}
    else:
        demand(hasattr(model, "pretrained_cfg"), "transform", None, "a function from a PIL picture to the module's input tensor")
        settings = encoders.preprocessing(model, name)
        transform = create_transform(**settings)
    frozen = model.to(device).eval().requires_grad_(False)
    return Classifier(name, type(model).__name__, list(labels), frozen, transform, settings, size(model), device)


def load_oracle(source: str, *, labels: list[str], device: str = "cpu") -> encoders.Oracle:
    """What `base.oracle` names: an oracle's directory, or any classifier of the labels, which knows no shift and no severity."""
    file = paths.resolve(source) / encoders.TIMM_FILES[0]
    outputs = sources.document(file, key="oracle").get("num_classes") if file.exists() else None
    if ":" in source or outputs == len(labels) or (file.parent / encoders.CLIP_FILES[0]).exists():
        return cast(encoders.Oracle, load("oracle", source, labels, device))
    return encoders.Oracle(source, labels=labels, device=device)
