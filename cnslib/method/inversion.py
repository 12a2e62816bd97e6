"""IN*: one new token per class, whose embedding makes the frozen model draw the class as the catalog shows it (CNS-Bench section 3.1).

Tokens are learned by textual inversion (Gal et al. 2023) of a whole class (Vendrow et al. 2023). Naming a class by its name and by its
token is then compared on drawn images: Frechet distance to the catalog, accuracy, nearest real images (section 4.1, Table 2a).
"""

import copy
import dataclasses
import functools
import hashlib
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
import safetensors.torch
import torch
import torch.nn.functional as F
from diffusers import StableDiffusionPipeline
from jaxtyping import Bool, Float, Int, UInt8
from sklearn.neighbors import NearestNeighbors
from torch import Tensor, nn
from tqdm.auto import tqdm

from cnslib.core import names, paths, recipes, seeds, tables, units, workers
from cnslib.core.names import PROMPT, demand, identifier, token
from cnslib.core.settings.sections import Inversion
from cnslib.data import catalog, imagenet
from cnslib.models import adapters, encoders, text_to_image
from cnslib.models import tokens as token_files
from cnslib.models.classifiers import Classifier
from cnslib.models.text_to_image import Origin
from cnslib.stats import bootstrap

TRAINING = ("learning_rate", "steps", "batch_size", "images_per_class", "seed")  # the settings that a token depends on
ENCODED = 16  # pictures per pass of the autoencoder
DRAWN = 20  # images per pipeline call
WORDS: dict[str, Callable[[str], str]] = {"text": str, "in_star": names.token}  # what a prompt calls a class
schema = tables.schema(
    ["prompt", "class", "seed"],
    {"prompt": pa.Column(str, pa.Check.isin(WORDS)), "class": pa.Column(str), "seed": pa.Column("int64"), "image": pa.Column(object)},
)

Pictures = UInt8[np.ndarray, "images height width 3"]
Latents = Float[Tensor, "images channels height width"]
Vector = Float[Tensor, "width"]  # the embedding of a token
Prompt = Float[Tensor, "1 tokens width"]
Features = Float[np.ndarray, "rows features"]
Mask = Bool[np.ndarray, "rows"]


def invert_all(
    pipe: StableDiffusionPipeline, classes: list[str], *, settings: Inversion, pictures: Path, base: str, folder: Path
) -> dict[str, Path]:
    """Makes the tokens that are missing or were made from something else; `pictures` is the catalog, `base` the digest of the pipeline."""
    examples = functools.partial(catalog.images, pictures, "train", count=settings.images_per_class, side=side(pipe))
    files = {}
    for name in classes:  # one class in memory at a time
        pixels = hashlib.sha256(examples(name).tobytes()).hexdigest()
        files[name] = f"{identifier(name)}.safetensors", recipes.TOKENS.stamp(name, PROMPT, pixels, training_settings(settings), base)
    shelf = units.Shelf(folder, files, "*.safetensors")
    for name in tqdm(shelf.waiting(), desc="inversion", disable=None):
        invert(pipe, name, examples(name), settings=settings, path=shelf[name].path)
        shelf[name].finish()
    return shelf.paths


def make_tokens(
    pipe: StableDiffusionPipeline, classes: list[str], *, in_star: str, settings: Inversion, pictures: Path, base: str, folder: Path
) -> dict[str, Path]:
    """The token file of each class: learned by `invert_all`, or taken from the IN* tokens at the path `in_star`.

    That is a folder of dataset interfaces, the published text encoder's file, or a folder that holds one of them (`tokens.located`);
    classes are then ImageNet's.
    """
    if not in_star:
        return invert_all(pipe, classes, settings=settings, pictures=pictures, base=base, folder=folder)
    vectors = read_tokens(pipe, paths.resolve(in_star), {name: imagenet.index(name) for name in classes})
    made_from = {name: recipes.GIVEN_TOKENS.stamp(name, token(name), vectors[name].double().tolist()) for name in classes}
    shelf = units.Shelf(folder, {name: (f"{identifier(name)}.safetensors", made_from[name]) for name in classes}, "*.safetensors")
    for name in shelf.waiting():
        token_files.to_ours({name: vectors[name]}, folder, source=in_star)
        shelf[name].finish()
    return shelf.paths


