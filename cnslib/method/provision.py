"""Tokens and sliders of a benchmark, made here or by others: `base.in_star` and `base.recipe` choose."""

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from diffusers import StableDiffusionPipeline

from cnslib.core import names, paths, recipes, units
from cnslib.core.names import demand, identifier
from cnslib.core.settings.method import Inversion, Sliders
from cnslib.data import imagenet
from cnslib.method import inversion, sliders, sliders_fast, sliders_graded, sliders_released
from cnslib.models import kohya, text_to_image, tokens

UNKNOWN = [float("nan")]  # the loss curve of what others trained


@dataclass(frozen=True)
class Recipe:
    """How sliders are trained: what makes their files, and the expected UNet evaluations of single samples for one of them."""

    train_all: Callable[..., dict[tuple[str, str], Path]]
    stamp: Callable[..., str]
    evaluations: Callable[[Sliders], float]


RECIPES = {
    "paper": Recipe(sliders.train_all, sliders.stamp, sliders.evaluations),
    "released": Recipe(sliders_released.train_all, sliders_released.stamp, sliders.evaluations),
    "graded": Recipe(sliders_graded.train_all, sliders_graded.stamp, sliders_graded.evaluations),
    "fast": Recipe(sliders_fast.train_all, sliders_fast.stamp, sliders_fast.evaluations),
}


def make_tokens(
    pipe: StableDiffusionPipeline, classes: list[str], *, in_star: str, settings: Inversion, pictures: Path, base: str, folder: Path
) -> dict[str, Path]:
    """The token file of each class: learned by `inversion.invert_all`, or taken from the IN* tokens at the path `in_star`.

    That is a folder of dataset interfaces (token files, or text_encoder/ with tokens.pt), the published text encoder's file, or a
    folder that holds one of them; classes are then ImageNet's. Raises FileNotFoundError or ValueError, naming the path, where a token
    is missing or unfit.
    """
    if not in_star:
        return inversion.invert_all(pipe, classes, settings=settings, pictures=pictures, base=base, folder=folder)
    names.require_distinct(classes)
    vectors = read_tokens(pipe, paths.resolve(in_star), {name: imagenet.index(name) for name in classes})
    made_from = {name: recipes.GIVEN_TOKENS.stamp(name, names.token(name), vectors[name].double().tolist()) for name in classes}
    shelf = units.Shelf(folder, {name: (f"{identifier(name)}.safetensors", made_from[name]) for name in classes}, "*.safetensors")
    for name in shelf.waiting():
        shelf[name].path.unlink(missing_ok=True)
        tokens.to_ours({name: vectors[name]}, folder, source=in_star)
        shelf[name].finish()
    return shelf.paths


def read_tokens(pipe: StableDiffusionPipeline, source: Path, numbers: dict[str, int]) -> dict[str, tokens.Vector]:
    """The vectors of the classes, from whichever form lies at the path. ValueError names vectors of another width than the model's."""
    if not source.exists():
        raise FileNotFoundError(
            f"base.in_star: {source} does not exist; accepted: a folder of dataset interfaces, or a text encoder's file"
        )
    form = tokens.located(source)
    if form.is_file():
        vectors = tokens.read_rows(form, numbers, vocabulary=len(pipe.tokenizer))
    elif (form / "tokens.pt").exists():
        vectors = tokens.read_encoder(form, numbers)
    else:
        vectors = tokens.read_files(form, numbers)
    width, found = pipe.text_encoder.config.hidden_size, len(next(iter(vectors.values())))
    demand(found == width, f"base.in_star, width of the tokens in {source}", found, f"{width}, that of the pipeline's text encoder")
    return vectors


def evaluations(recipe: str, settings: Sliders) -> float:
    """Expected UNet evaluations of single samples for the training of one slider: none where sliders are taken from a folder."""
    return RECIPES[recipe].evaluations(settings) if recipe in RECIPES else 0.0


def make_sliders(
    pipe: StableDiffusionPipeline,
    shifts: list[str],
    classes: list[str],
    *,
    recipe: str,
    settings: Sliders,
    origin: text_to_image.Origin,
    folder: Path,
) -> dict[tuple[str, str], Path]:
    """The file of each slider: trained by one of RECIPES, or taken from the folder `recipe`.

    Such a folder is what the authors' training leaves, or holds it (lora_adapters.zip, unpacked); classes are then ImageNet's.
    """
    if recipe in RECIPES:
        return RECIPES[recipe].train_all(pipe, shifts, classes, settings=settings, origin=origin, folder=folder)
    source = paths.resolve(recipe)
    demand(source.is_dir(), "base.recipe", recipe, f"{', '.join(RECIPES)}, or a folder of the authors' sliders")
    source, rank, alpha = kohya.released_folder(source), settings.rank, settings.alpha
    given = {
        (shift, name): kohya.released_path(source, shift, imagenet.index(name), rank=rank, alpha=alpha)
        for shift, name in itertools.product(shifts, classes)
    }
    shelf = sliders.shelf_of({pair: given_stamp(*pair, path, origin=origin) for pair, path in given.items()}, folder)
    for shift, name in shelf.waiting():
        texts = sliders_released.prompts(shift, name, texts={})
        plain = {"prompts": texts, "settings": {}, "curve": {"loss": UNKNOWN, "untrained": UNKNOWN}}
        entries = {"shift": shift, "class": name, "base": origin.base, "recipe": "imported"}
        told = entries | {key: json.dumps(value) for key, value in plain.items()}
        kohya.import_slider(pipe.unet, given[shift, name], shelf[shift, name].path, entries=told)
        shelf[shift, name].finish()
    return shelf.paths


def given_stamp(shift: str, name: str, path: Path, *, origin: text_to_image.Origin) -> str:
    """What a slider that is taken from a file depends on."""
    return recipes.GIVEN_SLIDERS.stamp(shift, name, units.file_digest(path), origin.base, origin.tokens[name])
