"""Images of one class: a pipeline call per shift and scale against ours. `python benchmarks/generation.py [--drawing fused]`."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
import turns
from diffusers import StableDiffusionPipeline

from cnslib.core import names, paths
from cnslib.core.settings import read
from cnslib.method import generation
from cnslib.method.drawing import changes, chosen
from cnslib.method.sliders import slider_path
from cnslib.models import adapters, text_to_image

NAME, SEEDS = "sneaker", 5


def reference_images(pipe: StableDiffusionPipeline, seeds: Sequence[int], scale: float, settings) -> np.ndarray:
    """One plain pipeline call for all seeds: text encoded anew, adapter attached throughout and switched off until it starts.

    The released code runs the adapter at weight 0 instead of switching it off.
    """
    early = generation.steps_without_slider(settings)

    def start(pipe, step: int, timestep, values: dict) -> dict:
        if step == early - 1 and scale > 0:
            pipe.unet.enable_adapters()
        return values

    pipe.unet.set_adapters(adapters.NAME, weights=scale)
    pipe.unet.disable_adapters()
    prompts = [names.PROMPT.format(token=names.token(NAME))] * len(seeds)
    latents = torch.cat([text_to_image.initial_latent(pipe, seed) for seed in seeds])
    wanted = {"num_inference_steps": settings.steps, "guidance_scale": settings.guidance}
    wanted["negative_prompt"] = [settings.negative_prompt] * len(seeds)
    output = pipe(prompts, latents=latents, output_type="pt", callback_on_step_end=start, **wanted).images
    return (output * 255).round().to(torch.uint8).permute(0, 2, 3, 1).numpy()


class Drawing:
    """All pictures of one class, by either procedure."""

    def __init__(self):
        """Loads the mini model and finds its sliders."""
        sections = read.load(paths.resolve("params.yaml"))
        self.base, self.settings = sections["base"], sections["generation"]
        layout = paths.Layout(self.base.out)
        self.pipe = text_to_image.load_pipeline(paths.resolve(self.base.pipeline), "cpu")
        text_to_image.load_tokens(self.pipe, layout.artifacts("inversion"), [NAME])
        self.files = {shift: slider_path(layout.artifacts("sliders"), shift, NAME) for shift in self.base.shifts}
        self.seeds = range(1, SEEDS + 1)
        self.differing: list[float] = []

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
        way, found = chosen(drawing), []
        sampler = way.sampler(self.pipe, settings=way.settings(self.settings))
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
    """UNet evaluations of the reference and of ours for all shifts, at the benchmark's steps and at the paper's 100."""
    lines, shapes = [], {"shifts": len(drawing.files), "images": 1, "scales": len(drawing.base.scales)}
    for steps in (drawing.settings.steps, 100):
        own = generation.evaluations(replace(drawing.settings, steps=steps), **shapes)
        lines.append(f"{steps} steps: {own['separate']} and {own['shared']}, a share of {own['shared'] / own['separate']:.3f}")
    return f"UNet evaluations per seed under {shapes['shifts']} shifts, " + "; ".join(lines)


def main() -> int:
    """The measured ratio of the exact default or of merged sliders; results are apart by the largest difference in grey levels.

    One level is allowed: a batch of another size adds in another order, and a value on the edge is rounded the other way.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--drawing", choices=("exact", "fused"), default="exact", help="way to draw (default exact)")
    name = parser.parse_args().drawing
    drawing = Drawing()
    single, batch = drawing.alone()
    ours = drawing.exact if name == "exact" else drawing.merged
    contest = turns.Contest(f"generation, {name}", drawing.reference, ours, drawing.apart, 1)
    failed = turns.report(contest, notes=counts(drawing))
    print(f"share of all values that differ: {max(drawing.differing):.3%}")
    print(f"values of a picture that differ from the reference: {single:.3%} drawn alone, {batch:.3%} in the batch of its trajectory")
    return failed


if __name__ == "__main__":
    sys.exit(main())
