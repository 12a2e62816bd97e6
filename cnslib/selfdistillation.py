"""DINO (Caron et al. 2021): pre-training without labels by agreement of a student with a teacher that follows it; parts by lightly."""

import copy
from typing import Any

import timm
import torch
from jaxtyping import Float
from lightly.loss import DINOLoss
from lightly.models import utils
from lightly.models.modules import DINOProjectionHead
from lightly.utils.scheduler import cosine_schedule
from torch import Tensor, nn
from torchvision.transforms import v2

from cnslib import supervised, world, zoo
from cnslib.config import UNSHIFTED
from cnslib.training import Schedule, fit


class SelfDistillation(nn.Module):
    """Student and teacher, each a network with a head.

    The loss is a part of the model, because its centre belongs into the checkpoint.
    """

    def __init__(self, architecture: str, arguments: dict, *, outputs: int):
        super().__init__()
        vit: Any = timm.create_model(architecture, num_classes=0, dynamic_img_size=True, **arguments)  # small crops: fewer patches
        head = DINOProjectionHead(vit.num_features, 256, 64, outputs)
        with torch.no_grad():
            head(torch.zeros(1, vit.num_features))  # a normalised weight that carries no graph can be copied
        self.student = nn.ModuleList([vit, head])
        self.teacher = copy.deepcopy(self.student).requires_grad_(False)
        self.criterion = DINOLoss(outputs)

    def forward(self, wide: list[Tensor], narrow: list[Tensor]) -> Float[Tensor, ""]:
        """The student of every crop answers as the teacher of the other wide ones."""
        with torch.no_grad():
            wanted = answers(self.teacher, wide)
        return self.criterion(wanted, answers(self.student, wide) + answers(self.student, narrow))


def answers(network: Any, crops: list[Tensor]) -> list[Float[Tensor, "batch outputs"]]:
    """Outputs of backbone and head for crops of one size; the head computes in fp32, for its outputs are divided by 0.04."""
    with torch.autocast(crops[0].device.type, torch.bfloat16):
        features = network[0](torch.cat(crops))
    return list(network[1](features.float()).chunk(len(crops)))


def crops(garments: world.Garments, key: tuple, count: int, *, narrow: int) -> tuple[list[Tensor], list[Tensor]]:
    """Two renders of the same garments (new pose, colours and background) cropped to 64 px, and small crops of them of 32 px."""
    rows = torch.randint(len(garments.labels), (count,))
    plain: dict = {"style": "catalog", "shift": [UNSHIFTED] * count, "severity": torch.zeros(count)}
    renders = [world.render(garments.grey[rows], [(*key, view, i) for i in range(count)], **plain) for view in range(2)]
    large, small = v2.RandomResizedCrop(64, (0.4, 1.0), antialias=True), v2.RandomResizedCrop(32, (0.1, 0.4), antialias=True)
    wide = [each(large, zoo.normalise(image)) for image in renders]
    return wide, [each(small, zoo.normalise(renders[i % 2])) for i in range(narrow)]


def each(transform: nn.Module, image: Tensor) -> Tensor:
    """A random transform drawn anew for every image of a batch, half of them mirrored."""
    mirror = v2.RandomHorizontalFlip()
    return torch.stack([mirror(transform(picture)) for picture in image])


def dino(garments: world.Garments, backbone: dict, *, outputs: int, narrow: int, momentum: float, schedule: Schedule, **run) -> nn.Module:
    """Pre-trains on unshifted catalog scenes without their labels; returns the teacher's network."""
    supervised.begin(schedule.seed)
    model, device = SelfDistillation(**backbone, outputs=outputs).to(run["device"]), run["device"]

    def loss(step: int) -> Tensor:
        key = ("dino", schedule.seed, step)
        supervised.reseed(*key)
        utils.update_momentum(model.student, model.teacher, cosine_schedule(step, schedule.steps, momentum, 1.0))
        wide, narrower = crops(garments, key, schedule.batch_size, narrow=narrow)
        return model([crop.to(device) for crop in wide], [crop.to(device) for crop in narrower])

    return fit(model, loss, schedule=schedule, checkpoint=run["checkpoint"]).teacher[0].cpu()
