"""mini-DINO: a timm network trained without labels, by contrast of two views (Chen et al. 2020) with lightly's loss and head.

It plays DINOv2's part. Self-distillation itself was tried first: after 400 steps of 64 garments its features had collapsed.
"""

from collections.abc import Callable
from pathlib import Path

import timm
import torch
from jaxtyping import Float
from lightly.loss import NTXentLoss
from lightly.models.modules import SimCLRProjectionHead
from sklearn.neighbors import KNeighborsClassifier
from torch import Tensor, nn

from cnslib.core import seeds
from cnslib.core.names import SHIFTS
from cnslib.world import redrawing, scenes
from cnslib.world.training import Schedule, autocast, fit, normalise, predict


class Learner(nn.Module):
    """Backbone and projection head."""

    def __init__(self, architecture: str, arguments: dict):
        super().__init__()
        self.backbone = timm.create_model(architecture, num_classes=0, **arguments)
        self.head = SimCLRProjectionHead(self.backbone.num_features, 256, 64)

    def forward(self, image: Tensor) -> Float[Tensor, "batch 64"]:
        """Projections of images in [0, 1]."""
        return self.head(self.backbone(normalise(image)))


def views(garments: scenes.Garments, key: tuple, count: int, *, crops: int) -> list[Float[Tensor, "batch 3 64 64"]]:
    """Views of the same garments: new pose, colour, background and light each time, one in three under a shift; no label enters.

    The first half are web scenes, the others catalog scenes: a network that learns that both are the same cannot tell them apart.
    """
    g = seeds.generator(*key, "choice")
    rows = torch.randint(len(garments.labels), (count,), generator=g)
    result = []
    for crop in range(crops):
        which = torch.where(torch.rand(count, generator=g) < 0.33, torch.randint(len(SHIFTS), (count,), generator=g), len(SHIFTS))
        names = [scenes.NAMES[s] for s in which.tolist()]
        keys = [(*key, crop, i) for i in range(count)]
        severity = 0.7 * torch.rand(count, generator=g)
        parts = []
        for style, half in (("web", slice(count // 2)), ("catalog", slice(count // 2, count))):
            parts.append(scenes.render(garments.grey[rows[half]], keys[half], style=style, shift=names[half], severity=severity[half]))
        result.append(torch.cat(parts))
    return result


def drawn_views(garments: scenes.Garments, redrawn: redrawing.Redrawn, key: tuple, count: int) -> list[Float[Tensor, "batch 3 64 64"]]:
    """Two views of garments: a web scene without shift, and a scene of the same garment that mini-SD drew again."""
    rows = torch.randint(len(redrawn.label), (count,), generator=seeds.generator(*key, "redrawn"))
    keys = [(*key, "redrawn", i) for i in range(count)]
    grey = garments.grey[redrawn.garment[rows]]
    rendered = scenes.render(grey, keys, style="web")
    return [rendered, redrawn.image[rows].to(rendered) / 255]


def train(
    garments: scenes.Garments,
    *,
    architecture: str,
    arguments: dict,
    schedule: Schedule,
    redrawn: redrawing.Redrawn | None = None,
    share: float = 0.0,
    **run,
) -> nn.Module:
    """Trains a network on web garments; for a `share` of them one of the two views is a scene that mini-SD drew again."""
    torch.manual_seed(schedule.seed)

    def drawn(step: int) -> list[Tensor]:
        key = ("selfsupervised", schedule.seed, step)
        both = views(garments, key, schedule.batch_size, crops=2)
        if redrawn:
            both = [torch.cat(pair) for pair in zip(both, drawn_views(garments, redrawn, key, round(share * len(both[0]))), strict=True)]
        return both

    return contrast(Learner(architecture, arguments), drawn, schedule=schedule, **run)


def contrast(
    learner: Learner, views: Callable[[int], list[Tensor]], *, temperature: float, schedule: Schedule, checkpoint: Path, device: str
) -> nn.Module:
    """Teaches to find, among all `views` of a step, the other view of the same garment (NT-Xent); returns the backbone."""
    learner, criterion = learner.to(device), NTXentLoss(temperature)

    def loss(step: int) -> Tensor:
        pair = views(step)
        with autocast(device):
            projected = learner(torch.cat(pair).to(device))
        return criterion(*projected.float().chunk(2))

    return fit(learner, loss, schedule=schedule, checkpoint=checkpoint).backbone.cpu()


def features(backbone: nn.Module, image: Float[Tensor, "batch 3 64 64"]) -> Float[Tensor, "batch width"]:
    """L2-normalised features of images in [0, 1]."""
    return nn.functional.normalize(predict(backbone, image), dim=1)


def knn_correct(backbone: nn.Module, bank: scenes.Batch, query: scenes.Batch, *, neighbours: int = 20) -> Tensor:
    """Whether each query image's class is named by its 20 nearest neighbours by cosine (Caron et al. 2021, section 4.1)."""
    model = KNeighborsClassifier(neighbours, metric="cosine", weights="distance")
    model.fit(features(backbone, bank.image).numpy(), bank.label.numpy())
    return torch.from_numpy(model.predict(features(backbone, query.image).numpy())) == query.label
