"""Shifts by text, the baselines of the sliders: two prompts, and directions among text embeddings (CNS-Bench section 3.2, suppl. H).

A text-based shift replaces the embedding c of the class prompt by c + w (t - c), where t is the embedding with the shift in it and w
the weight. The methods differ in t, and in when the walk begins. All draw the same trajectories, which three judges look at.
"""

import dataclasses
import itertools
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from cnslib.core import paths, recipes, tables, units, workers
from cnslib.core.names import UNSHIFTED, demand, identifier
from cnslib.core.settings.read import Run
from cnslib.data import artifacts
from cnslib.method import generation, sliders
from cnslib.method.generation import Sampler
from cnslib.method.health import Judge
from cnslib.models import adapters, text_to_image
from cnslib.models.encoders import Clip, ImageEncoder, Oracle, read_labels

SLIDER, PROMPTS, CLASS, END, WHOLE = "slider", "two prompts", "class token", "end tokens", "whole text"
TEXTUAL = (PROMPTS, CLASS, END, WHOLE)
METHODS = (SLIDER, *TEXTUAL)
FINER = (SLIDER, WHOLE)  # the two ways of turning the whole picture, which are looked at in finer steps too
Pictures = UInt8[np.ndarray, "scales height width 3"]
LOOKS = {
    "alignment": pa.Column(float),
    "structure": pa.Column(float, tables.COSINE),
    "class_probability": pa.Column(float, pa.Check.in_range(0, 1.0001)),
}
NAMED = {"method": pa.Column(str, pa.Check.isin(METHODS)), **tables.IDENTITY}
finer_schema = tables.schema(["method", *tables.KEY], {**NAMED, **LOOKS})
schema = tables.schema(["method", *tables.KEY], {**NAMED, **LOOKS, "step": pa.Column(float, pa.Check.in_range(0, 2.0001))})


@dataclasses.dataclass(frozen=True)
class Study:
    """What text-based shifts are drawn with, the benchmark's images they are compared with, and who looks at them."""

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
        drawn = self.sampler.settings.drawn()
        judges = self.judge.digest, self.oracle.digest, self.oracle.labels
        return units.digest(drawn, self.origin.base, judges)


def opened(run: Run) -> Study:
    """The study that a notebook's parameters describe: the pipeline with its class tokens, the judges, and the folders."""
    base, layout = run.base, run.layout
    folder, tokens = paths.resolve(base.pipeline), layout.artifacts("inversion")
    pipe = text_to_image.load_pipeline(folder, base.device)
    text_to_image.load_tokens(pipe, tokens, base.classes)
    judge = Judge(Clip(base.clip, device=base.device), ImageEncoder(base.image_encoder, device=base.device))
    oracle = Oracle(base.oracle, labels=read_labels(base.labels), device=base.device)
    origin, sampler = text_to_image.origin(folder, tokens, base.classes), Sampler(pipe, settings=run.generation)
    images, sliders = layout.artifacts("generation"), layout.artifacts("sliders")
    return Study(sampler, origin, judge, oracle, images, sliders, layout.artifacts(run.step))


def target(sampler: Sampler, shift: str, name: str, method: str) -> Float[Tensor, "tokens width"]:
    """The text embedding at weight 1: what each method makes of the two prompts "c" and "c in shift".

    "two prompts" and "whole text" take the second one. "class token" adds, to the word of the class alone, the difference between
    the last words of both (Baumann et al. 2024, the naive direction); "end tokens" does so with the end tokens and the padding.
    """
    demand(method in TEXTUAL, "method", method, ", ".join(TEXTUAL))
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
    """Embeddings of the negative prompt, once per weight (only with guidance), then of the class prompt moved by each weight.

    Weight 0 is the class prompt and weight 1 the target, both bit for bit.
    """
    *negative, plain = sampler.text(name)
    end = target(sampler, shift, name, method)
    moved = [torch.lerp(plain, end, weight) for weight in weights]
    return torch.stack([row for row in negative for _ in weights] + moved)


def distances(sampler: Sampler, shifts: list[str], name: str) -> pd.DataFrame:
    """How far the target of each method lies from the class prompt, and in how many tokens, under each shift."""
    plain = sampler.text(name)[-1]
    moved = {method: [(target(sampler, shift, name, method) - plain).norm(dim=-1) for shift in shifts] for method in TEXTUAL}
    lengths = pd.DataFrame({method: [row.norm().item() for row in rows] for method, rows in moved.items()}, index=shifts)
    counts = pd.DataFrame({method: [row.count_nonzero().item() for row in rows] for method, rows in moved.items()}, index=shifts)
    return pd.concat({"distance": lengths, "tokens moved": counts}, axis=1)


@torch.no_grad()
def shifted(
    sampler: Sampler, shift: str, name: str, seed: int, method: str, weights: list[float]
) -> UInt8[Tensor, "weights height width 3"]:
    """The images of one trajectory at several weights, in one batch.

    "two prompts" has the shift in the prompt from the first step on, as the paper has it; the others begin where a slider does.
    """
    early = 0 if method == PROMPTS else generation.steps_without_slider(sampler.settings)
    start = sampler.start(name, [seed]) if early else text_to_image.initial_latent(sampler.pipe, seed)
    latents = start.repeat(len(weights), 1, 1, 1)
    context = contexts(sampler, shift, name, method, weights)
    return text_to_image.decode(sampler.pipe, sampler.walk(latents, context, sampler.scheduler.timesteps[early:]))


