"""Predictions of every classifier for every image of the benchmark, and for the catalog's held-out pictures: one table each.

Pictures are decoded and transformed once, by threads, while the networks work on those before; torch's DataLoader would need shared memory.
"""

import contextlib
import itertools
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, UInt8
from PIL import Image
from torch import Tensor
from tqdm.auto import tqdm

from cnslib.core import clusters, recipes, tables, units, workers
from cnslib.core.names import UNSHIFTED, demand, identifier
from cnslib.core.settings.method import Evaluation
from cnslib.data import catalog
from cnslib.models import classifiers
from cnslib.models.classifiers import Classifier

AHEAD = 1  # batches that are ready, or wait for a thread, beyond one in each thread's hands

Picture = Callable[[], UInt8[np.ndarray, "height width 3"]]  # reads or decodes a picture in whichever thread calls it
Batch = tuple[pd.DataFrame, list[Picture]]  # one row, in whatever columns, for each picture
Transform = Callable[[Image.Image], Tensor]
Inputs = dict[str, Tensor]  # for each way of transforming, the pictures of a batch
Logits = Float[Tensor, "rows labels"]


def logits(group: list[Classifier], batches: Iterable[Batch], *, size: int) -> Iterator[tuple[pd.DataFrame, list[Logits]]]:
    """For each batch its rows, and the logits [rows labels] of every classifier in fp32 on the CPU, bit for bit those of `batch_logits`.

    Networks get batches of exactly `size`, the last one filled up with its last picture. The first error of a picture is raised.
    """
    transforms = {transform_digest(classifier): classifier.transform for classifier in group}
    threads = torch.get_num_threads()
    try:
        with contextlib.closing(prepared(batches, transforms, size=size, device=group[0].device)) as fed:
            for rows, inputs in fed:
                yield rows, [filled[: len(rows)] for filled in outputs(group, inputs)]
    finally:
        torch.set_num_threads(threads)  # the helpers have set that of threads still to come


def transform_digest(classifier: Classifier) -> str:
    """What tells a classifier's transform from others: by value, so that equal ones are applied once."""
    return units.digest(classifier.preprocessing, classifier.settings)


@torch.inference_mode()
def outputs(group: list[Classifier], inputs: Inputs) -> list[Logits]:
    """The logits of every classifier; all networks are queued before one output is fetched, so that a card need not wait."""
    there = {name: pixels.to(group[0].device, non_blocking=pixels.is_pinned()) for name, pixels in inputs.items()}
    queued = [classifier.network(there[transform_digest(classifier)]) for classifier in group]
    return [one.float().cpu() for one in queued]


def prepared(
    batches: Iterable[Batch], transforms: dict[str, Transform], *, size: int, device: str
) -> Generator[tuple[pd.DataFrame, Inputs], None, None]:
    """The batches in order, filled up to `size`, made by a thread for each core of this process; for a CUDA card in pinned memory."""
    pinned = torch.device(device).type == "cuda"

    def prepare(rows: pd.DataFrame, pictures: list[Picture]) -> tuple[pd.DataFrame, Inputs]:
        images = [Image.fromarray(np.asarray(picture())) for picture in pictures]
        inputs = {}
        for name, transform in transforms.items():
            transformed = [transform(image) for image in images]
            pixels = torch.stack(transformed + [transformed[-1]] * (size - len(transformed)))
            inputs[name] = pixels.pin_memory() if pinned else pixels
        return rows, inputs

    cores, waiting = joblib.cpu_count(), deque[Future]()
    # A helper computes in one thread of its own: a team of threads for each of them would be more threads than cores.
    with ThreadPoolExecutor(cores, initializer=torch.set_num_threads, initargs=(1,)) as helpers:
        for batch in batches:
            waiting.append(helpers.submit(prepare, *batch))
            if len(waiting) == cores + AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


# Classifiers in memory at once. Pictures are decoded once for every group: the paper's 43 need six passes in place of 43, while a
# group's predictions of its 355,000 pictures take 1.2 GB, and its networks and the inputs that are prepared a few more.
TOGETHER = 8


def evaluate(shards: dict[Path, list[tuple]], *, labels: list[str], settings: Evaluation, device: str, folder: Path) -> dict[str, Path]:
    """The tables of predictions for the images of a `grid`, made where they are missing or outdated; those of other classifiers go."""
    require_labels(list(dict.fromkeys(name for keys in shards.values() for _, name, *_ in keys)), labels)
    batches, total = partial(shard_batches, shards, size=settings.batch_size), sum(map(len, shards.values()))
    recipe, made_from = recipes.EVALUATION, shard_digests(shards)
    return answered(recipe, made_from, batches, total=total, labels=labels, settings=settings, device=device, folder=folder)


def evaluate_catalog(
    pictures: Path, classes: list[str], *, labels: list[str], settings: Evaluation, device: str, folder: Path
) -> dict[str, Path]:
    """The same for the held-out pictures of the catalog, a table or an image folder: shift "unshifted", scale 0, its class and seed."""
    require_labels(classes, labels)
    contents = [catalog.digest(pictures, "heldout", classes)]

    def batches() -> Iterator[Batch]:
        for name, seeds, images in catalog.whole(pictures, "heldout", classes):  # batches end with their class
            rows = pd.DataFrame({"shift": UNSHIFTED, "class": name, "seed": seeds, "scale": 0.0})
            yield from array_batches(rows, images, size=settings.batch_size)

    recipe, desc = recipes.CATALOG_PREDICTIONS, "held-out predictions"
    return answered(recipe, contents, batches, labels=labels, settings=settings, device=device, folder=folder, desc=desc)


