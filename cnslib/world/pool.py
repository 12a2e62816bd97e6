"""The pool of rendered scenes from which VAE and mini-SD learn, in parts of one generator each, and the legs of a training on it.

A step's rows, noise and timesteps come from one generator on the device, of (leg, seed, step) and, where several threads share a batch, of
the thread's rank. Each leg begins with the averaged weights of the one before, and has a checkpoint of its own.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor
from tqdm.auto import trange

from cnslib.core import seeds
from cnslib.core.settings.sections import Leg
from cnslib.world import scenes
from cnslib.world.training import Model, fit, scheduled

PART = 1024  # scenes of one generator


def parts(garments: scenes.Garments, count: int, *, severities: scenes.Bounds, seed: int) -> Iterator[scenes.Batch]:
    """The first `count` web scenes, a third of them without a shift; each part is rendered where the garments lie."""
    for number in trange(-(-count // PART), desc="pool of scenes", disable=None):
        g, size = seeds.generator("pool", "web", seed, number), min(PART, count - number * PART)
        batch = scenes.together(garments, g, PART, style="web", unshifted=0.35, severities=severities)
        yield scenes.Batch(batch.image[:size], batch.label[:size], batch.shift[:size], batch.severity[:size])


def largest(legs: Sequence[Leg]) -> int:
    """The scenes that the legs of a training see together: each sees the first ones of the pool."""
    return max(leg.scenes for leg in legs)


def train(
    model: Model, loss: Callable[[Leg, list[torch.Generator]], Tensor], legs: Sequence[Leg], *, seed: int, checkpoint: Path, device: str
) -> Model:
    """Trains leg after leg; `loss` draws one share of a batch from each of the generators that it gets.

    On a CPU a thread takes each share, a card takes all of them at once.
    """
    threads = device == "cpu"
    for leg in legs:

        def of_step(step: int, *rank: int, leg: Leg = leg) -> Tensor:
            keys = [(leg.name, seed, step, own) for own in rank or range(leg.ranks)] if leg.ranks > 1 else [(leg.name, seed, step)]
            return loss(leg, [seeds.generator(*key, device=device) for key in keys])

        how: dict = {"schedule": scheduled(vars(leg) | {"seed": seed}), "checkpoint": checkpoint.with_stem(f"{checkpoint.stem}-{leg.name}")}
        average = fit(model, of_step, **how, ranks=leg.ranks if threads else 1, every=100 if threads else 1000)
        model.load_state_dict(average.state_dict())
    return average
