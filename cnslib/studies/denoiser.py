"""Diffusion classifier (CNS-Bench section 5.3; Li et al. 2023): the class under which a denoiser best predicts the noise that was added.

Classes are eliminated in stages: each compares those that are left on more timesteps, and the best of them go on.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa
import torch
import xarray as xr
from diffusers import AutoencoderKL, DDIMScheduler, DiTTransformer2DModel
from jaxtyping import Float, Int, UInt8
from PIL import Image
from torch import Tensor

from cnslib.core import paths, recipes, seeds, tables, units, workers
from cnslib.core.names import UNSHIFTED, demand
from cnslib.core.settings.method import Base, Bootstrap
from cnslib.core.settings.sections import Denoiser
from cnslib.core.sources import document
from cnslib.data import catalog
from cnslib.models import encoders, text_to_image, weights
from cnslib.stats import accuracy, bootstrap

LOSSES = ("l1", "l2")
PROMPT = "a picture of a {name}"  # the words that the base model was trained on: no token that was fitted to the catalog
Errors = Float[np.ndarray, "timesteps classes"]
Latents = Float[Tensor, "batch channels height width"]
errors_schema = tables.schema(
    [*tables.KEY, "candidate", "timestep"],
    {
        **tables.IDENTITY,
        "candidate": pa.Column(str),
        "timestep": pa.Column("int64", pa.Check.ge(0)),
        **{loss: pa.Column(float, pa.Check.ge(0)) for loss in LOSSES},
    },
)


def timesteps(settings: Denoiser, length: int) -> list[int]:
    """The timesteps of the last stage, evenly spaced over a schedule of `length` steps: the middles of equal parts of it."""
    count = settings.trials[-1]
    demand(count <= length, "denoiser.trials", count, f"at most the {length} timesteps of the noise schedule")
    return [int((place + 0.5) * length / count) for place in range(count)]


def stages(settings: Denoiser) -> list[tuple[int, list[int]]]:
    """How many classes each stage keeps, and all places in the list of timesteps that are known by its end; those of earlier ones stay."""
    count, places, schedule = settings.trials[-1], set(), []
    for keep, trials in zip(settings.keep, settings.trials, strict=True):
        places |= {int((number + 0.5) * count / trials) for number in range(trials)}
        schedule.append((keep, sorted(places)))
    return schedule


def best(errors: Errors, left: list[int], places: list[int], keep: int) -> list[int]:
    """The `keep` classes with the smallest mean error on some timesteps; of equal ones those that stand first in the list."""
    order = np.argsort(errors[np.ix_(places, left)].mean(0), kind="stable")
    return sorted(left[place] for place in order[:keep])


def eliminate(
    evaluate: Callable[[int, list[int]], Float[np.ndarray, "losses classes"]], classes: int, settings: Denoiser
) -> Float[np.ndarray, "losses timesteps classes"]:
    """The errors of one image that its elimination needs, loss by loss, NaN elsewhere; `evaluate` gets a timestep's place and classes."""
    grid = np.full((len(LOSSES), settings.trials[-1], classes), np.nan)
    left = [list(range(classes)) for _ in LOSSES]
    for keep, places in stages(settings):
        for place in places:
            missing = [name for name in sorted(set().union(*left)) if np.isnan(grid[0, place, name])]
            if missing:
                grid[:, place, missing] = evaluate(place, missing)
        left = [best(errors, members, places, keep) for errors, members in zip(grid, left, strict=True)]
    return grid


def logits(errors: Errors, settings: Denoiser, *, size: int) -> Float[np.ndarray, "classes"]:
    """How much worse each class explains the noise than the prediction, summed over the `size` values of a latent (Li et al., Eq. 6).

    A class is compared with the predicted one, which has 0, on the timesteps that were known when it was dropped.
    """
    left, last_places = list(range(errors.shape[1])), dict[int, list[int]]()
    for keep, places in stages(settings):
        last_places |= dict.fromkeys(left, places)
        left = best(errors, left, places, keep)
    behind = errors[:, left] - errors
    return np.array([size * behind[last_places[name], name].mean() for name in range(errors.shape[1])])


