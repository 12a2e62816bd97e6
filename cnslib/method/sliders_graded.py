"""Slider training, graded mode: the objective of CNS-Bench section 3.2 at every scale up to the benchmark's last, not at scale 1 alone.

`sliders.fit`, the exact form, teaches what happens at scale 1, and leaves it to the network what 2.5 does. A network of a few million
parameters does not go on evenly: it leaves the pictures that it knows. Here each sample of a batch has a scale of its own, and the
target moves with it. Half of the samples see the empty prompt, so that guidance, which is the difference of two predictions, does not
move the shift once more. The rate falls to zero in the second half. A recipe of its own, `base.recipe: "graded"`.
"""

import functools

import torch
import torch.nn.functional as F
from diffusers import StableDiffusionPipeline
from jaxtyping import Float
from torch import Tensor, nn

from cnslib.core import recipes, seeds, units
from cnslib.core.settings.method import Sliders
from cnslib.method import sliders
from cnslib.models import adapters, text_to_image

REACH = 2.5  # the last scale of the benchmark (Table 5)


def fit(
    pipe: StableDiffusionPipeline,
    parameters: list[nn.Parameter],
    text: Float[Tensor, "3 tokens width"],
    *,
    settings: Sliders,
    generator: torch.Generator,
) -> dict[str, list[float]]:
    """AdamW on the attached adapter; `text` holds the embeddings of c, c+ and the empty prompt.

    Returns, as `sliders.fit`, the loss of each iteration, and what it would be without slider.
    """
    optimizer = torch.optim.AdamW(parameters, settings.learning_rate)
    pace = torch.optim.lr_scheduler.LambdaLR(optimizer, functools.partial(rate, iterations=settings.iterations))
    curve: dict[str, list[float]] = {"loss": [], "untrained": []}
    for _ in range(settings.iterations):
        scales = REACH * torch.rand(settings.batch_size, generator=generator)
        own = text[torch.where(torch.rand(settings.batch_size, generator=generator) < 0.5, 0, 2).to(text.device)]
        with adapters.scaled(pipe.unet, scales.tolist()):
            latents, timestep = sliders.partial_denoise(pipe, own, settings=settings, generator=generator)
            plain, target = teacher(pipe, latents, timestep, text, own, amount=settings.eta * scales)
            loss = F.mse_loss(pipe.unet(latents, timestep, own).sample, target)
            optimizer.zero_grad()
            loss.backward()
        optimizer.step()
        pace.step()
        curve["loss"].append(round(loss.item(), 8))
        curve["untrained"].append(round(F.mse_loss(plain, target).item(), 8))
    return curve


def rate(iteration: int, *, iterations: int) -> float:
    """The share of the learning rate: whole in the first half of the iterations, then falling evenly to zero."""
    return min(1.0, 2 * (1 - iteration / iterations))


@torch.no_grad()
def teacher(
    pipe: StableDiffusionPipeline,
    latents: Float[Tensor, "batch channels height width"],
    timestep: Tensor,
    text: Float[Tensor, "3 tokens width"],
    own: Float[Tensor, "batch tokens width"],
    *,
    amount: Float[Tensor, "batch"],
) -> tuple[Float[Tensor, "batch channels height width"], Float[Tensor, "batch channels height width"]]:
    """The base model's prediction at each sample's own prompt, and what the slider shall make of it: so much of c+ - c is added."""
    neutral, positive = (row.expand(len(latents), -1, -1) for row in text[:2].split(1))
    with adapters.switched_off(pipe.unet):
        texts = torch.cat([own, neutral, positive])
        plain, unshifted, shifted = pipe.unet(latents.repeat(3, 1, 1, 1), timestep, texts).sample.chunk(3)
    return plain, plain + amount.to(plain).reshape(-1, 1, 1, 1) * (shifted - unshifted)


def evaluations(settings: Sliders) -> float:
    """Expected UNet evaluations of single samples for one slider: k on average, three teacher and one student predictions."""
    return settings.iterations * settings.batch_size * (settings.denoising_steps / 2 + 4)


def train(
    pipe: StableDiffusionPipeline, shift: str, name: str, unit: units.Unit, *, settings: Sliders, origin: text_to_image.Origin
) -> None:
    """Trains and writes one slider and what it was made from; everything random comes from the generator of (shift, class, seed).

    Raises FloatingPointError, naming the slider, when the loss is no longer a number.
    """
    settings, generator = sliders.own(settings, shift), seeds.generator("slider", shift, name, settings.seed)
    prompts = sliders.prompts(shift, name, texts=settings.texts)
    text = text_to_image.embed(pipe, [*prompts, ""])
    with adapters.fresh(pipe, rank=settings.rank, alpha=settings.alpha, generator=generator) as parameters:
        curve = fit(pipe, parameters, text, settings=settings, generator=generator)
        entries = {"shift": shift, "class": name, "base": origin.base, "recipe": "graded"}
        used = sliders.training_settings(settings)
        adapters.save(pipe, unit.path, sliders.told(entries, prompts=prompts, settings=used, curve=curve))
    unit.finish()


def stamp(shift: str, name: str, *, settings: Sliders, origin: text_to_image.Origin) -> str:
    """What one slider depends on; never that of another recipe."""
    used = sliders.training_settings(sliders.own(settings, shift))
    return recipes.GRADED_SLIDERS.stamp(sliders.prompts(shift, name, texts=settings.texts), used, origin.base, origin.tokens[name])


train_all = functools.partial(sliders.train_each, train=train, stamp=stamp)  # as `sliders.train_all`, by the graded recipe
