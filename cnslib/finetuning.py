"""From a pre-trained backbone to a classifier: fine-tuning of all weights, or a linear probe on frozen features."""

import timm
import torch
from jaxtyping import Float
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from cnslib import selfsupervised, supervised, world, zoo
from cnslib.config import UNSHIFTED
from cnslib.training import Schedule


def headed(backbone: nn.Module, architecture: str, arguments: dict) -> nn.Module:
    """A classifier with the backbone's weights and a new head; ValueError names weights without a partner."""
    model = timm.create_model(architecture, num_classes=len(world.CLASSES), **arguments)
    unmatched = model.load_state_dict(backbone.state_dict(), strict=False)
    strange = [key for key in (*unmatched.missing_keys, *unmatched.unexpected_keys) if not key.startswith("head.")]
    if strange:
        raise ValueError(f"backbone and {architecture} differ in {', '.join(strange)}; accepted: the same architecture and arguments")
    return model


def finetune(garments: world.Garments, backbone: nn.Module, network: dict, *, schedule: Schedule, **run) -> nn.Module:
    """Trains backbone and a new head on unshifted catalog scenes: one recipe and the same scenes, whatever the backbone's past."""
    supervised.begin(schedule.seed)
    model = headed(backbone, **network)
    return supervised.train(model, garments, name="finetuning", style="catalog", schedule=schedule, **run)


@torch.no_grad()
def features(backbone: nn.Module, image: Float[Tensor, "batch 3 64 64"], *, device: str) -> Float[Tensor, "batch width"]:
    """What the backbone hands to a head, for images in [0, 1]."""
    network = backbone.eval().to(device)
    return torch.cat([network(zoo.normalise(part).to(device)).float().cpu() for part in image.split(256)])


def probe(garments: world.Garments, backbone: nn.Module, network: dict, *, penalty: float, seed: int, device: str) -> nn.Module:
    """Logistic regression on the frozen features of one catalog scene per garment; the features' scaling becomes part of the head."""
    count = len(garments.labels)
    keys = [("probe", seed, i) for i in range(count)]
    parts = []
    for rows in torch.arange(count).split(1000):
        plain: dict = {"style": "catalog", "shift": [UNSHIFTED] * len(rows), "severity": torch.zeros(len(rows))}
        image = world.render(garments.grey[rows], [keys[i] for i in rows.tolist()], **plain)
        parts.append(features(backbone, image, device=device))
    table = torch.cat(parts).double().numpy()
    scale, line = make_pipeline(StandardScaler(), LogisticRegression(C=1 / penalty, max_iter=2000)).fit(table, garments.labels)
    model = headed(backbone.cpu(), **network)
    weight = torch.from_numpy(line.coef_ / scale.scale_)
    bias = torch.from_numpy(line.intercept_) - weight @ torch.from_numpy(scale.mean_)
    model.load_state_dict({"head.weight": weight, "head.bias": bias}, strict=False)
    return model


def neighbours_know(backbones: dict[str, nn.Module], catalog: world.Garments, heldout: world.Garments, *, images: int) -> dict[str, Tensor]:
    """Whether 20 neighbours among labelled catalog scenes name each held-out scene: a collapsed backbone answers at random.

    All backbones see the same scenes.
    """
    bank = world.sample(catalog, ("pretraining", "bank"), images, style="catalog", unshifted=1.0)
    query = world.sample(heldout, ("pretraining", "query"), images, style="catalog", unshifted=1.0)
    return {name: selfsupervised.knn_correct(backbone, bank, query) for name, backbone in backbones.items()}
