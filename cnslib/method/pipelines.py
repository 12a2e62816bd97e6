"""Sliders for any text-to-image pipeline of diffusers (CNS-Bench section 3.2): the pipeline runs itself, its denoiser is listened to.

A hook on the denoiser takes all that the pipeline calls it with: latents, timestep as this family scales it, texts, pooled texts, ids,
masks. Eq. 2 needs no more. Where a family differs is in one table, TARGETS, and in what `arguments` calls its guidance.
"""

import contextlib
import functools
import inspect
import itertools
import json
import tempfile
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from diffusers import AutoPipelineForText2Image, DDIMScheduler, DiffusionPipeline, ModelMixin, SchedulerMixin
from diffusers.loaders import PeftAdapterMixin
from diffusers.utils import logging as diffusers_logging
from jaxtyping import Float, UInt8
from torch import Tensor, nn
from tqdm.auto import tqdm
from transformers.utils import logging as transformers_logging

from cnslib.core import recipes, seeds, units
from cnslib.core.names import demand
from cnslib.core.settings.method import Sliders
from cnslib.method import sliders
from cnslib.method.sliders import REACH, Lesson, Recipe
from cnslib.models import adapters, text_to_image, weights
from cnslib.models.adapters import NAME

# By class of the denoiser, the layers that a slider adapts: all of the picture's own. The paper's "noxattn" leaves the attention to the
# text alone; where picture and text attend to each other jointly, the text's own projections and dense layers are left alone.
PROJECTIONS = r"(to_q|to_k|to_v|to_out\.0)"
BLOCKS = r"transformer_blocks\.\d+\."
TARGETS = {
    "UNet2DConditionModel": adapters.TARGETS,
    "SD3Transformer2DModel": rf"{BLOCKS}(attn2?\.{PROJECTIONS}|ff\.net\.(0\.proj|2))",
    "FluxTransformer2DModel": rf"{BLOCKS}(attn\.{PROJECTIONS}|ff\.net\.(0\.proj|2))|single_{BLOCKS}(attn\.{PROJECTIONS}|proj_mlp|proj_out)",
    "PixArtTransformer2DModel": rf"{BLOCKS}(attn1\.{PROJECTIONS}|ff\.net\.(0\.proj|2))",
    "SanaTransformer2DModel": rf"{BLOCKS}(attn1\.{PROJECTIONS}|ff\.(conv_inverted|conv_point))",
}
SIGMA = 0.804  # the noise level of t = 750 of Stable Diffusion, at which the paper's sliders begin (section 5.1)
ACCEPTED = ("paper", "released", "graded")
Pictures = UInt8[Tensor, "scales height width 3"]
Inputs = dict[str, Any]  # of a denoiser, by name; the latents come first


@dataclass(frozen=True, kw_only=True)
class Call:
    """How a pipeline is called: steps, pixels of a side, guidance with its negative prompt; None leaves each to the pipeline.

    `guidance` is classifier-free guidance in every family. `embedded` is the guidance that some denoisers take as an input (FLUX).
    """

    steps: int | None = None
    size: int | None = None
    guidance: float | None = None
    embedded: float | None = None
    negative_prompt: str = ""

    def arguments(self, pipe: DiffusionPipeline) -> dict[str, Any]:
        """The keyword arguments of this pipeline. ValueError where it takes no embedded guidance."""
        parameters = inspect.signature(pipe.__call__).parameters
        embeds = "true_cfg_scale" in parameters  # guidance_scale is then the denoiser's input, and guidance asks for a negative prompt
        demand(embeds or self.embedded is None, "embedded guidance", self.embedded, f"none: {type(pipe).__name__} has no such input")
        given: dict[str, Any] = {"num_inference_steps": self.steps, "height": self.size, "width": self.size}
        if embeds:
            guided = {"true_cfg_scale": self.guidance, "guidance_scale": self.embedded, "negative_prompt": self.negative_prompt}
        else:
            guided = {"guidance_scale": self.guidance, "negative_prompt": self.negative_prompt or None}
        binned = {"use_resolution_binning": False} if "use_resolution_binning" in parameters else {}  # the size that was asked for
        return {name: value for name, value in (given | guided | binned).items() if value is not None}


