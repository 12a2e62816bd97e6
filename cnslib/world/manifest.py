"""Provenance of the base models in `data/models/manifest.json`: seed, steps, recipe, licence, measured quality."""

import json
from pathlib import Path

import numpy as np

from cnslib.core import sources, units
from cnslib.stats import bootstrap

LICENCE = "MIT (weights trained by this project on Fashion-MNIST, MIT)"
CONFIDENCE = 0.95  # of every interval here, whatever `bootstrap.confidence` is: they are made once, with the weights


def share(correct) -> dict:
    """A proportion of independent images with its Wilson interval."""
    return bootstrap.independent_share(np.asarray(correct), confidence=CONFIDENCE)


def mean(values) -> dict:
    """A mean over independent images with its t interval."""
    return bootstrap.independent_mean(np.asarray(values, dtype=float), confidence=CONFIDENCE)


def read(models: Path) -> dict:
    """The manifest of a model folder; empty before the first model is built. ValueError for one that is damaged."""
    return sources.manifest(models / "manifest.json", key="data/models")


def record(models: Path, name: str, *, seed: int, steps: int, recipe: units.Recipe, quality: dict, **more) -> dict:
    """Adds or replaces the entry of one model, and returns it.

    Quality figures are {"n", "estimate", "low", "high"} records; `more` is kept too, such as the training's options.
    """
    about = {"seed": seed, "steps": steps, "recipe": recipe.code, "licence": LICENCE, "quality": quality}
    write(models, read(models) | {name: about | {"files": units.directory_digest(models / name)} | more})
    return read(models)[name]


def write(models: Path, table: dict) -> None:
    """Replaces the manifest."""
    units.write_bytes(models / "manifest.json", (json.dumps(table, indent=2, sort_keys=True) + "\n").encode())


def measured(models: Path, name: str, quality: dict) -> None:
    """Adds quality figures to the entry of a model that is there; KeyError where it is not."""
    entry = read(models)[name]
    write(models, read(models) | {name: entry | {"quality": entry["quality"] | quality}})


def forget(models: Path, name: str) -> None:
    """Drops the entry of a model that is about to be trained again: its files will be others."""
    write(models, {key: entry for key, entry in read(models).items() if key != name})


def current(models: Path, name: str, *, recipe: units.Recipe, options: dict) -> bool:
    """Whether a model's files are those of its entry, trained with these options by this recipe."""
    entry = read(models).get(name)
    if entry is None or not (models / name).is_dir():
        return False
    wanted = {"recipe": recipe.code, "files": units.directory_digest(models / name), "options": options}
    return {key: entry.get(key) for key in wanted} == json.loads(json.dumps(wanted))
