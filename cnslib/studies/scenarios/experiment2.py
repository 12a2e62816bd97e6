"""EX2 of XIMAGENET-12 (section 5.1): a backbone trained and tested within one scenario, and once on originals for comparison.

Every training starts from the zoo's weights, which know the original catalog, and takes the same steps at the same pace on catalog
garments under its scenario at severity 1. It is tested as in EX1, on the same held-out garments under the same scenario, at several
places on its way: only where more steps change nothing does a difference between scenarios say more than how fast a habit is lost.
"""

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
import torch
from jaxtyping import Int, UInt8
from torch import Tensor, nn

from cnslib.core import paths, recipes, seeds, tables, units, workers
from cnslib.core.names import UNSHIFTED, identifier
from cnslib.core.settings.method import Bootstrap
from cnslib.core.settings.studies import Scenarios
from cnslib.models import encoders
from cnslib.stats import bootstrap
from cnslib.studies.scenarios import subjects
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
COLUMNS = {"model": pa.Column(str), **tables.IDENTITY, "top1": pa.Column(str), "steps": pa.Column("int64", pa.Check.ge(1))}
replies = tables.schema(["model", *tables.KEY, "steps"], COLUMNS)


@dataclass(frozen=True)
class Experiment:
    """What every training has in common: settings, classes, what outputs are called, and where weights in the making are kept."""

    settings: Scenarios
    classes: list[str]
    labels: list[str]
    checkpoints: Path
    device: str

    def stamp(self, backbone: str, name: str) -> str:
        """What the answers of one trained backbone depend on."""
        keys = ("images", "training_images", "steps", "checks", "batch_size", "learning_rate", "average", "seed")
        own = {key: getattr(self.settings, key) for key in keys}
        source = encoders.source_digest(self.settings.backbones[backbone])
        return recipes.EX2.stamp(backbone, name, source, own, self.classes, self.labels)


def outcome(experiment: Experiment, *, folder: Path) -> pd.DataFrame:
    """The answers of every backbone within every scenario of Table 1, at every check of its training (`steps`).

    Trains what is missing or outdated, one file each.
    """
    keys = itertools.product(experiment.settings.backbones, TRAINED)
    shelf = units.Shelf(folder, {(own, name): (f"{own}_{identifier(name)}.parquet", experiment.stamp(own, name)) for own, name in keys})
    workers.each(train_and_answer, [(experiment, *key, shelf[key]) for key in shelf.waiting()], device=experiment.device, desc="trainings")
    return tables.read_units(shelf, replies)


def train_and_answer(experiment: Experiment, backbone: str, name: str, unit: units.Unit) -> None:
    """One training, and its answers to the held-out garments at every check, written."""
    model, _ = encoders.timm_model(f"scenarios.backbones.{backbone}", experiment.settings.backbones[backbone], experiment.device)
    checkpoint = experiment.checkpoints / f"{unit.path.stem}-{unit.made_from[:12]}.pt"
    said = checkpoint.with_suffix(".json")
    found, pictures, _ = examples(experiment, name, "heldout", experiment.settings.images)

    def watch(steps: int, average: nn.Module) -> None:
        kept(said, steps, answers(average, pictures, experiment))

    finetune(model, experiment, name, checkpoint=checkpoint, watch=watch)
    severity = 0.0 if name == UNSHIFTED else 1.0
    keys = pd.DataFrame([(name, own.label, own.seed, severity) for own in found], columns=tables.KEY)
    parts = [keys.assign(model=backbone, top1=top1, steps=int(steps)) for steps, top1 in json.loads(said.read_text()).items()]
    tables.write_unit(pd.concat(parts, ignore_index=True), unit, replies)
    checkpoint.unlink(missing_ok=True)
    said.unlink()


def kept(path: Path, steps: int, top1: list[str]) -> None:
    """Answers of a training in the making beside its checkpoint, by the number of steps: a resumed one finds those from before."""
    earlier = json.loads(path.read_text()) if path.exists() else {}
    with units.atomic(path) as partial:
        partial.write_text(json.dumps(earlier | {str(steps): top1}))


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


def finetune(
    model: nn.Module, experiment: Experiment, name: str, *, checkpoint: Path, watch: Callable[[int, nn.Module], None]
) -> nn.Module:
    """All weights, cross-entropy with the zoo's smoothing and mirror; resumes from its checkpoint. `watch` as in `training.fit`.

    Which garments a step sees depends on the step alone: all scenarios show the same ones in the same order.
    """
    settings = experiment.settings
    _, pictures, label = examples(experiment, name, "catalog", settings.training_images)
    training.begin(settings.seed)
    model.requires_grad_(True)
    schedule = Schedule(settings.steps, settings.batch_size, settings.learning_rate, average=settings.average, seed=settings.seed)

    def batch(key: tuple) -> tuple[Tensor, Tensor]:
        training.reseed(*key)
        rows = torch.randint(len(label), (settings.batch_size,), generator=seeds.generator(*key))
        image = training.flip(batch_of(pictures[rows.numpy()]), seeds.generator(*key, "flip"))
        return training.normalise(image), label[rows]

    key, every = ("scenarios", settings.seed), -(-settings.steps // settings.checks)
    return training.fit_classifier(
        model,
        batch,
        key,
        schedule=schedule,
        checkpoint=checkpoint,
        device=experiment.device,
        smoothing=0.1,
        every=every,
        watch=watch,
    )


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


def final(found: pd.DataFrame) -> pd.DataFrame:
    """The answers at the end of the trainings, in the form of EX1's."""
    return found[found["steps"] == found["steps"].max()].drop(columns="steps")


def curve(found: pd.DataFrame, *, settings: Bootstrap) -> pd.DataFrame:
    """Accuracy along the trainings (scenario, model, steps, n, estimate, low, high)."""
    rows = found.assign(accuracy=(found["top1"] == found["class"]).astype(float)).rename(columns={"shift": "scenario"})
    return bootstrap.means(rows, ["accuracy"], ["scenario", "model", "steps"], settings=settings).drop(columns="measure")


def still_learning(found: pd.DataFrame, *, settings: Bootstrap) -> pd.DataFrame:
    """Accuracy at the end minus that at the check nearest to two thirds of the way, mean over the backbones, a row per scenario.

    An interval above 0 says that more steps would still help (scenario, n, estimate, low, high; the largest gain first).
    """
    places = np.sort(found["steps"].unique())
    before = places[np.abs(places - places[-1] * 2 / 3).argmin()]
    right = found.assign(right=(found["top1"] == found["class"]).astype(float))
    wide = right.pivot_table(index=["shift", "class", "seed"], columns="steps", values="right", aggfunc="mean")
    gain = (wide[places[-1]] - wide[before]).rename("gain").reset_index().rename(columns={"shift": "scenario"})
    rows = bootstrap.means(gain, ["gain"], ["scenario"], settings=settings).drop(columns="measure")
    return rows.sort_values("estimate", ascending=False, ignore_index=True)