def load(directory: Path, device: str, dtype: torch.dtype = torch.float32) -> DiffusionPipeline:
    """The text-to-image pipeline of a local diffusers directory: frozen, no safety checker, no progress bar."""
    text_to_image.require_whole(directory)
    index = json.loads((directory / "model_index.json").read_text())
    absent = {part: None for part, value in index.items() if value == [None, None] or part == "safety_checker"}
    diffusers_logging.disable_progress_bar()
    transformers_logging.disable_progress_bar()
    pipe = AutoPipelineForText2Image.from_pretrained(directory, dtype=dtype, use_safetensors=True, local_files_only=True, **absent)
    network = denoiser(pipe)
    demand(type(network).__name__ in TARGETS, f"pipeline: denoiser of {directory}", type(network).__name__, ", ".join(TARGETS))
    if not isinstance(network, PeftAdapterMixin):  # PixArt's cannot load LoRA; diffusers' methods for it need nothing else
        network.__class__ = type(type(network).__name__, (type(network), PeftAdapterMixin), {})
    for part in pipe.components.values():
        if isinstance(part, nn.Module):
            part.requires_grad_(False).eval()
    pipe.set_progress_bar_config(disable=True)
    return pipe.to(device)


def denoiser(pipe: DiffusionPipeline) -> ModelMixin:
    """The network that predicts noise, velocity or flow."""
    return getattr(pipe, "transformer", None) or pipe.unet


class Reached(Exception):
    """A pipeline has come to the call of its denoiser that was waited for."""


def inputs_at(pipe: DiffusionPipeline, prompts: list[str], call: int, *, generator: torch.Generator, **arguments: Any) -> Inputs:
    """What the pipeline gives its denoiser in call 0, 1, ... of a run, which ends there. ValueError where there is no such call."""
    network, calls = denoiser(pipe), itertools.count()
    parameters = inspect.signature(network.forward)

    def listen(module: nn.Module, args: tuple, kwargs: dict) -> None:
        if next(calls) == call:
            raise Reached(parameters.bind(*args, **kwargs).arguments)

    handle = network.register_forward_pre_hook(listen, with_kwargs=True)
    try:
        pipe(prompts, generator=generator, **arguments)
    except Reached as reached:
        return reached.args[0]
    finally:
        handle.remove()
    raise ValueError(f"{type(pipe).__name__} calls its denoiser {next(calls)} times; accepted: {call + 1} and more")


def predict(network: ModelMixin, inputs: Inputs) -> Tensor:
    """The denoiser's output for inputs; of PixArt's eight channels the first four, which are the noise."""
    latents = next(iter(inputs.values()))
    return network(**inputs | {"return_dict": False})[0][:, : latents.shape[1]].float()


@torch.no_grad()
def teacher(network: ModelMixin, inputs: Inputs, texts: Sequence[Inputs], eta: Float[Tensor, " batch"]) -> tuple[Tensor, Tensor]:
    """The base model's prediction at some inputs, and what the slider shall make of it: eta (c+ - c) more (Eq. 2).

    `texts` are inputs at c and c+, whose latents and timestep do not count.
    """
    moving = {name: inputs[name] for name in (next(iter(inputs)), "timestep")}
    with adapters.switched_off(network):
        plain, unshifted, shifted = (predict(network, each | moving) for each in (inputs, *texts))
    return plain, plain + eta.to(plain).reshape(-1, *[1] * (plain.ndim - 1)) * (shifted - unshifted)


