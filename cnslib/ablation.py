"""The same trajectories by several samplers (diffusers schedulers and numbers of steps), and the classifiers' answers to them (G.4)."""

import dataclasses
import itertools
import sys
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
from diffusers import StableDiffusionPipeline
from jaxtyping import UInt8

from cnslib import (
    adapters,
    alexnet,
    backbones,
    classifiers,
    encoders,
    evaluation,
    generation,
    health,
    models,
    stepping,
    tables,
    units,
    workers,
)
from cnslib.classifiers import Classifier
from cnslib.config import UNSHIFTED, Generation, identifier
from cnslib.health import Judge
from cnslib.inversion import PROMPT
from cnslib.sliders import slider_path
from cnslib.stepping import Stepper
from cnslib.studies import Scheduling

NAME = {"sampler": pa.Column(str)}
answers_schema = tables.schema(
    ["sampler", "model", *tables.KEY], {**NAME, "model": pa.Column(str), **tables.IDENTITY, "top1": pa.Column(str)}
)
looks_schema = tables.schema(
    ["sampler", *tables.KEY],
    {**NAME, **tables.IDENTITY, "alignment": pa.Column(float), "change": pa.Column(float), "likeness": pa.Column(float, tables.COSINE)},
)
pictures_schema = tables.schema(["sampler", *tables.KEY], {**NAME, **tables.IDENTITY, "image": pa.Column(object)})
Pictures = UInt8[np.ndarray, "scales height width 3"]


@dataclasses.dataclass(frozen=True)
class Bench:
    """What is drawn by whom and shown to whom: samplers by name, the one the others are compared with, judge and classifiers."""

    steppers: dict[str, Stepper]
    reference: str
    origin: models.Origin
    judge: Judge
    classifiers: list[Classifier]
    sliders: Path
    folder: Path

    @cached_property
    def digest(self) -> str:
        """What all units have in common: samplers, base model, judge, classifiers, and the code."""
        drawn = [[name, stepping.identity(one), dataclasses.asdict(one.settings)] for name, one in self.steppers.items()]
        jury = [[one.name, encoders.source_digest(one.source), one.labels, one.preprocessing] for one in self.classifiers]
        drawing = units.code_digest(sys.modules[__name__], generation, adapters, models, health)
        answering = units.code_digest(evaluation, classifiers, encoders, alexnet, backbones)
        return units.digest(PROMPT, drawn, self.reference, self.origin.base, self.judge.digest, jury, drawing, answering)


def steppers(pipe: StableDiffusionPipeline, samplers: dict[str, Scheduling], *, settings: Generation) -> dict[str, Stepper]:
    """The samplers of params.yaml, each a scheduler, its steps and their spacing; all else as the benchmark is drawn."""
    found = {}
    for name, one in samplers.items():
        steps = dataclasses.replace(settings, steps=one.steps)
        found[name] = Stepper(pipe, settings=steps, scheduler=one.scheduler, spacing=one.spacing)
    return found


