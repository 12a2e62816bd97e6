"""XIMAGENET-12's two experiments (section 5.1): classifiers trained on originals, and backbones trained within a scenario.

EX1 evaluates photographs with ImageNet classifiers and garments with classifiers of the catalog, under every scenario and severity. EX2
trains each backbone further under one scenario of Table 1 at severity 1, and once on originals: same steps, same garments. The scenario is
the column `shift`, its severity the `scale`.
"""

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
import torch
from jaxtyping import Int
from torch import Tensor, nn

from cnslib.core import paths, recipes, seeds, tables, units, workers
from cnslib.core.names import UNSHIFTED
from cnslib.core.settings.sections import Scenarios
from cnslib.data import imagenet
from cnslib.models import encoders
from cnslib.studies import pools, shared
from cnslib.studies.scenarios import subjects
from cnslib.studies.scenarios.subjects import Experiment, Pictures, Subject
from cnslib.world import training
from cnslib.world.training import Schedule

EVERY = (UNSHIFTED, *subjects.NAMES, subjects.SUMMED)
OF_PHOTOGRAPHS = (UNSHIFTED, *subjects.UNDRAWN, subjects.SUMMED)  # nothing is drawn around them at this size


def every(settings: Scenarios) -> tuple[str, ...]:
    """The scenarios of EX1: nothing is drawn around published pictures."""
    return OF_PHOTOGRAPHS if settings.tree else EVERY


TRAINED = (UNSHIFTED, *subjects.TABLE1)
CHUNK = 16  # subjects in one batch
COLUMNS = {"model": pa.Column(str), **tables.IDENTITY, "top1": pa.Column(str)}
ex1_schema = tables.schema(["model", *tables.KEY], COLUMNS)
ex2_schema = tables.schema(["model", *tables.KEY, "steps"], COLUMNS | {"steps": pa.Column("int64", pa.Check.ge(1))})


def garments(experiment: Experiment, *, folder: Path) -> pd.DataFrame:
    """EX1 on held-out garments: the backbones' predictions, one row per model, scenario, garment and severity."""
    settings, classes, labels = experiment.settings, experiment.classes, experiment.labels
    shown = [classes, labels, settings.images, settings.severities, settings.seed, experiment.digest]
    sources = shared.digests(settings.backbones)
    stamps = {name: recipes.EX1.stamp(name, shown, sources) for name in every(settings)}
    make = partial(evaluate, settings.backbones, labels, settings.severities, settings.seed, experiment.device)
    common = lambda: [experiment.garments()]  # noqa: E731
    return workers.stored(stamps, make, ex1_schema, device=experiment.device, folder=folder, common=common)


def photographs(*, settings: Scenarios, device: str, folder: Path) -> pd.DataFrame:
    """EX1 on the photo set: the ImageNet classifiers' predictions."""
    shown = [settings.cutouts, settings.photo_severities, settings.seed, units.directory_digest(paths.PHOTOS)]
    sources = shared.digests(settings.classifiers)
    stamps = {name: recipes.EX1_PHOTOGRAPHS.stamp(name, shown, sources) for name in OF_PHOTOGRAPHS}
    make = partial(evaluate, settings.classifiers, list(imagenet.labels()), settings.photo_severities, settings.seed, device)
    common = lambda: [subjects.photographs(paths.PHOTOS, count=settings.cutouts, seed=settings.seed)]  # noqa: E731
    return workers.stored(stamps, make, ex1_schema, device=device, folder=folder, common=common)


def evaluate(
    sources: dict[str, str], labels: list[str], severities: list[float], seed: int, device: str, name: str, objects: list[Subject]
) -> pd.DataFrame:
    """One row per classifier, subject and severity above 0; severity 0 for the originals alone. Of equal logits the first label wins."""
    graded = [0.0] if name == UNSHIFTED else severities[1:]
    judges, parts = shared.judges(sources, labels, device), []
    for start in range(0, len(objects), CHUNK):
        states = [(subject, severity) for subject in objects[start : start + CHUNK] for severity in graded]
        pictures = [subjects.shown(subject, name, severity, seed=seed) for subject, severity in states]
        rows = pd.DataFrame([(name, subject.label, subject.seed, severity) for subject, severity in states], columns=tables.KEY)
        for judge in judges:
            best = torch.argmax(judge.logits(pictures).double(), dim=1).tolist()
            parts.append(rows.assign(model=judge.name, top1=[judge.labels[place] for place in best]))
    return pd.concat(parts, ignore_index=True)


