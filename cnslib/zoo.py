"""The mini world's image classifiers and its oracle: timm models trained on rendered garments, saved as timm directories."""

import dataclasses
import json
from pathlib import Path

import timm
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from safetensors.torch import save_file
from torch import Tensor, nn

import cnslib.alexnet  # noqa: F401  (registers alexnet_64 with timm)
from cnslib import seeds, units, world
from cnslib.config import SHIFTS
from cnslib.training import Schedule, fit

MEAN, STD = (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)
SHIFT_OUTPUTS = slice(len(world.CLASSES), len(world.CLASSES) + len(SHIFTS) + 1)
SEVERITY_OUTPUT = len(world.CLASSES) + len(SHIFTS) + 1


def normalise(image: Float[Tensor, "batch 3 side side"]) -> Float[Tensor, "batch 3 side side"]:
    """Images in [0, 1] to the input range shared by all models trained here."""
    return (image - MEAN[0]) / STD[0]


def flip(image: Tensor, g: torch.Generator) -> Tensor:
    """Mirrors about half of the images of a batch."""
    mirrored = torch.rand(len(image), generator=g) < 0.5
    return torch.where(mirrored[:, None, None, None], image.flip(-1), image)


def train_classifier(garments: world.Garments, *, architecture: str, arguments: dict, schedule: Schedule, checkpoint: Path, device: str):
    """Trains a classifier on unshifted catalog scenes (cross-entropy, label smoothing 0.1, mirror augmentation)."""
    torch.manual_seed(schedule.seed)
    timm.layers.set_fused_attn(enable=False)  # its backward in bfloat16 on a CPU is several times slower
    model = timm.create_model(architecture, num_classes=len(world.CLASSES), **arguments).to(device)

    def loss(step: int) -> Tensor:
        key = ("classifier", schedule.seed, step)
        batch = world.sample(garments, key, schedule.batch_size, style="catalog", unshifted=1.0)
        image = flip(batch.image, seeds.generator(*key, "flip")).to(device)
        with torch.autocast(device, torch.bfloat16):
            logits = model(normalise(image))
        return F.cross_entropy(logits.float(), batch.label.to(device), label_smoothing=0.1)

    return fit(model, loss, schedule=schedule, checkpoint=checkpoint).cpu()


def build(garments: world.Garments, name: str, options: dict, *, schedule: Schedule, checkpoints: Path, models: Path, device: str):
    """Trains and saves one classifier of the zoo; `options` holds its steps, its timm architecture and the arguments of that.

    The schedule gives everything but the steps.
    """
    arguments = {key: value for key, value in options.items() if key not in ("steps", "architecture")}
    architecture, own = options["architecture"], dataclasses.replace(schedule, steps=options["steps"])
    checkpoint = checkpoints / f"classifiers-{name}.pt"
    model = train_classifier(garments, architecture=architecture, arguments=arguments, schedule=own, checkpoint=checkpoint, device=device)
    save(model, models / "classifiers" / name, architecture=architecture, arguments=arguments)
    return model


def train_oracle(garments: world.Garments, *, architecture: str, arguments: dict, schedule: Schedule, checkpoint: Path, device: str):
    """Trains the oracle: class, shift and severity of rendered scenes of both styles at every severity."""
    torch.manual_seed(schedule.seed)
    model = timm.create_model(architecture, num_classes=SEVERITY_OUTPUT + 1, **arguments).to(device)

    def loss(step: int) -> Tensor:
        key = ("oracle", schedule.seed, step)
        style = "catalog" if step % 3 == 0 else "web"
        batch = world.sample(garments, key, schedule.batch_size, style=style, unshifted=0.2, lowest=0.0)
        with torch.autocast(device, torch.bfloat16):
            logits = model(normalise(flip(batch.image, seeds.generator(*key, "flip"))).to(device))
        return oracle_loss(logits.float(), batch)

    return fit(model, loss, schedule=schedule, checkpoint=checkpoint).cpu()


def oracle_loss(logits: Float[Tensor, "batch 26"], batch: world.Batch) -> Float[Tensor, ""]:
    """Cross-entropy of class and shift plus binary cross-entropy of the severity.

    Below severity 0.15 a shift is hardly visible, so its name carries no loss there.
    """
    label, shift, severity = (v.to(logits.device) for v in (batch.label, batch.shift, batch.severity))
    named = F.cross_entropy(logits[:, SHIFT_OUTPUTS], shift, reduction="none")
    visible = ((severity > 0.15) | (shift == len(SHIFTS))).float()
    amount = F.binary_cross_entropy_with_logits(logits[:, SEVERITY_OUTPUT], severity)
    return F.cross_entropy(logits[:, : len(world.CLASSES)], label) + (named * visible).mean() + amount


@torch.no_grad()
def predict(model: nn.Module, image: Float[Tensor, "batch 3 64 64"]) -> Tensor:
    """Outputs of a trained model on images in [0, 1]."""
    return torch.cat([model.eval()(normalise(part)) for part in image.split(256)])


def class_correct(model: nn.Module, batch: world.Batch) -> Bool[Tensor, "batch"]:
    """Whether the class output names each image's class."""
    return predict(model, batch.image)[:, : len(world.CLASSES)].argmax(1) == batch.label


def save(model: nn.Module, folder: Path, *, architecture: str, arguments: dict) -> None:
    """Writes a timm directory: config.json with architecture, arguments and preprocessing, and model.safetensors."""
    folder.mkdir(parents=True, exist_ok=True)
    preprocessing = {
        "input_size": [3, 64, 64], "interpolation": "bicubic", "crop_pct": 1.0, "crop_mode": "squash",
        "mean": MEAN, "std": STD,
    }  # fmt: skip
    outputs = getattr(model, "num_classes", 0)
    config = {
        "architecture": architecture,
        "num_classes": outputs,
        "num_features": model.num_features,
        "model_args": {**arguments, "num_classes": outputs},
        "pretrained_cfg": {**preprocessing, "num_classes": outputs},
    }
    weights = {key: value.half().contiguous() if value.is_floating_point() else value for key, value in model.state_dict().items()}
    with units.atomic(folder / "model.safetensors") as partial:
        save_file(weights, partial)
    units.write_bytes(folder / "config.json", json.dumps(config, indent=2).encode())
