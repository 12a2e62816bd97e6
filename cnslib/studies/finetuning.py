"""How the studies train small networks and evaluate them: cross-entropy by AdamW in one cycle, and the first label of every picture."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int, UInt8
from torch import Tensor, nn

from cnslib.models import encoders
from cnslib.world import training
from cnslib.world.training import Schedule

Draw = Callable[[tuple], tuple[Tensor, Tensor]]


def fit(model: nn.Module, draw: Draw, key: tuple, schedule: Schedule, *, checkpoint: Path, device: str, **how) -> nn.Module:
    """Trains all weights; step i draws its images in [0, 1] and labels from (*key, i). Resumes from its checkpoint.

    `how` as in `training.fit_classifier`.
    """

    def batch(own: tuple) -> tuple[Tensor, Tensor]:
        training.reseed(*own)
        image, label = draw(own)
        return training.normalise(image), label

    training.begin(schedule.seed)
    return training.fit_classifier(model.requires_grad_(True), batch, key, schedule=schedule, checkpoint=checkpoint, device=device, **how)


def batch_of(pictures: UInt8[np.ndarray, "images height width 3"]) -> Tensor:
    """Pictures as a batch in [0, 1], channels first."""
    return torch.from_numpy(pictures).permute(0, 3, 1, 2).float() / 255


@torch.no_grad()
def top1(model: nn.Module, pictures: UInt8[np.ndarray, "images height width 3"], device: str) -> Int[np.ndarray, "images *map"]:
    """The place of the largest output for every picture, or for each of its pixels."""
    parts = [pictures[start : start + encoders.BATCH] for start in range(0, len(pictures), encoders.BATCH)]
    return torch.cat([model.eval()(training.normalise(batch_of(part)).to(device)).argmax(1).cpu() for part in parts]).numpy()
