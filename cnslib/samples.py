"""Images to compare two ways of naming a class: by its name, and by its IN* token (CNS-Bench section 4.1)."""

import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pandera.pandas as pa
import torch
from diffusers import StableDiffusionPipeline
from jaxtyping import UInt8
from torch import Tensor
from tqdm.auto import tqdm

from cnslib import inversion, models, tables, units
from cnslib.config import Inversion, identifier

WORDS: dict[str, Callable[[str], str]] = {"text": str, "in_star": inversion.token}  # what a prompt calls a class
DRAWN = 20  # images per pipeline call
schema = tables.schema(
    ["prompt", "class", "seed"],
    {"prompt": pa.Column(str, pa.Check.isin(WORDS)), "class": pa.Column(str), "seed": pa.Column("int64"), "image": pa.Column(object)},
)


def draw_all(
    pipe: StableDiffusionPipeline, classes: list[str], *, settings: Inversion, origin: models.Origin, folder: Path
) -> pd.DataFrame:
    """Images of each class, by name and by token, seeds 1 to `validation_images`; draws the classes that are missing or outdated."""
    paths = {name: folder / f"{identifier(name)}.parquet" for name in classes}
    units.prune(folder, {path.name for path in paths.values()}, "*.parquet")
    for name, path in tqdm(paths.items(), desc="comparison", disable=None):
        drawn = settings.validation_images, settings.sampling_steps, settings.guidance
        code = units.code_digest(sys.modules[__name__], models)
        made_from = units.digest(name, inversion.PROMPT, drawn, origin.base, origin.tokens[name], code)
        if not units.done(path, made_from):
            tables.write(pd.DataFrame(rows(pipe, name, settings=settings)), path, schema)
            units.finish(path, made_from)
    return pd.concat([tables.read(path, schema) for path in paths.values()], ignore_index=True)


def rows(pipe: StableDiffusionPipeline, name: str, *, settings: Inversion) -> list[dict]:
    """One row per prompt and seed of a class; both prompts start from the same noise."""
    found = []
    for prompt, word in WORDS.items():
        images = draw(pipe, inversion.PROMPT.format(token=word(name)), settings=settings)
        found += [{"prompt": prompt, "class": name, "seed": seed, "image": tables.encode(i)} for seed, i in enumerate(images.numpy(), 1)]
    return found


def draw(pipe: StableDiffusionPipeline, prompt: str, *, settings: Inversion) -> UInt8[Tensor, "images height width 3"]:
    """Images of one prompt from the plain pipeline; image i starts from the noise of seed i + 1."""
    parts = []
    for start in range(1, settings.validation_images + 1, DRAWN):
        numbers = range(start, min(start + DRAWN, settings.validation_images + 1))
        latents = pipe(
            [prompt] * len(numbers),
            generator=[torch.Generator().manual_seed(number) for number in numbers],
            num_inference_steps=settings.sampling_steps,
            guidance_scale=settings.guidance,
            output_type="latent",
        ).images
        parts.append(models.decode(pipe, latents))
    return torch.cat(parts)
