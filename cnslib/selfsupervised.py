"""mini-DINO: a timm ViT trained without labels by self-distillation (Caron et al. 2021) with lightly's loss and head."""

import copy
from pathlib import Path

import timm
import torch
from jaxtyping import Float
from lightly.loss import DINOLoss
from lightly.models.modules import DINOProjectionHead
from lightly.models.utils import update_momentum
from lightly.utils.scheduler import cosine_schedule
from sklearn.neighbors import KNeighborsClassifier
from torch import Tensor, nn
from torch.nn import utils

from cnslib import seeds, world
from cnslib.config import SHIFTS, UNSHIFTED
from cnslib.training import Schedule, fit

MEAN, STD = (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)


class Student(nn.Module):
    """Backbone and projection head."""

    def __init__(self, architecture: str, arguments: dict, *, prototypes: int):
        super().__init__()
        self.backbone = timm.create_model(architecture, num_classes=0, **arguments)
        self.head = DINOProjectionHead(self.backbone.num_features, 256, 64, prototypes)
        # lightly's head carries the weight norm in a form that cannot be copied for the teacher and the average
        last = utils.remove_weight_norm(self.head.last_layer)
        utils.parametrizations.weight_norm(last).parametrizations.weight.original0.data.fill_(1).requires_grad_(False)

    def forward(self, image: Tensor) -> Tensor:
        """Prototype scores of images in [0, 1]."""
        return self.head(self.backbone((image - MEAN[0]) / STD[0]))


def views(garments: world.Garments, key: tuple, count: int, *, crops: int) -> list[Float[Tensor, "batch 3 64 64"]]:
    """Views of the same garments: new pose, colour, background and light each time, one in three under a shift.

    Re-rendering is the augmentation; no label enters.
    """
    g = seeds.generator(*key, "choice")
    rows = torch.randint(len(garments.labels), (count,), generator=g)
    result = []
    for crop in range(crops):
        which = torch.where(torch.rand(count, generator=g) < 0.33, torch.randint(len(SHIFTS), (count,), generator=g), len(SHIFTS))
        names = [(*SHIFTS, UNSHIFTED)[s] for s in which.tolist()]
        keys = [(*key, crop, i) for i in range(count)]
        severity = 0.7 * torch.rand(count, generator=g)
        style = "catalog" if crop % 2 else "web"
        result.append(world.render(garments.grey[rows], keys, style=style, shift=names, severity=severity))
    return result


def train(
    garments: world.Garments, *, architecture: str, arguments: dict, prototypes: int, schedule: Schedule, checkpoint: Path, device: str
) -> nn.Module:
    """Trains student and momentum teacher on pairs of views; returns the averaged student's backbone."""
    torch.manual_seed(schedule.seed)
    student = Student(architecture, arguments, prototypes=prototypes).to(device)
    teacher = copy.deepcopy(student).requires_grad_(False)
    pair = nn.ModuleDict({"student": student, "teacher": teacher})
    criterion = pair["criterion"] = DINOLoss(prototypes, warmup_teacher_temp_epochs=0).to(device)

    def loss(step: int) -> Tensor:
        update_momentum(student, teacher, m=cosine_schedule(step, schedule.steps, 0.99, 1.0))
        both = views(garments, ("selfsupervised", schedule.seed, step), schedule.batch_size, crops=2)
        with torch.autocast(device, torch.bfloat16):
            seen = [student(view.to(device)) for view in both]
            with torch.no_grad():
                taught = [teacher(view.to(device)) for view in both]
        return criterion([t.float() for t in taught], [s.float() for s in seen], epoch=1)

    return fit(pair, loss, schedule=schedule, checkpoint=checkpoint)["teacher"].backbone.cpu()


@torch.no_grad()
def features(backbone: nn.Module, image: Float[Tensor, "batch 3 64 64"]) -> Float[Tensor, "batch width"]:
    """L2-normalised features of images in [0, 1]."""
    parts = [backbone.eval()((part - MEAN[0]) / STD[0]) for part in image.split(256)]
    return nn.functional.normalize(torch.cat(parts), dim=1)


def knn_correct(backbone: nn.Module, bank: world.Batch, query: world.Batch, *, neighbours: int = 20) -> Tensor:
    """Whether each query image's class is named by its 20 nearest neighbours by cosine (Caron et al. 2021, section 4.1)."""
    model = KNeighborsClassifier(neighbours, metric="cosine", weights="distance")
    model.fit(features(backbone, bank.image).numpy(), bank.label.numpy())
    return torch.from_numpy(model.predict(features(backbone, query.image).numpy())) == query.label