@dataclass(frozen=True)
class Judge:
    """A generative model as a classifier: its parts (vae, scheduler, network), how it predicts noise, and its classes."""

    parts: Any
    epsilon: Callable[[Any, Latents, int, Tensor], Latents]
    classes: list[str]
    conditions: Tensor
    origin: str  # digest of the model's files
    side: int = 0  # px of the pictures that it learned from; 0: those of any size


def text_judge(directory: Path, classes: list[str], *, device: str) -> Judge:
    """A text-to-image model that is told the classes' names (zero-shot); errors are those of `text_to_image.load_pipeline`."""
    pipe = text_to_image.load_pipeline(directory, device)
    conditions = text_to_image.embed(pipe, [PROMPT.format(name=name) for name in classes])
    return Judge(pipe, text_epsilon, classes, conditions, units.directory_digest(directory))


TOGETHER = 64  # classes of one forward pass of a DiT, which may know a thousand
DIT = ("transformer/config.json", "vae/config.json", "scheduler/scheduler_config.json")
WEIGHTS = ("diffusion_pytorch_model.safetensors", "diffusion_pytorch_model.bin")
ATTENTION = {"query": "to_q", "key": "to_k", "value": "to_v", "proj_attn": "to_out.0"}  # of an autoencoder, before 2023 and since


def open_judge(pipeline: Path, base: Base, settings: Denoiser) -> Judge:
    """The judge of the settings: a DiT that chooses among all labels, as its rivals do, or the base model among the classes' names."""
    if settings.model:
        return label_judge(paths.resolve(settings.model), encoders.read_labels(base.labels), device=base.device)
    return text_judge(pipeline, base.classes, device=base.device)


def label_judge(directory: Path, labels: list[str], *, device: str) -> Judge:
    """A class-conditional DiT (Peebles and Xie 2023) of a diffusers directory, told each label by its number (CNS-Bench section 5.3).

    diffusers embeds timesteps with frequencies 10000^(-k/127) where DiT has learned 10000^(-k/128): set right here, as is the last
    norm's epsilon.
    """
    for name in DIT:
        if not (directory / name).is_file():
            raise FileNotFoundError(f"denoiser.model: {directory / name} does not exist; accepted: a DiT directory of diffusers")
    weights.refuse_code(directory, key="denoiser.model")
    config, latents, schedule = (document(directory / name, key="denoiser.model") for name in DIT)
    dit = DiTTransformer2DModel.from_config(config | {"_class_name": "DiTTransformer2DModel", "norm_eps": 1e-6})
    vae, scheduler = AutoencoderKL.from_config(latents), DDIMScheduler.from_config(schedule)
    vae.older_names = {rf"(.*\.attentions\.\d+)\.{old}\.": rf"\1.{new}." for old, new in ATTENTION.items()}  # see `weights.load`
    for network, folder in ((dit, "transformer"), (vae, "vae")):
        file = next((name for name in WEIGHTS if (directory / folder / name).is_file()), WEIGHTS[0])
        weights.load(network, directory / folder / file, key="denoiser.model")
        network.to(device).eval().requires_grad_(False)
    demand(scheduler.config.prediction_type == "epsilon", "denoiser.model: scheduler", scheduler.config.prediction_type, "epsilon")
    count = dit.config.num_embeds_ada_norm
    demand(len(labels) == count, "base.labels, for denoiser.model", len(labels), f"the {count} classes that {directory} draws")
    for block in dit.transformer_blocks:
        block.norm1.emb.time_proj.downscale_freq_shift = 0
    side = dit.config.sample_size * 2 ** (len(vae.config.block_out_channels) - 1)
    parts = SimpleNamespace(unet=dit, vae=vae, scheduler=scheduler)
    return Judge(parts, label_epsilon, labels, torch.arange(count, device=device), units.directory_digest(directory), side)


def label_epsilon(parts: Any, noisy: Latents, timestep: int, conditions: Int[Tensor, "batch"]) -> Latents:
    """The noise that a DiT predicts: its first channels, those behind them are a variance. No guidance."""
    groups = zip(noisy.split(TOGETHER), conditions.split(TOGETHER), strict=True)
    outputs = [parts.unet(some, torch.full_like(labels, timestep), class_labels=labels).sample for some, labels in groups]
    return torch.cat(outputs)[:, : noisy.shape[1]]