def drawn(study: Study, shift: str, name: str, seed: int, method: str, weights: list[float]) -> Pictures:
    """`shifted`, as the benchmark stores its images: beside these, a picture without the marks of a JPEG would be another kind."""
    images = shifted(study.sampler, shift, name, seed, method, weights).numpy()
    return tables.stored(images, quality=study.sampler.settings.quality)


def grid(method: str, scales: list[float]) -> list[float]:
    """The scales above 0 at which a method is looked at: two prompts know but one."""
    return [1.0] if method == PROMPTS else [scale for scale in scales if scale > 0]


def score(study: Study, shifts: list[str], classes: list[str], *, scales: list[float], seeds: int) -> pd.DataFrame:
    """One row per method, trajectory and scale, 0 included; draws what is missing or outdated, a unit per (shift, class).

    The sliders' images are the benchmark's own. Raises FileNotFoundError or ValueError where they lack one.
    """
    stored = {shift: benchmark(study.images, shift) for shift in shifts}
    keys = list(itertools.product(shifts, classes))
    own = {key: own_rows(stored[key[0]], key[1], scales=scales, seeds=seeds) for key in keys}
    files = {key: (unit_name(*key), stamp(study, *key, own[key])) for key in keys}
    shelf = units.Shelf(study.folder / "scores", files, "*/*.parquet")
    waiting = shelf.waiting()
    study.sampler.prepare(sorted({name for _, name in waiting}), seeds=seeds)
    pieces = [(study, *key, own[key], shelf[key]) for key in waiting]
    workers.each(measure, pieces, device=study.sampler.pipe.device, desc="directions")
    return tables.read_units(shelf, schema)


def benchmark(images: Path, shift: str) -> pd.DataFrame:
    """The benchmark's images of one shift, scale 0 included."""
    parts = [artifacts.images(images, name) for name in (UNSHIFTED, shift)]
    return tables.trajectories(pd.concat(parts), [shift])


def own_rows(stored: pd.DataFrame, name: str, *, scales: list[float], seeds: int) -> pd.DataFrame:
    """The stored images of one class at these scales and the first seeds, ordered; ValueError names what is missing."""
    chosen = stored["class"].eq(name) & stored["seed"].le(seeds) & stored["scale"].isin(scales)
    rows = stored[chosen].sort_values(["seed", "scale"], ignore_index=True)
    wanted = itertools.product(range(1, seeds + 1), scales)
    return tables.complete(rows, wanted, ["seed", "scale"], f"images of {name!r}")


def unit_name(shift: str, name: str) -> str:
    """Where the scores of a shift and a class are kept below their folder."""
    return f"{identifier(shift)}/{identifier(name)}.parquet"


def stamp(study: Study, shift: str, name: str, own: pd.DataFrame) -> str:
    """What a unit depends on: the study, its prompts and class token, and the benchmark's images beside it."""
    seen = [[int(row.seed), float(row.scale), units.digest(row.image.hex())] for row in own.itertuples()]
    return recipes.DIRECTIONS.stamp(study.digest, sliders.prompts(shift, name, texts={}), study.origin.tokens[name], seen)


def measure(study: Study, shift: str, name: str, own: pd.DataFrame, unit: units.Unit) -> None:
    """Writes the scores of one shift and class."""
    rows = [rows for seed, part in own.groupby("seed") for rows in trajectories(study, shift, name, int(seed), part)]
    tables.write_unit(pd.concat(rows), unit, schema)


