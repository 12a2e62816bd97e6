"""Models that look at images for the benchmark: CLIP (open_clip), a self-supervised image encoder and the oracle (both timm)."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import open_clip
import timm
import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from PIL import Image
from timm.data import create_transform, resolve_data_config
from torch import Tensor, nn

from cnslib.core import paths, units
from cnslib.core.names import SHIFTS, demand
from cnslib.core.sources import document, errors_naming, require_recorded
from cnslib.models import networks, vmamba, weights  # noqa: F401  (the first two register networks with timm)

BATCH = 64  # images per forward pass
FORMAT = torch.channels_last  # of weights and pictures: convolutions and pooling take two thirds of their time on a CPU
OPEN_CLIP = "open_clip:"  # of a source that names a model and its weights
CLIP_FILES = ("open_clip_config.json", "open_clip_model.safetensors")
TIMM_FILES = ("config.json", "model.safetensors")


class Clip:
    """Text and image features, each of length 1, of an open_clip model: a directory or "open_clip:<name>/<tag>" (Radford et al. 2021)."""

    def __init__(self, source: str, *, device: str = "cpu"):
        name, tag = clip_name(source)
        with loading_errors("clip", source, "a directory of an open_clip model, or open_clip:<name>/<tag>"):
            self.model, _, self.transform = open_clip.create_model_and_transforms(name, tag, load_weights=tag is not None)
            self.tokenizer = tokenizer(name)
        if tag is None:  # open_clip itself resamples what does not fit
            weights.load(self.model, paths.resolve(source) / CLIP_FILES[1], key="clip")
        self.model.to(device).eval().requires_grad_(False).to(memory_format=FORMAT)
        self.device, self.digest = device, source_digest(source)

    def image_features(self, images: UInt8[np.ndarray | Tensor, "batch height width 3"] | Sequence) -> Float[Tensor, "batch features"]:
        """Features of images, or of a list of pictures of any sizes, on the CPU."""
        return F.normalize(batched(self.model.encode_image, self.transform, images, self.device), dim=1)

    @torch.no_grad()
    def text_features(self, texts: list[str]) -> Float[Tensor, "texts features"]:
        """Features of texts, on the CPU. Raises ValueError for a text that the model's context would cut off silently."""
        tokens = self.tokenizer(texts)
        if cut := self.cut(texts):
            raise ValueError(f"text {cut[0]!r} is longer than the {tokens.shape[1]} tokens of the text-image encoder")
        return F.normalize(self.model.encode_text(tokens.to(self.device)).float().cpu(), dim=1)

    def cut(self, texts: list[str]) -> list[str]:
        """The texts that are longer than the model's context."""
        tokens = self.tokenizer(texts)
        longer = self.tokenizer(texts, context_length=2 * tokens.shape[1])
        return [text for text, short, long in zip(texts, tokens, longer, strict=True) if not torch.equal(short, long[: len(short)])]


class ZeroShot(nn.Module):
    """CLIP as a classifier (Radford et al. 2021): scaled cosine of the image with one text feature per class, which plays the head.

    SigLIP (Zhai et al. 2023) has a bias beside the scale: its probability of each class is a sigmoid, of which these are logarithms.
    """

    def __init__(self, clip: Clip, texts: Float[Tensor, "features classes"]):
        super().__init__()
        self.visual, self.texts = clip.model.visual, nn.Parameter(texts, requires_grad=False)
        self.scale, self.bias = clip.model.logit_scale.exp().item(), getattr(clip.model, "logit_bias", None)

    def forward(self, image: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch classes"]:
        """Class scores of normalised images."""
        cosines = self.scale * F.normalize(self.visual(image), dim=1) @ self.texts
        return cosines if self.bias is None else F.logsigmoid(cosines + self.bias)


class ImageEncoder:
    """Features of a timm model (a directory or "timm:<name>") without its head, of length 1; of a ViT the class token (paper: DINOv2)."""

    def __init__(self, source: str, *, device: str = "cpu"):
        self.model, self.transform = timm_model("image_encoder", source, device)
        self.model.to(memory_format=FORMAT).reset_classifier(0)  # type: ignore[operator]
        self.device, self.digest = device, source_digest(source)

    def features(self, images: UInt8[np.ndarray | Tensor, "batch height width 3"] | Sequence) -> Float[Tensor, "batch features"]:
        """Features of images, on the CPU."""
        return F.normalize(batched(self.model, self.transform, images, self.device), dim=1)


class Oracle:
    """The mini world's stand-in for human labels: class, shift and severity of an image from one timm model.

    Its outputs are a logit for each label, one for each of the 14 shifts and "unshifted", and the logit of the severity.
    """

    def __init__(self, source: str, *, labels: list[str], device: str = "cpu"):
        self.model, self.transform = timm_model("oracle", source, device)
        self.labels, self.device, self.digest = labels, device, source_digest(source)
        self.model.to(memory_format=FORMAT)
        outputs, expected = cast(int, self.model.num_classes), len(labels) + len(SHIFTS) + 2
        demand(outputs == expected, f"oracle, outputs of {source}", outputs, f"{expected}, for {len(labels)} labels")

    def parts(self, images: UInt8[np.ndarray | Tensor, "batch height width 3"] | Sequence) -> tuple[Tensor, Tensor, Tensor]:
        """Logits of class, shift and severity."""
        logits = batched(self.model, self.transform, images, self.device)
        return logits.split([len(self.labels), len(SHIFTS) + 1, 1], dim=1)

    def class_probability(self, images: UInt8[np.ndarray | Tensor, "batch height width 3"] | Sequence) -> Float[Tensor, "batch labels"]:
        """Probability of each label, in the order of `labels`."""
        return self.parts(images)[0].softmax(dim=1)


def read_labels(path: str) -> list[str]:
    """What each classifier output is called: a JSON list of distinct names; errors name the key `labels`."""
    file, accepted = paths.resolve(path), "a JSON list with a distinct name for each classifier output"
    if not file.exists():
        raise FileNotFoundError(f"labels: {file} does not exist; accepted: {accepted}")
    names = document(file, key="labels")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"labels: {file} holds {str(names)[:40]}; accepted: {accepted}")
    twice = sorted({name for name in names if names.count(name) > 1})
    demand(not twice, f"labels: {file}, names that stand twice", twice[:2], accepted)
    return names