def compare(bench: Bench, shifts: list[str], classes: list[str], *, scales: list[float], seeds: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Answers of every classifier and looks of the judge at the first seeds of each class; a unit per (class, seed).

    `change` is the mean absolute difference in grey levels from the reference sampler's picture, `likeness` the cosine of their
    features. Draws what is missing or outdated; FileNotFoundError names a missing slider.
    """
    keys = list(itertools.product(classes, range(1, seeds + 1)))
    paths = {key: [unit_path(bench, kind, *key) for kind in ("answers", "looks")] for key in keys}
    kept = {path.relative_to(bench.folder).as_posix() for pair in paths.values() for path in pair}
    for kind in ("answers", "looks"):  # the pictures beside them are those of `films`
        units.prune(bench.folder, kept, f"{kind}/*.parquet")
    units.prune(bench.folder, set(), "*/.*.partial")
    digests = {key: unit_digest(bench, shifts, *key, scales) for key in keys}
    waiting = [key for key in keys if not all(units.done(path, digests[key]) for path in paths[key])]
    device = next(iter(bench.steppers.values())).pipe.device
    workers.each(measure, [(bench, shifts, *key, scales, digests[key]) for key in waiting], device=device, desc="samplers")
    answers, looks = zip(*paths.values(), strict=True)
    return joined(answers, answers_schema), joined(looks, looks_schema)


def joined(paths: tuple[Path, ...], kind: pa.DataFrameSchema) -> pd.DataFrame:
    """The rows of several tables."""
    return pd.concat([tables.read(path, kind) for path in paths], ignore_index=True)


def unit_path(bench: Bench, kind: str, name: str, seed: int) -> Path:
    """Where the answers or looks of a class and seed are kept."""
    return bench.folder / kind / f"{identifier(name)}_{seed}.parquet"


def unit_digest(bench: Bench, shifts: list[str], name: str, seed: int, scales: list[float]) -> str:
    """What a unit depends on: the bench, the sliders of its class, its token and its grid."""
    files = [adapters.file_digest(slider_path(bench.sliders, shift, name)) for shift in shifts]
    return units.digest(bench.digest, files, bench.origin.tokens[name], shifts, name, seed, scales)


def measure(bench: Bench, shifts: list[str], name: str, seed: int, scales: list[float], made_from: str) -> None:
    """Writes the answers and looks of one class and seed and their digests."""
    drawn = draw(bench, shifts, name, seed, scales)
    made = {"answers": (answer(bench, drawn), answers_schema), "looks": (look(bench, drawn), looks_schema)}
    for kind, (rows, schema) in made.items():
        path = unit_path(bench, kind, name, seed)
        tables.write(rows, path, schema)
        units.finish(path, made_from)


def draw(bench: Bench, shifts: list[str], name: str, seed: int, scales: list[float]) -> pd.DataFrame:
    """The pictures of one class and seed by every sampler: sampler, key and `picture`; the unshifted one once per sampler."""
    above = [scale for scale in scales if scale > 0]
    rows = []
    for sampler, stepper in bench.steppers.items():
        rows += row_of(sampler, UNSHIFTED, name, seed, [0.0], stepper.unshifted(name, seed).numpy())
        for shift in shifts:
            with adapters.loaded(stepper.pipe, slider_path(bench.sliders, shift, name)):
                rows += row_of(sampler, shift, name, seed, above, stepper.shifted(name, seed, above).numpy())
    return pd.DataFrame(rows)


def row_of(sampler: str, shift: str, name: str, seed: int, scales: list[float], pictures: Pictures) -> list[dict]:
    """One row per picture."""
    key = {"sampler": sampler, "shift": shift, "class": name, "seed": seed}
    return [{**key, "scale": scale, "picture": picture} for scale, picture in zip(scales, pictures, strict=True)]


def answer(bench: Bench, drawn: pd.DataFrame) -> pd.DataFrame:
    """The first answer of every classifier to every picture."""
    pictures, parts = list(drawn["picture"]), []
    for classifier in bench.classifiers:
        logits = evaluation.batch_logits(classifier, pictures, size=len(pictures))
        parts.append(evaluation.answers(classifier, drawn, logits).assign(sampler=drawn["sampler"]))
    return pd.concat(parts, ignore_index=True)[list(answers_schema.columns)]


def look(bench: Bench, drawn: pd.DataFrame) -> pd.DataFrame:
    """Alignment of every picture with its shift, and how far it is from the reference sampler's; unshifted rows under every shift."""
    features = bench.judge.image_encoder.features(np.stack(list(drawn["picture"])))
    rows = drawn.assign(feature=list(features.numpy()))
    shifts = [shift for shift in drawn["shift"].unique() if shift != UNSHIFTED]
    rows = tables.trajectories(rows, shifts)
    rows["alignment"] = np.nan
    for (shift, name), part in rows.groupby(["shift", "class"]):
        pictures = np.stack(list(part["picture"]))
        rows.loc[part.index, "alignment"] = bench.judge.alignment(pictures, shift, name).double().numpy().round(6)
    reference = rows[rows["sampler"] == bench.reference]
    both = rows.merge(reference, on=tables.KEY, suffixes=("", "_reference"), validate="many_to_one")
    pairs = list(zip(both["picture"], both["picture_reference"], strict=True))
    both["change"] = [abs(one.astype(int) - other).mean().round(6) for one, other in pairs]
    both["likeness"] = [float((one * other).sum().round(6)) for one, other in zip(both["feature"], both["feature_reference"], strict=True)]
    return both[list(looks_schema.columns)]


def films(bench: Bench, shift: str, name: str, seed: int, scales: list[float]) -> dict[str, Pictures]:
    """The pictures of one trajectory by every sampler, scale 0 first; kept on file, since a figure shows them."""
    path = bench.folder / "pictures" / f"{identifier(shift)}_{identifier(name)}_{seed}.parquet"
    units.prune(path.parent, {path.name}, "*.parquet")
    made_from = unit_digest(bench, [shift], name, seed, scales)
    if not units.done(path, made_from):
        drawn = draw(bench, [shift], name, seed, scales)
        drawn["image"] = [tables.encode(picture) for picture in drawn["picture"]]
        tables.write(drawn.drop(columns="picture"), path, pictures_schema)
        units.finish(path, made_from)
    stored = tables.read(path, pictures_schema).sort_values("scale", kind="stable")
    return {sampler: tables.pictures(stored[stored["sampler"] == sampler], path.name) for sampler in bench.steppers}