def trajectories(study: Study, shift: str, name: str, seed: int, own: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """The scores of one trajectory by every method."""
    stored, scales = tables.pictures(own, "benchmark"), own["scale"].tolist()
    key = {"shift": shift, "class": name, "seed": seed}
    for method in METHODS:
        found = [0.0, *grid(method, scales)]
        pictures = stored if method == SLIDER else np.concatenate([stored[:1], drawn(study, shift, name, seed, method, found[1:])])
        yield pd.DataFrame({"method": method, **key, "scale": found, **looks(study, pictures, shift, name)})


def looks(study: Study, pictures: Pictures, shift: str, name: str) -> dict[str, np.ndarray]:
    """What the judges see along a trajectory that begins with its unshifted picture.

    `alignment` with the shift, `structure` kept (cosine with the first picture), `step` from the picture before (distance of the
    features of length 1), and the oracle's probability of the class.
    """
    features = study.judge.image_encoder.features(pictures)
    step = torch.cat([torch.zeros(1), (features[1:] - features[:-1]).norm(dim=1)])
    probability = study.oracle.class_probability(pictures)[:, study.oracle.labels.index(name)]
    columns = {"alignment": study.judge.alignment(pictures, shift, name), "structure": features @ features[0], "step": step}
    columns["class_probability"] = probability
    return {key: value.double().numpy().round(6) for key, value in columns.items()}


def unmoved(study: Study, shift: str, name: str) -> pd.Series:
    """The largest difference in grey levels from the benchmark's unshifted picture at weight 0 of every text."""
    own = own_rows(benchmark(study.images, shift), name, scales=[0.0], seeds=1)
    stored = tables.pictures(own, UNSHIFTED).astype(int)
    again = {method: drawn(study, shift, name, 1, method, [0.0]) for method in TEXTUAL}
    largest = {method: abs(picture - stored).max() for method, picture in again.items()}
    return pd.Series(largest, name="largest difference in grey levels")


def finer(study: Study, shifts: list[str], classes: list[str], *, scales: list[float], seeds: int) -> pd.DataFrame:
    """What the judges see at further scales of the sliders and weights of the texts, a row per method of FINER, trajectory and scale.

    The columns are those of `score` without `step`, and scale 0 is not among the rows. Draws what is missing or outdated, a unit per
    (shift, class). Raises FileNotFoundError for a missing slider, ValueError where the benchmark lacks an unshifted image.
    """
    stored = {shift: benchmark(study.images, shift) for shift in shifts}
    keys = list(itertools.product(shifts, classes))
    own = {key: own_rows(stored[key[0]], key[1], scales=[0.0], seeds=seeds) for key in keys}
    files = {key: (unit_name(*key), finer_stamp(study, *key, own[key], scales)) for key in keys}
    shelf = units.Shelf(study.folder / "finer", files, "*/*.parquet")
    waiting = shelf.waiting()
    study.sampler.prepare(sorted({name for _, name in waiting}), seeds=seeds)
    pieces = [(study, *key, own[key], scales, shelf[key]) for key in waiting]
    workers.each(measure_finer, pieces, device=study.sampler.pipe.device, desc="finer")
    return tables.read_units(shelf, finer_schema)


def finer_stamp(study: Study, shift: str, name: str, own: pd.DataFrame, scales: list[float]) -> str:
    """What a unit of `finer` depends on: what `score` depends on, the slider, and the scales."""
    slider = adapters.file_digest(sliders.slider_path(study.sliders, shift, name))
    return recipes.DIRECTIONS.stamp(stamp(study, shift, name, own), FINER, slider, scales)


def measure_finer(study: Study, shift: str, name: str, own: pd.DataFrame, scales: list[float], unit: units.Unit) -> None:
    """Writes what is seen at further scales of one shift and class."""
    parts, starts = [], tables.pictures(own, "benchmark")
    for start, seed in zip(starts, own["seed"].tolist(), strict=True):
        for method in FINER:
            pictures = np.concatenate([start[None], turned(study, shift, name, seed, method, scales)])
            seen = pd.DataFrame({"method": method, "shift": shift, "class": name, "seed": seed, "scale": [0.0, *scales]})
            parts.append(seen.assign(**looks(study, pictures, shift, name)).iloc[1:])
    tables.write_unit(pd.concat(parts)[list(finer_schema.columns)], unit, finer_schema)


def turned(study: Study, shift: str, name: str, seed: int, method: str, scales: list[float]) -> Pictures:
    """The images of one trajectory by a method of FINER, as the benchmark stores them."""
    if method != SLIDER:
        return drawn(study, shift, name, seed, method, scales)
    with adapters.loaded(study.sampler.pipe, sliders.slider_path(study.sliders, shift, name)):
        images = study.sampler.shifted(name, seed, scales).numpy()
    return tables.stored(images, quality=study.sampler.settings.quality)


def films(study: Study, asked: list[tuple[str, str, str, int]], *, scales: list[float]) -> dict[tuple[str, str, str, int], Pictures]:
    """Pictures of some (method, shift, class, seed) from scale 0 on, as `score` saw them; kept on file, since figures show them."""
    own, files = {}, {}
    for key in asked:
        method, shift, name, seed = key
        own[key] = own_rows(benchmark(study.images, shift), name, scales=scales, seeds=seed).query("seed == @seed")
        made_from = recipes.DIRECTIONS.stamp(method, stamp(study, shift, name, own[key]))
        files[key] = f"{identifier('_'.join(map(str, key)))}.parquet", made_from
    shelf = units.Shelf(study.folder / "pictures", files)
    for key in shelf.waiting():
        tables.write_unit(film(study, key[0], own[key]), shelf[key], tables.images)
    return {key: tables.pictures(tables.read(path, tables.images), path.name) for key, path in shelf.paths.items()}


def film(study: Study, method: str, own: pd.DataFrame) -> pd.DataFrame:
    """The images of one trajectory by one method, given the benchmark's."""
    if method == SLIDER:
        return own
    shift, name, seed = own[tables.TRAJECTORY].iloc[0]
    found = grid(method, own["scale"].tolist())
    images = shifted(study.sampler, shift, name, int(seed), method, found)
    rows = generation.rows(shift, name, int(seed), found, images, quality=study.sampler.settings.quality)
    return pd.concat([own[:1], pd.DataFrame(rows)], ignore_index=True)
