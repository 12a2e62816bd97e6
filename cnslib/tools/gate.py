"""The clean-accuracy gate: whether classifiers reach, on IN/val, the accuracy that their makers and the paper's Table 7 publish.

`cns gate --overlay paper.yaml` has them predict all of IN/val under their own preprocessing ("model") and the authors' ("paper"). Before
that, and with `--ready` it stops there, it opens all that `make chain profile=paper` reads.
"""

import argparse
import dataclasses
import sys
from typing import Any

import numpy as np
import pandas as pd
from statsmodels.stats.proportion import proportion_confint

from cnslib.core import paths, sources, tables, units
from cnslib.core.names import demand
from cnslib.core.settings import read
from cnslib.core.settings.method import MODELS
from cnslib.data import annotations, catalog, imagenet
from cnslib.method import evaluation
from cnslib.method.filtering import SHIFT_PROMPT
from cnslib.models import classifiers, encoders, text_to_image
from cnslib.models.registry import PREFIX, entry, parse

TOLERANCE = 0.003 + 1e-9  # 0.3 points, and the rounding of a difference of two decimal fractions
WHOLE = 50_000  # images of IN/val
PREPROCESSINGS = ("model", "paper")
GOOD = ("agrees", "compatible")  # with the whole of IN/val, and with a sample of it


def ready(sections: dict[str, Any]) -> None:
    """Opens all that a run reads, before its first hour is spent: labels, pictures of every class, and each model, which sees a picture."""
    base, labelling, layout = sections["base"], sections["labels"], paths.Layout(sections["base"].out)
    evaluated, labels = sections["evaluation"].classifiers, encoders.read_labels(base.labels)
    evaluation.require_labels(base.classes, labels)
    for key, name in [("labels.expert", labelling.expert), *(("labels.peers", name) for name in labelling.peers)]:
        demand(name in evaluated, key, name, f"the keys of evaluation.classifiers: {', '.join(evaluated)}")
    demand(
        judged(base.oracle) not in map(judged, evaluated.values()),
        "base.oracle",
        base.oracle,
        "a model that evaluation.classifiers does not judge",
    )
    for file in labelling.files:
        annotations.answered(paths.resolve(file))
    counts = {"train": sections["inversion"].images_per_class, "heldout": sections["inversion"].validation_images}
    for split, least in counts.items():
        pictures = [images[0] for _, _, images in catalog.whole(layout.locate(base.catalog), split, base.classes, count=least)]
    base = sources.provide(base, MODELS)
    text_to_image.load_pipeline(paths.resolve(base.pipeline), base.device)
    clip = encoders.Clip(base.clip, device=base.device)
    clip.text_features([SHIFT_PROMPT.format(name=name, shift=shift) for name in base.classes for shift in base.shifts])
    encoders.ImageEncoder(base.image_encoder, device=base.device).features(pictures[:1])
    classifiers.load_oracle(base.oracle, labels=labels, device=base.device).class_probability(pictures[:1])
    for name, source in evaluated.items():
        classifiers.load(name, source, labels, base.device, preprocessing=sections["evaluation"].preprocessing)


def judged(source: str) -> str:
    """What tells two sources of one model: the paper's name for it, or the source."""
    return parse(source, key="base.oracle").model if source.startswith(PREFIX) else source


def count(predictions: pd.DataFrame, preprocessing: str) -> pd.DataFrame:
    """Images and right predictions of each model, from one row per (model, image) with `class` and `top1`."""
    right = (predictions["top1"] == predictions["class"]).groupby(predictions["model"])
    return right.agg(n="size", right="sum").astype("int64").reset_index().assign(preprocessing=preprocessing)


def report(table: pd.DataFrame) -> pd.DataFrame:
    """Accuracy, 95 % Wilson interval, published values and verdicts by model and preprocessing. ValueError for a model of no registry."""
    low, high = proportion_confint(table["right"], table["n"], method="wilson")
    compared = table.assign(accuracy=table["right"] / table["n"], low=low, high=high)
    for source in ("library_top1", "table7_top1"):
        compared[source] = [getattr(entry(name), source) for name in compared["model"]]
        compared[source.removesuffix("_top1")] = verdicts(compared, compared[source])
    good = compared["preprocessing"].where(compared["table7"].isin(GOOD))
    return compared.assign(explained_by=good.groupby(compared["model"]).transform(lambda names: ", ".join(names.dropna())))


def verdicts(measured: pd.DataFrame, published: pd.Series) -> np.ndarray:
    """How measured accuracies meet published ones: within 0.3 points on all of IN/val, on a sample inside its interval, so widened."""
    whole = measured["n"] == WHOLE
    near = (measured["accuracy"] - published).abs() <= TOLERANCE
    inside = published.between(measured["low"] - TOLERANCE, measured["high"] + TOLERANCE)
    cases = [published.isna(), whole & near, ~whole & inside]
    return np.select(cases, ["not published", "agrees", "compatible"], "differs")


def measure(sections: dict[str, Any], classes: list[str]) -> pd.DataFrame:
    """The counts of the classifiers of some parameters on IN/val under both preprocessings; predictions are kept, a unit per classifier."""
    base, layout = sections["base"], paths.Layout(sections["base"].out)
    parts = []
    for preprocessing in PREPROCESSINGS:
        settings = dataclasses.replace(sections["evaluation"], preprocessing=preprocessing)
        shared = {"labels": list(imagenet.labels()), "settings": settings, "device": base.device}
        folder = layout.artifacts("gate") / preprocessing
        files = evaluation.evaluate_catalog(layout.locate(base.catalog), classes, **shared, folder=folder)
        parts += [count(tables.read(path, tables.predictions), preprocessing) for path in files.values()]
    return pd.concat(parts, ignore_index=True)


def main(arguments: list[str]) -> int:
    """Command line; returns 2, with one line, where parameters, weights or pictures are not what they should be."""
    parser = argparse.ArgumentParser(prog="cns gate", description=__doc__.splitlines()[0])
    parser.add_argument("--overlay", default="paper.yaml", help="file whose keys replace some values of params.yaml (default paper.yaml)")
    parser.add_argument("--ready", action="store_true", help="only look whether weights, labels and pictures are there and fit")
    options = parser.parse_args(arguments)
    try:
        sections = read.load("params.yaml", options.overlay)
        ready(sections)
        if options.ready:
            return 0
        table = report(measure(sections, list(imagenet.labels())))
    except (ValueError, FileNotFoundError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    path = paths.Layout(sections["base"].out).artifacts("gate") / "gate.csv"
    units.write_bytes(path, table.to_csv(index=False, lineterminator="\n").encode())
    print(table[["model", "preprocessing", "accuracy", "library_top1", "table7_top1", "explained_by"]].to_string(index=False))
    return 0
