"""Shifts by text, the baselines of the sliders: two prompts, and directions among text embeddings (CNS-Bench section 3.2, suppl. H).

A text-based shift replaces the embedding c of the class prompt by c + w (t - c), where t is the embedding with the shift in it and w
the weight. The methods differ in t, and in when the walk begins. Of every method is measured what it makes of a trajectory: shift gained,
structure kept, gradualness, class kept (Figs. 2 and 3 of the submission). All are compared on the same trajectories, so differences are
paired.
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

from cnslib.core import kinds, tables, units, workers
from cnslib.core.names import UNSHIFTED, demand, identifier
from cnslib.core.settings.method import Bootstrap
from cnslib.data import artifacts
from cnslib.method import generation, sliders
from cnslib.method.generation import Sampler
from cnslib.method.health import Judge
from cnslib.models import text_to_image
from cnslib.models.encoders import Oracle
from cnslib.stats import bootstrap

SLIDER, PROMPTS, CLASS, END, WHOLE = "slider", "two prompts", "class token", "end tokens", "whole text"
TEXTUAL = (PROMPTS, CLASS, END, WHOLE)
METHODS = (SLIDER, *TEXTUAL)
Pictures = UInt8[np.ndarray, "scales height width 3"]
schema = tables.schema(
    ["method", *tables.KEY],
    {
        "method": pa.Column(str, pa.Check.isin(METHODS)),
        **tables.IDENTITY,
        "alignment": pa.Column(float),
        "structure": pa.Column(float, tables.COSINE),
        "step": pa.Column(float, pa.Check.in_range(0, 2.0001)),
        "class_probability": pa.Column(float, pa.Check.in_range(0, 1.0001)),
    },
)


@dataclasses.dataclass(frozen=True)
class Study:
    """What text-based shifts are drawn with, the benchmark's images they are compared with, and who looks at them."""

    sampler: Sampler
    origin: text_to_image.Origin
    judge: Judge
    oracle: Oracle
    images: Path  # of the generation step
    folder: Path

    @cached_property
    def digest(self) -> str:
        """What all units have in common: sampling settings, base model and judges."""
        drawn = {key: value for key, value in dataclasses.asdict(self.sampler.settings).items() if key != "guidances"}
        judges = self.judge.digest, self.oracle.digest, self.oracle.labels
        return units.digest(drawn, self.origin.base, judges)


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


def denoise(sampler: Sampler, latents: Tensor, context: Tensor, timesteps: Tensor) -> Float[Tensor, "batch channels height width"]:
    """`Sampler.denoise` with a text of its own for every sample of the batch."""
    passes = len(context) // len(latents)
    for timestep in timesteps:
        output = sampler.pipe.unet(latents.repeat(passes, 1, 1, 1), timestep, context).sample
        plain, *guided = output.chunk(passes)
        for conditional in guided:
            plain = plain + sampler.settings.guidance * (conditional - plain)
        latents = sampler.scheduler.step(plain, timestep, latents).prev_sample
    return latents


@torch.no_grad()
def shifted(
    sampler: Sampler, shift: str, name: str, seed: int, method: str, weights: list[float]
) -> UInt8[Tensor, "weights height width 3"]:
    """The images of one trajectory at several weights, in one batch.

    "two prompts" has the shift in the prompt from the first step on, as the paper has it; the others begin where a slider does.
    """
    early = 0 if method == PROMPTS else generation.steps_without_slider(sampler.settings)
    start = sampler.prefix(name, seed) if early else text_to_image.initial_latent(sampler.pipe, seed)
    latents = start.repeat(len(weights), 1, 1, 1)
    context = contexts(sampler, shift, name, method, weights)
    return text_to_image.decode(sampler.pipe, denoise(sampler, latents, context, sampler.scheduler.timesteps[early:]))


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


def stamp(study: Study, shift: str, name: str, own: pd.DataFrame) -> units.Stamp:
    """What a unit depends on: the study, its prompts and class token, and the benchmark's images beside it."""
    seen = [[int(row.seed), float(row.scale), units.digest(row.image.hex())] for row in own.itertuples()]
    return kinds.DIRECTIONS.stamp(study.digest, sliders.prompts(shift, name, texts={}), study.origin.tokens[name], seen)


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
        drawn = stored[1:] if method == SLIDER else shifted(study.sampler, shift, name, seed, method, found[1:]).numpy()
        pictures = np.concatenate([stored[:1], drawn])
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


def films(study: Study, asked: list[tuple[str, str, str, int]], *, scales: list[float]) -> dict[tuple[str, str, str, int], Pictures]:
    """Pictures of some (method, shift, class, seed) from scale 0 on, as `score` saw them; kept on file, since figures show them."""
    own, files = {}, {}
    for key in asked:
        method, shift, name, seed = key
        own[key] = own_rows(benchmark(study.images, shift), name, scales=scales, seeds=seed).query("seed == @seed")
        made_from = kinds.DIRECTIONS.stamp(method, stamp(study, shift, name, own[key]))
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
    drawn = shifted(study.sampler, shift, name, int(seed), method, found)
    return pd.concat([own[:1], pd.DataFrame(generation.rows(shift, name, int(seed), found, drawn))], ignore_index=True)


OWN = ["method", *tables.TRAJECTORY]
MEASURES = {
    "gain": "alignment gained at the last scale",
    "rising": "share of steps that raise the alignment",
    "structure": "structure kept at the last scale",
    "largest": "share of the way that the largest step makes",
    "class_kept": "class kept at the last scale",
}