@torch.no_grad()
def batched(
    model: Callable[[Tensor], Tensor],
    transform: Callable[[Image.Image], Tensor],
    images: UInt8[np.ndarray | Tensor, "batch height width 3"] | Sequence,
    device: str,
) -> Float[Tensor, "batch features"]:
    """A model's outputs in fp32, on the CPU, for images under its own preprocessing: one array, or a list of pictures of any sizes."""
    parts = []
    for start in range(0, len(images), BATCH):
        inputs = torch.stack([transform(Image.fromarray(np.asarray(picture))) for picture in images[start : start + BATCH]])
        parts.append(model(inputs.to(device, memory_format=FORMAT)).float().cpu())
    return torch.cat(parts)


def clip_name(source: str) -> tuple[str, str | None]:
    """What open_clip calls a model: a checked local directory, or a name with the tag of its weights."""
    if not source.startswith(OPEN_CLIP):
        folder = checked("clip", source, CLIP_FILES)
        config = document(folder / CLIP_FILES[0], key="clip")
        demand("preprocess_cfg" in config, f"clip: {folder / CLIP_FILES[0]}", list(config), "the entry preprocess_cfg (size, mean, std)")
        return f"local-dir:{folder}", None
    name, _, tag = source.removeprefix(OPEN_CLIP).partition("/")  # open_clip would read a place in the name unchecked
    demand(":" not in name, f"clip, model in {source}", name, f"{OPEN_CLIP}<name>/<tag>, or a directory by its path")
    demand(bool(tag), "clip, weights of the model", source, f"{OPEN_CLIP}<name>/<tag>")
    return name, tag


def tokenizer(name: str) -> Callable:
    """The tokenizer of an open_clip model; one of transformers runs no Python of its makers, whatever the model's configuration says."""
    text = (open_clip.get_model_config(name) or {}).get("text_cfg", {})
    return open_clip.get_tokenizer(name, **({"trust_remote_code": False} if text.get("hf_tokenizer_name") else {}))


def timm_model(key: str, source: str, device: str) -> tuple[nn.Module, Callable]:
    """A frozen timm model and its preprocessing, from a directory or "timm:<name>"; errors name the parameter `key`."""
    folder = None if source.startswith("timm:") else checked(key, source, TIMM_FILES)
    name = f"local-dir:{folder}" if folder else source.removeprefix("timm:")
    with loading_errors(key, source, "a directory of a timm model, or timm:<name>"):
        model = timm.create_model(name, pretrained=folder is None)
    if folder:  # timm itself leaves out a head of another size, and resamples what does not fit
        weights.load(model, folder / TIMM_FILES[-1], key=key)
    return model.to(device).eval().requires_grad_(False), create_transform(**preprocessing(model, key))


def preprocessing(model: nn.Module, key: str) -> dict[str, Any]:
    """The settings of a timm model's own test transform: where its release was validated at another size than trained, that size."""
    settings = resolve_data_config({}, model=model, use_test_size=True)
    demand(settings["input_size"][0] == 3, f"{key}, channels of the input", settings["input_size"][0], "3, of colour pictures")
    return settings


def checked(key: str, source: str, files: tuple[str, ...]) -> Path:
    """The absolute path of a model directory, after a look at its files: the last one holds the weights."""
    folder = paths.resolve(source)
    for path in (folder, *(folder / file for file in files)):
        if not path.exists():
            raise FileNotFoundError(f"{key}: {path} does not exist; accepted: a folder with {' and '.join(files)}")
    require_recorded(folder, key=key)
    weights.refuse_code(folder, key=key)
    with errors_naming(key):
        weights.header(folder / files[-1])
    return folder


@contextlib.contextmanager
def loading_errors(key: str, source: str, accepted: str) -> Iterator[None]:
    """Turns whatever a model library raises into one ValueError that names parameter, source and what is accepted."""
    try:
        yield
    except Exception as error:
        short = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise ValueError(f"{key}: {source} cannot be loaded ({short}); accepted: {accepted}") from error


def source_digest(source: str) -> str:
    """A digest of a model: of its directory's files, or of its name."""
    folder = paths.resolve(source)
    return units.directory_digest(folder) if folder.is_dir() else units.digest(source)
