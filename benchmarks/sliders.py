"""Slider training, exact: the released iteration against ours without what cancels. `python benchmarks/sliders.py [--device cuda]`."""

import argparse
import copy
import itertools
import sys
from dataclasses import replace

import numpy as np
import torch
import torch.nn.functional as F
import turns
from diffusers import StableDiffusionPipeline
from torch import nn

from cnslib.core import paths, seeds
from cnslib.core.settings import read
from cnslib.core.settings.method import Sliders
from cnslib.method import sliders
from cnslib.models import adapters, text_to_image

SHIFT, NAME = "heavy snow", "sneaker"
GUIDANCE = 7.5  # of the partial denoise; both of its predictions have the same prompt
RELEASED = {"batch_size": 16, "denoising_steps": 50}
ITERATIONS = 4


def guided(
    pipe: StableDiffusionPipeline, latents: torch.Tensor, timestep: torch.Tensor, text: torch.Tensor, guidance: float
) -> torch.Tensor:
    """A prediction as the released code makes all of its own: a doubled batch, then classifier-free guidance."""
    context = text.expand(2 * len(latents), -1, -1)
    plain, conditional = pipe.unet(torch.cat([latents, latents]), timestep, context).sample.chunk(2)
    return plain + guidance * (conditional - plain)


def reference_fit(pipe, weights, text, *, settings: Sliders, generator: torch.Generator) -> list[float]:
    """The loss of every iteration by the released procedure: k guided steps, three guided teachers, one guided student.

    One thing is ours: the timestep of the last four is the noise level of the latents, 19 steps below the released one.
    """
    optimizer, losses = torch.optim.AdamW(weights, settings.learning_rate), []
    scheduler = copy.deepcopy(pipe.scheduler)
    scheduler.set_timesteps(settings.denoising_steps, device=pipe.device)
    neutral, positive = text[:1], text[1:]
    for _ in range(settings.iterations):
        k = int(torch.randint(1, settings.denoising_steps, (), generator=generator))
        latents = torch.randn((settings.batch_size, *text_to_image.latent_shape(pipe)), generator=generator).to(pipe.device)
        latents *= scheduler.init_noise_sigma
        with torch.no_grad():
            for timestep in scheduler.timesteps[:k]:
                latents = scheduler.step(guided(pipe, latents, timestep, neutral, GUIDANCE), timestep, latents).prev_sample
            with adapters.switched_off(pipe.unet):
                teachers = [guided(pipe, latents, scheduler.timesteps[k], own, 1.0) for own in (positive, neutral, neutral)]
        target = teachers[1] + settings.eta * (teachers[0] - teachers[2])
        loss = F.mse_loss(guided(pipe, latents, scheduler.timesteps[k], neutral, 1.0), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


class Training:
    """One slider from the same weights and noise by any procedure; counts the samples that pass the UNet."""

    def __init__(self, settings: Sliders, device: str):
        """Loads the mini model with its class token."""
        base = read.load(paths.resolve("params.yaml"))["base"]
        self.settings, self.samples = settings, 0
        self.pipe = text_to_image.load_pipeline(paths.resolve(base.pipeline), device)
        text_to_image.load_tokens(self.pipe, paths.Layout(base.out).artifacts("inversion"), [NAME])
        self.text = text_to_image.embed(self.pipe, list(sliders.prompts(SHIFT, NAME, texts=settings.texts)))
        self.seed = typical_seed(settings, text_to_image.latent_shape(self.pipe))
        self.pipe.unet.register_forward_pre_hook(self.count)

    def count(self, module: nn.Module, inputs: tuple) -> None:
        """Adds a forward pass's samples."""
        self.samples += len(inputs[0])

    def losses(self, fit) -> list[float]:
        """The loss of every iteration."""
        self.samples = 0
        drawn = seeds.generator("benchmark", SHIFT, NAME)
        with adapters.fresh(self.pipe, rank=self.settings.rank, alpha=self.settings.alpha, generator=drawn) as weights:
            noise = torch.Generator().manual_seed(self.seed)
            found = fit(self.pipe, weights, self.text, settings=self.settings, generator=noise)
        return found["loss"] if isinstance(found, dict) else found

    def reference(self) -> list[float]:
        """By the released procedure."""
        return self.losses(reference_fit)

    def ours(self) -> list[float]:
        """As the sliders step trains."""
        return self.losses(sliders.fit)


def typical_seed(settings: Sliders, shape: tuple[int, int, int]) -> int:
    """The smallest seed of the noise whose k are in the mean what they are expected to be: few iterations then cost what many do."""
    for seed in itertools.count():
        generator, drawn = torch.Generator().manual_seed(seed), []
        for _ in range(settings.iterations):
            drawn.append(int(torch.randint(1, settings.denoising_steps, (), generator=generator)))
            torch.randn((settings.batch_size, *shape), generator=generator)
        if 2 * sum(drawn) == settings.denoising_steps * settings.iterations:
            return seed
    raise AssertionError("unreachable")


def doubled(settings: Sliders) -> float:
    """Expected samples that pass the UNet in the reference: k steps and four predictions, every batch doubled."""
    return 2 * settings.batch_size * settings.iterations * (settings.denoising_steps / 2 + 4)


def main() -> int:
    """The measured ratio at the released settings' shape, on the mini model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    settings = replace(read.load(paths.resolve("params.yaml"))["sliders"], iterations=ITERATIONS, **RELEASED)
    training, counts = Training(settings, parser.parse_args().device), {}
    for side in ("reference", "ours"):
        getattr(training, side)()
        counts[side] = training.samples / ITERATIONS
    notes = f"samples through the UNet per iteration: {counts['reference']:.0f} and {counts['ours']:.0f}, "
    notes += f"{counts['reference'] / counts['ours']:.2f} times"
    contest = turns.Contest("slider training", training.reference, training.ours, lambda a, b: np.abs(np.subtract(a, b)).max(), 1e-5)
    return turns.report(contest, notes=notes)


if __name__ == "__main__":
    sys.exit(main())
