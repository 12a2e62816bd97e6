"""The sampler of the benchmark with other schedulers of diffusers, also such that remember their last steps."""

import copy
from typing import Any

import diffusers
from diffusers import StableDiffusionPipeline
from jaxtyping import Float
from torch import Tensor

from cnslib import kinds
from cnslib.config import Generation
from cnslib.generation import Sampler


class Stepper(Sampler):
    """A `Sampler` with another scheduler.

    A scheduler's memory belongs to a trajectory: every prefix begins with a scheduler that has seen nothing, and every image
    continues with what the prefix left. As the memory of one image is that of the whole batch, it is broadcast over the scales.
    """

    def __init__(self, pipe: StableDiffusionPipeline, *, settings: Generation, scheduler: str, spacing: str):
        """`scheduler` is the class's name in diffusers; it takes the noise schedule of the pipeline's own, but not its `spacing`.

        "leading" is made for DDIM: in 20 steps of UniPC it takes pure noise for a latent of t = 941.
        """
        super().__init__(pipe, settings=settings)
        self.unused = getattr(diffusers, scheduler).from_config(pipe.scheduler.config, timestep_spacing=spacing)
        self.unused.set_timesteps(settings.steps, device=pipe.device)
        self.scheduler = copy.deepcopy(self.unused)
        self.states: dict[tuple[str, int], diffusers.SchedulerMixin] = {}

    def prefix(self, name: str, seed: int) -> Float[Tensor, "1 channels height width"]:
        """Latent of (class, seed) when the slider starts; the scheduler is left as it was then."""
        if (name, seed) not in self.states:
            self.prefixes.pop((name, seed), None)
            self.scheduler = copy.deepcopy(self.unused)
            super().prefix(name, seed)
            self.states[name, seed] = self.scheduler
        self.scheduler = copy.deepcopy(self.states[name, seed])
        return self.prefixes[name, seed]


def identity(sampler: Sampler) -> dict[str, Any]:
    """Scheduler, spacing and recipe of a `Stepper`, for digests of what it draws; nothing for the sampler of the benchmark itself."""
    if not isinstance(sampler, Stepper):
        return {}
    told = {"scheduler": type(sampler.unused).__name__, "spacing": sampler.unused.config.timestep_spacing}
    return told | {"recipe": kinds.STEPPER.code}
