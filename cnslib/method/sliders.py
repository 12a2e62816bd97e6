"""Class-conditional shift sliders: one low-rank adapter per (shift, class), trained as in CNS-Bench section 3.2 and its released code.

`base.recipe` names one of four trainings, which share adapter, optimiser, objective and loop, or a folder of the authors' sliders.
"""

import contextlib
import copy
import dataclasses
import functools
import itertools
import json
import math
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import torch
import torch.nn.functional as F
from diffusers import DDIMScheduler
from diffusers import StableDiffusionPipeline as Pipeline
from jaxtyping import Float
from peft.utils import get_peft_model_state_dict
from torch import Tensor, nn

from cnslib.core import names, paths, recipes, seeds, units, workers
from cnslib.core.names import demand
from cnslib.core.settings.method import Sliders
from cnslib.data import imagenet
from cnslib.models import adapters, kohya, text_to_image
from cnslib.models.adapters import slider_path
from cnslib.models.text_to_image import Origin

# The released code trains with the bare class token and "<token>, in <shift>". A base model that saw nothing but whole captions
# has no meaning for a bare token, so these are the captions, which are also the paper's wording (section A.1).
SHIFT_PROMPT = names.PROMPT + " {text}"
RESOLUTION = 512  # pixels at which the released code trains, whatever the model's own size
REACH = 2.5  # the last scale of the benchmark (Table 5)
OTHER_KEYS = ("texts", "etas", "longer", "pilot", "health_seeds", "health_steps", "health_guidance", "least_gain")  # not of the weights

Pair = tuple[str, str]  # shift and class
Latents = Float[Tensor, "batch channels height width"]
Texts = Float[Tensor, "prompts tokens width"]
Lesson = tuple[Callable[[], Tensor], Tensor, Tensor]  # what the student predicts, what the base model does, and the target


@dataclass(frozen=True)
class Recipe:
    """How the sliders of one `base.recipe` are trained, where that differs from the paper's text.

    graded: each sample of a batch has a scale of its own up to `REACH`, and the target moves with it; half of the samples see the empty
    prompt, so that guidance does not move the shift once more; the rate falls to zero in the second half. A small network that learns
    scale 1 alone leaves the pictures that it knows at 2.5.
    released: prompts, timestep, size and precision of the authors' code.
    """

    kind: units.Recipe
    graded: bool = False
    released: bool = False


RECIPES = {
    "paper": Recipe(recipes.SLIDERS),
    "released": Recipe(recipes.RELEASED_SLIDERS, released=True),
    "graded": Recipe(recipes.GRADED_SLIDERS, graded=True),
}
PAPER = RECIPES["paper"]


def prompts(
    shift: str, name: str, *, texts: dict[str, str], recipe: Recipe = PAPER, token: Callable[[str], str] = names.token
) -> tuple[str, str]:
    """The prompts of c and c+ in Eq. 2: the class token alone, and in the shift, which has its words from `texts` or its name."""
    word, text = token(name), names.text(shift, texts)
    if recipe.released:
        return word, f"{word}, {text}"
    return names.PROMPT.format(token=word), SHIFT_PROMPT.format(token=word, text=text)


def for_shift(settings: Sliders, shift: str) -> Sliders:
    """The settings with the eta and the iterations of a shift that has its own."""
    eta, iterations = settings.etas.get(shift, settings.eta), settings.longer.get(shift, settings.iterations)
    return dataclasses.replace(settings, eta=eta, iterations=iterations, etas={}, longer={})


def training_settings(settings: Sliders) -> dict[str, int | float]:
    """The settings that the weights of every slider depend on; its text is part of its prompts."""
    return {key: value for key, value in dataclasses.asdict(settings).items() if key not in OTHER_KEYS}


def stamp(shift: str, name: str, *, settings: Sliders, origin: Origin, recipe: str = "paper") -> str:
    """What one slider depends on: its prompts, the settings of the training, base model, and its class token."""
    made = RECIPES[recipe]
    texts = prompts(shift, name, texts=settings.texts, recipe=made)
    return made.kind.stamp(texts, training_settings(for_shift(settings, shift)), origin.base, origin.tokens[name])


