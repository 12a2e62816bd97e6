"""Diffusion classifier (CNS-Bench section 5.3; Li et al. 2023): the class under which a denoiser best predicts the noise that was added.

`denoiser` is the compendium's word for it, in parameters, stage, notebook and artifacts: a generative model, asked as a classifier.

Classes are eliminated in stages (the adaptive evaluation of Li et al.): all start, each stage compares those that are left on more
timesteps, and the best of them go on; the last one is the answer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from cnslib.core import recipes, seeds, tables, units
from cnslib.core.names import identifier
from cnslib.core.settings.analyses import Denoiser
from cnslib.models import text_to_image

LOSSES = ("l1", "l2")
Errors = Float[np.ndarray, "timesteps classes"]
Ask = Callable[[int, list[int]], Float[np.ndarray, "losses classes"]]


def timesteps(settings: Denoiser, length: int) -> list[int]:
    """The timesteps of the last stage, evenly spaced over a schedule of `length` steps: the middles of equal parts of it.

    Raises ValueError where the schedule has fewer steps than the last stage asks for.
    """
    count = settings.trials[-1]
    if count > length:
        raise ValueError(f"denoiser.trials: {count} is not accepted; accepted: at most the {length} timesteps of the noise schedule")
    return [int((place + 0.5) * length / count) for place in range(count)]


def stages(settings: Denoiser) -> list[tuple[int, list[int]]]:
    """How many classes each stage keeps, and all places in the list of timesteps that are known by its end.

    A stage asks for evenly spaced places, those of the earlier stages stay: a few more trials than its number where they differ.
    """
    count, known, found = settings.trials[-1], set(), []
    for keep, trials in zip(settings.keep, settings.trials, strict=True):
        known |= {int((number + 0.5) * count / trials) for number in range(trials)}
        found.append((keep, sorted(known)))
    return found


def best(errors: Errors, left: list[int], places: list[int], keep: int) -> list[int]:
    """The `keep` classes with the smallest mean error on some timesteps; of equal ones those that stand first in the list."""
    order = np.argsort(errors[np.ix_(places, left)].mean(0), kind="stable")
    return sorted(left[place] for place in order[:keep])


def eliminate(ask: Ask, classes: int, settings: Denoiser) -> Float[np.ndarray, "losses timesteps classes"]:
    """The errors of one image that its elimination needs; NaN where nobody had to ask.

    Every loss prunes for itself. What two of them need is evaluated once: `ask` gets a timestep's place and all classes to try there.
    """
    found = np.full((len(LOSSES), settings.trials[-1], classes), np.nan)
    left = [list(range(classes)) for _ in LOSSES]
    for keep, places in stages(settings):
        for place in places:
            missing = [name for name in sorted(set().union(*left)) if np.isnan(found[0, place, name])]
            if missing:
                found[:, place, missing] = ask(place, missing)
        left = [best(errors, own, places, keep) for errors, own in zip(found, left, strict=True)]
    return found


def logits(errors: Errors, settings: Denoiser, *, size: int) -> Float[np.ndarray, "classes"]:
    """How much worse each class explains the noise than the answer, summed over the `size` values of a latent; the answer has 0.

    A class is compared with the answer on the timesteps that were known when it was dropped, so each difference is paired: the
    same noise, the same input. It is never positive, since whoever drops out was behind the answer then.
    """
    left, seen = list(range(errors.shape[1])), dict[int, list[int]]()
    for keep, places in stages(settings):
        staying = best(errors, left, places, keep)
        seen |= dict.fromkeys(left, places)
        left = staying
    behind = errors[:, left] - errors  # of the answer, which is the only class left
    return np.array([size * behind[seen[name], name].mean() for name in range(errors.shape[1])])


def cost(settings: Denoiser, *, classes: int) -> dict[str, int]:
    """Network evaluations per image, before any is made: with every class at every timestep, and bounds for the stages.

    "least" is where both losses keep the same classes, "most" where they share none.
    """
    bounds = {"whole": classes * settings.trials[-1]}
    for name, factor in (("least", 1), ("most", len(LOSSES))):
        left, known, total = classes, 0, 0
        for keep, places in stages(settings):
            total += left * (len(places) - known)
            left, known = min(classes, factor * keep), len(places)
        bounds[name] = total
    return bounds


PROMPT = "a picture of a {name}"  # the words that the base model was trained on: no token that was fitted to the catalog
Latents = Float[Tensor, "batch channels height width"]
Epsilon = Callable[[Any, Latents, int, Tensor], Latents]
errors_schema = tables.schema(
    [*tables.KEY, "candidate", "timestep"],
    {
        **tables.IDENTITY,
        "candidate": pa.Column(str),
        "timestep": pa.Column("int64", pa.Check.ge(0)),
        **{loss: pa.Column(float, pa.Check.ge(0)) for loss in LOSSES},
    },
)


@dataclass(frozen=True)
class Judge:
    """A generative model as a classifier: its parts (vae, scheduler, network), how it predicts noise, and its classes.

    `conditions` has what the network is told in each class: text embeddings for `text_epsilon`, numbers for `label_epsilon`.
    """

    parts: Any
    epsilon: Epsilon
    classes: list[str]
    conditions: Tensor
    origin: str  # digest of the model's files


def text_judge(directory: Path, classes: list[str], *, device: str) -> Judge:
    """A text-to-image model that is told the classes' names (zero-shot); errors are those of `text_to_image.load_pipeline`."""
    pipe = text_to_image.load_pipeline(directory, device)
    conditions = text_to_image.embed(pipe, [PROMPT.format(name=name) for name in classes])
    return Judge(pipe, text_epsilon, classes, conditions, units.directory_digest(directory))


