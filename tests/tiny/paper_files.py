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
RESNET, VITS = "resnet18.a1_in1k", ["tiny_vit", "other_vit"]
DDIM = {"scheduler": "DDIMScheduler", "spacing": "leading"}
TOKENS = "text_model.embeddings.token_embedding.weight"


def write_base_model(folder: Path) -> dict[str, str]:
    """The pipeline's directory and the published text encoder; returns the sha256 of the pipeline's files."""
    known = write_pipeline(folder)
    words = torch.randn(known + 1000, WIDTH, generator=torch.Generator().manual_seed(1)).half()
    save_file({TOKENS: words}, folder.parent / "in_star.safetensors")
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def write_classifiers(folder: Path) -> dict[str, str]:
    """A ResNet and small ViTs with random weights, and an AlexNet that finds all classes equally likely everywhere: sources by name."""
    for seed, name in enumerate(VITS):
        write_timm(folder / name, outputs=1000, seed=seed)
    (folder / RESNET).mkdir()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        save_file(timm.create_model("resnet18").state_dict(), folder / RESNET / "model.safetensors")
    with torch.device("meta"):
        state = flat(torchvision.models.alexnet())
    torch.save(state | {"classifier.6.bias": bias_of(CLASSES)}, folder / "alexnet.pth")
    digest = hashlib.sha256((folder / "alexnet.pth").read_bytes()).hexdigest()
    named = {"alexnet": f"alexnet@{folder / 'alexnet.pth'};sha256={digest}", RESNET: f"{RESNET}@{folder / RESNET}"}
    return {name: f"registry:{source}" for name, source in named.items()} | {name: str(folder / name) for name in VITS}


def write_oracle(folder: Path) -> None:
    """A timm model of ImageNet's classes that gives hen and ostrich one half each, whatever it sees."""
    write_timm(folder, outputs=1000)
    state = load_file(folder / "model.safetensors")
    state |= {"head.weight": state["head.weight"] * 0, "head.bias": bias_of(CLASSES)}
    save_file(state, folder / "model.safetensors")


def bias_of(classes: list[str]) -> torch.Tensor:
    """A bias by which these classes, and no others, are equally likely."""
    bias = torch.zeros(1000)
    bias[[imagenet.index(name) for name in classes]] = 40.0
    return bias


def write_imagenet(folder: Path, *, pictures: int) -> None:
    """train/<wnid> and val/<wnid> with some noise, in JPEGs of unequal sizes."""
    noise = np.random.default_rng(0)
    for split in ("train", "val"):
        for name in CLASSES:
            place = folder / split / imagenet.wnids()[imagenet.index(name)]
            place.mkdir(parents=True)
            for i in range(pictures):
                size = 70 + 5 * i, 80 - 3 * i, 3
                Image.fromarray(noise.integers(0, 256, size, dtype=np.uint8)).save(place / f"{i}.JPEG")


def write_all(folder: Path) -> Path:
    """Everything, and paper.yaml pointed at it; returns that overlay."""
    files, sources = write_base_model(folder / "pipeline"), write_classifiers(folder)
    write_clip(folder / "clip", context=77)
    write_timm(folder / "dino", outputs=0)
    write_oracle(folder / "oracle")
    write_imagenet(folder / "imagenet", pictures=4)
    base = {
        "out": str(folder / "out"),
        "device": "cpu",
        "pipeline": str(folder / "pipeline"),
        "clip": str(folder / "clip"),
        "image_encoder": str(folder / "dino"),
        "oracle": str(folder / "oracle"),
        "catalog": str(folder / "imagenet"),
        "classes": CLASSES,
        "shifts": ["heavy snow", "cartoon style"],
        "scales": [0.0, 1.0, 2.5],
        "seeds": 2,
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
        "generation": {"steps": 4, "negative_prompt": "ugly", "side": 32},
        "evaluation": {"classifiers": sources, "batch_size": 2},
        "axes": {"members": {axis: list(sources) for axis in axes}},
        "bisection": {"classes": CLASSES, "classifiers": ["alexnet"], "seeds": 1, "resolution": 0.25, "scans": 1, "scan_step": 0.25},
        "line": {"families": {"ResNet": [RESNET]}, "sizes": ["ResNet"], "pretrained": []},
        "report": {"model": sources[VITS[0]], "plain": VITS[0], "batch_size": 2},
        "labels": {"expert": "alexnet", "peers": list(sources), "study": 4},
        "directions": {
            "shifts": ["heavy snow"],
            "finer": [0.5],
            "pairs": [["heavy snow", "cartoon style"]],
            "pair_weights": [0.0, 1.0, 2.5],
            "pair_seeds": 1,
        },
        "ablation": {
            "samplers": {"DDIM 4": DDIM | {"steps": 4}, "DDIM 2": DDIM | {"steps": 2}},
            "reference": "DDIM 4",
            "shifts": ["heavy snow"],
            "seeds": 1,
            "counts": [1, 2],
        },
        "photos": {"classifiers": {"lite0": "lite:0"}, "cutouts": 2},
        "corruptions": {"images": 1, "side": 64, "cutouts": 1},
        "denoiser": {"model": "", "shifts": ["heavy snow"], "seeds": 1, "scales": [0.0, 1.0], "keep": [1], "trials": [2]},
        "controlshift": {
            "decoder": "",
            "classes": [],
            "guidance": 3.0,
            "factors": [0.9, 1.1],
            "angles": [0.0, 90.0],
            "train_images": 4,
            "validation_images": 2,
            "test_images": 2,
            "drawing_steps": 2,
            "draws": 50,
            "networks": ["resnet20", "svm"],
            "runs": 1,
            "training_steps": 2,
            "batch_size": 4,
            "least": 0.0,
        },
    }
    paper = read.read(paths.resolve("paper.yaml"))
    YAML().dump(paper | {name: paper.get(name, {}) | own for name, own in changes.items()}, folder / "overlay.yaml")
    return folder / "overlay.yaml"