def shelf_of(made_from: dict[Pair, str], folder: Path) -> units.Shelf[Pair]:
    """The sliders of some (shift, class), each with what it is to be made from."""
    files = {pair: (slider_path(folder, *pair).relative_to(folder).as_posix(), stamp) for pair, stamp in made_from.items()}
    return units.Shelf(folder, files, "*/*.safetensors")


def make_sliders(
    pipe: Pipeline, shifts: list[str], classes: list[str], *, recipe: str, settings: Sliders, origin: Origin, folder: Path
) -> dict[Pair, Path]:
    """The file of each slider, trained by one of RECIPES where it is missing or made from something else, or taken from a folder.

    Such a folder is what the authors' training leaves, or holds it (lora_adapters.zip, unpacked); classes are then ImageNet's.
    Sliders of other shifts and classes are deleted.
    """
    pairs = list(itertools.product(shifts, classes))
    if recipe not in RECIPES:
        demand(paths.resolve(recipe).is_dir(), "base.recipe", recipe, f"{', '.join(RECIPES)}, or a folder of the authors' sliders")
        return import_sliders(pipe, pairs, source=paths.resolve(recipe), settings=settings, origin=origin, folder=folder)
    shelf = shelf_of({pair: stamp(*pair, settings=settings, origin=origin, recipe=recipe) for pair in pairs}, folder)
    if waiting := shelf.waiting():
        trained = released_pipeline(pipe) if RECIPES[recipe].released else pipe
        make = functools.partial(train, settings=settings, origin=origin, recipe=recipe)
        workers.each(make, [(trained, *pair, shelf[pair]) for pair in waiting], device=pipe.device, desc="sliders")
    return shelf.paths


def import_sliders(pipe: Pipeline, pairs: list[Pair], *, source: Path, settings: Sliders, origin: Origin, folder: Path) -> dict[Pair, Path]:
    """The sliders of a folder in our own format; what others trained keeps no record of its losses."""
    source, files, made_from = kohya.released_folder(source), {}, {}
    for shift, name in pairs:
        file = kohya.released_path(source, shift, imagenet.index(name), rank=settings.rank, alpha=settings.alpha)
        files[shift, name], inputs = file, (shift, name, units.file_digest(file), origin.base, origin.tokens[name])
        made_from[shift, name] = recipes.GIVEN_SLIDERS.stamp(*inputs)
    shelf = shelf_of(made_from, folder)
    for shift, name in shelf.waiting():
        words, unknown = prompts(shift, name, texts={}, recipe=RECIPES["released"]), [math.nan]
        entries = header(shift, name, "imported", origin, words, {}, {"loss": unknown, "untrained": unknown})
        kohya.import_slider(pipe.unet, files[shift, name], shelf[shift, name].path, entries=entries)
        shelf[shift, name].finish()
    return shelf.paths


def header(
    shift: str, name: str, recipe: str, origin: Origin, words: tuple[str, str], settings: dict, curve: dict[str, list[float]]
) -> dict[str, str]:
    """What a slider's file says about itself; the paper's recipe goes without saying."""
    entries = {"shift": shift, "class": name, "base": origin.base} | ({} if recipe == "paper" else {"recipe": recipe})
    return entries | {"prompts": json.dumps(words), "settings": json.dumps(settings), "curve": json.dumps(curve)}


def released_pipeline(pipe: Pipeline) -> Pipeline:
    """The pipeline of the released recipe: a copy in bf16 with the released scheduler (no step offset); `pipe` stays as it is.

    UNet and text encoder are rounded, and with them the adapter and the optimiser's state: nothing is kept in single precision.
    """
    if (predicts := pipe.scheduler.config.prediction_type) != "v_prediction":
        raise ValueError(f"base.recipe: 'released' trains on v, the pipeline predicts {predicts}; accepted here: paper, graded")
    copies = {name: copy.deepcopy(getattr(pipe, name)).bfloat16() for name in ("unet", "text_encoder")}
    half = Pipeline(**(pipe.components | copies), requires_safety_checker=False)
    # Put in place afterwards: the constructor sets the offset of any scheduler to 1.
    released = {"timestep_spacing": "leading", "steps_offset": 0, "set_alpha_to_one": True}  # as Stable Diffusion 2 has it
    half.scheduler = DDIMScheduler.from_config(pipe.scheduler.config, **released)
    return half