def lessons(
    pipe: DiffusionPipeline, words: Sequence[str], *, settings: Sliders, call: Call, generator: torch.Generator, recipe: Recipe
) -> Generator[Lesson]:
    """Endless lessons: latents after k ~ U{1, ..., steps - 1} steps of the pipeline with the slider on, at c; its size is the batch's.

    Graded, each sample has its own scale up to REACH, and c or the empty prompt, as in `sliders.training_points`.
    """
    network, count = denoiser(pipe), settings.batch_size
    arguments = call.arguments(pipe)
    texts = [inputs_at(pipe, [each] * count, 0, generator=torch.Generator().manual_seed(0), **arguments) for each in words]
    while True:
        scales, prompts = torch.ones(count), [words[0]] * count
        if recipe.graded:
            scales = REACH * torch.rand(count, generator=generator)
            prompts = [words[0] if conditional else "" for conditional in torch.rand(count, generator=generator) < 0.5]
        with adapters.scaled(network, scales):
            k = int(torch.randint(1, settings.denoising_steps, (), generator=generator))
            inputs = inputs_at(pipe, prompts, k, generator=generator, **arguments)
            if recipe.released and isinstance(pipe.scheduler, DDIMScheduler):
                inputs["timestep"] = torch.full_like(inputs["timestep"], sliders.released_timestep(k, steps=settings.denoising_steps))
            plain, target = teacher(network, inputs, texts, settings.eta * scales)
            yield functools.partial(predict, network, inputs), plain, target


@contextlib.contextmanager
def fresh(pipe: DiffusionPipeline, *, settings: Sliders, generator: torch.Generator, recipe: Recipe) -> Iterator[list[nn.Parameter]]:
    """The pipeline with a new slider; yields its parameters, in single precision unless the recipe is the released one."""
    network = denoiser(pipe)
    targets = TARGETS[type(network).__name__]
    try:
        parameters = adapters.attach(network, rank=settings.rank, alpha=settings.alpha, generator=generator, targets=targets)
        for parameter in parameters:
            parameter.data = parameter.data if recipe.released else parameter.data.float()
        yield parameters
    finally:
        network.unload_lora()


@contextlib.contextmanager
def loaded(pipe: DiffusionPipeline, path: Path) -> Iterator[None]:
    """The pipeline with the slider of a file, at scale 1. ValueError where it is not one of the adapted layers."""
    network = denoiser(pipe)
    factors = weights.read_weights(path)
    wanted = adapters.factor_shapes(network, len(next(iter(factors.values()))), TARGETS[type(network).__name__], prefix="")
    weights.require_same(weights.shapes(factors), wanted, f"slider {path} does not fit this pipeline", "both factors of each layer")
    try:
        network.load_lora_adapter(path, prefix=None, adapter_name=NAME, use_safetensors=True, local_files_only=True)
        yield
    finally:
        network.unload_lora()


def words(shift: str, name: str, *, settings: Sliders, recipe: Recipe) -> tuple[str, str]:
    """The prompts of c and c+, with the class by its plain name: no pipeline but the mini world's has a token for it."""
    return sliders.prompts(shift, name, texts=settings.texts, recipe=recipe, token=str)


def train(pipe: DiffusionPipeline, shift: str, name: str, path: Path, *, settings: Sliders, recipe: str, base: str, call: Call) -> None:
    """Trains a slider by "paper", "released" or "graded" and writes it, unless it is there and was made from the same.

    Of `call` size and embedded guidance count: guidance plays no part in Eq. 2. `base` is the digest of the pipeline's directory.
    """
    demand(recipe in ACCEPTED, "base.recipe", recipe, ", ".join(ACCEPTED))
    made = sliders.RECIPES[recipe]
    settings, prompts = sliders.for_shift(settings, shift), words(shift, name, settings=settings, recipe=made)
    size = call.size
    if made.released:
        drawn = (getattr(pipe, "default_sample_size", None) or denoiser(pipe).config.sample_size) * pipe.vae_scale_factor
        size = min(size or drawn, sliders.RESOLUTION)
    call = Call(steps=settings.denoising_steps, size=size, guidance=1.0, embedded=call.embedded)
    about = sliders.training_settings(settings) | {"size": call.size, "embedded": call.embedded, "dtype": str(pipe.dtype)}
    unit = units.Unit(path, recipes.PIPELINE_SLIDERS.stamp(made.kind, prompts, about, base))
    if unit.done:
        return
    generator = seeds.generator("slider", shift, name, settings.seed)
    with fresh(pipe, settings=settings, generator=generator, recipe=made) as parameters:
        with contextlib.closing(lessons(pipe, prompts, settings=settings, call=call, generator=generator, recipe=made)) as endless:
            shown = tqdm(itertools.islice(endless, settings.iterations), f"{name}, {shift}", settings.iterations, disable=None)
            curve = sliders.descend(parameters, shown, settings=settings, recipe=made)
        sliders.require_finite(curve, shift, name)
        save(denoiser(pipe), path, sliders.header(shift, name, recipe, text_to_image.Origin(base, {}), prompts, about, curve))
    unit.finish()


