"""Whether a classifier sees pictures as it was trained to: its own normalisation against the usual ones, on the same pictures."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from PIL import Image
from scipy.stats import binomtest
from timm.data.constants import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD
from torch import Tensor

from cnslib.core import tables
from cnslib.models.classifiers import Classifier

PICTURES = 50  # that are tried
FLAT = 1e-3  # difference within a picture of one colour
CAFFE = tuple(value / 255 for value in (104.006, 116.669, 122.679))  # of ImageNet, blue first
REVERSED = "reversed"  # its own with the channels in the other order: BGR in place of RGB
USUAL = {  # mean and standard deviation of pixels from 0 to 1, and whether the channels are reversed
    "imagenet": (IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD, False),
    "inception": ((0.5,) * 3, (0.5,) * 3, False),
    "plain": ((0.0,) * 3, (1.0,) * 3, False),
    "caffe": (CAFFE, (1 / 255,) * 3, True),
}
NAMES = [*USUAL, REVERSED]


def usual(classifier: Classifier) -> dict[str, Classifier]:
    """The classifier with each of the usual normalisations other than its own, resized and cropped as before.

    Its own is read off a black and a white picture; none where its transform makes anything but one value per channel of these.
    """
    black, white = (classifier.transform(Image.new("RGB", (64, 64), (value,) * 3)) for value in (0, 255))
    if black.ndim != 3 or len(black) != 3 or any((end - end[:, :1, :1]).abs().max() > FLAT for end in (black, white)):
        return {}
    low, span = black[:, :1, :1], (white - black)[:, :1, :1]
    if not span.all():
        return {}
    normalisations = {name: (*torch.tensor([mean, std])[..., None, None], swapped) for name, (mean, std, swapped) in USUAL.items()}
    normalisations = {
        name: normalisation
        for name, normalisation in normalisations.items()
        if not (torch.allclose(normalisation[0], -low / span, atol=0.01) and torch.allclose(normalisation[1], 1 / span, rtol=0.01))
    }

    def shown(name: str, mean: Tensor, std: Tensor, swapped: bool) -> Classifier:
        pixels = lambda image: (classifier.transform(image) - low) / span  # noqa: E731
        transform = lambda image: ((pixels(image).flip(0) if swapped else pixels(image)) - mean) / std  # noqa: E731
        return replace(classifier, transform=transform, settings=classifier.settings | {"normalised": name})

    return {
        name: shown(name, *normalisation) for name, normalisation in {**normalisations, REVERSED: (-low / span, 1 / span, True)}.items()
    }


def check(classifier: Classifier, pictures: Sequence, classes: list[str]) -> pd.DataFrame:
    """How many pictures the classifier knows as it is shown them (first row), and with each of the usual normalisations.

    `p` is McNemar's exact test of "more than with its own", one-sided, with Bonferroni's correction.
    """
    right = lambda one: np.array([one.labels[place] for place in one.logits(pictures).argmax(dim=1)]) == np.array(classes)  # noqa: E731
    others, unchanged = usual(classifier), right(classifier)
    rows = [("its own", int(unchanged.sum()), np.nan)]
    for name, other in others.items():
        changed = right(other)
        gained, lost = int((changed & ~unchanged).sum()), int((unchanged & ~changed).sum())
        p = binomtest(gained, gained + lost, alternative="greater").pvalue if gained + lost else 1.0
        rows.append((name, int(changed.sum()), min(1.0, p * len(others))))
    return pd.DataFrame(rows, columns=["preprocessing", "right", "p"]).assign(n=len(classes))


def verdict(table: pd.DataFrame, *, confidence: float) -> tuple[str, bool]:
    """What a check found, in one sentence, and whether another normalisation is significantly better."""
    (unchanged, *others), n = table[["preprocessing", "right"]].itertuples(index=False, name=None), table["n"][0]
    counts = f"Of {n} unshifted pictures it knows {unchanged[1]}; " + ", ".join(f"{right} if shown as {name}" for name, right in others)
    better = table[table["p"] < 1 - confidence].sort_values("right", ascending=False)
    if better.empty:
        return f"{counts}: none significantly better.", False
    best = better.iloc[0]
    return f"{counts}. {best['preprocessing']} is significantly better (McNemar's exact test, p = {best['p']:.1g})", True


def unshifted(shards: dict, count: int = PICTURES) -> tuple[list, list[str]]:
    """Pictures without a shift, evenly spaced over classes and seeds, each once, and their classes."""
    plain = {key[1:3]: (path, key) for path, keys in shards.items() for key in keys if key[3] == 0}
    chosen = [list(plain.values())[place] for place in spaced(len(plain), count)]
    stored = {path: tables.read(path, tables.images).set_index(tables.KEY)["image"] for path in {path for path, _ in chosen}}
    return [tables.decode(stored[path][key], f"{path.name} {key}") for path, key in chosen], [key[1] for _, key in chosen]


def spaced(size: int, count: int) -> list[int]:
    """Places from the first to the last, evenly spaced."""
    return np.unique(np.linspace(0, size - 1, count).round().astype(int)).tolist()
