"""Classifiers of the OOD-CV comparison: fine-tuning with standard augmentation and early stopping (CNS-Bench supplement L).

The zoo's loop does not stop early: its one-cycle pace needs to know the end beforehand. So the rate is constant here.
"""

import copy
import dataclasses
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torchvision.transforms import v2

from cnslib.core import paths, recipes, seeds, units, workers
from cnslib.core.names import UNSHIFTED
from cnslib.core.settings.sections import Oodcv
from cnslib.models import classifiers, encoders
from cnslib.models.classifiers import Classifier
from cnslib.world import scenes, zoo
from cnslib.world.training import begin, normalise, reseed

TRAINING = ("training_images", "validation_images", "epochs", "patience", "batch_size", "learning_rate", "rotation", "zoom", "seed")
WEIGHTS, HISTORY = "/model.safetensors", ".csv"
Scenes = tuple[Float[Tensor, "n 3 side side"], Int[Tensor, "n"]]  # images in [0, 1] with their class indices


@dataclass(frozen=True)
class FineTuning:
    """Which networks are fine-tuned on what, and where weights and histories are kept.

    The weights can be trained again in minutes, so they lie outside of the artifacts; the histories lie in `folder`.
    """

    settings: Oodcv
    classes: list[str]
    labels: list[str]
    weights: Path
    folder: Path
    device: str

    def stamp(self, name: str) -> str:
        """What a classifier is made from: the network it starts from, the scenes, and the settings of the training."""
        source = encoders.source_digest(self.settings.networks[name])
        training = {key: value for key, value in dataclasses.asdict(self.settings).items() if key in TRAINING}
        return recipes.FINETUNED.stamp(name, source, training, self.classes, self.labels)

    def shelf(self, folder: Path, ending: str) -> units.Shelf[str]:
        """A file with this ending for every classifier: its weights in `weights`, its history in `folder`."""
        return units.Shelf(folder, {name: (f"{name}{ending}", self.stamp(name)) for name in self.settings.networks}, f"*{ending}")

    @cached_property
    def classifiers(self) -> list[Classifier]:
        """The fine-tuned classifiers; trains those whose weights are missing or outdated."""
        paths_of = self.trained(self.shelf(self.weights, WEIGHTS))
        return [classifiers.load(name, str(path.parent), self.labels, self.device) for name, path in paths_of.items()]

    def histories(self) -> pd.DataFrame:
        """Loss and validation accuracy of every epoch (model, epoch, loss, n, accuracy, best); trains where one is missing or outdated."""
        paths_of = self.trained(self.shelf(self.folder, HISTORY))
        return pd.concat([pd.read_csv(path).assign(model=name) for name, path in paths_of.items()], ignore_index=True)

    def trained(self, shelf: units.Shelf[str]) -> dict[str, Path]:
        """The files of a shelf, after the networks whose files are missing or outdated were fine-tuned, one per core."""
        if names := shelf.waiting():
            first = self.settings.training_images  # validation garments come after those of the training
            parts = [catalog_scenes(self, "training", 0, first), catalog_scenes(self, "validation", first, self.settings.validation_images)]
            workers.each(finetune_and_store, [(self, name, *parts) for name in names], device=self.device, desc="classifiers")
        return shelf.paths


def catalog_scenes(tuning: FineTuning, part: str, first: int, count: int) -> Scenes:
    """Unshifted catalog scenes, `count` per class from the first one on."""
    pool, images, labels = scenes.garments(paths.GARMENTS, "catalog"), [], []
    for name in tuning.classes:
        rows = np.flatnonzero(pool.labels == scenes.CLASSES.index(name))[first : first + count]
        keys = [("oodcv", part, tuning.settings.seed, name, i) for i in range(len(rows))]
        unshifted: dict = {"shift": [UNSHIFTED] * len(rows), "severity": torch.zeros(len(rows))}
        images.append(scenes.render(pool.grey[rows], keys, style="catalog", **unshifted))
        labels += [tuning.labels.index(name)] * len(rows)
    return torch.cat(images), torch.tensor(labels)


def finetune_and_store(tuning: FineTuning, name: str, training: Scenes, validation: Scenes) -> None:
    """Fine-tunes one network and writes its weights and its history."""
    weights, history = tuning.shelf(tuning.weights, WEIGHTS)[name], tuning.shelf(tuning.folder, HISTORY)[name]
    model, table = finetune(tuning, name, training, validation)
    config = json.loads((paths.resolve(tuning.settings.networks[name]) / "config.json").read_text())
    arguments = {key: value for key, value in config["model_args"].items() if key != "num_classes"}
    zoo.save(model, weights.path.parent, architecture=config["architecture"], arguments=arguments)
    units.write_bytes(history.path, table.to_csv(index=False, lineterminator="\n").encode())
    for unit in (weights, history):
        unit.finish()


def finetune(tuning: FineTuning, name: str, training: Scenes, validation: Scenes) -> tuple[nn.Module, pd.DataFrame]:
    """Trains all weights under a new head until `patience` epochs bring no better validation accuracy; returns the best epoch's model."""
    settings = tuning.settings
    begin(settings.seed)
    model, _ = encoders.timm_model(f"oodcv.networks.{name}", settings.networks[name], tuning.device)
    model.reset_classifier(len(tuning.labels))  # type: ignore[operator]
    model.requires_grad_(True).to(tuning.device)
    optimizer = torch.optim.AdamW(model.parameters(), settings.learning_rate)
    rows, best, kept = list[dict](), 0, {}
    for epoch in range(1, settings.epochs + 1):
        loss = run_epoch(model, optimizer, training, key=(name, settings.seed, epoch), settings=settings)
        rows.append({"epoch": epoch, "loss": round(loss, 6), "n": len(validation[1]), "accuracy": share_correct(model, validation)})
        if epoch == 1 or rows[-1]["accuracy"] > rows[best]["accuracy"]:
            best, kept = epoch - 1, copy.deepcopy(model.state_dict())
        if epoch - 1 - best >= settings.patience:
            break
    model.load_state_dict(kept)
    return model.cpu().eval(), pd.DataFrame(rows).assign(best=[number == best for number in range(len(rows))])


def run_epoch(model: nn.Module, optimizer: torch.optim.Optimizer, training: Scenes, *, key: tuple, settings: Oodcv) -> float:
    """One pass over the training scenes in a random order, each image augmented on its own; returns the mean loss.

    Augmented are scale, rotation and flipping, the paper's "standard data augmentations"; what comes into view from outside is grey.
    """
    model.train()
    image, label = training
    device = next(model.parameters()).device
    turned = {"scale": (1 / settings.zoom, settings.zoom), "fill": 0.5, "interpolation": v2.InterpolationMode.BILINEAR}
    change = v2.Compose([v2.RandomHorizontalFlip(), v2.RandomAffine(settings.rotation, **turned)])
    total = 0.0
    for step, rows in enumerate(torch.randperm(len(label), generator=seeds.generator("oodcv", *key)).split(settings.batch_size)):
        reseed("oodcv", *key, step)
        logits = model(normalise(torch.stack([change(picture) for picture in image[rows]])).to(device))
        loss = F.cross_entropy(logits, label[rows].to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    return total / len(label)


@torch.no_grad()
def share_correct(model: nn.Module, found: Scenes) -> float:
    """Accuracy without augmentation."""
    model.eval()
    device = next(model.parameters()).device
    predicted = torch.cat([model(normalise(part).to(device)).argmax(1).cpu() for part in found[0].split(256)])
    return float((predicted == found[1]).float().mean())
