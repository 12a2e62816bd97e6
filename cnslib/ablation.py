"""The same trajectories by several samplers (diffusers schedulers and numbers of steps), and the classifiers' answers to them (G.4)."""

import dataclasses
import itertools
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
from diffusers import StableDiffusionPipeline
from jaxtyping import UInt8

from cnslib import (
    adapters,
    encoders,
    evaluation,
    kinds,
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
        """What all units have in common: samplers, base model, judge and classifiers."""
        drawn = [[name, stepping.identity(one), dataclasses.asdict(one.settings)] for name, one in self.steppers.items()]
        jury = [[one.name, encoders.source_digest(one.source), one.labels, one.preprocessing] for one in self.classifiers]
        return units.digest(PROMPT, drawn, self.reference, self.origin.base, self.judge.digest, jury)


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
    files = {key: (f"{identifier(key[0])}_{key[1]}.parquet", stamp(bench, shifts, *key, scales)) for key in keys}
    answers, looks = (units.Shelf(bench.folder / kind, files) for kind in ("answers", "looks"))
    waiting = {*answers.waiting(), *looks.waiting()}
    device = next(iter(bench.steppers.values())).pipe.device
    pieces = [(bench, shifts, *key, scales, answers[key], looks[key]) for key in keys if key in waiting]
    workers.each(measure, pieces, device=device, desc="samplers")
    return tables.read_units(answers, answers_schema), tables.read_units(looks, looks_schema)


def stamp(bench: Bench, shifts: list[str], name: str, seed: int, scales: list[float]) -> units.Stamp:
    """What a unit depends on: the bench, the sliders of its class, its token and its grid."""
    files = [adapters.file_digest(slider_path(bench.sliders, shift, name)) for shift in shifts]
    return kinds.ABLATION.stamp(bench.digest, files, bench.origin.tokens[name], shifts, name, seed, scales)


def measure(bench: Bench, shifts: list[str], name: str, seed: int, scales: list[float], answers: units.Unit, looks: units.Unit) -> None:
    """Writes the answers and looks of one class and seed."""
    drawn = draw(bench, shifts, name, seed, scales)
    tables.write_unit(answer(bench, drawn), answers, answers_schema)
    tables.write_unit(look(bench, drawn), looks, looks_schema)


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
    file = f"{identifier(shift)}_{identifier(name)}_{seed}.parquet"
    shelf = units.Shelf(bench.folder / "pictures", {name: (file, stamp(bench, [shift], name, seed, scales))})
    for _ in shelf.waiting():
        drawn = draw(bench, [shift], name, seed, scales)
        drawn["image"] = [tables.encode(picture) for picture in drawn["picture"]]
        tables.write_unit(drawn.drop(columns="picture"), shelf[name], pictures_schema)
    stored = tables.read_units(shelf, pictures_schema).sort_values("scale", kind="stable")
    return {sampler: tables.pictures(stored[stored["sampler"] == sampler], file) for sampler in bench.steppers}