def train(pipe: Pipeline, shift: str, name: str, unit: units.Unit, *, settings: Sliders, origin: Origin, recipe: str = "paper") -> None:
    """Trains and writes one slider and what it was made from; everything random comes from the generator of (shift, class, seed)."""
    made, generator = RECIPES[recipe], seeds.generator("slider", shift, name, settings.seed)
    settings = for_shift(settings, shift)
    words = prompts(shift, name, texts=settings.texts, recipe=made)
    text = text_to_image.embed(pipe, [*words, ""] if made.graded else [*words])
    with adapters.fresh(pipe, rank=settings.rank, alpha=settings.alpha, generator=generator) as parameters:
        curve = fit(pipe, parameters, text, settings=settings, generator=generator, recipe=made)
        require_finite(curve, shift, name)
        entries = header(shift, name, recipe, origin, words, training_settings(settings), curve)
        if made.released:
            weights = get_peft_model_state_dict(pipe.unet, adapter_name=adapters.NAME)
            adapters.write(unit.path, weights, rank=settings.rank, alpha=settings.alpha, entries=entries)
        else:
            adapters.save(pipe, unit.path, entries)
    unit.finish()


def fit(
    pipe: Pipeline, parameters: list[nn.Parameter], text: Texts, *, settings: Sliders, generator: torch.Generator, recipe: Recipe = PAPER
) -> dict[str, list[float]]:
    """Updates of AdamW (the released code's optimiser) towards Eq. 2, each on other latents: k + 2 + 1 UNet evaluations per sample.

    `text` holds the embeddings of c and c+, and of the empty prompt if the recipe is graded. Returns what `descend` does.
    """

    def lessons(points: Iterable) -> Iterator[Lesson]:
        for latents, timestep, prompt, eta in itertools.islice(points, settings.iterations):
            targets = teacher(pipe, latents, timestep, text, eta=eta, prompt=prompt if recipe.graded else None)
            yield functools.partial(predict, pipe, latents, timestep, prompt), *targets

    with contextlib.closing(training_points(pipe, text, settings=settings, generator=generator, recipe=recipe)) as points:
        return descend(parameters, lessons(points), settings=settings, recipe=recipe)


def predict(pipe: Pipeline, latents: Latents, timestep: Tensor, text: Texts) -> Latents:
    """The UNet's output, v or epsilon."""
    return pipe.unet(latents, timestep, text).sample


