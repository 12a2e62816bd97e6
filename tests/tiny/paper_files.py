"""What the paper's parameters name, in the same formats and as small as they get.

A pipeline of Stable Diffusion 2's kind that predicts v, the published text encoder with IN* tokens, CLIP, an image encoder,
two of the 43 classifiers, and ImageNet's folders. All weights are random or constant.
"""

import hashlib
from pathlib import Path

import numpy as np
import timm
import torch
import torchvision
from PIL import Image
from ruamel.yaml import YAML
from safetensors.torch import load_file, save_file
from tiny_encoders import flat, write_clip, write_timm
from tiny_pipeline import WIDTH, write_pipeline

from cnslib.core import paths
from cnslib.core.settings import read
from cnslib.data import imagenet

CLASSES = ["hen", "ostrich"]
RESNET, VITS = "resnet18.a1_in1k", ["tiny_vit", "other_vit", "third_vit"]
TOKENS = "text_model.embeddings.token_embedding.weight"


def write_base_model(folder: Path) -> dict[str, str]:
    known = write_pipeline(folder)
    words = torch.randn(known + 1000, WIDTH, generator=torch.Generator().manual_seed(1)).half()
    save_file({TOKENS: words}, folder.parent / "in_star.safetensors")
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def write_classifiers(folder: Path) -> None:
    """A ResNet and small ViTs with random weights, and an AlexNet that finds the classes equally likely everywhere, as does a small ViT."""
    for seed, name in enumerate(VITS):
        write_timm(folder / name, outputs=1000, seed=seed)
    (folder / RESNET).mkdir()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        save_file(timm.create_model("resnet18").state_dict(), folder / RESNET / "model.safetensors")
    with torch.device("meta"):
        state = flat(torchvision.models.alexnet())
    torch.save(state | {"classifier.6.bias": bias_of(CLASSES)}, folder / "alexnet.pth")
    write_constant(folder / "constant")


def registered(folder: Path) -> str:
    """The AlexNet as the paper's profile names its classifiers."""
    return f"registry:alexnet@{folder}/alexnet.pth;sha256={hashlib.sha256((folder / 'alexnet.pth').read_bytes()).hexdigest()}"


def write_constant(folder: Path) -> None:
    write_timm(folder, outputs=1000)
    state = load_file(folder / "model.safetensors")
    state |= {"head.weight": state["head.weight"] * 0, "head.bias": bias_of(CLASSES)}
    save_file(state, folder / "model.safetensors")


def bias_of(classes: list[str]) -> torch.Tensor:
    bias = torch.zeros(1000)
    bias[[imagenet.index(name) for name in classes]] = 40.0
    return bias


def write_imagenet(folder: Path, *, pictures: int) -> None:
    noise = np.random.default_rng(0)
    for split in ("train", "val"):
        for name in CLASSES:
            place = folder / split / imagenet.wnids()[imagenet.index(name)]
            place.mkdir(parents=True)
            for i in range(pictures):
                size = 70 + 5 * i, 80 - 3 * i, 3
                Image.fromarray(noise.integers(0, 256, size, dtype=np.uint8)).save(place / f"{i}.JPEG")


def write_all(folder: Path) -> Path:
    """Everything, and paper.yaml pointed at it by the tests' paper.yaml; returns that overlay."""
    files = write_base_model(folder / "pipeline")
    write_classifiers(folder)
    write_clip(folder / "clip", context=77)
    write_timm(folder / "dino", outputs=0)
    write_constant(folder / "oracle")
    write_imagenet(folder / "imagenet", pictures=4)
    changes = Path(__file__).with_name("paper.yaml").read_text().replace("HERE", str(folder))
    changes, paper = YAML(typ="safe").load(changes), read.read(paths.resolve("paper.yaml"))
    changes["base"]["sources"]["pipeline"]["sha256"] = files
    YAML().dump(paper | {name: paper.get(name, {}) | own for name, own in changes.items()}, folder / "overlay.yaml")
    return folder / "overlay.yaml"
