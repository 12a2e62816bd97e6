"""Garments that the studies render, and small networks that they train and evaluate on such."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn
from torchvision.transforms import v2

from cnslib.core import paths
from cnslib.core.names import demand
from cnslib.models import encoders
from cnslib.world import scenes, training
from cnslib.world.training import Schedule


def require_renderer(classes: list[str]) -> None:
    """Raises ValueError for a class of which no program renders pictures at a known severity."""
    for name in classes:
        demand(name in scenes.CLASSES, "base.classes", name, f"{', '.join(scenes.CLASSES)}: nothing else has a renderer here")


def garments(classes: list[str], part: str = "heldout") -> scenes.Garments:
    """The garments of a pool, by default those that no model has seen. ValueError for a class that is not a garment."""
    require_renderer(classes)
    return scenes.garments(paths.GARMENTS, part)


def rendered(pool: scenes.Garments, plan: pd.DataFrame, *key: str | int) -> UInt8[np.ndarray, "rows side side 3"]:
    """The garments of a plan (shift, class, seed, scale: severity) in the catalog's look, one pose and weather at all severities."""
    places = {name: np.flatnonzero(pool.labels == scenes.CLASSES.index(name)) for name in plan["class"].unique()}
    pairs = list(zip(plan["class"], plan["seed"].astype(int), strict=True))
    rows, keys = [places[name][number - 1] for name, number in pairs], [(*key, *pair) for pair in pairs]
    severity = torch.tensor(plan["scale"].to_numpy(), dtype=torch.float32)
    return scenes.to_uint8(scenes.render(pool.grey[rows], keys, style="catalog", shift=plan["shift"].tolist(), severity=severity)).numpy()


def with_statistics(model: nn.Module, key: str) -> nn.Module:
    """A timm model that takes what `training.normalise` gives, and sees its own mean and deviation of the pixels."""
    preprocessing = encoders.preprocessing(model, key)
    mean, deviation = (np.array(preprocessing[name]) for name in ("mean", "std"))
    return nn.Sequential(v2.Normalize(((mean - training.MEAN) / training.STD).tolist(), (deviation / training.STD).tolist()), model)


def fit(
    model: nn.Module, draw: Callable[[tuple], tuple], key: tuple, schedule: Schedule, *, checkpoint: Path, device: str, **how
) -> nn.Module:
    """Trains all weights; step i draws its images in [0, 1] and labels from (*key, i). Resumes from its checkpoint."""

    def batch(step_key: tuple) -> tuple[Tensor, Tensor]:
        training.reseed(*step_key)
        image, label = draw(step_key)
        return training.normalise(image), label

    training.begin(schedule.seed)
    return training.fit_classifier(model.requires_grad_(True), batch, key, schedule=schedule, checkpoint=checkpoint, device=device, **how)


def batch_of(pictures: UInt8[np.ndarray, "images height width 3"]) -> Tensor:
    """Pictures as a batch in [0, 1], channels first."""
    return torch.from_numpy(pictures).permute(0, 3, 1, 2).float() / 255


@torch.no_grad()
def outputs(model: nn.Module, pictures: UInt8[np.ndarray, "images height width 3"], device: str) -> Float[np.ndarray, "images outputs"]:
    """All outputs for every picture."""
    parts = [pictures[start : start + encoders.BATCH] for start in range(0, len(pictures), encoders.BATCH)]
    return torch.cat([model.eval()(training.normalise(batch_of(part)).to(device)).cpu() for part in parts]).numpy()


@torch.no_grad()
def top1(model: nn.Module, pictures: UInt8[np.ndarray, "images height width 3"], device: str) -> Int[np.ndarray, "images *map"]:
    """The place of the largest output for every picture, or for each of its pixels."""
    parts = [pictures[start : start + encoders.BATCH] for start in range(0, len(pictures), encoders.BATCH)]
    return torch.cat([model.eval()(training.normalise(batch_of(part)).to(device)).argmax(1).cpu() for part in parts]).numpy()
