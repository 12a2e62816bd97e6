"""The base models of a parameter file, made sure of before a step reads them: local directory or hub, digests, noise schedule."""

import dataclasses
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from cnslib import paths
from cnslib.config import Base

SCHEDULER = "scheduler/scheduler_config.json"


def provide(base: Base, needed: Collection[str]) -> Base:
    """The shared parameters with the directory of each needed model in its key.

    `needed` are keys of `base`. A model named in `base.sources` lies in the directory of its key, or comes from its hub id and
    revision; each of its files is checked against its sha256. Raises FileNotFoundError or ValueError, naming the key, where one
    is missing or another one, and where the pipeline's scheduler is not the one that the parameters tell.
    """
    fetched: dict[str, Any] = {key: resolved(base, key) for key in base.sources if key in needed}
    found = dataclasses.replace(base, **fetched)
    if "pipeline" in needed:
        require_schedule(paths.resolve(found.pipeline), base.prediction)
    return found


def resolved(base: Base, key: str) -> str:
    """The checked directory of one model."""
    from cnslib import weights  # brings torch, which most steps of the default parameters start without

    place = base.sources[key]
    folder = weights.resolve_folder(getattr(base, key), place.hub, place.revision, key=f"base.{key}", sha256=place.sha256)
    return str(folder.relative_to(paths.ROOT) if folder.is_relative_to(paths.ROOT) else folder)


def require_schedule(pipeline: Path, prediction: str) -> None:
    """Raises ValueError unless the scheduler's file says what the parameters say: the type of the prediction, and leading steps.

    No later step can notice a swapped type: the file alone tells it, and a wrong one gives wrong images without an error.
    """
    path = pipeline / SCHEDULER
    if not path.exists():
        return  # the loader of the pipeline tells what a whole directory holds
    config = json.loads(path.read_text())
    found = config.get("prediction_type", "epsilon"), config.get("timestep_spacing", "leading")  # the library's own defaults
    if found != (prediction, "leading"):
        accepted = f"{prediction} (base.prediction), leading"
        raise ValueError(f"base.pipeline: {path} says prediction_type {found[0]}, timestep_spacing {found[1]}; accepted: {accepted}")
