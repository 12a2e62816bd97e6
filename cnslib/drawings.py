"""How the benchmark is drawn: `base.drawing` is the exact default, or a quicker way whose pictures are not the same bit for bit."""

import dataclasses
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from cnslib import fusion, generation, stepping
from cnslib.config import Generation, demand

# `UniPC 20` of the ablation: one of the two solvers by whose pictures classifiers are ordered about as by those of DDIM in 100 steps.
STEPS = 20
UNIPC: dict[str, Any] = {"scheduler": "UniPCMultistepScheduler", "spacing": "linspace"}


@dataclasses.dataclass(frozen=True)
class Drawing:
    """A way to draw: what makes all tables of images and the one of scale 0, and a sampler of single trajectories that agrees with them.

    `sampler` is that of the tables, `single` draws one trajectory in its own pass, within rounding the same pictures. Seeds are drawn
    `together`. `steps` replace `generation.steps`, unless they are 0.
    """

    generate: Callable[..., dict[str, Path]]
    unshifted_shard: Callable[..., pd.DataFrame]
    sampler: Callable[..., generation.Sampler]
    single: Callable[..., generation.Sampler]
    together: int = 1
    steps: int = 0

    def settings(self, settings: Generation) -> Generation:
        """The settings of `generation` with the number of steps that this way takes."""
        return dataclasses.replace(settings, steps=self.steps or settings.steps)

    def drawn(self, seeds: int) -> int:
        """How many seeds are drawn where so many are asked for: a pass is filled up."""
        return math.ceil(seeds / self.together) * self.together


WAYS = {
    "exact": Drawing(generation.generate, generation.unshifted_shard, generation.Sampler, generation.Sampler),
    "fused": Drawing(fusion.generate, fusion.unshifted_shard, fusion.Sampler, generation.Sampler, fusion.PASS),
    "fast": Drawing(
        partial(fusion.generate, **UNIPC),
        fusion.unshifted_shard,
        partial(fusion.Sampler, **UNIPC),
        partial(stepping.Stepper, **UNIPC),
        fusion.PASS,
        STEPS,
    ),
}


def chosen(name: str) -> Drawing:
    """The way of that name; ValueError names `base.drawing` and what it accepts."""
    demand(name in WAYS, "base.drawing", name, ", ".join(WAYS))
    return WAYS[name]