def cut_out(
    sources: dict[str, str],
    labels: list[str],
    objects: Callable[[], list[Subject]],
    *,
    shown: list,
    settings: Scenarios,
    device: str,
    folder: Path,
) -> pd.DataFrame:
    """Predictions for objects on black, cut out by rough masks (Fig. 6); `shift` is how far the edge moved, `shown` decides the objects."""
    digests = shared.digests(sources)
    stamps = {f"{share:g}": recipes.CUT_OUT.stamp(share, shown, labels, digests) for share in settings.roughness}

    def make(share: str, whole: list[Subject]) -> pd.DataFrame:
        cut = [replace(one, mask=subjects.rough(one.mask, float(share))) for one in whole]
        return evaluate(sources, labels, subjects.ENDS, settings.seed, device, "segmented", cut).assign(shift=share)

    return workers.stored(stamps, make, ex1_schema, device=device, folder=folder, common=lambda: [objects()])


def within(experiment: Experiment, *, folder: Path, checkpoints: Path) -> pd.DataFrame:
    """EX2: the predictions of every backbone within every scenario of Table 1, at every check of its training (`steps`)."""
    stamps = {key: stamp(experiment, *key) for key in itertools.product(experiment.settings.backbones, TRAINED)}
    return workers.stored(stamps, partial(train, experiment, checkpoints), ex2_schema, folder=folder, device=experiment.device)


def stamp(experiment: Experiment, backbone: str, name: str) -> str:
    """What the predictions of one trained backbone depend on."""
    fields = ("images", "training_images", "steps", "checks", "batch_size", "learning_rate", "average", "seed")
    kept = {key: getattr(experiment.settings, key) for key in fields}
    source = encoders.source_digest(experiment.settings.backbones[backbone])
    published = [experiment.digest] if experiment.settings.tree else []
    return recipes.EX2.stamp(backbone, name, source, kept, experiment.classes, experiment.labels, *published)


def train(experiment: Experiment, checkpoints: Path, key: tuple[str, str]) -> pd.DataFrame:
    """One training, and its predictions for the held-out garments at every check.

    Cross-entropy with the zoo's smoothing and mirror; all scenarios show the same garments in the same order. Predictions of a training in
    the making lie beside its checkpoint.
    """
    (backbone, name), settings, device = key, experiment.settings, experiment.device
    model, _ = encoders.timm_model(f"scenarios.backbones.{backbone}", settings.backbones[backbone], device)
    model = pools.with_statistics(model, "scenarios.backbones") if settings.tree else model
    checkpoint = shared.checkpoint(checkpoints, key, stamp(experiment, *key))
    said = checkpoint.with_suffix(".json")
    _, pictures, label = examples(experiment, name, "catalog", settings.training_images)
    heldout, shown, _ = examples(experiment, name, "heldout", settings.images)

    def draw(key: tuple) -> tuple[Tensor, Tensor]:
        rows = torch.randint(len(label), (settings.batch_size,), generator=seeds.generator(*key))
        return training.flip(pools.batch_of(pictures[rows.numpy()]), seeds.generator(*key, "flip")), label[rows]

    def watch(steps: int, average: nn.Module) -> None:
        top1 = [experiment.labels[place] for place in pools.top1(average, shown, device)]
        earlier = json.loads(said.read_text()) if said.exists() else {}
        units.write_bytes(said, json.dumps(earlier | {str(steps): top1}).encode())

    schedule = Schedule(settings.steps, settings.batch_size, settings.learning_rate, average=settings.average, seed=settings.seed)
    how = {"smoothing": 0.1, "every": -(-settings.steps // settings.checks), "watch": watch}
    pools.fit(model, draw, ("scenarios", settings.seed), schedule, checkpoint=checkpoint, device=device, **how)
    severity = 0.0 if name == UNSHIFTED else 1.0
    keys = pd.DataFrame([(name, subject.label, subject.seed, severity) for subject in heldout], columns=tables.KEY)
    parts = [keys.assign(model=backbone, top1=top1, steps=int(steps)) for steps, top1 in json.loads(said.read_text()).items()]
    checkpoint.unlink(missing_ok=True)
    said.unlink()
    return pd.concat(parts, ignore_index=True)


def examples(experiment: Experiment, name: str, part: str, count: int) -> tuple[list[Subject], Pictures, Int[Tensor, "images"]]:
    """Garments of one pool under a scenario at severity 1: the subjects, their pictures and the index of their class."""
    selected = experiment.subjects(part, count)
    pictures = np.stack([subjects.shown(subject, name, 1.0, seed=experiment.settings.seed) for subject in selected])
    return selected, pictures, torch.tensor([experiment.labels.index(subject.label) for subject in selected])
