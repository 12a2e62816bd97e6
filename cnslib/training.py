"""The training loop that builds every base model: AdamW, one-cycle schedule, moving average of the weights, resume after a kill.

A step draws its data from a generator of (name, seed, step), so a resumed run continues with the very batches it would have seen.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor, nn
from tqdm.auto import trange

from cnslib import units

Model = TypeVar("Model", bound=nn.Module)


@dataclass(frozen=True)
class Schedule:
    """Length and pace of a training: optimiser steps, images per step, peak learning rate, weight decay, decay of the average."""

    steps: int
    batch_size: int
    learning_rate: float
    weight_decay: float = 0.01
    average: float = 0.998
    seed: int = 0


def fit(model: Model, loss: Callable[[int], Tensor], *, schedule: Schedule, checkpoint: Path, every: int = 100) -> Model:
    """Minimises `loss(step)` over the model's trainable parameters; returns a copy with the averaged weights.

    State is saved every `every` steps to `checkpoint`; a run that finds one continues from there.
    """
    optimizer = torch.optim.AdamW(
        [p for p in model.parameters() if p.requires_grad], schedule.learning_rate, weight_decay=schedule.weight_decay
    )
    pace = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, schedule.learning_rate, total_steps=schedule.steps, pct_start=0.08, cycle_momentum=False
    )
    average = copy.deepcopy(model).eval().requires_grad_(False)
    state = {"model": model, "optimizer": optimizer, "pace": pace, "average": average}
    first = restore(state, checkpoint)
    progress = trange(first, schedule.steps, initial=first, total=schedule.steps, desc=checkpoint.stem, disable=None)
    for step in progress:
        model.train()
        value = loss(step)
        optimizer.zero_grad()
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        pace.step()
        blend(average, model, weight=min(schedule.average, (1 + step) / (10 + step)))
        progress.set_postfix(loss=f"{value.item():.4f}")
        if (step + 1) % every == 0 or step + 1 == schedule.steps:
            store(state, checkpoint, step + 1)
            print(f"{checkpoint.stem} step {step + 1} loss {value.item():.4f}", flush=True)
    return average


@torch.no_grad()
def blend(average: nn.Module, model: nn.Module, *, weight: float) -> None:
    """Moves the averaged weights towards the current ones; buffers (batch norm statistics) are copied."""
    for old, new in zip(average.parameters(), model.parameters(), strict=True):
        old.lerp_(new, 1 - weight)
    for kept, current in zip(average.buffers(), model.buffers(), strict=True):
        kept.copy_(current)


def store(state: dict, checkpoint: Path, step: int) -> None:
    """Writes a checkpoint atomically."""
    with units.atomic(checkpoint) as partial:
        torch.save({"step": step} | {key: part.state_dict() for key, part in state.items()}, partial)


def restore(state: dict, checkpoint: Path) -> int:
    """Loads a checkpoint where there is one; returns the step to continue with."""
    if not checkpoint.exists():
        return 0
    saved = torch.load(checkpoint, weights_only=True)
    for key, part in state.items():
        part.load_state_dict(saved[key])
    return saved["step"]
