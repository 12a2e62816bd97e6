"""Predictions of every classifier for every image of the benchmark, and for the catalog's held-out pictures: one table each."""

import itertools
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, UInt8
from torch import Tensor
from tqdm.auto import tqdm

from cnslib import alexnet, backbones, catalog, classifiers, encoders, tables, units
from cnslib.classifiers import Classifier
from cnslib.config import UNSHIFTED, Evaluation, demand, identifier


def evaluate(
    images: Path,
    shifts: list[str],
    classes: list[str],
    *,
    scales: list[float],
    seeds: int,
    labels: list[str],
    settings: Evaluation,
    device: str,
    folder: Path,
) -> dict[str, Path]:
    """Makes the prediction tables that are missing or outdated, then deletes those of classifiers that are not asked for.

    `images` is the folder of image tables. A unit depends on the classifier's files, the labels, the settings, the image
    tables and the code. Raises ValueError for a class without a label, an incomplete image table and bytes that are no
    picture (named by table and key), FileNotFoundError for a missing table or model; finished units stay as they are.
    """
    require_labels(classes, labels)
    shards = grid(images, shifts, classes, scales=scales, seeds=seeds)
    answer = partial(predict, shards=shards, batch_size=settings.batch_size)
    return answered(shard_digests(shards), answer, labels=labels, settings=settings, device=device, folder=folder)


def evaluate_catalog(
    pictures: Path, classes: list[str], *, labels: list[str], settings: Evaluation, device: str, folder: Path
) -> dict[str, Path]:
    """The same for the held-out pictures of the catalog, which no generator drew (ImageNet's validation set in the paper).

    `pictures` is the catalog, a table or an image folder. Rows have shift "unshifted", scale 0, and class and seed of the catalog.
    Errors are also those of `catalog.whole`.
    """
    require_labels(classes, labels)
    made_from = [catalog.digest(pictures, "heldout", classes), units.code_digest(catalog)]
    answer = partial(predict_catalog, pictures=pictures, classes=classes, batch_size=settings.batch_size)
    return answered(made_from, answer, labels=labels, settings=settings, device=device, folder=folder)


def require_labels(classes: list[str], labels: list[str]) -> None:
    """Raises ValueError for a class that no output of a classifier is called by."""
    for name in classes:
        demand(name in labels, "base.classes", name, f"one of the {len(labels)} labels")


def answered(
    contents: list, answer: Callable[[Classifier], pd.DataFrame], *, labels: list[str], settings: Evaluation, device: str, folder: Path
) -> dict[str, Path]:
    """One table of answers per classifier, made anew where it is missing or outdated; `contents` is what the pictures are made from."""
    paths = {name: folder / f"{identifier(name)}.parquet" for name in settings.classifiers}
    for name, path in paths.items():
        source = settings.classifiers[name]
        made_from = prediction_digest(name, source, contents, labels=labels, settings=settings)
        if not units.done(path, made_from):
            classifier = classifiers.load(name, source, labels, device, preprocessing=settings.preprocessing)
            tables.write(answer(classifier), path, tables.predictions)
            units.finish(path, made_from)
    units.prune(folder, {path.name for path in paths.values()}, "*.parquet")
    return paths


def write_sizes(roster: list[dict], path: Path) -> pd.DataFrame:
    """Writes how many weights of each classifier act when it answers (model, parameters); `roster` holds their descriptions."""
    table = pd.DataFrame(roster)[["model", "parameters"]].sort_values("model", ignore_index=True)
    units.write_bytes(path, table.to_csv(index=False, lineterminator="\n").encode())
    return table


def grid(images: Path, shifts: list[str], classes: list[str], *, scales: list[float], seeds: int) -> dict[Path, list[tuple]]:
    """The image tables of a benchmark, each with the keys (shift, class, seed, scale) that it must hold."""
    pairs = list(itertools.product(classes, range(1, seeds + 1)))
    wanted = {UNSHIFTED: [0.0]} | {shift: [scale for scale in scales if scale > 0] for shift in shifts}
    return {
        images / f"{identifier(shift)}.parquet": [(shift, *pair, scale) for pair in pairs for scale in own] for shift, own in wanted.items()
    }


