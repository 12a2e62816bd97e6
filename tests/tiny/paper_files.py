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
from safetensors.torch import save_file
from tiny_encoders import flat, write_clip, write_timm
from tiny_pipeline import WIDTH, write_pipeline

from cnslib.core import paths
from cnslib.core.settings import read
from cnslib.data import imagenet

CLASSES = ["hen", "ostrich"]
RESNET = "resnet18.a1_in1k"
TOKENS = "text_model.embeddings.token_embedding.weight"


def write_base_model(folder: Path) -> dict[str, str]:
    """The pipeline's directory and the published text encoder; returns the sha256 of the pipeline's files."""
    known = write_pipeline(folder)
    words = torch.randn(known + 1000, WIDTH, generator=torch.Generator().manual_seed(1)).half()
    save_file({TOKENS: words}, folder.parent / "in_star.safetensors")
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def write_classifiers(folder: Path) -> dict[str, str]:
    """A ResNet with random weights, and an AlexNet that finds hen and ostrich equally likely everywhere; returns their sources by name."""
    (folder / RESNET).mkdir()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        save_file(timm.create_model("resnet18").state_dict(), folder / RESNET / "model.safetensors")
    with torch.device("meta"):
        state = flat(torchvision.models.alexnet())
    bias = torch.zeros(1000)
    bias[[imagenet.index(name) for name in CLASSES]] = 20.0
    torch.save(state | {"classifier.6.bias": bias}, folder / "alexnet.pth")
    digest = hashlib.sha256((folder / "alexnet.pth").read_bytes()).hexdigest()
    return {"alexnet": f"registry:alexnet@{folder / 'alexnet.pth'};sha256={digest}", RESNET: f"registry:{RESNET}@{folder / RESNET}"}


def write_imagenet(folder: Path, *, pictures: int) -> None:
    """train/<wnid> and val/<wnid> with some noise."""
    noise = np.random.default_rng(0)
    for split in ("train", "val"):
        for name in CLASSES:
            place = folder / split / imagenet.wnids()[imagenet.index(name)]
            place.mkdir(parents=True)
            for i in range(pictures):
                Image.fromarray(noise.integers(0, 256, (70, 80, 3), dtype=np.uint8)).save(place / f"{i}.JPEG")


def write_all(folder: Path) -> Path:
    """Everything, and paper.yaml pointed at it; returns that overlay."""
    files, sources = write_base_model(folder / "pipeline"), write_classifiers(folder)
    write_clip(folder / "clip", context=77)
    write_timm(folder / "dino", outputs=0)
    write_imagenet(folder / "imagenet", pictures=4)
    base = {
        "out": str(folder / "out"),
        "device": "cpu",
        "pipeline": str(folder / "pipeline"),
        "clip": str(folder / "clip"),
        "image_encoder": str(folder / "dino"),
        "oracle": sources["alexnet"],
        "catalog": str(folder / "imagenet"),
        "classes": CLASSES,
        "shifts": ["heavy snow"],
        "scales": [0.0, 1.0, 2.5],
        "seeds": 3,
        "shown": list(sources),
        "sources": {"pipeline": {"hub": "stabilityai/stable-diffusion-2", "revision": "main", "sha256": files}},
        "in_star": str(folder / "in_star.safetensors"),
        "bootstrap": {"resamples": 20, "confidence": 0.95, "seed": 1, "target": "same classes"},
    }
    axes = ("architecture", "convolution size", "transformer size", "pre-training")
    changes = {
        "base": base,
        "inversion": {"images_per_class": 3, "validation_images": 3, "sampling_steps": 2, "judge": sources[RESNET]},
        "sliders": {"iterations": 2, "batch_size": 2, "denoising_steps": 4, "health_seeds": 1, "health_steps": 4},
        "generation": {"steps": 4, "negative_prompt": "ugly"},
        "evaluation": {"classifiers": sources, "batch_size": 4},
        "axes": {"members": {axis: list(sources) for axis in axes}},
        "bisection": {"classifiers": ["alexnet"]},
        "denoiser": {"model": ""},
        "controlshift": {"decoder": "", "classes": []},
        "line": {"families": {"ResNet": [RESNET]}, "sizes": ["ResNet"], "pretrained": []},
    }
    paper = read.read(paths.resolve("paper.yaml"))
    YAML().dump(paper | {name: paper.get(name, {}) | own for name, own in changes.items()}, folder / "overlay.yaml")
    return folder / "overlay.yaml"