def require_labels(classes: list[str], labels: list[str]) -> None:
    """Raises ValueError for a class that no output of a classifier is called by."""
    for name in classes:
        demand(name in labels, "base.classes", name, f"one of the {len(labels)} labels")


def answered(
    recipe: units.Recipe,
    contents: list,
    batches: Callable[[], Iterable[Batch]],
    *,
    total: int | None = None,
    labels: list[str],
    settings: Evaluation,
    device: str,
    folder: Path,
    desc: str = "predictions",
) -> dict[str, Path]:
    """One table of predictions per classifier, made where it is missing or outdated; `contents` is what the pictures are made from.

    `batches` gives all (`total`) pictures again for each group of classifiers that are evaluated together. No table depends on the others.
    """
    files = {}
    for name, source in settings.classifiers.items():
        inputs = name, classifiers.digest(source), contents, labels, settings.batch_size, settings.preprocessing
        files[name] = f"{identifier(name)}.parquet", recipe.stamp(*inputs)
    shelf = units.Shelf(folder, files)
    if waiting := shelf.waiting():
        make = partial(answer, batches=batches, total=total, labels=labels, settings=settings, device=device)
        size = 1 if clusters.chosen else TOGETHER  # the blocks of a cluster end with their pieces
        groups = [waiting[start : start + size] for start in range(0, len(waiting), size)]
        workers.each(make, [(names, [shelf[name] for name in names]) for names in groups], device=device, desc=desc, threaded=True)
    return shelf.paths


def answer(
    names: list[str],
    made: list[units.Unit],
    *,
    batches: Callable[[], Iterable[Batch]],
    total: int | None,
    labels: list[str],
    settings: Evaluation,
    device: str,
) -> None:
    """Writes the tables of classifiers that are evaluated together. Errors name the key of the first that cannot be loaded."""
    how = {"device": device, "preprocessing": settings.preprocessing}
    group = [classifiers.load(name, settings.classifiers[name], labels, **how) for name in names]
    for unit, table in zip(made, ask(group, batches(), size=settings.batch_size, total=total), strict=True):
        tables.write_unit(table, unit, tables.predictions)


def grid(images: Path, shifts: list[str], classes: list[str], *, scales: list[float], seeds: int) -> dict[Path, list[tuple]]:
    """The image tables of a benchmark, each with the keys (shift, class, seed, scale) that it must hold."""
    shards, others = {}, [scale for scale in scales if scale != 0]
    for shift in (UNSHIFTED, *shifts):
        keys = itertools.product([shift], classes, range(1, seeds + 1), [0.0] if shift == UNSHIFTED else others)
        shards[images / f"{identifier(shift)}.parquet"] = list(keys)
    return shards


def shard_digests(shards: dict[Path, list[tuple]]) -> list[list]:
    """Name, file digest and expected keys of every image table. FileNotFoundError names a missing one."""
    return [[path.name, units.verified(path), keys] for path, keys in shards.items()]


def predict(classifier: Classifier, shards: dict[Path, list[tuple]], *, batch_size: int) -> pd.DataFrame:
    """One row per image of the tables: top-1, top-5, probability and logit margin of the true class."""
    return ask([classifier], shard_batches(shards, size=batch_size), size=batch_size)[0]


def shard_batches(shards: dict[Path, list[tuple]], *, size: int) -> Iterator[Batch]:
    """The images of some tables, in batches of fixed order and size within each table: no other image moves a prediction's last bits."""
    for path, expected in shards.items():
        tables.complete(tables.keys(path), expected, tables.KEY, str(path))
        for rows in tables.batches(path, size):
            names = [f"{path.name} {key}" for key in rows[tables.KEY].itertuples(index=False, name=None)]
            yield rows[tables.KEY], [partial(tables.decode, *one) for one in zip(rows["image"], names, strict=True)]


def array_batches(rows: pd.DataFrame, pictures: UInt8[np.ndarray, "rows height width 3"] | Sequence, *, size: int) -> Iterator[Batch]:
    """Pictures that are decoded already, and their rows."""
    for start in range(0, len(rows), size):
        part = slice(start, start + size)
        yield rows[part], [partial(np.asarray, picture) for picture in pictures[part]]


def ask(group: list[Classifier], batches: Iterable[Batch], *, size: int, total: int | None = None) -> list[pd.DataFrame]:
    """The predictions of every classifier, a table each, for all pictures; they are read off the logits while the networks work on."""
    parts: list[Future] = []
    with ThreadPoolExecutor(1) as thread, tqdm(desc=f"{len(group)} classifiers", total=total, unit=" pictures", disable=None) as bar:
        for rows, outputs_of_batch in logits(group, batches, size=size):
            if parts:
                parts[-1].result()  # so that logits do not pile up
            parts.append(thread.submit(list, map(predictions, group, itertools.repeat(rows), outputs_of_batch)))
            bar.update(len(rows))
    return [pd.concat(of_classifier, ignore_index=True) for of_classifier in zip(*(part.result() for part in parts), strict=True)]


def batch_logits(classifier: Classifier, pictures: Sequence[UInt8[np.ndarray, "height width 3"]], *, size: int) -> Logits:
    """Logits of some pictures, computed in a batch of exactly `size` that is filled up with the last of them."""
    filled = [*pictures, *[pictures[-1]] * (size - len(pictures))]
    return classifier.logits(filled)[: len(pictures)]


def predictions(classifier: Classifier, table: pd.DataFrame, logits: Logits) -> pd.DataFrame:
    """The predictions table of one classifier: equal logits are ranked in the order of the labels."""
    if not (finite := torch.isfinite(logits).all(dim=1).numpy()).all():
        first = next(table[~finite].itertuples(index=False, name=None))
        raise ValueError(f"evaluation.classifiers.{classifier.name}: the answer to {first} is not finite; accepted: a number per label")
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
