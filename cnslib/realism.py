"""How close generated images come to the catalog: Frechet distance and a classifier's accuracy (CNS-Bench section 4.1, Table 2a)."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
import torch
from diffusers import StableDiffusionPipeline
from jaxtyping import Bool, Float, Int, UInt8
from scipy import stats
from torch import Tensor
from tqdm.auto import tqdm

from cnslib import encoders, inversion, models, tables, units
from cnslib.classifiers import Classifier
from cnslib.config import Inversion, identifier

WORDS = {"text": str, "in_star": inversion.token}  # what a prompt calls a class: by its name, or by its IN* token
DRAWN = 20  # images per pipeline call
schema = tables.schema(
    ["prompt", "class", "seed"],
    {"prompt": pa.Column(str, pa.Check.isin(WORDS)), "class": pa.Column(str), "seed": pa.Column("int64"), "image": pa.Column(object)},
)


def draw_all(
    pipe: StableDiffusionPipeline, classes: list[str], *, settings: Inversion, origin: models.Origin, folder: Path
) -> pd.DataFrame:
    """Images of each class, by name and by token, seeds 1 to `validation_images`; draws the classes that are missing or outdated."""
    paths = {name: folder / f"{identifier(name)}.parquet" for name in classes}
    units.prune(folder, {path.name for path in paths.values()}, "*.parquet")
    for name, path in tqdm(paths.items(), desc="comparison", disable=None):
        drawn = settings.validation_images, settings.sampling_steps, settings.guidance
        code = units.code_digest(sys.modules[__name__], models)
        made_from = units.digest(name, inversion.PROMPT, drawn, origin.base, origin.tokens[name], code)
        if not units.done(path, made_from):
            tables.write(pd.DataFrame(rows(pipe, name, settings=settings)), path, schema)
            units.finish(path, made_from)
    return pd.concat([tables.read(path, schema) for path in paths.values()], ignore_index=True)


def rows(pipe: StableDiffusionPipeline, name: str, *, settings: Inversion) -> list[dict]:
    """One row per prompt and seed of a class; both prompts start from the same noise."""
    found = []
    for prompt, word in WORDS.items():
        images = draw(pipe, inversion.PROMPT.format(token=word(name)), settings=settings)
        found += [{"prompt": prompt, "class": name, "seed": seed, "image": tables.encode(i)} for seed, i in enumerate(images.numpy(), 1)]
    return found


def draw(pipe: StableDiffusionPipeline, prompt: str, *, settings: Inversion) -> UInt8[Tensor, "images height width 3"]:
    """Images of one prompt from the plain pipeline; image i starts from the noise of seed i + 1."""
    parts = []
    for start in range(1, settings.validation_images + 1, DRAWN):
        numbers = range(start, min(start + DRAWN, settings.validation_images + 1))
        latents = pipe(
            [prompt] * len(numbers),
            generator=[torch.Generator().manual_seed(number) for number in numbers],
            num_inference_steps=settings.sampling_steps,
            guidance_scale=settings.guidance,
            output_type="latent",
        ).images
        parts.append(models.decode(pipe, latents))
    return torch.cat(parts)


def frechet_distance(sample: Float[np.ndarray, "n features"], reference: Float[np.ndarray, "m features"]) -> float:
    """Frechet distance of the Gaussians with the two sets' means and covariances (Heusel et al. 2017).

    |mean difference|^2 + tr(S1) + tr(S2) - 2 tr((S1 S2)^(1/2)), nothing shrunk or projected. The last trace is the sum of the
    singular values of R1 R2^T, where S = R^T R: exact also for sets smaller than their dimension, whose covariances are singular
    and for which a matrix root is unstable. The estimate is too large by about 1 / n, so compare sets of equal size only.
    Raises ValueError for a set of fewer than two rows.
    """
    if min(len(sample), len(reference)) < 2:
        raise ValueError(f"Frechet distance: sets of {len(sample)} and {len(reference)} rows; accepted: at least 2")
    first, second = (root_covariance(features.astype(np.float64)) for features in (sample, reference))
    gap = np.square(sample.mean(axis=0, dtype=np.float64) - reference.mean(axis=0, dtype=np.float64)).sum()
    overlap = np.linalg.svd(first @ second.T, compute_uv=False).sum()
    return float(max(gap + np.square(first).sum() + np.square(second).sum() - 2 * overlap, 0.0))


def root_covariance(features: Float[np.ndarray, "n features"]) -> Float[np.ndarray, "k features"]:
    """R of the covariance S = R^T R, from the triangular factor of the centred rows."""
    return np.linalg.qr(features - features.mean(axis=0), mode="r") / np.sqrt(len(features) - 1)


def frechet_table(
    drawn: pd.DataFrame, features: Float[np.ndarray, "rows features"], references: dict[str, Float[np.ndarray, "m features"]]
) -> pd.DataFrame:
    """Frechet distance of the drawn images to the references of their class, and of all classes ("all"); see `compare`."""
    known = {"all": np.concatenate(list(references.values()))} | references
    return compare(drawn, list(references), lambda name, rows: frechet_distance(features[rows], known[name]))


def named(judge: Classifier, pictures: UInt8[np.ndarray, "rows height width 3"], classes: list[str]) -> Bool[np.ndarray, "rows"]:
    """Whether the judge's first choice is each picture's class."""
    parts = [judge.logits(pictures[start : start + encoders.BATCH]) for start in range(0, len(pictures), encoders.BATCH)]
    return np.array([judge.labels[i] for i in torch.cat(parts).argmax(dim=1)]) == np.array(classes)


def accuracy_table(drawn: pd.DataFrame, correct: Bool[np.ndarray, "rows"]) -> pd.DataFrame:
    """Share of drawn images whose class the judge names, by class and of all classes ("all"); see `compare`."""
    classes = list(dict.fromkeys(drawn["class"]))
    table = compare(drawn, classes, lambda name, rows: correct[rows].mean())
    shares = table["prompt"] != "difference"
    table.loc[shares, ["low", "high"]] = table.loc[shares, ["low", "high"]].clip(0, 1)
    return table


def compare(drawn: pd.DataFrame, classes: list[str], statistic: Callable[[str, np.ndarray], float]) -> pd.DataFrame:
    """A statistic of (class, row numbers) for each prompt, and its difference IN* minus text, which is paired by seed."""
    found = []
    for name in ["all", *classes]:
        values = {}
        for prompt in WORDS:
            rows = np.flatnonzero((drawn["prompt"] == prompt) & ((drawn["class"] == name) | (name == "all")))
            values[prompt] = left_out(partial(statistic, name), rows, drawn["seed"].to_numpy()[rows])
        values["difference"] = values["in_star"] - values["text"]
        found += [{"class": name, "prompt": prompt, **jackknife(value, len(rows))} for prompt, value in values.items()]
    return pd.DataFrame(found)


def left_out(
    statistic: Callable[[np.ndarray], float], rows: Int[np.ndarray, "rows"], seeds: Int[np.ndarray, "rows"]
) -> Float[np.ndarray, "values"]:
    """A statistic of all rows, followed by its values without each seed in turn."""
    return np.array([statistic(rows), *(statistic(rows[seeds != seed]) for seed in np.unique(seeds))])


def jackknife(values: Float[np.ndarray, "values"], n: int, *, confidence: float = 0.95) -> dict:
    """A record of the first value; its t interval is from the others, each without one seed (Efron and Tibshirani 1993, ch. 11).

    The bootstrap would not do: repeated rows look like a smaller sample, and the distance grows with that.
    """
    estimate, left_out = values[0], values[1:]
    spread = np.sqrt((len(left_out) - 1) * left_out.var())
    half = spread * stats.t.ppf((1 + confidence) / 2, len(left_out) - 1)
    return {"n": n, "estimate": estimate, "low": estimate - half, "high": estimate + half}
