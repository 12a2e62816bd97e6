"""Who labels out-of-class images in place of people: an oracle that was trained for it, or a classifier that is trusted to know."""

from typing import cast

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from cnslib import classifiers, encoders, registry

BATCH = 64


def load(source: str, *, labels: list[str], device: str = "cpu") -> encoders.Oracle:
    """The oracle in a directory, or one of the paper's classifiers ("registry:<model>") in its place; errors name `oracle`."""
    if not source.startswith(registry.PREFIX):
        return encoders.Oracle(source, labels=labels, device=device)
    return cast(encoders.Oracle, Trusted(source, labels=labels, device=device))


class Trusted:
    """A classifier as oracle of the class alone: it names no shift and no severity. It must not be one of those that are judged."""

    def __init__(self, source: str, *, labels: list[str], device: str):
        self.classifier = classifiers.load("oracle", source, labels, device)
        self.labels, self.digest = labels, classifiers.source_digest(source)

    def class_probability(self, images: UInt8[np.ndarray, "batch height width 3"]) -> Float[Tensor, "batch labels"]:
        """Probability of each label, in the order of `labels`."""
        parts = [self.classifier.logits(images[start : start + BATCH]) for start in range(0, len(images), BATCH)]
        return torch.cat(parts).softmax(dim=1)