def text_epsilon(parts: Any, noisy: Latents, timestep: int, conditions: Float[Tensor, "batch tokens width"]) -> Latents:
    """The noise that a UNet with text embeddings predicts; no guidance."""
    return as_epsilon(parts, parts.unet(noisy, timestep, conditions).sample, noisy, timestep)


def label_epsilon(parts: Any, noisy: Latents, timestep: int, conditions: Int[Tensor, "batch"]) -> Latents:
    """The noise that a class-conditional transformer predicts, as the paper's DiT (parts of a diffusers DiTPipeline); no guidance.

    The second half of its output channels is the learned variance, which takes no part in the error.
    """
    steps = torch.full((len(noisy),), timestep, device=noisy.device)
    output = parts.transformer(noisy, timestep=steps, class_labels=conditions).sample
    return as_epsilon(parts, output[:, : noisy.shape[1]], noisy, timestep)


def as_epsilon(parts: Any, output: Latents, noisy: Latents, timestep: int) -> Latents:
    """The noise that follows from a network's output: itself, or sqrt(abar) v + sqrt(1 - abar) x_t where the network predicts v.

    Errors are taken of the noise, as Li et al. and the paper's DiT do, so a score means the same for both kinds of network. An error
    of v would be larger by 1 / sqrt(abar), that is, it would let the noisiest timesteps decide. Raises ValueError for another kind.
    """
    kind = parts.scheduler.config.prediction_type
    if kind not in text_to_image.PREDICTIONS:
        raise ValueError(f"scheduler: prediction_type {kind!r} is not accepted; accepted: {', '.join(text_to_image.PREDICTIONS)}")
    if kind == "epsilon":
        return output
    signal = parts.scheduler.alphas_cumprod[timestep].to(output.device)
    return signal.sqrt() * output + (1 - signal).sqrt() * noisy


@torch.no_grad()
def latent(parts: Any, picture: UInt8[np.ndarray, "height width 3"]) -> Float[Tensor, "1 channels h w"]:
    """The mean of a picture's latent distribution, scaled as the network expects it."""
    pixels = torch.from_numpy(picture.copy()).permute(2, 0, 1)[None].to(parts.vae.device) / 127.5 - 1
    return parts.vae.encode(pixels).latent_dist.mean * parts.vae.config.scaling_factor


@torch.no_grad()
def errors(judge: Judge, clean: Latents, noise: Latents, timestep: int, chosen: list[int]) -> Float[np.ndarray, "losses classes"]:
    """Mean absolute and mean squared error (L1, L2) of the predicted noise under some classes, all with the same noise.

    One forward pass holds one image at one timestep, so no error depends on another image.
    """
    signal = judge.parts.scheduler.alphas_cumprod[timestep].to(clean.device)
    noisy = signal.sqrt() * clean + (1 - signal).sqrt() * noise
    predicted = judge.epsilon(judge.parts, noisy.expand(len(chosen), -1, -1, -1), timestep, judge.conditions[chosen])
    away = (predicted - noise).flatten(1).double()
    return torch.stack([away.abs().mean(1), away.square().mean(1)]).cpu().numpy()


def noise_like(clean: Latents, *key: str | int) -> Latents:
    """Noise that belongs to a class, seed and timestep: the same for every candidate, scale and shift, so drops are paired."""
    return torch.randn(clean.shape, generator=seeds.generator("denoiser", *key)).to(clean.device)


def judged(judge: Judge, picture: UInt8[np.ndarray, "height width 3"], *key: str | int, settings: Denoiser) -> pd.DataFrame:
    """All errors of one picture that its elimination asked for: candidate, timestep, l1, l2. `key` is its class and seed."""
    clean = latent(judge.parts, picture)
    steps = timesteps(settings, len(judge.parts.scheduler.alphas_cumprod))

    def ask(place: int, chosen: list[int]) -> Float[np.ndarray, "losses classes"]:
        noise = noise_like(clean, *key, steps[place], settings.seed)
        return errors(judge, clean, noise, steps[place], chosen)

    found = eliminate(ask, len(judge.classes), settings)
    places, chosen = np.nonzero(~np.isnan(found[0]))
    columns = dict(zip(LOSSES, found[:, places, chosen], strict=True))
    return pd.DataFrame({"candidate": np.array(judge.classes)[chosen], "timestep": np.array(steps)[places], **columns})


def make(judge: Judge, images: pd.DataFrame, unit: units.Unit, settings: Denoiser) -> None:
    """Makes the table of errors of some images."""
    parts = []
    for row in images.to_dict("records"):
        own = {key: row[key] for key in tables.KEY}
        found = judged(judge, tables.decode(row["image"], str(own)), row["class"], row["seed"], settings=settings)
        parts.append(found.assign(**own))
    tables.write_unit(pd.concat(parts, ignore_index=True), unit, errors_schema)


def stamp(judge: Judge, images: pd.DataFrame, settings: Denoiser) -> str:
    """What a table of errors depends on: model, classes, pictures, stages and seed."""
    pictures = [[*row[:-1], units.digest(row[-1].hex())] for row in images[[*tables.KEY, "image"]].itertuples(index=False, name=None)]
    return recipes.DENOISER.stamp(judge.origin, judge.classes, PROMPT, pictures, settings.keep, settings.trials, settings.seed)


def plan(images: pd.DataFrame, folder: Path) -> dict[Path, pd.DataFrame]:
    """The images of every unit, one per trajectory and one per unshifted image, by the path of its table."""
    groups = images.groupby(tables.TRAJECTORY)
    return {folder / identifier(shift) / f"{identifier(name)}_{seed}.parquet": part for (shift, name, seed), part in groups}
