"""Supervised training from any start with any augmentation: the zoo's loop for web pre-training, fine-tuning and DeiT's recipe."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import timm
import torch
import torch.nn.functional as F
from timm.data import Mixup
from timm.data.auto_augment import rand_augment_transform
from timm.data.random_erasing import RandomErasing
from torch import Tensor, nn
from torchvision.transforms.v2.functional import pil_to_tensor, to_pil_image

from cnslib import seeds, world, zoo
from cnslib.training import Schedule, fit

Augmentation = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


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

    def __call__(self, image: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
        """One batch; random numbers come from the global generators, which `train` seeds for every step."""
        change = rand_augment_transform(self.policy, {"translate_const": int(0.45 * image.shape[-1]), "img_mean": (128, 128, 128)})
        changed = torch.stack([pil_to_tensor(change(to_pil_image(picture))) for picture in image]) / 255
        erased = RandomErasing(self.erasing, mode="pixel", device="cpu")(zoo.normalise(changed))
        mix = Mixup(self.mixup, self.cutmix, prob=self.mixed, label_smoothing=self.smoothing, num_classes=len(world.CLASSES))
        return mix(erased, label)


def plain(image: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
    """No augmentation but the mirror that `train` applies: normalised images, one-hot targets."""
    return zoo.normalise(image), F.one_hot(label, len(world.CLASSES)).float()


def begin(seed: int) -> None:
    """Seeds the initial weights, before a network is made."""
    torch.manual_seed(seed)
    timm.layers.set_fused_attn(enable=False)  # its backward in bfloat16 on a CPU is several times slower


def reseed(*key: str | int) -> None:
    """Seeds the global generators: what libraries draw, dropout and masks too, then depends on the step alone."""
    seed = seeds.seed_of(*key)
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002  (timm draws from the global generator)
    torch.manual_seed(seed)


def train(
    model: nn.Module,
    garments: world.Garments,
    *,
    name: str,
    style: str,
    schedule: Schedule,
    checkpoint: Path,
    device: str,
    augment: Augmentation = plain,
) -> nn.Module:
    """Trains a classifier on unshifted scenes of one style (cross-entropy, smoothing 0.1 unless the augmentation smooths).

    Step i of the training `name` draws its scenes from (name, seed, i).
    """
    smoothing = 0.1 if augment is plain else 0.0

    def batch(key: tuple) -> tuple[Tensor, Tensor]:
        found = world.sample(garments, key, schedule.batch_size, style=style, unshifted=1.0)
        return augment(zoo.flip(found.image, seeds.generator(*key, "flip")), found.label)

    fitted = fit_classifier(
        model, batch, (name, schedule.seed), schedule=schedule, checkpoint=checkpoint, device=device, smoothing=smoothing
    )
    return fitted.cpu()


def fit_classifier(
    model: nn.Module,
    batch: Callable[[tuple], tuple[Tensor, Tensor]],
    key: tuple,
    *,
    schedule: Schedule,
    checkpoint: Path,
    device: str,
    smoothing: float = 0.0,
    half: bool = True,
) -> nn.Module:
    """Minimises the cross-entropy of the normalised images and the labels, or soft targets, that `batch` draws; resumes.

    Step i draws them from (*key, i), as all else that is random in it. `half` computes in bfloat16.
    """
    model = model.to(device)
    checkpoint.parent.mkdir(parents=True, exist_ok=True)

    def loss(step: int) -> Tensor:
        reseed(*key, step)
        image, target = batch((*key, step))
        with torch.autocast(torch.device(device).type, torch.bfloat16, enabled=half):
            logits = model(image.to(device))
        return F.cross_entropy(logits.float(), target.to(device), label_smoothing=smoothing)

    return fit(model, loss, schedule=schedule, checkpoint=checkpoint)