def read_tokens(pipe: StableDiffusionPipeline, source: Path, numbers: dict[str, int]) -> dict[str, token_files.Vector]:
    """The vectors of the classes, from whichever form lies at the path. ValueError names vectors of another width than the model's."""
    if not source.exists():
        wanted = "a folder of dataset interfaces, or a text encoder's file"
        raise FileNotFoundError(f"base.in_star: {source} does not exist; accepted: {wanted}")
    form = token_files.located(source)
    if form.is_file():
        vectors = token_files.read_rows(form, numbers, vocabulary=len(pipe.tokenizer))
    elif (form / "tokens.pt").exists():
        vectors = token_files.read_encoder(form, numbers)
    else:
        vectors = token_files.read_files(form, numbers)
    width, token_width = pipe.text_encoder.config.hidden_size, len(next(iter(vectors.values())))
    demand(
        token_width == width, f"base.in_star, width of the tokens in {source}", token_width, f"{width}, that of the pipeline's text encoder"
    )
    return vectors


def side(pipe: StableDiffusionPipeline) -> int:
    """Height and width of the model's pictures in pixels."""
    return pipe.unet.config.sample_size * pipe.vae_scale_factor


def training_settings(settings: Inversion) -> dict[str, float]:
    """The settings that a token depends on."""
    return {key: value for key, value in dataclasses.asdict(settings).items() if key in TRAINING}


def invert(pipe: StableDiffusionPipeline, name: str, examples: Pictures, *, settings: Inversion, path: Path) -> None:
    """Learns and writes one token, by the generator of (class, seed). FloatingPointError names the class when the loss is no number."""
    generator = seeds.generator("inversion", name, settings.seed)
    vector, losses = fit(pipe, name, encode(pipe, examples), settings=settings, generator=generator)
    if not all(map(math.isfinite, losses)):
        raise FloatingPointError(f"token of {name}: the loss is not a number; look at the base model and inversion.learning_rate")
    plain = {"class": name, "settings": training_settings(settings), "losses": losses}
    data = safetensors.torch.save({token(name): vector}, {"format": "pt"})
    units.write_bytes(path, adapters.with_header(data, {key: json.dumps(value) for key, value in plain.items()}))


@torch.no_grad()
def encode(pipe: StableDiffusionPipeline, examples: Pictures) -> Latents:
    """Latents of pictures: the mean of the autoencoder's posterior, scaled as the UNet expects it."""
    pixels = torch.from_numpy(examples).permute(0, 3, 1, 2) / 127.5 - 1
    parts = [pipe.vae.encode(part.to(pipe.device)).latent_dist.mean for part in pixels.split(ENCODED)]
    return torch.cat(parts) * pipe.vae.config.scaling_factor


def fit(
    pipe: StableDiffusionPipeline, name: str, latents: Latents, *, settings: Inversion, generator: torch.Generator
) -> tuple[Vector, list[float]]:
    """The embedding after AdamW, and the loss of each step; nothing but the embedding changes.

    Its length stays that of its start, which text encoders know; the rate falls linearly to zero, lest the last few batches decide.
    """
    start, prompt = initial_vector(pipe, name), prompt_ids(pipe, name)
    vector = nn.Parameter(start.clone())
    optimizer = torch.optim.AdamW([vector], settings.learning_rate)
    decay = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=1.0, end_factor=0.0, total_iters=settings.steps)
    losses = []
    for _ in range(settings.steps):
        rows = torch.randint(len(latents), (settings.batch_size,), generator=generator)
        loss = denoising_loss(pipe, latents[rows.to(latents.device)], text(pipe, *prompt, vector), generator=generator)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        decay.step()
        with torch.no_grad():
            vector.mul_(start.norm() / vector.norm())
        losses.append(round(loss.item(), 6))
    return vector.detach().cpu(), losses


@torch.no_grad()
def initial_vector(pipe: StableDiffusionPipeline, name: str) -> Vector:
    """The mean of the embeddings of the tokens that the class name consists of."""
    ids = pipe.tokenizer(name, add_special_tokens=False, return_tensors="pt").input_ids[0]
    return pipe.text_encoder.get_input_embeddings()(ids.to(pipe.device)).mean(dim=0)


