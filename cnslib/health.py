"""Health of the sliders: does a larger scale show more of the shift, and does the picture keep its structure (CNS-Bench, appendix H)."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
import torch
from diffusers import StableDiffusionPipeline
from jaxtyping import Float, UInt8
from scipy import stats
from torch import Tensor
from tqdm.auto import tqdm

from cnslib import adapters, generation, models, tables, units
from cnslib.config import Generation, Sliders
from cnslib.encoders import Clip, ImageEncoder

START_FRACTION = 0.75  # the slider acts on the last 75 % of the steps (CNS-Bench section 5.1)
SLIDER = ["shift", "class"]
schema = tables.schema(
    tables.KEY,
    {**tables.IDENTITY, "alignment": pa.Column(float), "structure": pa.Column(float, tables.COSINE)},
)


class Judge:
    """Scores the images of one trajectory with a text-image encoder and an image encoder; `digest` says which two they are."""

    def __init__(self, clip: Clip, image_encoder: ImageEncoder, *, digest: str):
        """Keeps the encoders."""
        self.clip, self.image_encoder, self.digest = clip, image_encoder, digest

    def alignment(self, images: UInt8[np.ndarray, "scales height width 3"], shift: str, name: str) -> Float[Tensor, "scales"]:
        """Cosine with "a picture of a <class> in <shift>" minus cosine with "a picture of a <class>"."""
        plain, shifted = self.clip.text_features([f"a picture of a {name}", f"a picture of a {name} in {shift}"])
        return self.clip.image_features(images) @ (shifted - plain)

    def structure(self, images: UInt8[np.ndarray, "scales height width 3"]) -> Float[Tensor, "scales"]:
        """Cosine of each image's features with those of the first image."""
        features = self.image_encoder.image_features(images)
        return features @ features[0]


def drawing(settings: Sliders) -> Generation:
    """How the report draws: the steps of the training and no guidance, since Eq. 2 shapes the conditional prediction alone."""
    steps = settings.denoising_steps
    return Generation(steps=steps, guidance=1.0, guidances=[1.0], start_fraction=START_FRACTION, negative_prompt="")


def report(
    pipe: StableDiffusionPipeline,
    sliders: dict[tuple[str, str], Path],
    *,
    scales: list[float],
    settings: Sliders,
    origin: models.Origin,
    judge: Judge,
) -> pd.DataFrame:
    """One row per (shift, class, seed, scale): alignment with the shift and structure kept, stored beside each slider."""
    sampler = generation.Sampler(pipe, settings=drawing(settings))
    shared = scales, settings.health_seeds, sampler.settings, origin.base, judge.digest
    code = units.code_digest(sys.modules[__name__], generation, adapters, models)
    parts = []
    for (shift, name), slider in tqdm(sliders.items(), desc="health", disable=None):
        path = slider.with_suffix(".parquet")
        made_from = units.digest(adapters.file_digest(slider), origin.tokens[name], *shared, code)
        if not units.done(path, made_from):
            rows = measure(sampler, shift, name, slider, scales=scales, seeds=settings.health_seeds, judge=judge)
            tables.write(pd.DataFrame(rows), path, schema)
            units.finish(path, made_from)
        parts.append(tables.read(path, schema))
    return pd.concat(parts, ignore_index=True)


def measure(
    sampler: generation.Sampler, shift: str, name: str, slider: Path, *, scales: list[float], seeds: int, judge: Judge
) -> Iterator[dict]:
    """The rows of one slider."""
    above = [scale for scale in scales if scale > 0]
    with adapters.loaded(sampler.pipe, slider):
        shifted = [sampler.shifted(name, seed, above) for seed in range(1, seeds + 1)]
    for seed, images in enumerate(shifted, start=1):
        trajectory = torch.cat([sampler.unshifted(name, seed), images]).numpy()
        scores = judge.alignment(trajectory, shift, name).tolist(), judge.structure(trajectory).tolist()
        for scale, alignment, structure in zip([0.0, *above], *scores, strict=True):
            yield {"shift": shift, "class": name, "seed": seed, "scale": scale, "alignment": alignment, "structure": structure}


def steps(table: pd.DataFrame) -> pd.DataFrame:
    """One row per step between neighbouring scales of a trajectory, at its upper scale: whether the alignment rises."""
    table = table.sort_values(tables.KEY)
    rise = table.groupby(tables.TRAJECTORY, sort=False)["alignment"].diff()
    return table[tables.KEY].assign(rises=rise > 0)[rise.notna()]


def per_slider(table: pd.DataFrame) -> pd.DataFrame:
    """One row per slider: alignment gained from scale 0 to the largest, share of rising steps, structure kept at the largest."""
    ends = table[table["scale"].isin([table["scale"].min(), table["scale"].max()])].sort_values("scale")
    grouped = ends.groupby([*SLIDER, "scale"])[["alignment", "structure"]].mean().groupby(SLIDER)
    rising = steps(table).groupby(SLIDER)["rises"].mean()
    summary = {"gain": grouped["alignment"].last() - grouped["alignment"].first(), "rising": rising, "structure": grouped["structure"].last()}
    return pd.DataFrame(summary).reset_index()


def require_gain(summary: pd.DataFrame, *, least: float) -> None:
    """Raises ValueError naming every flat slider: one whose alignment gains less than `least` from scale 0 to the largest."""
    flat = summary[~(summary["gain"] >= least)]
    if len(flat):
        names = ", ".join(f"{row['class']} in {row['shift']} ({row['gain']:.4f})" for _, row in flat.iterrows())
        raise ValueError(f"flat sliders, alignment gain below sliders.least_gain = {least}: {names}; train longer or with a higher rate")


def monotone_share(summary: pd.DataFrame, *, resamples: int = 2000, confidence: float = 0.95) -> dict:
    """Mean share of rising steps; the interval resamples whole sliders, since the steps of one slider are not independent."""
    shares = summary["rising"].to_numpy()
    record = {"n": len(shares), "estimate": shares.mean(), "low": np.nan, "high": np.nan}
    if len(shares) > 1:
        options = {"n_resamples": resamples, "confidence_level": confidence, "method": "percentile"}
        interval = stats.bootstrap((shares,), np.mean, rng=np.random.default_rng(0), **options).confidence_interval
        record |= {"low": interval.low, "high": interval.high}
    return record
