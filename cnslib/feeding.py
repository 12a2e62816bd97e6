"""Pictures to classifiers: decoded once, transformed once in every distinct way, while the networks work on those before.

Pillow lets other threads run while it decodes and resizes, so threads suffice, and nothing is copied between processes. That is why
torch's DataLoader is not used: its workers are processes, which hand tensors over in shared memory (scarce in containers) and wrap the
error that names a damaged picture in a traceback of their own.
"""

import contextlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, UInt8
from PIL import Image
from torch import Tensor

from cnslib import units
from cnslib.classifiers import Classifier

AHEAD = 2  # batches read beyond the one that the networks work on: one that is ready, one in the threads' hands

Picture = Callable[[], UInt8[np.ndarray, "height width 3"]]  # reads or decodes a picture in whichever thread calls it
Batch = tuple[pd.DataFrame, list[Picture]]  # one row, in whatever columns, for each picture
Transform = Callable[[Image.Image], Tensor]
Inputs = dict[str, Tensor]  # for each way of transforming, the pictures of a batch


def logits(group: list[Classifier], batches: Iterable[Batch], *, size: int) -> Iterator[tuple[pd.DataFrame, list[Tensor]]]:
    """For each batch its rows, and the logits [rows labels] of every classifier in fp32 on the CPU.

    Bit for bit those of `evaluation.batch_logits`, which asks one classifier: networks get batches of exactly `size`, the last one
    filled up with its last picture. Classifiers are all on one device, and their settings describe their transforms. The first
    error of reading a batch or picture is raised.
    """
    transforms = {way(classifier): classifier.transform for classifier in group}
    threads = torch.get_num_threads()
    try:
        with contextlib.closing(ahead(prepared(batches, transforms, size=size))) as fed:
            for rows, inputs in fed:
                yield rows, [found[: len(rows)] for found in asked(group, inputs)]
    finally:
        torch.set_num_threads(threads)  # the helpers have set that of threads still to come


def way(classifier: Classifier) -> str:
    """What tells a classifier's transform from others: by value, so that equal ones are applied once."""
    return units.digest(classifier.preprocessing, classifier.settings)


@torch.inference_mode()
def asked(group: list[Classifier], inputs: Inputs) -> list[Float[Tensor, "size labels"]]:
    """The logits of every classifier; all networks are queued before one answer is fetched, so that a card need not wait."""
    there = {name: pixels.to(group[0].device) for name, pixels in inputs.items()}
    found = [classifier.network(there[way(classifier)]) for classifier in group]
    return [one.float().cpu() for one in found]


def prepared(
    batches: Iterable[Batch], transforms: dict[str, Transform], *, size: int
) -> Generator[tuple[pd.DataFrame, Inputs], None, None]:
    """The batches in order, ready for the networks; pictures are spread over as many threads as there are cores for this process.

    A helper computes in one thread of its own: a team of threads for each of them would be more threads than cores.
    """
    waiting: deque = deque()
    with ThreadPoolExecutor(joblib.cpu_count(), initializer=torch.set_num_threads, initargs=(1,)) as helpers:
        for rows, pictures in batches:
            waiting.append((rows, helpers.map(lambda picture: views(picture, transforms), pictures)))
            if len(waiting) == AHEAD:
                yield stacked(*waiting.popleft(), size=size)
        while waiting:
            yield stacked(*waiting.popleft(), size=size)


def views(picture: Picture, transforms: dict[str, Transform]) -> Inputs:
    """One picture as the networks see it, in every distinct way."""
    image = Image.fromarray(np.asarray(picture()))
    return {name: transform(image) for name, transform in transforms.items()}


def stacked(rows: pd.DataFrame, seen: Iterator[Inputs], *, size: int) -> tuple[pd.DataFrame, Inputs]:
    """The rows and inputs of a batch, filled up with its last picture to `size`."""
    found = list(seen)
    filled = [*found, *[found[-1]] * (size - len(found))]
    return rows, {name: torch.stack([one[name] for one in filled]) for name in found[0]}


def ahead(items: Generator) -> Generator:
    """The items, each made in another thread while the one before it is used."""
    with contextlib.closing(items), ThreadPoolExecutor(1) as other:
        coming = other.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = other.submit(next, items, None)
            yield item
