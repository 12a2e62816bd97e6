"""Shifts by text, the baselines of the sliders: two prompts, and directions among text embeddings (CNS-Bench section 3.2, suppl. H).

A text-based shift replaces the embedding c of the class prompt by c + w (t - c), t the embedding with the shift in it and w the weight.
"""

import dataclasses
import functools
import itertools
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from cnslib.core import recipes, tables, units, workers
from cnslib.core.names import UNSHIFTED
from cnslib.data import artifacts
from cnslib.method import generation, sliders
from cnslib.method.generation import Sampler
from cnslib.method.health import Judge
from cnslib.models import adapters, text_to_image
from cnslib.models.encoders import Oracle

SLIDER, PROMPTS, CLASS, END, WHOLE = "slider", "two prompts", "class token", "end tokens", "whole text"
TEXTUAL = (PROMPTS, CLASS, END, WHOLE)
METHODS = (SLIDER, *TEXTUAL)
FINER = (SLIDER, WHOLE)  # the two ways of turning the whole picture, which are looked at in finer steps too
Pictures = UInt8[np.ndarray, "scales height width 3"]
LOOKS = {
    "alignment": pa.Column(float),
    "structure": pa.Column(float, tables.COSINE),
    "class_probability": pa.Column(float, pa.Check.in_range(0, 1.0001)),
    "step": pa.Column(float, pa.Check.in_range(0, 2.0001)),
}
schema = tables.schema(["method", *tables.KEY], {"method": pa.Column(str, pa.Check.isin(METHODS)), **tables.IDENTITY, **LOOKS})
finer_schema = schema.remove_columns(["step"])


@dataclasses.dataclass(frozen=True)
class Study:
    """What text-based shifts are drawn with, the benchmark's images they are compared with, and the models that look at them."""

    sampler: Sampler
    origin: text_to_image.Origin
    judge: Judge
    oracle: Oracle
    images: Path  # of the generation step
    sliders: Path  # of the sliders' step
    folder: Path

    @cached_property
    def digest(self) -> str:
        """What all units have in common: sampling settings, base model and judges."""
        judges = self.judge.digest, self.oracle.digest, self.oracle.labels
        return units.digest(self.sampler.settings.drawn(), self.origin.base, judges)

    def beginning(self, classes: list[str], seeds: int) -> dict[str, Any]:
        """Where images are drawn, and what is drawn before the work is spread: the latents that all shifts share."""

        def common() -> tuple:
            self.sampler.prepare(sorted(classes), seeds=seeds)
            return ()

        return {"device": self.sampler.pipe.device, "common": common}

    def stored(self, images: UInt8[Tensor, "scales height width 3"]) -> Pictures:
        """Drawn images as they come back from the benchmark's tables: what a JPEG of its quality leaves of them, and all of it at 0."""
        quality = self.sampler.settings.quality
        kept = [tables.decode(tables.encode(picture, quality=quality), "a picture") for picture in images.numpy()]
        return np.stack(kept) if quality else images.numpy()


def target(sampler: Sampler, shift: str, name: str, method: str) -> Float[Tensor, "tokens width"]:
    """The text embedding at weight 1: what each method makes of the two prompts "c" and "c in shift".

    "two prompts" and "whole text" take the second one. "class token" adds, to the word of the class alone, the difference of the last words
    (Baumann et al. 2024, the naive direction); "end tokens" does so with the end tokens and the padding.
    """
    texts = sliders.prompts(shift, name, texts={})
    plain, shifted = text_to_image.embed(sampler.pipe, list(texts))
    if method in (PROMPTS, WHOLE):
        return shifted
    end, other_end = (len(sampler.pipe.tokenizer(text).input_ids) - 1 for text in texts)
    moved = plain.clone()
    if method == CLASS:
        moved[end - 1] += shifted[other_end - 1] - plain[end - 1]
    else:
        moved[end:] += shifted[other_end] - plain[end]
    return moved


def contexts(sampler: Sampler, shift: str, name: str, method: str, weights: list[float]) -> Float[Tensor, "contexts tokens width"]:
    """Embeddings of the negative prompt, once per weight (only with guidance), then of the class prompt moved by each weight."""
    *negative, plain = sampler.text(name)
    end = target(sampler, shift, name, method)
    return torch.stack([row for row in negative for _ in weights] + [torch.lerp(plain, end, weight) for weight in weights])


@torch.no_grad()
def shifted(
    sampler: Sampler, shift: str, name: str, seed: int, method: str, weights: list[float]
) -> UInt8[Tensor, "weights height width 3"]:
    """The images of one trajectory at several weights, in one batch: two prompts from the first step on, others where a slider begins."""
    early = method == PROMPTS or not len(sampler.early)
    start = text_to_image.initial_latent(sampler.pipe, seed) if early else sampler.start(name, [seed])
    latents, context = start.repeat(len(weights), 1, 1, 1), contexts(sampler, shift, name, method, weights)
    return sampler.decode(sampler.walk(latents, context, sampler.unused.timesteps if early else sampler.late))


def grid(method: str, scales: list[float]) -> list[float]:
    """The scales above 0 at which a method is looked at: two prompts know but one."""
    return [1.0] if method == PROMPTS else [scale for scale in scales if scale > 0]


