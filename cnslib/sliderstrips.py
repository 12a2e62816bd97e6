"""Pictures of many sliders at all scales, drawn once and kept on file since a figure shows them (notebook 02)."""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
from diffusers import StableDiffusionPipeline
from jaxtyping import UInt8

from cnslib import adapters, health, kinds, models, tables, units
from cnslib.config import Generation, Sliders
from cnslib.inversion import PROMPT


def strips(
    pipe: StableDiffusionPipeline,
    sliders: dict[str, Path],
    name: str,
    *,
    scales: list[float],
    settings: Sliders,
    start_fraction: float,
    seed: int,
    origin: models.Origin,
    path: Path,
) -> UInt8[np.ndarray, "shifts scales height width 3"]:
    """What `health.strips` draws with the sliders of one class, by shift; the file is made where it is missing or outdated."""
    drawing = health.drawing(settings, start_fraction)
    unit = units.Unit(path, stamp(sliders, name, scales=scales, drawing=drawing, seed=seed, origin=origin))
    if not unit.done:
        chosen = list(sliders.values())
        drawn = health.strips(pipe, chosen, name, scales=scales, settings=settings, start_fraction=start_fraction, seed=seed)
        rows = [
            {"shift": shift, "class": name, "seed": seed, "scale": float(scale), "image": tables.encode(picture)}
            for (shift, scale), picture in zip(itertools.product(sliders, scales), drawn.reshape(-1, *drawn.shape[2:]), strict=True)
        ]
        tables.write_unit(pd.DataFrame(rows), unit, tables.images)
    stored = tables.read(path, tables.images)
    return np.stack([tables.pictures(stored[stored["shift"] == shift].sort_values("scale"), path.name) for shift in sliders])


def stamp(
    sliders: dict[str, Path], name: str, *, scales: list[float], drawing: Generation, seed: int, origin: models.Origin
) -> units.Stamp:
    """What the pictures depend on: sliders, token and base model, and how they are drawn."""
    files = {shift: adapters.file_digest(path) for shift, path in sliders.items()}
    return kinds.SLIDER_STRIPS.stamp(PROMPT, files, name, scales, seed, drawing, origin.base, origin.tokens[name])