def cropped(picture: UInt8[np.ndarray, "height width 3"], side: int) -> UInt8[np.ndarray, "side side 3"]:
    """A picture as DiT's training saw it (ADM): halved while at least twice as large, then the bicubic centred square."""
    image = Image.fromarray(picture)
    while min(image.size) >= 2 * side:
        image = image.reduce(2)
    return catalog.square(np.asarray(image), side)


def text_epsilon(parts: Any, noisy: Latents, timestep: int, conditions: Float[Tensor, "batch tokens width"]) -> Latents:
    """The noise that a UNet with text embeddings predicts; no guidance."""
    return as_epsilon(parts, parts.unet(noisy, timestep, conditions).sample, noisy, timestep)


def as_epsilon(parts: Any, output: Latents, noisy: Latents, timestep: int) -> Latents:
    """The noise that follows from a network's output: itself, or sqrt(abar) v + sqrt(1 - abar) x_t where the network predicts v.

    Li et al. and the paper's DiT take errors of the noise. ValueError for another kind.
    """
    kind = parts.scheduler.config.prediction_type
    demand(kind in text_to_image.PREDICTIONS, "scheduler: prediction_type", kind, ", ".join(text_to_image.PREDICTIONS))
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
    """Mean absolute and mean squared error (L1, L2) of the predicted noise under some classes; a forward pass holds one image."""
    signal = judge.parts.scheduler.alphas_cumprod[timestep].to(clean.device)
    noisy = signal.sqrt() * clean + (1 - signal).sqrt() * noise
    predicted = judge.epsilon(judge.parts, noisy.expand(len(chosen), -1, -1, -1), timestep, judge.conditions[chosen])
    away = (predicted - noise).flatten(1).double()
    return torch.stack([away.abs().mean(1), away.square().mean(1)]).cpu().numpy()


def judged(judge: Judge, picture: UInt8[np.ndarray, "height width 3"], *key: str | int, settings: Denoiser) -> pd.DataFrame:
    """All errors of one picture that its elimination needs: candidate, timestep, l1, l2.

    The noise belongs to `key`, class and seed, and the timestep: the same for every candidate, scale and shift.
    """
    clean = latent(judge.parts, cropped(picture, judge.side) if judge.side else picture)
    steps = timesteps(settings, len(judge.parts.scheduler.alphas_cumprod))

    def evaluate(place: int, chosen: list[int]) -> Float[np.ndarray, "losses classes"]:
        generator = seeds.generator("denoiser", *key, steps[place], settings.seed)
        noise = torch.randn(clean.shape, generator=generator).to(clean.device)
        return errors(judge, clean, noise, steps[place], chosen)

    losses = eliminate(evaluate, len(judge.classes), settings)
    places, chosen = np.nonzero(~np.isnan(losses[0]))
    columns = dict(zip(LOSSES, losses[:, places, chosen], strict=True))
    return pd.DataFrame({"candidate": np.array(judge.classes)[chosen], "timestep": np.array(steps)[places], **columns})


def judge_all(judge: Judge, images: pd.DataFrame, *, folder: Path, settings: Denoiser) -> pd.DataFrame:
    """The errors of all images: one unit per trajectory and per unshifted image, made where it is missing or outdated."""
    parts = {key: part[[*tables.KEY, "image"]] for key, part in images.groupby(tables.TRAJECTORY)}
    stamps = {key: stamp(judge, part, settings) for key, part in parts.items()}
    how: dict = {"folder": folder, "device": judge.parts.vae.device, "file": units.file_below, "pattern": "*/*.parquet"}
    return workers.stored(stamps, partial(errors_of, judge, parts, settings=settings), errors_schema, **how)


def errors_of(judge: Judge, parts: dict[tuple, pd.DataFrame], key: tuple, *, settings: Denoiser) -> pd.DataFrame:
    """The errors of the images of one trajectory."""
    rows = []
    for row in parts[key].to_dict("records"):
        picture = tables.decode(row.pop("image"), str(row))
        rows.append(judged(judge, picture, row["class"], row["seed"], settings=settings).assign(**row))
    return pd.concat(rows, ignore_index=True)


def stamp(judge: Judge, images: pd.DataFrame, settings: Denoiser) -> str:
    """What a table of errors depends on: model, classes, pictures, stages and seed."""
    pictures = [[*row[:-1], units.digest(row[-1].hex())] for row in images[[*tables.KEY, "image"]].itertuples(index=False, name=None)]
    return recipes.DENOISER.stamp(judge.origin, judge.classes, PROMPT, pictures, settings.keep, settings.trials, settings.seed)


