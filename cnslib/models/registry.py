"""The paper's 43 classifiers (Table 4) as data, in published/classifiers43.csv, and how each is built from its weights."""

import difflib
import importlib
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import open_clip
import pandas as pd
import pandera.pandas as pa
import timm
import torch
import torchvision
from jaxtyping import Float
from timm.data.constants import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD, OPENAI_CLIP_MEAN, OPENAI_CLIP_STD
from torch import Tensor, nn

from cnslib.core import paths, recipes, sources, tables, units
from cnslib.core.names import demand
from cnslib.models import checkpoints, encoders

REGISTRY = "classifiers43.csv"
PREFIX = "registry:"  # of a source that names a row
CLASSES = 1000
HALF = (0.5, 0.5, 0.5)
STATISTICS = {  # mean and standard deviation of the pixels
    "imagenet": (IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD),
    "clip": (OPENAI_CLIP_MEAN, OPENAI_CLIP_STD),
    "half": (HALF, HALF),
}
KINDS = ("timm", "open_clip", "linear_head", "checkpoint", "vmamba", "torchvision")
SHARE = pa.Column(float, pa.Check.in_range(0, 1), nullable=True)
RATIO = pa.Column(float, pa.Check.gt(0))
registry = tables.schema(
    ["model"],
    {
        "model": pa.Column(str),
        "kind": pa.Column(str, pa.Check.isin(KINDS)),
        "architecture": pa.Column(str, pa.Check.str_length(min_value=1)),
        "hub": pa.Column(str),
        "file": pa.Column(str, pa.Check.str_length(min_value=1)),
        "head": pa.Column(str),
        "features": pa.Column(str, pa.Check.isin(["", "concatenated", "interleaved"])),
        "pooling": pa.Column(str, pa.Check.isin(["", "avg", "token"])),
        "sha256": pa.Column(str, pa.Check.str_matches(r"^([0-9a-f]{8,64})?$")),
        "family": pa.Column(str, pa.Check.str_length(min_value=1)),
        "axes": pa.Column(str),
        "input_size": pa.Column("int64", pa.Check.isin([224, 336])),
        "crop_pct": pa.Column(float, pa.Check.in_range(0.5, 1)),
        "interpolation": pa.Column(str, pa.Check.isin(["bicubic", "bilinear"])),
        "statistics": pa.Column(str, pa.Check.isin(list(STATISTICS))),
        "table7_top1": SHARE,
        "ce": RATIO,
        "rce": RATIO,
        "library_top1": SHARE,
        "library_source": pa.Column(str),
        "licence": pa.Column(str),
        "note": pa.Column(str),
        "source": pa.Column(str),
    },
)
NUMBERS = ["crop_pct", "table7_top1", "ce", "rce", "library_top1"]


@dataclass(frozen=True)
class Entry:
    """One row of the registry. Accuracies are shares of IN/val: the paper's Table 7, and what the weights' makers publish."""

    model: str
    kind: str
    architecture: str  # name in the library of its kind; of open_clip name/tag
    hub: str  # repository of the weights, where there is one
    file: str  # of the weights
    head: str  # file of the linear head
    features: str  # order of what the linear head sees
    pooling: str  # of a checkpoint's vision transformer
    sha256: str  # of `file`, or its first digits
    family: str
    axes: str
    input_size: int
    crop_pct: float
    interpolation: str
    statistics: str
    table7_top1: float
    ce: float
    rce: float
    library_top1: float
    library_source: str
    licence: str
    note: str
    source: str

    @property
    def settings(self) -> dict[str, Any]:
        """The model's own preprocessing, as timm's `create_transform` takes it."""
        mean, std = STATISTICS[self.statistics]
        size = {"input_size": (3, self.input_size, self.input_size), "interpolation": self.interpolation}
        return {**size, "crop_pct": self.crop_pct, "crop_mode": "center", "mean": mean, "std": std}


