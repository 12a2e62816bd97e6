"""A tiny benchmark for `cns report`, in which every number can be counted by hand."""

import functools
import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from tiny_settings import resampled
from torch import nn
from torchvision.transforms import v2

from cnslib.core import tables
from cnslib.core.settings.sections import Accuracy
from cnslib.method import evaluation
from cnslib.studies import preprocessing, report

CLASSES = ["sneaker", "bag"]
LABELS = ["bag", "sneaker", "coat"]
SHIFTS = ["heavy snow", "cartoon style"]
SCALES = [0.0, 1.0, 2.0]
SEEDS = [1, 2, 3, 4, 5, 6]
SETTINGS = Accuracy(reference="reference", bootstrap=resampled(200))
TRANSFORM = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])


class Brightness(nn.Module):
    """Says "bag" to pictures brighter than a threshold, else "sneaker": an answer that one sees."""

    def __init__(self, threshold: float):
        super().__init__()
        self.threshold = nn.Parameter(torch.tensor(threshold))

    def forward(self, pixels):
        bright = pixels.mean(dim=(1, 2, 3)) - self.threshold
        return torch.stack([bright, -bright, torch.full_like(bright, -1.0)], dim=1)


def grey(name: str, scale: float) -> np.ndarray:
    """A bag starts white and a sneaker black; both turn grey with the scale, the bag past the middle."""
    value = {"bag": 250 - 80 * scale, "sneaker": 20 + 20 * scale}[name]
    return np.full((64, 64, 3), value, dtype=np.uint8)


def benchmark(folder: Path) -> report.Benchmark:
    """Two classes, two shifts, three scales and six seeds; the reference takes the first step wrong, another is always right."""
    shards = evaluation.grid(folder, SHIFTS, CLASSES, scales=SCALES, seeds=len(SEEDS))
    for path, keys in shards.items():
        rows = [dict(zip(tables.KEY, key, strict=True), image=tables.encode(grey(key[1], key[3]))) for key in keys]
        tables.write(pd.DataFrame(rows), path, tables.images)
    keys = pd.DataFrame(itertools.chain(*shards.values()), columns=tables.KEY)
    perfect = keys.assign(model="perfect", top1=keys["class"])
    other = {"bag": "sneaker", "sneaker": "bag"}
    reference = keys.assign(model="reference", top1=keys["class"].where(keys["scale"] < 1, keys["class"].map(other)))
    kept = pd.DataFrame(itertools.product(SHIFTS, CLASSES, SEEDS), columns=tables.TRAJECTORY)
    predictions = pd.concat([perfect, reference], ignore_index=True)
    predict, few = functools.partial(evaluation.predict, shards=shards, batch_size=4), functools.partial(preprocessing.unshifted, shards)
    return report.Benchmark(kept, predictions, LABELS, SETTINGS, predict, few, "tiny bench")