def save(network: ModelMixin, path: Path, entries: dict[str, str]) -> None:
    """Writes the slider as `load_lora_adapter(path, prefix=None)` of the denoiser reads it, with further header entries."""
    level = diffusers_logging.get_verbosity()
    diffusers_logging.set_verbosity_error()  # it warns of a cast that it does not make
    with tempfile.TemporaryDirectory() as folder:
        network.save_lora_adapter(folder, adapter_name=NAME, weight_name="slider.safetensors")
        diffusers_logging.set_verbosity(level)
        units.write_bytes(path, adapters.with_header((Path(folder) / "slider.safetensors").read_bytes(), entries))


def noise_levels(scheduler: SchedulerMixin) -> Float[Tensor, " steps"]:
    """The share of noise in the latents of each step, noise / (signal + noise) by amplitude: 1 is pure noise, 0 the picture.

    It is the sigma of a flow, and sigma / (1 + sigma) of a diffusion, whose sigma is the ratio of noise to signal.
    """
    steps = len(scheduler.timesteps)
    if not hasattr(scheduler, "sigmas"):
        share = scheduler.alphas_cumprod[scheduler.timesteps.long().cpu()]
        return (1 - share).sqrt() / ((1 - share).sqrt() + share.sqrt())
    flow = "FlowMatch" in type(scheduler).__name__ or scheduler.config.get("use_flow_sigmas")
    sigmas = scheduler.sigmas[:steps].cpu()
    return sigmas if flow else sigmas / (1 + sigmas)


@contextlib.contextmanager
def gated(pipe: DiffusionPipeline, scales: Sequence[float], *, sigma: float) -> Iterator[None]:
    """Sample i of a batch has slider scale `scales[i]` from the first step whose noise level is at most `sigma`, 0 before.

    Steps are counted where the scheduler makes them: the timestep that a denoiser gets has another scale in each family, guidance may
    call it twice a step, and not every pipeline calls back.
    """
    slider_scales, factors, step, made = torch.tensor(scales), torch.zeros(len(scales)), pipe.scheduler.step, []

    @functools.wraps(step)
    def counted(*args: Any, **kwargs: Any) -> Any:
        made.append(step)
        return step(*args, **kwargs)

    def turn(module: nn.Module, args: tuple) -> None:
        factors.copy_(slider_scales * (noise_levels(pipe.scheduler)[len(made)] <= sigma))

    handle = denoiser(pipe).register_forward_pre_hook(turn)
    pipe.scheduler.step = counted
    try:
        with adapters.scaled(denoiser(pipe), factors):
            yield
    finally:
        del pipe.scheduler.step
        handle.remove()


def draw(pipe: DiffusionPipeline, prompt: str, seed: int, scales: Sequence[float], *, call: Call, sigma: float = SIGMA) -> Pictures:
    """The pictures of one seed under all scales of the slider that is loaded, in one batch, from the same noise."""
    generators = [torch.Generator().manual_seed(seed) for _ in scales]
    with gated(pipe, scales, sigma=sigma):
        drawn = pipe(prompt, num_images_per_prompt=len(scales), generator=generators, output_type="pt", **call.arguments(pipe))
    return text_to_image.as_bytes(drawn.images)