BUILDING = (  # the fields of a row by which a model is built; the others say what is known about it
    *("kind", "architecture", "hub", "file", "head", "features", "pooling", "sha256"),
    *("input_size", "crop_pct", "interpolation", "statistics"),
)


@dataclass(frozen=True)
class Place:
    """Where the weights of a classifier are: a local file or directory, else a revision of its hub repository; and their digest."""

    local: str = ""
    revision: str = ""
    sha256: str = ""


def read(path: Path = paths.PUBLISHED / REGISTRY) -> pd.DataFrame:
    """The registry, by name. ValueError names the column and rows that break its schema, FileNotFoundError a missing file."""
    if not path.exists():
        raise FileNotFoundError(f"registry {path} does not exist; it is part of the repository")
    texts = {name: str for name in registry.columns if name not in (*NUMBERS, "input_size")}
    empty = {name: [""] for name in NUMBERS}
    table = pd.read_csv(path, dtype={**texts, **dict.fromkeys(NUMBERS, float)}, keep_default_na=False, na_values=empty)
    return tables.check(table, registry, str(path))


@cache
def entries() -> dict[str, Entry]:
    """Every row of the registry by name."""
    return {row["model"]: Entry(**row) for row in read().to_dict("records")}


def entry(name: str) -> Entry:
    """The registry's row of a classifier. ValueError suggests near names for an unknown one."""
    known = entries()
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5) or list(known)
    demand(name in known, "classifier of the paper", name, f"{', '.join(near)} (all {len(known)} are in published/{REGISTRY})")
    return known[name]


def parse(source: str, *, key: str) -> tuple[Entry, Place]:
    """Row and place in "registry:<model>[@<path>][;revision=<tag>][;sha256=<digits>]". ValueError names the key and what is accepted."""
    body, *options = source.removeprefix(PREFIX).split(";")
    name, _, local = body.partition("@")
    given = dict(option.partition("=")[::2] for option in options)
    demand(given.keys() <= {"revision", "sha256"}, key, source, f"{PREFIX}<model>[@<path>][;revision=<tag>][;sha256=<digits>]")
    return entry(name), Place(local, **given)


def build(source: str, *, key: str) -> tuple[nn.Module, dict[str, Any]]:
    """One of the paper's classifiers, its outputs in the order of ImageNet's classes, and its own preprocessing.

    Raises ValueError for an unknown name, and FileNotFoundError or ValueError, naming the parameter `key`, for missing, damaged
    or other weights.
    """
    found, place = parse(source, key=key)
    return BUILDERS[found.kind](found, place, key).eval().requires_grad_(False), found.settings


def source_digest(source: str) -> str:
    """What such a source names: its text, the files at its path, and how its row says that the model is built."""
    found, place = parse(source, key="classifier")
    row = {name: getattr(found, name) for name in BUILDING}
    return units.digest(recipes.REGISTRY, source, files_digest(paths.resolve(place.local)) if place.local else "", row)


def files_digest(path: Path) -> str:
    """A digest of a folder's files, or of one file; empty for what does not exist."""
    return units.directory_digest(path) if path.is_dir() else units.file_digest(path) if path.is_file() else ""


def pinned(found: Entry, place: Place, key: str, *, local: str) -> Path:
    """The file of the weights."""
    return sources.resolve(local, found.hub, place.revision, place.sha256 or found.sha256, key=key, file=found.file)


def from_timm(found: Entry, place: Place, key: str) -> nn.Module:
    """A timm model with the weights of its own release."""
    return with_file(found.architecture, pinned(found, place, key, local=place.local), key)


def with_file(architecture: str, path: Path, key: str, **arguments) -> nn.Module:
    """A timm model from a file, which timm reads with weights_only and strictly; position embeddings are resampled to the input."""
    overlay = {"file": str(path), "custom_load": False}  # the augreg models' own loader reads nothing but numpy archives
    with encoders.named_errors(key, str(path), f"weights of timm's {architecture}"):
        return timm.create_model(architecture, pretrained=True, pretrained_cfg_overlay=overlay, **arguments)


