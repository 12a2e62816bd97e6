import itertools
from pathlib import Path

import numpy as np
import torch
from diffusers import StableDiffusionPipeline

from cnslib.core.names import token
from cnslib.core.settings.method import Pilot, Sliders
from cnslib.method.sliders import slider_path
from cnslib.models import adapters, text_to_image

TRAINING = {"rank": 4, "alpha": 1.0, "eta": 4.0, "learning_rate": 1e-2, "iterations": 3, "batch_size": 2, "denoising_steps": 4, "seed": 1}
HEALTH = {"health_seeds": 1, "health_steps": 4, "health_guidance": 2.0, "least_gain": 0.0, "pilot": Pilot({}, [], 1, 0.8, 0.6, 0.45)}
SETTINGS = Sliders(texts={}, etas={}, longer={}, **TRAINING, **HEALTH)
CLASSES = ["sneaker", "ankle boot"]
SHIFTS = ["heavy snow", "cartoon style"]


def pipeline(folder: Path, tokens: Path, classes: list[str]) -> StableDiffusionPipeline:
    pipe = text_to_image.load_pipeline(folder, "cpu")
    text_to_image.load_tokens(pipe, tokens, classes)
    return pipe


def random_sliders(
    pipe: StableDiffusionPipeline, folder: Path, shifts: list[str], classes: list[str], *, rank: int = 4, alpha: float = 1.0
) -> Path:
    """Writes a random slider for every shift and class, strong enough to change every image."""
    for number, (shift, name) in enumerate(itertools.product(shifts, classes)):
        generator = torch.Generator().manual_seed(number)
        with adapters.fresh(pipe, rank=rank, alpha=alpha, generator=generator) as parameters:
            for parameter in parameters:
                parameter.data.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
            adapters.save(pipe, slider_path(folder, shift, name), {"shift": shift, "class": name})
    return folder


def plain_images(pipe: StableDiffusionPipeline, seed: int, scales: dict[int, float], *, steps: int, guidance: float) -> np.ndarray:
    """Grey levels by diffusers' own pipeline; the scale of the slider is set when `scales` names the step that comes next."""

    def switch(pipe, step, timestep, kwargs):
        if step + 1 in scales:
            pipe.unet.set_adapters(adapters.NAME, scales[step + 1])
        return kwargs

    how = {"num_inference_steps": steps, "guidance_scale": guidance, "callback_on_step_end": switch, "output_type": "np"}
    images = pipe(f"a picture of a {token('sneaker')}", generator=torch.Generator().manual_seed(seed), **how).images
    return (images * 255).round().astype(int)