def gains(scores: pd.DataFrame) -> pd.DataFrame:
    """The scores in order, with `gain`, the alignment beyond that of scale 0."""
    ordered = scores.sort_values([*OWN, "scale"], ignore_index=True)
    return ordered.assign(gain=ordered["alignment"] - ordered.groupby(OWN)["alignment"].transform("first"))


def per_trajectory(scores: pd.DataFrame, *, labels: int) -> pd.DataFrame:
    """One row per method and trajectory with the columns of MEASURES.

    The class is kept where the oracle gives it at least chance, 1 / labels; a trajectory that did not start so has no value. The
    largest step is measured in the image encoder's features: 1 where all happens at once, 1 / steps where all steps are equal.
    """
    ordered = gains(scores)
    groups = ordered.groupby(OWN)
    first, last = groups.first(), groups.last()
    table = last[["gain", "structure"]].assign(largest=groups["step"].max() / groups["step"].sum())
    rise = groups["alignment"].diff()
    table["rising"] = (rise > 0)[rise.notna()].groupby([ordered[key] for key in OWN]).mean()
    kept = (last["class_probability"] >= 1 / labels).astype(float)
    return table.assign(class_kept=kept.where(first["class_probability"] >= 1 / labels)).reset_index()


def matched(scores: pd.DataFrame, *, labels: int) -> pd.DataFrame:
    """Structure and class of each method at its first scale that gains as much alignment as two prompts do, per trajectory.

    Only trajectories in which two prompts gain anything; `reached` says whether the method gets there, and one that does not has
    neither structure nor class. The class is counted as in `per_trajectory`.
    """
    ordered = gains(scores)
    prompts = ordered[(ordered["method"] == PROMPTS) & (ordered["scale"] > 0) & (ordered["gain"] > 0)]
    asked = ordered.merge(prompts[[*tables.TRAJECTORY, "gain"]], on=tables.TRAJECTORY, suffixes=("", "_asked"))
    start = asked.groupby(OWN)["class_probability"].transform("first")
    asked["class_kept"] = (asked["class_probability"] >= 1 / labels).astype(float).where(start >= 1 / labels)
    there = asked[asked["gain"] >= asked["gain_asked"]].drop_duplicates(OWN).set_index(OWN)[["scale", "structure", "class_kept"]]
    every = asked.groupby(OWN).size().index
    return there.reindex(every).assign(reached=lambda t: t["scale"].notna().astype(float)).reset_index()


def summary(table: pd.DataFrame, columns: list[str], *, settings: Bootstrap) -> pd.DataFrame:
    """The mean of each column per method: (method, measure, n, estimate, low, high), methods in their order."""
    ordered = table.assign(method=pd.Categorical(table["method"], METHODS)).sort_values("method", kind="stable")
    return bootstrap.means(ordered.astype({"method": str}), columns, ["method"], settings=settings)


def against_slider(table: pd.DataFrame, columns: list[str], *, settings: Bootstrap) -> pd.DataFrame:
    """The slider minus each text-based method, paired on the trajectory: (method, measure, n, estimate, low, high)."""
    both = table.merge(table[table["method"] == SLIDER], on=tables.TRAJECTORY, suffixes=("", "_slider"), validate="many_to_one")
    other = both[both["method"] != SLIDER]
    differences = {column: other[f"{column}_slider"] - other[column] for column in columns}
    return summary(other[OWN].assign(**differences), columns, settings=settings)


def curves(scores: pd.DataFrame, *, settings: Bootstrap) -> pd.DataFrame:
    """Mean gain and structure of each method at each scale: (method, scale, measure, n, estimate, low, high)."""
    return bootstrap.means(gains(scores), ["gain", "structure"], ["method", "scale"], settings=settings)


def plane(curve: pd.DataFrame) -> pd.DataFrame:
    """The curves as points, one row per method and scale: gain and structure with their bounds."""
    wide = curve.pivot(index=["method", "scale"], columns="measure", values=["n", "estimate", "low", "high"])
    wide.columns = [f"{measure}_{value}" for value, measure in wide.columns]
    return wide.reset_index()


def examples(table: pd.DataFrame, method: str) -> dict[str, tuple[str, str, int]]:
    """Three trajectories of a method as Fig. 26 shows them: the largest gain, the least structure, the fewest rising steps.

    Ties go to the first in order; no trajectory comes twice.
    """
    rows = table[table["method"] == method].sort_values(tables.TRAJECTORY)
    chosen: dict[str, tuple[str, str, int]] = {}
    for title, column, best in (("works", "gain", True), ("breaks", "structure", False), ("wavers", "rising", False)):
        order = np.argsort(-rows[column].to_numpy() if best else rows[column].to_numpy(), kind="stable")
        keys = [tuple(rows[tables.TRAJECTORY].iloc[place]) for place in order]
        chosen[title] = next((key for key in keys if key not in chosen.values()), keys[0])
    return chosen


def asked(table: pd.DataFrame) -> list[tuple[str, str, str, int]]:
    """The trajectories of `examples` that were moved by their class token, as (method, shift, class, seed)."""
    return [(CLASS, *key) for key in examples(table, CLASS).values()]


def sheet(strips: list[np.ndarray], methods: tuple[str, ...], scales: list[float]) -> np.ndarray:
    """One row of pictures per method, each at its scale; white where a method has none."""
    found = np.full((len(strips), len(scales), *strips[0].shape[1:]), 255, np.uint8)
    for row, (strip, method) in enumerate(zip(strips, methods, strict=True)):
        found[row, [scales.index(scale) for scale in [0.0, *grid(method, scales)]]] = strip
    return found
