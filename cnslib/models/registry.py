"""The paper's 43 classifiers (Table 4) as data, in published/classifiers43.csv, and how each is built from its weights."""

import difflib
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import open_clip
import pandas as pd
import timm
import torch
import torchvision
from jaxtyping import Float
from timm.data.constants import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD, OPENAI_CLIP_MEAN, OPENAI_CLIP_STD
from torch import Tensor, nn

from cnslib.core import paths, recipes, sources, units
from cnslib.core.names import demand
from cnslib.models import encoders, weights

REGISTRY = "classifiers43.csv"
PREFIX = "registry:"  # of a source that names a row
CLASSES = 1000
HALF = (0.5, 0.5, 0.5)
STATISTICS = {  # mean and standard deviation of the pixels
    "imagenet": (IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD),
    "clip": (OPENAI_CLIP_MEAN, OPENAI_CLIP_STD),
    "half": (HALF, HALF),
}


FLOATS = ("crop_pct", "table7_top1", "ce", "rce", "library_top1")  # columns of the registry; the others but `input_size` are texts
BUILDING = (  # the columns by which a model is built; the others say what is known about it
    *("kind", "architecture", "hub", "file", "head", "features", "pooling", "sha256"),
    *("input_size", "crop_pct", "interpolation", "statistics"),
)


class Entry(SimpleNamespace):
    """One row of the registry, by its columns, and where the weights are to be read: a local file or directory, else the hub.

    `architecture` is a name in the library of its kind (of open_clip name/tag), `head` the file of a linear head and `features` the order
    of what it sees, `sha256` the weights' or its first digits. Accuracies are shares of IN/val.
    """

    local = ""
    revision = ""

    @property
    def settings(self) -> dict[str, Any]:
        """The model's own preprocessing, as timm's `create_transform` takes it."""
        mean, std = STATISTICS[self.statistics]
        size = {"input_size": (3, self.input_size, self.input_size), "interpolation": self.interpolation}
        return {**size, "crop_pct": self.crop_pct, "crop_mode": "center", "mean": mean, "std": std}

    def pinned(self, key: str) -> Path:
        """The file of the weights."""
        return sources.resolve(self.local, self.hub, self.revision, self.sha256, key=key, file=self.file)


@cache
def entries() -> dict[str, Entry]:
    """Every row of the registry by name."""
    types = defaultdict(lambda: str, dict.fromkeys(FLOATS, float), input_size=int)
    table = pd.read_csv(paths.PUBLISHED / REGISTRY, dtype=types, keep_default_na=False, na_values={name: [""] for name in FLOATS})
    return {row["model"]: Entry(**row) for row in table.to_dict("records")}


def entry(name: str) -> Entry:
    """The registry's row of a classifier. ValueError suggests near names for an unknown one."""
    registered = entries()
    near = difflib.get_close_matches(name, registered, n=3, cutoff=0.5) or list(registered)
    demand(name in registered, "classifier of the paper", name, f"{', '.join(near)} (all {len(registered)} are in published/{REGISTRY})")
    return registered[name]


def parse(source: str, *, key: str) -> Entry:
    """The entry "registry:<model>[@<path>][;revision=<tag>][;sha256=<digits>]". ValueError names the key and what is accepted."""
    body, *options = source.removeprefix(PREFIX).split(";")
    name, _, local = body.partition("@")
    given = dict(option.partition("=")[::2] for option in options)
    demand(given.keys() <= {"revision", "sha256"}, key, source, f"{PREFIX}<model>[@<path>][;revision=<tag>][;sha256=<digits>]")
    return Entry(**vars(entry(name)) | {"local": local} | given)


def build(source: str, *, key: str) -> tuple[nn.Module, dict[str, Any]]:
    """One of the paper's classifiers, its outputs in the order of ImageNet's classes, and its own preprocessing; errors name `key`."""
    row = parse(source, key=key)
    special = {"timm": from_timm, "open_clip": from_open_clip, "linear_head": from_linear_head}
    return special.get(row.kind, from_checkpoint)(row, key).eval().requires_grad_(False), row.settings


def source_digest(source: str) -> str:
    """What such a source names: its text, the files at its path, and how its row says that the model is built."""
    parsed = parse(source, key="classifier")
    row = {name: getattr(entry(parsed.model), name) for name in BUILDING}
    path = paths.resolve(parsed.local)  # an empty one is the whole repository
    read = (units.directory_digest if path.is_dir() else units.file_digest) if parsed.local and path.exists() else lambda _: ""
    return units.digest(recipes.REGISTRY, source, read(path), row)


