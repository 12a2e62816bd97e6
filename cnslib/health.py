"""Health of the sliders: does a larger scale show more of the shift, and does the picture keep its structure (CNS-Bench, appendix H)."""

import itertools
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
import torch
from diffusers import StableDiffusionPipeline
from jaxtyping import UInt8
from scipy import stats
from torch import Tensor
from tqdm.auto import tqdm

from cnslib import adapters, generation, models, tables, units
from cnslib.config import Generation, Sliders
from cnslib.encoders import Clip, ImageEncoder

START_FRACTION = 0.75  # the slider acts on the last 75 % of the steps (CNS-Bench section 5.1)
schema = tables.schema(
    tables.KEY,
    {**tables.IDENTITY, "alignment": pa.Column(float), "structure": pa.Column(float, tables.COSINE)},
)


def drawing(settings: Sliders) -> Generation:
    """How the report draws: the steps of the training and no guidance, since Eq. 2 shapes the conditional prediction alone."""
    return Generation(
        steps=settings.denoising_steps, guidance=1.0, guidances=[1.0], start_fraction=START_FRACTION, negative_prompt=""
    )


def report(
    pipe: StableDiffusionPipeline,
    sliders: dict[tuple[str, str], Path],
    *,
    scales: list[float],
    settings: Sliders,
    origin: models.Origin,
    clip: Clip,
    image_encoder: ImageEncoder,
    judges: str,
) -> pd.DataFrame:
    """One row per (shift, class, seed, scale): alignment with the shift and structure kept, cached beside each slider.

    `judges` is the digest of the two encoders.
    """
    sampler = generation.Sampler(pipe, settings=drawing(settings))
    code = units.code_digest(sys.modules[__name__], generation, adapters, models)
    parts = []
    for (shift, name), slider in tqdm(sliders.items(), desc="health", disable=None):
        path = slider.with_suffix(".health.parquet")
        made_from = units.digest(adapters.file_digest(slider), scales, settings.health_seeds, sampler.settings, origin.base, judges, code)
        if not units.done(path, made_from):
            rows = measure(sampler, shift, name, slider, scales=scales, seeds=settings.health_seeds, judges=(clip, image_encoder))
            tables.write(pd.DataFrame(rows), path, schema)
            units.finish(path, made_from)
        parts.append(tables.read(path, schema))
    return pd.concat(parts, ignore_index=True)
