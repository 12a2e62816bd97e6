"""What the recipes beside the paper's share: gradient descent over given training points."""

import json
import math
from collections.abc import Iterable

import torch
import torch.nn.functional as F
from diffusers import StableDiffusionPipeline
from jaxtyping import Float
from torch import Tensor, nn

from cnslib.core.settings.method import Sliders
from cnslib.method import sliders

Point = tuple[Float[Tensor, "batch channels height width"], Tensor]  # latents and the timestep they are shown at


def descend(
    pipe: StableDiffusionPipeline,
    parameters: list[nn.Parameter],
    text: Float[Tensor, "2 tokens width"],
    points: Iterable[Point],
    *,
    settings: Sliders,
) -> dict[str, list[float]]:
    """As `sliders.fit` (Eq. 2), one AdamW update on each of `points`, which are drawn as they are needed.

    `text` holds the embeddings of c and c+. A point costs two UNet evaluations per sample without gradient and one with, beside what
    drawing it costs. Returns the loss of each update, and what it would be without slider.
    """
    optimizer = torch.optim.AdamW(parameters, settings.learning_rate)
    curve: dict[str, list[float]] = {"loss": [], "untrained": []}
    for latents, timestep in points:
        plain, target = sliders.teacher(pipe, latents, timestep, text, eta=settings.eta)
        loss = F.mse_loss(pipe.unet(latents, timestep, text[:1].expand(len(latents), -1, -1)).sample, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        curve["loss"].append(round(loss.item(), 8))
        curve["untrained"].append(round(F.mse_loss(plain, target).item(), 8))
    return curve


def told(
    entries: dict[str, str], *, prompts: tuple[str, str], settings: dict[str, int | float], curve: dict[str, list[float]]
) -> dict[str, str]:
    """The header entries of a slider file. FloatingPointError names the slider when the loss is no longer a number."""
    if not all(map(math.isfinite, curve["loss"])):
        raise FloatingPointError(
            f"slider of {entries['class']} in {entries['shift']}: the loss is not a number; lower sliders.learning_rate"
        )
    plain = {"prompts": prompts, "settings": settings, "curve": curve}
    return entries | {key: json.dumps(value) for key, value in plain.items()}
