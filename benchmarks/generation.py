"""Images of one class: a pipeline call per shift and scale against ours. `python benchmarks/generation.py [--drawing fused]`.

With `large` at the shape of Stable Diffusion 2, random weights, under one shift in few steps; `--device cuda` on a card.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import shapes
import torch
import turns
from diffusers import StableDiffusionPipeline

from cnslib.core import names, paths
from cnslib.core.settings import read
from cnslib.method import generation
from cnslib.method.generation import SAMPLING_MODES, changes
from cnslib.method.sliders import slider_path
from cnslib.models import adapters, text_to_image

NAME, SEEDS = "sneaker", 5
UNGUIDED = 1 + 1e-6  # a weight of guidance with which the pipeline still doubles its batch, and which is none
STEPS = 8  # of the large pictures, a quarter of them before the slider starts


def reference_images(pipe: StableDiffusionPipeline, seeds: Sequence[int], scale: float, settings) -> np.ndarray:
    """One plain pipeline call for all seeds: text encoded anew, adapter attached throughout and switched off until it starts.

    The released code runs the adapter at weight 0 instead of switching it off. It has no interval of guidance either: outside of
    ours every prediction is made twice, as in its whole run, and the second has the weight 1.
    """
    early = generation.steps_without_slider(settings)
    scales = [settings.guidance if acts else UNGUIDED for acts in generation.guided_steps(settings)]

    def start(pipe, step: int, timestep, values: dict) -> dict:
        if step == early - 1 and scale > 0:
            pipe.unet.enable_adapters()
        pipe._guidance_scale = scales[min(step + 1, len(scales) - 1)]
        return values

    pipe.unet.set_adapters(adapters.NAME, weights=scale)
    pipe.unet.disable_adapters()
    prompts = [names.PROMPT.format(token=names.token(NAME))] * len(seeds)
    latents = torch.cat([text_to_image.initial_latent(pipe, seed) for seed in seeds])
    wanted = {"num_inference_steps": settings.steps, "guidance_scale": scales[0]}
    wanted["negative_prompt"] = [settings.negative_prompt] * len(seeds)
    output = pipe(prompts, latents=latents, output_type="pt", callback_on_step_end=start, **wanted).images
    return (output * 255).round().to(torch.uint8).permute(0, 2, 3, 1).cpu().numpy()


class Drawing:
    """All pictures of one class, by either procedure."""

    def __init__(self, device: str):
        """Loads the mini model and finds its sliders."""
        sections = read.load(paths.resolve("params.yaml"))
        self.base, self.settings = sections["base"], sections["generation"]
        layout = paths.Layout(self.base.out)
        self.pipe = text_to_image.load_pipeline(paths.resolve(self.base.pipeline), device)
        text_to_image.load_tokens(self.pipe, layout.artifacts("inversion"), [NAME])
        self.files = {shift: slider_path(layout.artifacts("sliders"), shift, NAME) for shift in self.base.shifts}
        self.seeds = range(1, SEEDS + 1)
        self.differing: list[float] = []

    def enlarge(self, folder: Path) -> None:
        """Takes the shape of Stable Diffusion 2 in place of the mini model, and one slider, which is written to the folder."""
        settings = read.load(paths.resolve("params.yaml"))["sliders"]
        self.pipe = shapes.pipeline(self.pipe, str(self.pipe.device))
        self.settings = replace(self.settings, steps=STEPS)
        self.files = {"any": shapes.slider(self.pipe, folder / "any.safetensors", rank=settings.rank, alpha=settings.alpha)}

    def reference(self) -> np.ndarray:
        """Every shift and scale from the beginning, scale 0 too, all seeds in one batch: shifts x scales x seeds pictures."""
        found = []
        for file in self.files.values():
            with adapters.loaded(self.pipe, file):
                found.append([reference_images(self.pipe, self.seeds, scale, self.settings) for scale in self.base.scales])
        return np.array(found)

    def exact(self) -> np.ndarray:
        """As the generation step draws: what shifts and scales share is drawn once, all scales of a seed in one batch."""
        sampler, scales = generation.Sampler(self.pipe, settings=self.settings), self.base.scales[1:]
        plain, found = [sampler.unshifted(NAME, seed).numpy() for seed in self.seeds], []
        for file in self.files.values():
            with adapters.loaded(self.pipe, file):
                shifted = [sampler.shifted(NAME, seed, scales).numpy() for seed in self.seeds]
            found.append([np.concatenate(pair) for pair in zip(plain, shifted, strict=True)])
        return np.array(found).swapaxes(1, 2)

    def merged(self, drawing: str = "fused") -> np.ndarray:
        """By a named option: each slider merged into the weights once per scale, all seeds of a scale in one batch."""
        mode, found = SAMPLING_MODES[drawing], []
        sampler = generation.Sampler(self.pipe, settings=mode.settings(self.settings), mode=mode)
        plain = sampler.images(NAME, SEEDS, {}, 0.0).numpy()
        for file in self.files.values():
            change = changes(self.pipe, file)
            found.append([plain, *(sampler.images(NAME, SEEDS, change, scale).numpy() for scale in self.base.scales[1:])])
        return np.array(found)

    def apart(self, reference: np.ndarray, ours: np.ndarray) -> int:
        """The largest difference in grey levels; the share of values that differ is kept."""
        self.differing.append(float((reference != ours).mean()))
        return int(np.abs(reference.astype(int) - ours).max())

    def alone(self) -> tuple[float, float]:
        """Share of values that differ from the reference, one shift at scale 1: drawn alone, and in the batch of its trajectory."""
        sampler, scales, file = generation.Sampler(self.pipe, settings=self.settings), self.base.scales[1:], next(iter(self.files.values()))
        with adapters.loaded(self.pipe, file):
            wanted = reference_images(self.pipe, [1], 1.0, self.settings)[0]
            self.pipe.unet.set_adapters(adapters.NAME, weights=1.0)
            single, batch = sampler.shifted(NAME, 1, [1.0])[0].numpy(), sampler.shifted(NAME, 1, scales)[scales.index(1.0)].numpy()
        return float((single != wanted).mean()), float((batch != wanted).mean())


def counts(drawing: Drawing) -> str:
    """UNet evaluations of the reference, which doubles all, and of ours for all shifts, in the steps drawn here and in the paper's 100."""
    lines, extent = [], {"shifts": len(drawing.files), "images": 1, "scales": len(drawing.base.scales)}
    for steps in (drawing.settings.steps, 100):
        own = generation.evaluations(replace(drawing.settings, steps=steps), **extent)["shared"]
        doubled = 2 * steps * extent["shifts"] * extent["scales"]
        lines.append(f"{steps} steps: {doubled} and {own}, a share of {own / doubled:.3f}")
    return f"UNet evaluations per seed under {extent['shifts']} shifts, " + "; ".join(lines)


def main() -> int:
    """The measured ratio of the exact default or of merged sliders; results are apart by the largest difference in grey levels.

    One level is allowed: a batch of another size adds in another order, and a value on the edge is rounded the other way.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("size", nargs="?", choices=("mini", "large"), default="mini")
    parser.add_argument("--drawing", choices=("exact", "fused"), default="exact", help="way to draw (default exact)")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    drawing, name = Drawing(options.device), options.drawing
    with tempfile.TemporaryDirectory() as folder:
        if options.size == "large":
            drawing.enlarge(Path(folder))
        return compared(drawing, name)


def compared(drawing: Drawing, name: str) -> int:
    """Prints the contest; 1 where results are further apart than a grey level."""
    single, batch = drawing.alone()
    ours = drawing.exact if name == "exact" else drawing.merged
    contest = turns.Contest(f"generation, {name}", drawing.reference, ours, drawing.apart, 1)
    failed = turns.report(contest, notes=counts(drawing))
    print(f"share of all values that differ: {max(drawing.differing):.3%}")
    print(f"values of a picture that differ from the reference: {single:.3%} drawn alone, {batch:.3%} in the batch of its trajectory")
    return failed


if __name__ == "__main__":
    sys.exit(main())
