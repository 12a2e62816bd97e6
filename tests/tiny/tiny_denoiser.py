import dataclasses
from types import SimpleNamespace

import numpy as np
import torch
from diffusers import DDIMScheduler
from tiny_settings import RESAMPLED

from cnslib.core.settings.sections import Denoiser
from cnslib.studies import denoiser
from cnslib.studies.denoiser import Judge

CLASSES = ["bag", "coat", "sandal"]
COLOURS = [40, 130, 210]
GRID = {"shifts": ["heavy snow"], "seeds": 2, "scales": [0.0, 1.0, 2.5], "keep": [2, 1], "trials": [2, 4]}
SETTINGS = Denoiser(bootstrap=RESAMPLED, seed=1, model="", **GRID)


def settings(**changes) -> Denoiser:
    return dataclasses.replace(SETTINGS, **changes)


def picture(colour: int) -> np.ndarray:
    return np.full((4, 4, 3), colour, np.uint8)


class Pixels:
    device = torch.device("cpu")
    config = SimpleNamespace(scaling_factor=0.5)

    def encode(self, pixels):
        return SimpleNamespace(latent_dist=SimpleNamespace(mean=pixels))


def of_one_picture(parts, noisy, timestep, conditions):
    """The exact noise if all pictures of a class look the same, `conditions`: what is left of the input without the picture."""
    signal = parts.scheduler.alphas_cumprod[timestep]
    epsilon = (noisy - signal.sqrt() * conditions) / (1 - signal).sqrt()
    velocity = signal.sqrt() * epsilon - (1 - signal).sqrt() * conditions
    output = epsilon if parts.scheduler.config.prediction_type == "epsilon" else velocity
    return denoiser.as_epsilon(parts, output, noisy, timestep)


def exact(prediction_type: str = "epsilon") -> Judge:
    parts = SimpleNamespace(vae=Pixels(), scheduler=DDIMScheduler(prediction_type=prediction_type))
    known = torch.cat([denoiser.latent(parts, picture(colour)) for colour in COLOURS])
    return Judge(parts, of_one_picture, CLASSES, known, "toy")
