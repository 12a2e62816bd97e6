"""The training loop of every base model: AdamW, one-cycle schedule, moving average of the weights, resume after a kill.

A step draws its data from a generator of (name, seed, step), and a checkpoint holds the state of torch's own generators: a resumed run
continues with the very batches, and the dropout, that it would have seen.
`train` is the supervised form, from any start with any augmentation: the zoo, DeiT's recipe, web pre-training and fine-tuning.
"""

import copy
import os
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import timm
import torch
import torch.nn.functional as F
from jaxtyping import Float
from safetensors.torch import load_file, save_file
from timm.data import Mixup
from timm.data.auto_augment import rand_augment_transform
from timm.data.random_erasing import RandomErasing
from torch import Tensor, nn
from torch.optim.lr_scheduler import OneCycleLR
from torch.optim.swa_utils import get_ema_multi_avg_fn
from torchvision.transforms.v2.functional import pil_to_tensor, to_pil_image
from tqdm.auto import trange

from cnslib.core import paths, seeds, units
from cnslib.core.settings.read import Run
from cnslib.world import scenes

Model = TypeVar("Model", bound=nn.Module)
Loss = Callable[..., Tensor]  # of a step, and where several threads share its batch of one's rank
Watch = Callable[[int, nn.Module], None] | None


@dataclass(frozen=True)
class Schedule:
    """Length and pace of a training: optimiser steps, images per step, peak learning rate, weight decay, decay of the average."""

    steps: int
    batch_size: int
    learning_rate: float
    weight_decay: float = 0.01
    average: float = 0.998
    seed: int = 0


def scheduled(table: dict) -> Schedule:
    """The schedule among other settings; without steps where each classifier brings its own, or a batch size where captions set it."""
    known = {field.name for field in fields(Schedule)}
    return Schedule(**({"steps": 0, "batch_size": 0} | {key: value for key, value in table.items() if key in known}))


def fit(model: Model, loss: Loss, *, schedule: Schedule, checkpoint: Path, every: int = 100, watch: Watch = None, ranks: int = 1) -> Model:
    """Minimises `loss(step)` over the model's trainable parameters; returns a copy with the averaged weights.

    With several `ranks` a batch's loss is the mean of `loss(step, rank)` over them, each in a thread of its own. Every `every` steps and
    at the end `watch(steps, average)` is called, then the state is saved to `checkpoint`, from which a later run continues.
    """
    learned = [p for p in model.parameters() if p.requires_grad]
    fused = learned[0].is_cuda or None  # a CPU keeps the loop by which its models were trained
    optimizer = torch.optim.AdamW(learned, schedule.learning_rate, weight_decay=schedule.weight_decay, fused=fused)
    pace = OneCycleLR(optimizer, schedule.learning_rate, total_steps=schedule.steps, pct_start=0.08, cycle_momentum=False)
    average = copy.deepcopy(model).eval().requires_grad_(False)
    state = {"model": model, "optimizer": optimizer, "pace": pace, "average": average}
    first = restore(state, checkpoint)
    for step in trange(first, schedule.steps, initial=first, total=schedule.steps, desc=checkpoint.stem, disable=None):
        optimizer.zero_grad()
        value = backward(model.train(), loss, step, ranks=ranks)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        pace.step()
        weight = min(schedule.average, (1 + step) / (10 + step))
        get_ema_multi_avg_fn(weight)(list(average.parameters()), list(model.parameters()), None)
        for kept, current in zip(average.buffers(), model.buffers(), strict=True):  # batch norm's statistics
            kept.copy_(current)
        if (step + 1) % every == 0 or step + 1 == schedule.steps:
            if watch:
                watch(step + 1, average)
            store(state, checkpoint, step + 1)
            print(f"{checkpoint.stem} step {step + 1} loss {value.item():.4f}", flush=True)
    return average