def denoising_loss(pipe: StableDiffusionPipeline, latents: Latents, embedding: Prompt, *, generator: torch.Generator) -> Float[Tensor, ""]:
    """The model's own training loss (section 3.1): mean squared error of its prediction at a random noise level per picture."""
    noise = torch.randn(latents.shape, generator=generator).to(latents)
    steps = torch.randint(pipe.scheduler.config.num_train_timesteps, (len(latents),), generator=generator).to(latents.device)
    noisy = pipe.scheduler.add_noise(latents, noise, steps)
    velocity = pipe.scheduler.config.prediction_type == "v_prediction"
    target = pipe.scheduler.get_velocity(latents, noise, steps) if velocity else noise
    return F.mse_loss(pipe.unet(noisy, steps, embedding.expand(len(latents), -1, -1)).sample, target)


def text(pipe: StableDiffusionPipeline, ids: Int[Tensor, "1 tokens"], places: Bool[Tensor, "1 tokens"], vector: Vector) -> Prompt:
    """What the text encoder makes of a prompt with `vector` as the embedding at `places`; gradients reach the vector alone."""
    embeddings = pipe.text_encoder.get_input_embeddings()
    handle = embeddings.register_forward_hook(lambda module, inputs, output: torch.where(places[..., None], vector, output))
    try:
        return pipe.text_encoder(ids).last_hidden_state
    finally:
        handle.remove()


def prompt_ids(pipe: StableDiffusionPipeline, name: str) -> tuple[Int[Tensor, "1 tokens"], Bool[Tensor, "1 tokens"]]:
    """Token ids of the class's prompt and where its token stands; a stand-in id is there, and the pipeline stays as it is."""
    tokenizer = copy.deepcopy(pipe.tokenizer)
    tokenizer.add_tokens(token(name))
    prompt = PROMPT.format(token=token(name))
    ids = tokenizer(prompt, padding="max_length", max_length=tokenizer.model_max_length, return_tensors="pt").input_ids
    places = ids == tokenizer.convert_tokens_to_ids(token(name))
    return ids.masked_fill(places, 0).to(pipe.device), places.to(pipe.device)


def loss_curve(path: Path) -> list[float]:
    """The loss of every step, from the token's own file."""
    with safetensors.safe_open(path, "pt") as file:
        return json.loads(file.metadata()["losses"])


def draw_all(pipe: StableDiffusionPipeline, classes: list[str], *, settings: Inversion, origin: Origin, folder: Path) -> pd.DataFrame:
    """Images of each class, by name and by token, seeds 1 to `validation_images`; draws the classes that are missing or outdated."""
    drawn = settings.validation_images, settings.sampling_steps, settings.guidance
    made_from = {name: recipes.SAMPLES.stamp(name, PROMPT, drawn, origin.base, origin.tokens[name]) for name in classes}
    make = lambda name: pd.DataFrame(rows(pipe, name, settings=settings))  # noqa: E731
    return workers.stored(made_from, make, schema, folder=folder, device=pipe.device)


def rows(pipe: StableDiffusionPipeline, name: str, *, settings: Inversion) -> Iterator[dict]:
    """One row per prompt and seed of a class; both prompts start from the same noise."""
    seeds = list(range(1, settings.validation_images + 1))
    how = {"steps": settings.sampling_steps, "guidance": settings.guidance, "chunk": DRAWN}
    for prompt, word in WORDS.items():
        images = text_to_image.sample(pipe, [PROMPT.format(token=word(name))] * len(seeds), seeds, **how)
        for seed, image in zip(seeds, images.numpy(), strict=True):
            yield {"prompt": prompt, "class": name, "seed": seed, "image": tables.encode(image)}


def frechet_distance(sample: Features, reference: Features) -> float:
    """Frechet distance of the Gaussians with the two sets' means and covariances (Heusel et al. 2017), nothing shrunk or projected.

    |mean difference|^2 + tr(S1) + tr(S2) - 2 tr((S1 S2)^(1/2)); the last trace is the sum of the singular values of R1 R2^T, where S = R^T
    R, exact also for singular covariances. Too large by about 1 / n: compare sets of equal size only. ValueError for fewer than two rows.
    """
    if min(len(sample), len(reference)) < 2:
        raise ValueError(f"Frechet distance: sets of {len(sample)} and {len(reference)} rows; accepted: at least 2")
    sets = [features.astype(np.float64) for features in (sample, reference)]
    first, second = (np.linalg.qr(rows - rows.mean(axis=0), mode="r") / np.sqrt(len(rows) - 1) for rows in sets)
    gap = np.square(sample.mean(axis=0, dtype=np.float64) - reference.mean(axis=0, dtype=np.float64)).sum()
    overlap = np.linalg.svd(first @ second.T, compute_uv=False).sum()
    return float(max(gap + np.square(first).sum() + np.square(second).sum() - 2 * overlap, 0.0))


