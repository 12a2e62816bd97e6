"""mini-DINO: a timm network trained without labels, by contrast of two views (Chen et al. 2020) with lightly's loss and head.

It plays DINOv2's part. Self-distillation itself was tried first: after 400 steps of 64 garments its features had collapsed.
"""

from collections.abc import Callable

import timm
import torch
from jaxtyping import Float
from lightly.loss import NTXentLoss
from lightly.models.modules import SimCLRProjectionHead
from sklearn.neighbors import KNeighborsClassifier
from torch import Tensor, nn

from cnslib.core import seeds
from cnslib.core.names import SHIFTS
from cnslib.core.settings.sections import Selfsupervised
from cnslib.world import redrawing, scenes
from cnslib.world.training import autocast, fit, normalise, predict, scheduled


def views(garments: scenes.Garments, key: tuple, count: int) -> list[Float[Tensor, "batch 3 64 64"]]:
    """Two views of the same garments: new pose, colour, background and light each time, one in three under a shift; no label enters.

    The first half are web scenes, the others catalog scenes: a network that learns that both are the same cannot tell them apart.
    """
    g = seeds.generator(*key, "choice")
    rows = torch.randint(len(garments.labels), (count,), generator=g)
    result = []
    for view in range(2):
        shift = torch.where(torch.rand(count, generator=g) < 0.33, torch.randint(len(SHIFTS), (count,), generator=g), len(SHIFTS))
        severity, parts = 0.7 * torch.rand(count, generator=g), []
        for style, half in (("web", range(count // 2)), ("catalog", range(count // 2, count))):
            own, keys = list(half), [(*key, view, i) for i in half]
            parts.append(scenes.batch(garments, rows[own], keys, style=style, shift=shift[own], severity=severity[own]).image)
        result.append(torch.cat(parts))
    return result


def train(garments: scenes.Garments, settings: Selfsupervised, redrawn: redrawing.Redrawn | None, **run) -> nn.Module:
    """Trains a network on web garments; for a share `redrawn` more, one view is a web scene and the other one that mini-SD drew again."""
    torch.manual_seed(settings.seed)
    added = round(settings.redrawn * settings.batch_size)

    def drawn(step: int) -> list[Tensor]:
        key = ("selfsupervised", settings.seed, step)
        both = views(garments, key, settings.batch_size)
        if not redrawn:
            return both
        rows = torch.randint(len(redrawn.label), (added,), generator=seeds.generator(*key, "redrawn"))
        rendered = scenes.render(garments.grey[redrawn.garment[rows]], [(*key, "redrawn", i) for i in range(added)], style="web")
        return [torch.cat([both[0], rendered]), torch.cat([both[1], redrawn.image[rows].to(rendered) / 255])]

    how: dict = {"temperature": settings.temperature, "schedule": scheduled(vars(settings))}
    return contrast(timm.create_model(settings.architecture, num_classes=0, **settings.arguments), drawn, **how, **run)


def contrast(backbone: nn.Module, views: Callable[[int], list[Tensor]], *, temperature: float, device: str, **run) -> nn.Module:
    """Teaches a network without head to find, among all `views` of a step, the other view of the same garment (NT-Xent); returns it."""
    learner = nn.Sequential(backbone, SimCLRProjectionHead(backbone.num_features, 256, 64)).to(device)  # type: ignore[arg-type]
    criterion = NTXentLoss(temperature)

    def loss(step: int) -> Tensor:
        pair = views(step)
        with autocast(device):
            projected = learner(normalise(torch.cat(pair).to(device)))
        return criterion(*projected.float().chunk(2))

    return fit(learner, loss, **run)[0].cpu()


def knn_correct(backbone: nn.Module, bank: scenes.Batch, query: scenes.Batch, *, neighbours: int = 20) -> Tensor:
    """Whether each query image's class is named by its 20 nearest neighbours by cosine (Caron et al. 2021, section 4.1)."""
    known, asked = (nn.functional.normalize(predict(backbone, part.image), dim=1).numpy() for part in (bank, query))
    model = KNeighborsClassifier(neighbours, metric="cosine", weights="distance").fit(known, bank.label.numpy())
    return torch.from_numpy(model.predict(asked)) == query.label
