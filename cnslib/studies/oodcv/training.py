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
from cnslib.core.names import UNSHIFTED, demand
from cnslib.core.settings.analyses import Oodcv
from cnslib.models import classifiers, encoders
from cnslib.models.classifiers import Classifier
from cnslib.world import scenes, zoo
from cnslib.world.training import begin, normalise, reseed

TRAINING = ("training_images", "validation_images", "epochs", "patience", "batch_size", "learning_rate", "rotation", "zoom", "seed")


@dataclass(frozen=True)
class Scenes:
    """Images in [0, 1] with their class indices."""

    image: Float[Tensor, "n 3 side side"]
    label: Int[Tensor, "n"]


@dataclass(frozen=True)
class FineTuning:
    """Which networks are fine-tuned on what: settings, class names, the labels of the outputs, and where weights and histories are kept.

    The weights can be made anew in minutes, so they lie outside of the artifacts; the histories lie in `folder`.
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
        own = {key: value for key, value in dataclasses.asdict(self.settings).items() if key in TRAINING}
        return recipes.FINETUNED.stamp(name, source, own, self.classes, self.labels)

    @property
    def stored(self) -> units.Shelf[str]:
        """The weights of every classifier."""
        files = {name: (f"{name}/model.safetensors", self.stamp(name)) for name in self.settings.networks}
        return units.Shelf(self.weights, files, "*/model.safetensors")

    @property
    def logged(self) -> units.Shelf[str]:
        """The history of every classifier."""
        return units.Shelf(self.folder, {name: (f"{name}.csv", self.stamp(name)) for name in self.settings.networks}, "*.csv")

    @cached_property
    def classifiers(self) -> list[Classifier]:
        """The fine-tuned classifiers; trains those whose weights are missing or outdated."""
        self.train(self.stored.waiting())
        return [classifiers.load(name, str(path.parent), self.labels, self.device) for name, path in self.stored.paths.items()]

    def histories(self) -> pd.DataFrame:
        """Loss and validation accuracy of every epoch (model, epoch, loss, n, accuracy, best); trains where one is missing or outdated."""
        self.train(self.logged.waiting())
        return pd.concat([pd.read_csv(path).assign(model=name) for name, path in self.logged.paths.items()], ignore_index=True)

    def train(self, names: list[str]) -> None:
        """Fine-tunes some networks, one per core, and writes weights and history of each."""
        if names:
            pool = scenes.garments(paths.GARMENTS, "catalog")
            counts = {"training": self.settings.training_images, "validation": self.settings.validation_images}
            parts = [catalog_scenes(pool, self, part, count) for part, count in counts.items()]
            workers.each(finetune_and_store, [(self, name, *parts) for name in names], device=self.device, desc="classifiers")


def catalog_scenes(pool: scenes.Garments, tuning: FineTuning, part: str, count: int) -> Scenes:
    """Unshifted catalog scenes, `count` per class; validation garments come after those of the training."""
    images, labels = [], []
    skipped = tuning.settings.training_images if part == "validation" else 0
    for name in tuning.classes:
        demand(name in scenes.CLASSES, "base.classes", name, ", ".join(scenes.CLASSES))
        rows = np.flatnonzero(pool.labels == scenes.CLASSES.index(name))[skipped : skipped + count]
        keys = [("oodcv", part, tuning.settings.seed, name, i) for i in range(len(rows))]
        unshifted: dict = {"shift": [UNSHIFTED] * len(rows), "severity": torch.zeros(len(rows))}
        images.append(scenes.render(pool.grey[rows], keys, style="catalog", **unshifted))
        labels += [tuning.labels.index(name)] * len(rows)
    return Scenes(torch.cat(images), torch.tensor(labels))


def finetune_and_store(tuning: FineTuning, name: str, training: Scenes, validation: Scenes) -> None:
    """Fine-tunes one network and writes its weights and its history."""
    weights, history = tuning.stored[name], tuning.logged[name]
    source = tuning.settings.networks[name]
    model, table = finetune(source, training, validation, name=name, outputs=len(tuning.labels), tuning=tuning)
    config = json.loads((paths.resolve(source) / "config.json").read_text())
    arguments = {key: value for key, value in config["model_args"].items() if key != "num_classes"}
    zoo.save(model, weights.path.parent, architecture=config["architecture"], arguments=arguments)
    units.write_bytes(history.path, table.to_csv(index=False, lineterminator="\n").encode())
    for unit in (weights, history):
        unit.finish()


def finetune(
    source: str, training: Scenes, validation: Scenes, *, name: str, outputs: int, tuning: FineTuning
) -> tuple[nn.Module, pd.DataFrame]:
    """Trains all weights under a new head until `patience` epochs bring no better validation accuracy; returns the best epoch's model."""
    settings = tuning.settings
    begin(settings.seed)
    model, _ = encoders.timm_model(f"oodcv.networks.{name}", source, tuning.device)
    model.reset_classifier(outputs)  # type: ignore[operator]
    model.requires_grad_(True).to(tuning.device)
    optimizer = torch.optim.AdamW(model.parameters(), settings.learning_rate)
    rows: list[dict] = []
    best, kept = -1.0, copy.deepcopy(model.state_dict())
    for epoch in range(1, settings.epochs + 1):
        loss = run_epoch(model, optimizer, training, key=(name, settings.seed, epoch), settings=settings)
        accuracy = share_correct(model, validation)
        rows.append({"epoch": epoch, "loss": round(loss, 6), "n": len(validation.label), "accuracy": accuracy, "best": False})
        if accuracy > best:
            best, kept = accuracy, copy.deepcopy(model.state_dict())
        if waited(rows) >= settings.patience:
            break
    model.load_state_dict(kept)
    rows[len(rows) - 1 - waited(rows)]["best"] = True
    return model.cpu().eval(), pd.DataFrame(rows)


def waited(rows: list[dict]) -> int:
    """How many epochs ago the validation accuracy was best, for the first time."""
    found = [row["accuracy"] for row in rows]
    return len(found) - 1 - found.index(max(found))


def run_epoch(model: nn.Module, optimizer: torch.optim.Optimizer, training: Scenes, *, key: tuple, settings: Oodcv) -> float:
    """One pass over the training scenes in a random order, each image augmented on its own; returns the mean loss."""
    model.train()
    order = torch.randperm(len(training.label), generator=seeds.generator("oodcv", *key))
    change, losses = augmentation(settings), []
    for step, rows in enumerate(order.split(settings.batch_size)):
        reseed("oodcv", *key, step)
        image = torch.stack([change(picture) for picture in training.image[rows]])
        device = next(model.parameters()).device
        logits = model(normalise(image).to(device))
        value = F.cross_entropy(logits, training.label[rows].to(device))
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        losses.append(value.item() * len(rows))
    return sum(losses) / len(training.label)


def augmentation(settings: Oodcv) -> v2.Compose:
    """Scale, rotation and flipping, the paper's "standard data augmentations"; what comes into view from outside is grey."""
    zoom = (1 / settings.zoom, settings.zoom)
    turned = v2.RandomAffine(settings.rotation, scale=zoom, fill=0.5, interpolation=v2.InterpolationMode.BILINEAR)
    return v2.Compose([v2.RandomHorizontalFlip(), turned])


@torch.no_grad()
def share_correct(model: nn.Module, found: Scenes) -> float:
    """Accuracy without augmentation."""
    model.eval()
    device = next(model.parameters()).device
    answers = torch.cat([model(normalise(part).to(device)).argmax(1).cpu() for part in found.image.split(256)])
    return float((answers == found.label).float().mean())