def distance(features: Features, seeds: Int[np.ndarray, "rows"], reference: Features) -> Float[np.ndarray, "values"]:
    """The Frechet distance of all rows to the reference, followed by its values without each seed in turn."""
    return left_out(lambda rows: frechet_distance(features[rows], reference), seeds)


def nearest(features: Features, reference: Features) -> tuple[np.ndarray, np.ndarray]:
    """For every row the distance of its nearest reference, 1 - cosine, and its place."""
    away, place = NearestNeighbors(n_neighbors=1, algorithm="brute", metric="cosine").fit(reference).kneighbors(features)
    return away[:, 0], place[:, 0]


def neighbours(drawn: pd.DataFrame, features: Features, sides: dict[str, dict[str, Features]]) -> pd.DataFrame:
    """Nearest real image of every drawn one within its class, by side: `<side>` is the distance, 1 - cosine, `<side>_place` the image."""
    table = drawn[["prompt", "class", "seed"]].copy()
    for side, real in sides.items():
        for name, rows in table.groupby("class", sort=False).groups.items():
            table.loc[rows, side], table.loc[rows, f"{side}_place"] = nearest(features[rows], real[name])
        table[f"{side}_place"] = table[f"{side}_place"].astype(int)
    return table


def nearer(table: pd.DataFrame, side: str, other: str, *, confidence: float) -> dict:
    """Share of images that lie nearer to `side` than to `other`, ties as a half, with a jackknife interval over the seeds."""
    score = (1 + np.sign(table[other] - table[side]).to_numpy()) / 2
    return jackknife(left_out(lambda rows: score[rows].mean(), table["seed"].to_numpy()), len(table), confidence=confidence)


def left_out(statistic: Callable[[Mask], float], seeds: Int[np.ndarray, "rows"]) -> Float[np.ndarray, "values"]:
    """A statistic of all rows (given as a mask), followed by its values without each seed in turn."""
    return np.array([statistic(np.ones(len(seeds), bool)), *(statistic(seeds != seed) for seed in np.unique(seeds))])


def recognised(judge: Classifier, pictures: Pictures, classes: list[str]) -> Mask:
    """Whether the judge's first choice is each picture's class."""
    parts = [judge.logits(pictures[start : start + encoders.BATCH]) for start in range(0, len(pictures), encoders.BATCH)]
    return np.array([judge.labels[i] for i in torch.cat(parts).argmax(dim=1)]) == np.array(classes)


def jackknife(values: Float[np.ndarray, "values"], n: int, *, confidence: float) -> dict:
    """A record of the first value; its t interval is from the others, each without one seed: repeated rows of a bootstrap would bias it."""
    low, high = bootstrap.jackknifed(values, confidence)
    return {"n": n, "estimate": values[0], "low": low, "high": high}


def compare(
    drawn: pd.DataFrame,
    statistic: Callable[[str, np.ndarray], float],
    *,
    ratio: bool = False,
    highest: float | None = None,
    confidence: float,
) -> pd.DataFrame:
    """One row per class ("all" for all of them) and prompt, and one for the difference IN* minus text, which is paired by seed.

    `statistic` is of a class and the numbers of its rows; with `ratio` a last row has the quotient. Intervals of prompts end at 0 and
    `highest`.
    """
    seeds, records = drawn["seed"].to_numpy(), []
    for name in ["all", *dict.fromkeys(drawn["class"])]:
        cases = {}
        for prompt in WORDS:
            rows = np.flatnonzero((drawn["prompt"] == prompt) & ((drawn["class"] == name) | (name == "all")))
            parts = [rows, *(rows[seeds[rows] != seed] for seed in np.unique(seeds[rows]))]
            cases[prompt] = np.array([statistic(name, part) for part in parts])
        cases["difference"] = cases["in_star"] - cases["text"]
        cases |= {"ratio": cases["in_star"] / cases["text"]} if ratio else {}
        records += [
            {"class": name, "prompt": prompt, **jackknife(case, len(rows), confidence=confidence)} for prompt, case in cases.items()
        ]
    table = pd.DataFrame(records)
    prompts = table["prompt"] != "difference"
    table.loc[prompts, ["low", "high"]] = table.loc[prompts, ["low", "high"]].clip(0, highest)
    return table
