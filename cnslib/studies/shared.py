"""What the studies share: checkpoints, the choice of trajectories, and classifiers by name."""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from cnslib.core import tables, units
from cnslib.core.names import demand
from cnslib.models import classifiers


def checkpoint(folder: Path, key: Any, stamp: str) -> Path:
    """Where a training in the making is kept."""
    return folder / f"{Path(units.file_of(key)).stem}-{stamp[:12]}.pt"


def choose(kept: pd.DataFrame, settings: Any, classes: list[str]) -> pd.DataFrame:
    """The first `seeds` kept trajectories of each chosen shift and class: no prediction has a say. ValueError where none is left."""
    wanted = kept[kept["shift"].isin(settings.shifts) & kept["class"].isin(classes)]
    demand(len(wanted) > 0, f"{type(settings).__name__.lower()}.shifts", settings.shifts, f"shifts of the {len(kept)} kept trajectories")
    chosen = wanted.sort_values(tables.TRAJECTORY).groupby(["shift", "class"]).head(settings.seeds)
    return chosen[tables.TRAJECTORY].reset_index(drop=True)


def judges(sources: Mapping[str, str], labels: list[str], device: str) -> list[classifiers.Classifier]:
    """The classifiers of a section of the parameters, loaded once for all units that a process makes."""
    return loaded(tuple((name, *identity) for name, identity in digests(sources).items()), tuple(labels), device)


@functools.lru_cache(maxsize=1)
def loaded(sources: tuple[tuple[str, ...], ...], labels: tuple[str, ...], device: str) -> list[classifiers.Classifier]:
    """Classifiers by name, source and the digest of their weights."""
    return [classifiers.user_classifier(source, name=name, labels=list(labels), device=device) for name, source, _ in sources]


def digests(sources: Mapping[str, str]) -> dict[str, list[str]]:
    """Where each classifier comes from, with the digest of its weights."""
    return {name: [source, classifiers.digest(source)] for name, source in sources.items()}