def benchmark(images: Path, shift: str, classes: list[str], *, scales: list[float], seeds: int) -> dict[str, pd.DataFrame]:
    """The benchmark's images of each class in one shift at these scales, 0 included, and the first seeds; ValueError names gaps."""
    table = tables.trajectories(pd.concat([artifacts.images(images, part) for part in (UNSHIFTED, shift)]), [shift])
    chosen = table[table["seed"].le(seeds) & table["scale"].isin(scales)].sort_values(["seed", "scale"])
    wanted = list(itertools.product(range(1, seeds + 1), scales))
    by_class = {name: chosen[chosen["class"] == name].reset_index(drop=True) for name in classes}
    return {name: tables.complete(rows, wanted, ["seed", "scale"], f"images of {name!r}") for name, rows in by_class.items()}


def stamp(study: Study, shift: str, name: str, images: pd.DataFrame) -> str:
    """What a unit depends on: the study, its prompts and class token, and the benchmark's images beside it."""
    digests = [[int(row.seed), float(row.scale), units.digest(row.image.hex())] for row in images.itertuples()]
    return recipes.DIRECTIONS.stamp(study.digest, sliders.prompts(shift, name, texts={}), study.origin.tokens[name], digests)


def score(
    study: Study, shifts: list[str], classes: list[str], *, scales: list[float], seeds: int, finer: list[float] | None = None
) -> pd.DataFrame:
    """One row per method, trajectory and scale, 0 included; draws what is missing or outdated, a unit per (shift, class).

    The sliders' images are the benchmark's own. With `finer`, FINER at these scales, without scale 0 and `step`.
    """
    images, stamps = {}, {}
    for shift in shifts:
        for name, rows in benchmark(study.images, shift, classes, scales=[0.0] if finer else scales, seeds=seeds).items():
            images[shift, name], made_from = rows, stamp(study, shift, name, rows)
            if finer:
                slider = adapters.file_digest(sliders.slider_path(study.sliders, shift, name))
                made_from = recipes.DIRECTIONS.stamp(made_from, FINER, slider, finer)
            stamps[shift, name] = made_from
    rows = functools.partial(trajectories, study, images, finer=finer)
    how: dict = {"folder": study.folder / ("finer" if finer else "scores"), "file": units.file_below, "pattern": "*/*.parquet"}
    return workers.stored(stamps, rows, finer_schema if finer else schema, **how, **study.beginning(classes, seeds))


def trajectories(study: Study, images: dict[tuple, pd.DataFrame], key: tuple[str, str], *, finer: list[float] | None) -> pd.DataFrame:
    """The scores of all trajectories of a shift and class by every method, or by FINER at further scales."""
    rows, (shift, name) = [], key
    for (seed, images_of_seed), method in itertools.product(images[key].groupby("seed"), FINER if finer else METHODS):
        stored, scales = tables.pictures(images_of_seed, "benchmark"), finer or grid(method, images_of_seed["scale"].tolist())
        drawn = stored[1:] if method == SLIDER and not finer else draw(study, shift, name, int(seed), method, scales)
        place = {"method": method, "shift": shift, "class": name, "seed": seed, "scale": [0.0, *scales]}
        scores = pd.DataFrame({**place, **looks(study, np.concatenate([stored[:1], drawn]), shift, name)})
        rows.append(scores[1:].drop(columns="step") if finer else scores)
    return pd.concat(rows)


def draw(study: Study, shift: str, name: str, seed: int, method: str, scales: list[float]) -> Pictures:
    """The images of one trajectory by any method, as the benchmark stores them."""
    if method != SLIDER:
        return study.stored(shifted(study.sampler, shift, name, seed, method, scales))
    with adapters.loaded(study.sampler.pipe, sliders.slider_path(study.sliders, shift, name)):
        return study.stored(study.sampler.shifted(name, seed, scales))


def looks(study: Study, pictures: Pictures, shift: str, name: str) -> dict[str, np.ndarray]:
    """What the judges see along a trajectory that begins with its unshifted picture, as columns.

    `structure` is the cosine with the first picture, `step` the distance of the unit features from the picture before.
    """
    features = study.judge.image_encoder.features(pictures)
    columns = {
        "alignment": study.judge.alignment(pictures, shift, name),
        "structure": features @ features[0],
        "class_probability": study.oracle.class_probability(pictures)[:, study.oracle.labels.index(name)],
        "step": torch.cat([torch.zeros(1), (features[1:] - features[:-1]).norm(dim=1)]),
    }
    return {key: value.double().numpy().round(6) for key, value in columns.items()}


def films(study: Study, key: tuple[str, str, int], *, scales: list[float]) -> dict[str, Pictures]:
    """Pictures of one trajectory (shift, class, seed) by every method, as `score` saw them; kept on file, since a figure shows them."""
    shift, name, seed = key[0], key[1], int(key[2])  # a table's number, which torch does not take for a seed
    images = benchmark(study.images, shift, [name], scales=scales, seeds=seed)[name].query("seed == @seed")
    made_from = {method: recipes.DIRECTIONS.stamp(method, stamp(study, shift, name, images)) for method in METHODS}
    shelf = units.Shelf(
        study.folder / "pictures", {method: (units.file_of((method, *key)), digest) for method, digest in made_from.items()}
    )
    for method in shelf.waiting():
        film = images
        if method != SLIDER:
            drawn = shifted(study.sampler, shift, name, seed, method, grid(method, scales))
            rows = generation.rows(shift, name, seed, grid(method, scales), drawn, quality=study.sampler.settings.quality)
            film = pd.concat([images[:1], pd.DataFrame(rows)], ignore_index=True)
        tables.write_unit(film, shelf[method], tables.images)
    return {method: tables.pictures(tables.read(path, tables.images), path.name) for method, path in shelf.paths.items()}