def backward(model: nn.Module, loss: Loss, step: int, *, ranks: int) -> Tensor:
    """Adds the gradients of the loss of one step to the model's parameters; returns the loss."""
    if ranks == 1:
        value = loss(step)
        value.backward()
        return value.detach()
    parameters = [p for p in model.parameters() if p.requires_grad]

    def share(rank: int) -> tuple[Tensor, tuple[Tensor, ...]]:
        value = loss(step, rank) / ranks
        return value.detach(), torch.autograd.grad(value, parameters)

    with ThreadPoolExecutor(ranks, initializer=torch.set_num_threads, initargs=(1,)) as threads:
        values, gradients = zip(*threads.map(share, range(ranks)), strict=True)
    for parameter, *parts in zip(parameters, *gradients, strict=True):
        parameter.grad = torch.stack(parts).sum(0)
    return torch.stack(values).sum()


def keyed(folder: Path, name: str, recipe: units.Recipe, *decided, ending: str = ".pt") -> Path:
    """A file that is found for the same recipe and `decided` values alone: its name holds a digest of them."""
    return folder / f"{name}-{recipe.stamp(*decided)[:12]}{ending}"


def cached(path: Path, make: Callable[[], dict[str, Tensor]]) -> dict[str, Tensor]:
    """The tensors of a file, which are made where it is not there."""
    if not path.exists():
        tensors = make()
        with units.atomic(path) as unfinished:
            save_file(tensors, unfinished)
    return load_file(path)


def place(run: Run, recipe: units.Recipe, *inputs: str) -> dict[str, Any]:
    """Device and checkpoint of a step's training: one with other settings, classes, recipe or `inputs` does not find the latter."""
    decided = run.settings, run.base.classes, *inputs
    return {"checkpoint": keyed(paths.CHECKPOINTS, run.step, recipe, *decided), "device": run.base.device}


def store(state: dict, checkpoint: Path, step: int) -> None:
    """Writes a checkpoint atomically, with the state of torch's generators: dropout and a VAE's samples are drawn from them."""
    chance = {"cpu": torch.get_rng_state(), "cuda": torch.cuda.get_rng_state_all()}
    with units.atomic(checkpoint) as partial:
        torch.save({"step": step, "chance": chance} | {key: part.state_dict() for key, part in state.items()}, partial)


def restore(state: dict, checkpoint: Path) -> int:
    """Loads a checkpoint where there is one; returns the step to continue with."""
    if not checkpoint.exists():
        return 0
    saved = torch.load(checkpoint, weights_only=True)
    for key, part in state.items():
        part.load_state_dict(saved[key])
    torch.set_rng_state(saved["chance"]["cpu"])
    torch.cuda.set_rng_state_all(saved["chance"]["cuda"][: torch.cuda.device_count()])
    return saved["step"]


def halved(device: torch.device | str) -> bool:
    """Whether bfloat16 is the quicker on this device: on a card, and on processors that multiply it (AMX, AVX512_BF16).

    Others take longer for it than for single precision. Where ATen is bound to AVX2, as `cns` binds it, its attention refuses bfloat16.
    """
    if torch.device(device).type != "cpu":
        return True
    bound = os.environ.get("ONEDNN_MAX_CPU_ISA", "DEFAULT")
    unbound = torch.backends.cpu.get_cpu_capability() == "AVX512" and (bound in {"ALL", "DEFAULT"} or "AMX" in bound)
    able = torch.cpu.get_capabilities()
    return unbound and (able.get("amx_bf16", False) or able.get("avx512_bf16", False))


def autocast(device: torch.device | str, *, cached: bool = True) -> torch.autocast:
    """Passes in bfloat16 where that is the quicker, in single precision elsewhere; threads that share a model do without the cache."""
    return torch.autocast(torch.device(device).type, torch.bfloat16, enabled=halved(device), cache_enabled=cached)


MEAN, STD = (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)


def normalise(image: Float[Tensor, "batch 3 side side"]) -> Float[Tensor, "batch 3 side side"]:
    """Images in [0, 1] to the input range shared by all models trained here."""
    return (image - MEAN[0]) / STD[0]