def descend(parameters: list[nn.Parameter], lessons: Iterable[Lesson], *, settings: Sliders, recipe: Recipe) -> dict[str, list[float]]:
    """One update for each lesson: the student's prediction, the base model's, and the target of Eq. 2.

    Returns the loss of each update, and the base model's: the noise levels differ, so neither says much alone.
    """
    optimizer = torch.optim.AdamW(parameters, settings.learning_rate)
    pace = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda update: rate(update / settings.iterations) if recipe.graded else 1.0)
    curve: dict[str, list[float]] = {"loss": [], "untrained": []}
    for student, plain, target in lessons:
        loss = F.mse_loss(student(), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        pace.step()
        curve["loss"].append(round(loss.item(), 8))
        curve["untrained"].append(round(F.mse_loss(plain, target).item(), 8))
    return curve


def require_finite(curve: dict[str, list[float]], shift: str, name: str) -> None:
    """Raises FloatingPointError, naming the slider, when the loss is no longer a number."""
    if not all(map(math.isfinite, curve["loss"])):
        raise FloatingPointError(f"slider of {name} in {shift}: the loss is not a number; lower sliders.learning_rate")


def rate(passed: float) -> float:
    """The graded recipe's share of the learning rate: whole in the first half of the training, then falling evenly to zero."""
    return min(1.0, 2 * (1 - passed))


def training_points(
    pipe: Pipeline, text: Texts, *, settings: Sliders, generator: torch.Generator, recipe: Recipe
) -> Generator[tuple[Latents, Tensor, Texts, float | Tensor], None, None]:
    """Endless latents with their timestep, the prompt of each sample, and eta; the adapter has the scales of the samples meanwhile."""
    while True:
        prompt, eta = text[:1].expand(settings.batch_size, -1, -1), settings.eta
        slider_scales: contextlib.AbstractContextManager = contextlib.nullcontext()
        if recipe.graded:
            scales = REACH * torch.rand(settings.batch_size, generator=generator)
            prompt = text[torch.where(torch.rand(settings.batch_size, generator=generator) < 0.5, 0, 2).to(text.device)]
            eta, slider_scales = settings.eta * scales, adapters.scaled(pipe.unet, scales.tolist())
        with slider_scales:
            latents, timestep = training_point(pipe, prompt, settings=settings, generator=generator, recipe=recipe)
            yield latents, timestep, prompt, eta


@torch.no_grad()
def training_point(
    pipe: Pipeline, text: Texts, *, settings: Sliders, generator: torch.Generator, recipe: Recipe = PAPER
) -> tuple[Latents, Tensor]:
    """Latents after k ~ U{1, ..., steps - 1} DDIM steps from fresh noise with the adapter on, and their timestep.

    The released code mixes conditional and unconditional predictions of the same prompt here, which is the conditional prediction at
    any guidance: leaving that out, and the unused halves of the later batches, saves 2.07x of its UNet work.
    """
    scheduler, steps = copy.deepcopy(pipe.scheduler), settings.denoising_steps
    scheduler.set_timesteps(steps, device=pipe.device)
    k = int(torch.randint(1, steps, (), generator=generator))
    noise = torch.randn((settings.batch_size, *latent_shape(pipe, recipe)), generator=generator)
    latents = (noise * scheduler.init_noise_sigma).to(pipe.device, pipe.unet.dtype)
    for timestep in scheduler.timesteps[:k]:
        latents = scheduler.step(pipe.unet(latents, timestep, text).sample, timestep, latents).prev_sample
    current = scheduler.timesteps[k]
    return latents, torch.full_like(current, released_timestep(k, steps=steps)) if recipe.released else current


def latent_shape(pipe: Pipeline, recipe: Recipe) -> tuple[int, int, int]:
    """Channels, height and width of the latents of the training: the model's own, or those of at most 512 px if it is the released one."""
    channels, side, _ = text_to_image.latent_shape(pipe)
    side = min(side, RESOLUTION // pipe.vae_scale_factor) if recipe.released else side
    return channels, side, side


def released_timestep(k: int, *, steps: int) -> int:
    """The released code's timestep of the predictions after k of `steps` steps: entry 1000 k / steps of the list 999, 998, ... 0.

    The latents' own level, which all other recipes take, is 1000 / steps - 1 lower: 19 at the released 50 steps.
    """
    return 999 - 1000 * k // steps


@torch.no_grad()
def teacher(
    pipe: Pipeline, latents: Latents, timestep: Tensor, text: Texts, *, eta: float | Tensor, prompt: Texts | None = None
) -> tuple[Latents, Latents]:
    """The base model's prediction at c, and what the slider shall make of it: eta c+ - (eta - 1) c (Eq. 2, neutral = unconditional).

    Both are the model's own output (v or epsilon), as in the released code. With a `prompt` of each sample, eta (c+ - c) is added to
    the prediction at that prompt.
    """
    texts = [row.expand(len(latents), -1, -1) for row in text[:2].split(1)]
    texts = texts if prompt is None else [prompt, *texts]
    with adapters.switched_off(pipe.unet):
        predictions = pipe.unet(latents.repeat(len(texts), 1, 1, 1), timestep, torch.cat(texts)).sample.chunk(len(texts))
    plain, unshifted, shifted = predictions[0], predictions[-2], predictions[-1]
    eta = eta.to(plain).reshape(-1, 1, 1, 1) if isinstance(eta, Tensor) else eta
    return plain, plain + eta * (shifted - unshifted)


def evaluations(settings: Sliders, recipe: str = "paper") -> float:
    """Expected UNet evaluations of single samples for one slider: half of the denoising steps, teachers and student in each iteration."""
    if recipe not in RECIPES:
        return 0.0
    predictions = 4 if RECIPES[recipe].graded else 3
    return settings.batch_size * settings.iterations * (settings.denoising_steps / 2 + predictions)


def loss_curve(path: Path) -> pd.DataFrame:
    """Loss and untrained loss of every iteration, from the slider's own file."""
    return pd.DataFrame(json.loads(adapters.header(path)["curve"])).rename_axis("iteration").reset_index()