def shard_digests(shards: dict[Path, list[tuple]]) -> list[list]:
    """Name, file digest and expected keys of every image table. FileNotFoundError names a missing one."""
    for path in shards:
        if not path.exists():
            raise FileNotFoundError(f"image table {path} does not exist; the generation step makes it, `dvc pull` restores it")
    return [[path.name, units.file_digest(path), keys] for path, keys in shards.items()]


def prediction_digest(name: str, source: str, contents: list, *, labels: list[str], settings: Evaluation) -> str:
    """What one classifier's table is made from; other classifiers are no part of it.

    Architectures are code: those that timm does not bring are in `alexnet` and `backbones`.
    """
    code = units.code_digest(sys.modules[__name__], classifiers, encoders, alexnet, backbones)
    files = classifiers.source_digest(source)
    return units.digest(name, files, contents, labels, settings.batch_size, settings.preprocessing, code)


def predict(classifier: Classifier, shards: dict[Path, list[tuple]], *, batch_size: int) -> pd.DataFrame:
    """One row per image: top-1, top-5, probability and logit margin of the true class.

    Batches have a fixed order and size within each table (the last is filled up with its last picture), so that neither
    another shift nor the number of images changes the last bits of a prediction.
    """
    parts = []
    for path, expected in tqdm(shards.items(), desc=classifier.name, disable=None):
        table = tables.complete(tables.read(path, tables.images), expected, tables.KEY, str(path))
        batches = [table[start : start + batch_size] for start in range(0, len(table), batch_size)]
        logits = [batch_logits(classifier, [*tables.pictures(part, path.name)], size=batch_size) for part in batches]
        parts.append(answers(classifier, table, torch.cat(logits)))
    return pd.concat(parts, ignore_index=True)


def predict_catalog(classifier: Classifier, pictures: Path, classes: list[str], *, batch_size: int) -> pd.DataFrame:
    """One row per held-out picture of the catalog, as `predict`; batches end with their class."""
    parts = []
    for name, seeds, found in tqdm(catalog.whole(pictures, "heldout", classes), total=len(classes), desc=classifier.name, disable=None):
        table = pd.DataFrame({"shift": UNSHIFTED, "class": name, "seed": seeds, "scale": 0.0})
        batches = [found[start : start + batch_size] for start in range(0, len(found), batch_size)]
        logits = [batch_logits(classifier, part, size=batch_size) for part in batches]
        parts.append(answers(classifier, table, torch.cat(logits)))
    return pd.concat(parts, ignore_index=True)


def batch_logits(
    classifier: Classifier, pictures: Sequence[UInt8[np.ndarray, "height width 3"]], *, size: int
) -> Float[Tensor, "rows labels"]:
    """Logits of some pictures, computed in a batch of exactly `size` that is filled up with the last of them."""
    filled = [*pictures, *[pictures[-1]] * (size - len(pictures))]
    return classifier.logits(filled)[: len(pictures)]


def answers(classifier: Classifier, table: pd.DataFrame, logits: Float[Tensor, "rows labels"]) -> pd.DataFrame:
    """The predictions table of one classifier: equal logits are ranked in the order of the labels."""
    logits = logits.double()
    true = torch.tensor([classifier.labels.index(name) for name in table["class"]])[:, None]
    best = logits.argsort(dim=1, descending=True, stable=True)[:, :5].tolist()
    others = logits.scatter(1, true, -torch.inf).amax(dim=1)
    top5 = [[classifier.labels[i] for i in row] for row in best]
    return table[tables.KEY].assign(
        model=classifier.name,
        top1=[names[0] for names in top5],
        top5=top5,
        probability=logits.softmax(dim=1).gather(1, true)[:, 0].numpy(),
        margin=(logits.gather(1, true)[:, 0] - others).numpy(),
        preprocessing=classifier.preprocessing,
    )