def keys(chosen: pd.DataFrame, *, settings: Denoiser) -> pd.DataFrame:
    """The images of some trajectories: every scale above 0, and the unshifted image of each class and seed once."""
    above = chosen.merge(pd.DataFrame({"scale": [scale for scale in settings.scales if scale > 0]}), how="cross")
    plain = chosen[["class", "seed"]].drop_duplicates().assign(shift=UNSHIFTED, scale=0.0)
    return pd.concat([plain, above])[tables.KEY].sort_values(tables.KEY, ignore_index=True)


def predictions(errors: pd.DataFrame, classes: list[str], *, size: int, settings: Denoiser) -> pd.DataFrame:
    """The predictions table of both losses, models "denoiser_l1" and "denoiser_l2", from the table of errors.

    The margin is above 0 where the prediction is right; the softmax of the `logits` is not calibrated.
    """
    rows = []
    for loss in LOSSES:
        for key, part in errors.groupby(tables.KEY):
            grid = part.pivot(index="timestep", columns="candidate", values=loss)[classes].to_numpy()
            scores, true = logits(grid, settings, size=size), classes.index(key[1])
            top5 = [classes[place] for place in np.argsort(-scores, kind="stable")[:5]]
            row = {"model": f"denoiser_{loss}", **dict(zip(tables.KEY, key, strict=True)), "top1": top5[0], "top5": top5}
            margin = scores[true] - np.delete(scores, true).max(initial=-np.inf)
            rows.append(
                row | {"probability": np.exp(scores[true]) / np.exp(scores).sum(), "margin": margin, "preprocessing": "latent mean"}
            )
    return tables.check(pd.DataFrame(rows), tables.predictions, "predictions of the denoiser")


def lead(wrong: xr.DataArray, *, reference: str, settings: Bootstrap, growth: bool = False) -> pd.DataFrame:
    """How much more accuracy the reference loses than each other model, mean over the scales (Table 5), or its `growth` (Fig. 14)."""
    drops = [accuracy.drop(average(wrong, settings)) for average in (accuracy.by_shift, accuracy.by_unit)]
    behind = [(drop.sel(model=reference, drop=True) - drop).drop_sel(model=reference) for drop in drops]
    samples, units = (b.isel(scale=-1, drop=True) - b.isel(scale=1, drop=True) if growth else b.mean("scale") for b in behind)
    return accuracy.interval(samples, units=units)


def tried_by_all(errors: pd.DataFrame, *, classes: list[str]) -> pd.DataFrame:
    """The errors at the timesteps at which every class was tried, that is before any was dropped: image, timestep, loss, error."""
    tried = errors.groupby([*tables.KEY, "timestep"])["candidate"].transform("size") == len(classes)
    return errors[tried].melt([*tables.KEY, "candidate", "timestep"], var_name="loss", value_name="error")


def spaces(errors: pd.DataFrame, signal: Float[np.ndarray, "timesteps"], *, settings: Bootstrap) -> pd.DataFrame:
    """Accuracy with errors of the noise and with errors of v, per loss; `errors` is `tried_by_all`, `signal` abar of every timestep.

    The error of v is that of the noise times 1 / sqrt(abar).
    """
    of_v = errors["error"] / signal[errors["timestep"]] ** errors["loss"].map({"l1": 0.5, "l2": 1.0})
    both = pd.concat([errors.assign(space="noise"), errors.assign(error=of_v, space="v")])
    return hits_by(both, ["loss", "space"], settings=settings)


def hits_by(errors: pd.DataFrame, columns: list[str], *, settings: Bootstrap) -> pd.DataFrame:
    """Accuracy per value of some columns, with intervals, where the candidate with the smallest mean error is the prediction."""
    means = errors.groupby([*columns, *tables.KEY, "candidate"])["error"].mean().reset_index()
    first = means.loc[means.groupby([*columns, *tables.KEY])["error"].idxmin()]
    hits = first.assign(hit=(first["candidate"] == first["class"]).astype(float))
    return bootstrap.means(hits, ["hit"], columns, settings=settings, statistic=bootstrap.rate).drop(columns="measure")
