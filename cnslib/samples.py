"""Images to compare two ways of naming a class: by its name, and by its IN* token (CNS-Bench section 4.1)."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pandera.pandas as pa
import torch
from diffusers import StableDiffusionPipeline
from jaxtyping import UInt8
from torch import Tensor
from tqdm.auto import tqdm

from cnslib import inversion, kinds, models, tables, units
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
    drawn = settings.validation_images, settings.sampling_steps, settings.guidance
    made_from = {name: kinds.SAMPLES.stamp(name, inversion.PROMPT, drawn, origin.base, origin.tokens[name]) for name in classes}
    shelf = units.Shelf(folder, {name: (f"{identifier(name)}.parquet", made_from[name]) for name in classes})
    for name in tqdm(shelf.waiting(), desc="comparison", disable=None):
        tables.write_unit(pd.DataFrame(rows(pipe, name, settings=settings)), shelf[name], schema)
    return tables.read_units(shelf, schema)


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