@torch.no_grad()
def predict(model: nn.Module, image: Float[Tensor, "batch 3 side side"], *, device: str = "cpu") -> Float[Tensor, "batch outputs"]:
    """Outputs of a trained network on images in [0, 1]: logits, or features of one without a head."""
    network = model.eval().to(device)
    return torch.cat([network(normalise(part).to(device)).float().cpu() for part in image.split(256)])


def flip(image: Tensor, g: torch.Generator) -> Tensor:
    """Mirrors about half of the images of a batch."""
    mirrored = torch.rand(len(image), generator=g) < 0.5
    return torch.where(mirrored[:, None, None, None], image.flip(-1), image)


@dataclass(frozen=True)
class Strong:
    """DeiT's augmentation (Touvron et al. 2021, Table 9) by timm: RandAugment, random erasing, mixup and cutmix.

    Maps images in [0, 1] and labels to normalised images and soft targets. `mixed` is the share of batches that are mixed.
    """

    policy: str
    erasing: float
    mixup: float
    cutmix: float
    mixed: float
    smoothing: float = 0.1

    def __call__(self, image: Tensor, label: Tensor, classes: int = len(scenes.CLASSES)) -> tuple[Tensor, Tensor]:
        """One batch; random numbers come from the global generators, which `train` seeds for every such step."""
        change = rand_augment_transform(self.policy, {"translate_const": int(0.45 * image.shape[-1]), "img_mean": (128, 128, 128)})
        changed = torch.stack([pil_to_tensor(change(to_pil_image(picture))) for picture in image]) / 255
        erased = RandomErasing(self.erasing, mode="pixel", device="cpu")(normalise(changed))
        return Mixup(self.mixup, self.cutmix, prob=self.mixed, label_smoothing=self.smoothing, num_classes=classes)(erased, label)


def begin(seed: int) -> None:
    """Seeds the initial weights, before a network is made."""
    torch.manual_seed(seed)
    timm.layers.set_fused_attn(enable=False)  # its backward in bfloat16 on a CPU is several times slower


def reseed(*key: str | int) -> None:
    """Seeds the global generators: what libraries draw, dropout and masks too, then depends on the key alone."""
    seed = seeds.seed_of(*key)
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002  (timm draws from the global generator)
    torch.manual_seed(seed)


def train(
    model: nn.Module, garments: scenes.Garments, *, name: str, style: str, schedule: Schedule, augment: Strong | None = None, **run
) -> nn.Module:
    """Trains a classifier on unshifted scenes of one style, mirrored or not (cross-entropy, smoothing 0.1 unless the augmentation smooths).

    Step i of the training `name` draws its scenes from (name, seed, i).
    """

    def batch(key: tuple) -> tuple[Tensor, Tensor]:
        if augment:
            reseed(*key)
        drawn = scenes.sample(garments, key, schedule.batch_size, style=style, unshifted=1.0)
        image, classes = flip(drawn.image, seeds.generator(*key, "flip")), len(garments.classes)
        return augment(image, drawn.label, classes) if augment else (normalise(image), F.one_hot(drawn.label, classes).float())

    how: dict = {"schedule": schedule, "smoothing": 0.0 if augment else 0.1, "half": True}
    return fit_classifier(model, batch, (name, schedule.seed), **how, **run).cpu()


def fit_classifier(
    model: nn.Module, batch: Callable[[tuple], tuple], key: tuple, *, device: str, smoothing: float = 0.0, half: bool = False, **run
) -> nn.Module:
    """Minimises the cross-entropy of the normalised images and the labels, or soft targets, that `batch` draws; resumes.

    Step i draws them from (*key, i); dropout comes from the global generators, unless `batch` reseeds them. `half` computes in bfloat16
    where that is the quicker (`halved`); the rest goes to `fit`.
    """
    model = model.to(device)

    def loss(step: int) -> Tensor:
        image, target = batch((*key, step))
        with autocast(device) if half else nullcontext():
            logits = model(image.to(device))
        return F.cross_entropy(logits.float(), target.to(device), label_smoothing=smoothing)

    return fit(model, loss, **run)