def from_linear_head(found: Entry, place: Place, key: str) -> nn.Module:
    """A DINO or DINOv2 backbone with the released linear head.

    The local path is a directory with both files, or the head's file alone; the backbone then comes from the hub.
    """
    head = sources.resolve(place.local, key=key, file=found.head)
    beside = place.local if paths.resolve(place.local).is_dir() else ""
    arguments = {"img_size": found.input_size, "num_classes": 0}
    backbone = with_file(found.architecture, pinned(found, place, key, local=beside), key, **arguments)
    network = checkpoints.probe(backbone, head, features=found.features, key=key)
    demand(network.head.out_features == CLASSES, f"{key}, outputs of {head}", network.head.out_features, str(CLASSES))
    return network


def from_checkpoint(found: Entry, place: Place, key: str) -> nn.Module:
    """A vision transformer of timm with a fine-tuned checkpoint of MAE, MoCo v3 or DINO."""
    path = pinned(found, place, key, local=place.local)
    with torch.device("meta"):
        model = timm.create_model(found.architecture, num_classes=CLASSES, global_pool=found.pooling)
    checkpoints.load(model, path, key=key)
    return model


def from_torchvision(found: Entry, place: Place, key: str) -> nn.Module:
    """AlexNet."""
    path = pinned(found, place, key, local=place.local)
    with torch.device("meta"):
        model = torchvision.models.get_model(found.architecture, weights=None, num_classes=CLASSES)
    checkpoints.load(model, path, key=key)
    return model


def from_vmamba(found: Entry, place: Place, key: str) -> nn.Module:
    """VMamba, if its authors' module can be imported: there is no package of it."""
    if importlib.util.find_spec("vmamba") is None:
        accepted = "an environment with the module vmamba of github.com/MzeroMiko/VMamba and its CUDA kernel, or a list without it"
        raise ValueError(f"{key}: {found.model} needs the module vmamba, which cannot be imported; accepted: {accepted}")
    model = importlib.import_module("vmamba").vanilla_vmamba_base()
    checkpoints.load(model, pinned(found, place, key, local=place.local), key=key)
    return model


def from_open_clip(found: Entry, place: Place, key: str) -> nn.Module:
    """A CLIP model as zero-shot classifier, with the 80 templates and 1,000 class names that open_clip carries."""
    digests = {found.file: place.sha256 or found.sha256, encoders.CLIP_FILES[0]: ""}
    folder = sources.resolve_folder(place.local, found.hub, place.revision, key=key, sha256=digests)
    with encoders.named_errors(key, str(folder), "a directory of an open_clip model"):
        clip = encoders.Clip(str(folder))
    return ZeroShot(clip, open_clip.IMAGENET_CLASSNAMES)


class ZeroShot(nn.Module):
    """CLIP as a classifier (Radford et al. 2021): scaled cosine of the image with the mean text feature of the class's templates."""

    def __init__(self, clip: encoders.Clip, names: Sequence[str]):
        super().__init__()
        with torch.no_grad():
            texts = open_clip.build_zero_shot_classifier(
                clip.model, clip.tokenizer, names, open_clip.OPENAI_IMAGENET_TEMPLATES, device=clip.device
            )
        self.visual, self.texts = clip.model.visual, nn.Parameter(texts)
        self.scale = clip.model.logit_scale.exp().item()

    def forward(self, image: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch classes"]:
        """Class scores of normalised images."""
        return self.scale * nn.functional.normalize(self.visual(image), dim=1) @ self.texts


BUILDERS: dict[str, Callable[[Entry, Place, str], nn.Module]] = {
    "timm": from_timm,
    "open_clip": from_open_clip,
    "linear_head": from_linear_head,
    "checkpoint": from_checkpoint,
    "vmamba": from_vmamba,
    "torchvision": from_torchvision,
}