def from_timm(row: Entry, key: str, **arguments: Any) -> nn.Module:
    """A timm model with the weights of its own release, read strictly; position embeddings are resampled to the input."""
    path = row.pinned(key)
    overlay = {"file": str(path), "custom_load": False}  # the augreg models' own loader reads nothing but numpy archives
    with encoders.loading_errors(key, str(path), f"weights of timm's {row.architecture}"):
        model = timm.create_model(row.architecture, pretrained=True, pretrained_cfg_overlay=overlay, **arguments)
        weights.require_finite(model.state_dict(), path)
    return model


def from_checkpoint(row: Entry, key: str) -> nn.Module:
    """A fine-tuned vision transformer of MAE, MoCo v3 or DINO, VMamba, or AlexNet."""
    with torch.device("meta"):
        if row.kind == "torchvision":
            model = torchvision.models.get_model(row.architecture, weights=None, num_classes=CLASSES)
        else:
            pooling = {"global_pool": row.pooling} if row.pooling else {}
            model = timm.create_model(row.architecture, num_classes=CLASSES, **pooling)
    weights.load(model, row.pinned(key), key=key)
    return model


def from_open_clip(row: Entry, key: str) -> nn.Module:
    """A CLIP model as zero-shot classifier, with the 80 templates and 1,000 class names that open_clip carries."""
    digests = {row.file: row.sha256, encoders.CLIP_FILES[0]: ""}
    folder = sources.resolve_folder(row.local, row.hub, row.revision, key=key, sha256=digests)
    with encoders.loading_errors(key, str(folder), "a directory of an open_clip model"):
        return zero_shot(encoders.Clip(str(folder)), open_clip.IMAGENET_CLASSNAMES)


def zero_shot(clip: encoders.Clip, names: Sequence[str]) -> encoders.ZeroShot:
    """CLIP with the mean text feature of each class's templates."""
    templates = open_clip.OPENAI_IMAGENET_TEMPLATES
    with torch.no_grad():
        texts = open_clip.build_zero_shot_classifier(clip.model, clip.tokenizer, names, templates, device=clip.device)
    return encoders.ZeroShot(clip, texts)


def from_linear_head(row: Entry, key: str) -> nn.Module:
    """A DINO or DINOv2 backbone with the released linear head.

    The local path is a directory with both files, or the head's file alone; the backbone then comes from the hub.
    """
    head = sources.resolve(row.local, key=key, file=row.head)
    beside = row.local if paths.resolve(row.local).is_dir() else ""
    backbone = from_timm(Entry(**vars(row) | {"local": beside}), key, img_size=row.input_size, num_classes=0)
    network = probe(backbone, head, features=row.features, key=key)
    demand(network.head.out_features == CLASSES, f"{key}, outputs of {head}", network.head.out_features, str(CLASSES))
    return network


def probe(backbone: nn.Module, path: Path, *, features: str, key: str) -> "Probe":
    """A backbone with the linear head of a file, on 1 or 4 of its blocks by its width (1 where interleaved)."""
    width, interleaved = int(backbone.embed_dim), features == "interleaved"  # type: ignore[arg-type]
    with sources.errors_naming(key):
        shape = weights.shapes(weights.renamed(weights.read_weights(path), path)).get("weight", (0, 0))
    accepted = [2 * width] if interleaved else [2 * width, 5 * width]
    demand(shape[-1] in accepted, f"{key}: {path}, shape of the linear head", shape, f"{' or '.join(map(str, accepted))} features")
    head = nn.Linear(shape[1], shape[0], device="meta")
    weights.load(head, path, key=key)
    return Probe(backbone, head, blocks=shape[-1] // width - 1, interleaved=interleaved)


class Probe(nn.Module):
    """A vision transformer with a linear head on the class tokens of its last blocks and the last one's mean patch token.

    Concatenated as DINOv2 releases it (4 blocks, or 1), or interleaved as DINO does.
    """

    def __init__(self, backbone: nn.Module, head: nn.Linear, *, blocks: int, interleaved: bool):
        super().__init__()
        self.backbone, self.head, self.blocks, self.interleaved = backbone, head, blocks, interleaved

    def features(self, image: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch features"]:
        """What the head sees."""
        how: dict = {"indices": self.blocks, "return_prefix_tokens": True, "norm": True, "output_fmt": "NLC"}
        blocks = self.backbone.forward_intermediates(image, intermediates_only=True, **how)  # type: ignore[operator]
        parts = [prefix[:, 0] for _, prefix in blocks] + [blocks[-1][0].mean(dim=1)]
        return torch.stack(parts, dim=-1 if self.interleaved else 1).flatten(1)

    def forward(self, image: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch classes"]:
        """Class scores of normalised images."""
        return self.head(self.features(image))
