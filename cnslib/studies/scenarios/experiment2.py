"""EX2 of XIMAGENET-12 (section 5.1): a backbone trained and tested within one scenario, and once on originals for comparison.

Every training starts from the zoo's weights, which know the original catalog, and takes the same steps at the same pace on catalog
garments under its scenario at severity 1. It is tested as in EX1, on the same held-out garments under the same scenario.
"""

import itertools
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from jaxtyping import Int, UInt8
from torch import Tensor, nn

from cnslib.core import kinds, paths, seeds, tables, units, workers
from cnslib.core.names import UNSHIFTED, identifier
from cnslib.core.settings.studies import Scenarios
from cnslib.models import encoders
from cnslib.studies.scenarios import experiment1, subjects
from cnslib.studies.scenarios.subjects import Subject
from cnslib.world import scenes, training
from cnslib.world.training import Schedule

# The scenarios of the paper's Table 1 by ours, in its order.
PRINTED = {
    "blurred background": "blur_background",
    "blurred object": "blur_object",
    "green": "color_g",
    "blue": "color_b",
    "grey": "color_grey",
    "red": "color_r",
    "random background": "random_background",
    "segmented": "segmented_image",
}
TRAINED = (UNSHIFTED, *PRINTED)


@dataclass(frozen=True)
class Experiment:
    """What every training has in common: settings, classes, what outputs are called, and where weights in the making are kept."""

    settings: Scenarios
    classes: list[str]
    labels: list[str]
    checkpoints: Path
    device: str

    def stamp(self, backbone: str, name: str) -> units.Stamp:
        """What the answers of one trained backbone depend on."""
        keys = ("images", "training_images", "steps", "batch_size", "learning_rate", "average", "seed")
        own = {key: getattr(self.settings, key) for key in keys}
        source = encoders.source_digest(self.settings.backbones[backbone])
        return kinds.EX2.stamp(backbone, name, source, own, self.classes, self.labels)


def outcome(experiment: Experiment, *, folder: Path) -> pd.DataFrame:
    """The answers of every backbone within every scenario of Table 1; trains what is missing or outdated, one file each."""
    keys = itertools.product(experiment.settings.backbones, TRAINED)
    shelf = units.Shelf(folder, {(own, name): (f"{own}_{identifier(name)}.parquet", experiment.stamp(own, name)) for own, name in keys})
    workers.each(train_and_answer, [(experiment, *key, shelf[key]) for key in shelf.waiting()], device=experiment.device, desc="trainings")
    return tables.read_units(shelf, experiment1.replies)


def train_and_answer(experiment: Experiment, backbone: str, name: str, unit: units.Unit) -> None:
    """One training, and its answers to the held-out garments, written."""
    model, _ = encoders.timm_model(f"scenarios.backbones.{backbone}", experiment.settings.backbones[backbone], experiment.device)
    checkpoint = experiment.checkpoints / f"{unit.path.stem}-{unit.made_from[:12]}.pt"
    model = finetune(model, experiment, name, checkpoint=checkpoint)
    found, pictures, _ = examples(experiment, name, "heldout", experiment.settings.images)
    severity = 0.0 if name == UNSHIFTED else 1.0
    keys = pd.DataFrame([(name, own.label, own.seed, severity) for own in found], columns=tables.KEY)
    tables.write_unit(keys.assign(model=backbone, top1=answers(model, pictures, experiment)), unit, experiment1.replies)
    checkpoint.unlink(missing_ok=True)


def examples(
    experiment: Experiment, name: str, part: str, count: int
) -> tuple[list[Subject], UInt8[np.ndarray, "images side side 3"], Int[Tensor, "images"]]:
    """Garments of one pool under a scenario at severity 1: the subjects, their pictures and the index of their class."""
    pool, seed = read(part), experiment.settings.seed
    found = subjects.garments(pool, part, experiment.classes, count=count, seed=seed)
    pictures = np.stack([subjects.shown(own, name, 1.0, seed=seed) for own in found])
    return found, pictures, torch.tensor([experiment.labels.index(own.label) for own in found])


@cache
def read(part: str) -> scenes.Garments:
    """The garments of one pool, read once per process."""
    return scenes.garments(paths.GARMENTS, part)


def finetune(model: nn.Module, experiment: Experiment, name: str, *, checkpoint: Path) -> nn.Module:
    """All weights, cross-entropy with the zoo's smoothing and mirror; resumes from its checkpoint.

    Which garments a step sees depends on the step alone: all scenarios show the same ones in the same order.
    """
    settings = experiment.settings
    _, pictures, label = examples(experiment, name, "catalog", settings.training_images)
    training.begin(settings.seed)
    model.requires_grad_(True)
    schedule = Schedule(settings.steps, settings.batch_size, settings.learning_rate, average=settings.average, seed=settings.seed)

    def batch(key: tuple) -> tuple[Tensor, Tensor]:
        rows = torch.randint(len(label), (settings.batch_size,), generator=seeds.generator(*key))
        image = training.flip(batch_of(pictures[rows.numpy()]), seeds.generator(*key, "flip"))
        return training.normalise(image), label[rows]

    key = ("scenarios", settings.seed)
    return training.fit_classifier(model, batch, key, schedule=schedule, checkpoint=checkpoint, device=experiment.device, smoothing=0.1)


def batch_of(pictures: UInt8[np.ndarray, "images side side 3"]) -> Tensor:
    """Pictures as a batch in [0, 1], channels first."""
    return torch.from_numpy(pictures).permute(0, 3, 1, 2).float() / 255


@torch.no_grad()
def answers(model: nn.Module, pictures: UInt8[np.ndarray, "images side side 3"], experiment: Experiment) -> list[str]:
    """The first answer to every picture."""
    model.eval()
    parts = [batch_of(pictures[start : start + encoders.BATCH]) for start in range(0, len(pictures), encoders.BATCH)]
    best = torch.cat([model(training.normalise(part).to(experiment.device)).argmax(1) for part in parts])
    return [experiment.labels[place] for place in best.tolist()]
