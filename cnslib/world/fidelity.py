"""Fidelity of mini-SD: pictures of every caption, held-out scenes and those of its training, and whether a picture is a copy.

A copy would be nearer to a scene of the training than scenes that the model has never seen are.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float, UInt8
from tqdm.auto import trange

from cnslib.core import seeds
from cnslib.core.names import SHIFTS
from cnslib.world import diffusion, manifest, scenes

Pictures = UInt8[np.ndarray, "rows 64 64 3"]


def asked(classes: Sequence[str], per_caption: int) -> tuple[list[str], list[int]]:
    """The prompts of all captions, each with seeds 0, 1, ..."""
    captions = diffusion.captions(list(classes))
    return [caption for caption in captions for _ in range(per_caption)], list(range(per_caption)) * len(captions)


def heldout(garments: scenes.Garments, *, per_caption: int, severities: Sequence[float], seed: int) -> Pictures:
    """Web scenes of the same captions in the same order, of garments that the model has never seen, at evenly drawn severities."""
    g = seeds.generator("fidelity", seed)
    _, shifts, rows = scenes.every_caption(garments, g, each=per_caption)
    lowest, highest = severities
    severity = (shifts < len(SHIFTS)) * (lowest + (highest - lowest) * torch.rand(len(rows), generator=g))
    keys, names = [("fidelity", seed, number) for number in range(len(rows))], [scenes.NAMES[s] for s in shifts.tolist()]
    return scenes.to_uint8(scenes.render(garments.grey[rows], keys, style="web", shift=names, severity=severity)).numpy()


def training(garments: scenes.Garments, count: int, *, images: int, severities: Sequence[float], seed: int) -> Iterator[Pictures]:
    """The first `count` of the `images` scenes from which mini-SD learned, in parts."""
    for start in trange(0, count, diffusion.PART, desc="scenes of the training", disable=None):
        batch = diffusion.web_scenes(garments, start, images=images, severities=severities, seed=seed)
        yield scenes.to_uint8(batch.image[: count - start]).numpy()


def copies(drawn: Float[np.ndarray, "n"], unseen: Float[np.ndarray, "m"], *, rare: float = 0.01) -> dict:
    """The share of drawn pictures that are nearer to the training than all but a `rare` share of unseen scenes are, as a record.

    Both are distances to the nearest scene of the training. Where the model copies nothing, the share is about `rare`.
    """
    return manifest.share(drawn < np.quantile(unseen, rare))
