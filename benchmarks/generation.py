"""Images of one class and seed under every shift: a pipeline call per shift and scale against ours. `python benchmarks/generation.py`."""

import sys
from dataclasses import replace

import numpy as np
import torch
import turns
from diffusers import StableDiffusionPipeline

from cnslib import adapters, generation, inversion, models, parameters, paths
from cnslib.sliders import slider_path

NAME, SEED, STEPS = "sneaker", 1, 8


def reference_image(pipe: StableDiffusionPipeline, scale: float, settings) -> np.ndarray:
    """One plain pipeline call: text encoded anew, adapter attached throughout and switched off until it starts.

    The released code runs it at weight 0 instead; so did this one, but peft costs a small model more per layer than their own layers.
    """
    early = generation.steps_without_slider(settings)

    def start(pipe, step: int, timestep, values: dict) -> dict:
        if step == early - 1 and scale > 0:
            pipe.unet.enable_adapters()
        return values

    pipe.unet.set_adapters(adapters.NAME, weights=scale)
    pipe.unet.disable_adapters()
    prompt = inversion.PROMPT.format(token=inversion.token(NAME))
    latents = models.initial_latent(pipe, SEED)
    wanted = {"num_inference_steps": settings.steps, "guidance_scale": settings.guidance, "negative_prompt": settings.negative_prompt}
    output = pipe(prompt, latents=latents, output_type="pt", callback_on_step_end=start, **wanted).images
    return (output * 255).round().to(torch.uint8).permute(0, 2, 3, 1).numpy()[0]


class Drawing:
    """All pictures of one class and seed, by either procedure."""

    def __init__(self):
        """Loads the mini model and finds its sliders."""
        sections = parameters.load(paths.resolve("params.yaml"))
        self.base, self.settings = sections["base"], replace(sections["generation"], steps=STEPS)
        layout = paths.Layout(self.base.out)
        self.pipe = models.load_pipeline(paths.resolve(self.base.pipeline), "cpu")
        models.load_tokens(self.pipe, layout.artifacts("inversion"), [NAME])
        self.files = {shift: slider_path(layout.artifacts("sliders"), shift, NAME) for shift in self.base.shifts}

    def reference(self) -> np.ndarray:
        """Every shift and scale from the beginning, scale 0 too: shifts x scales pictures."""
        found = []
        for file in self.files.values():
            with adapters.loaded(self.pipe, file):
                found.append([reference_image(self.pipe, scale, self.settings) for scale in self.base.scales])
        return np.array(found)

    def ours(self) -> np.ndarray:
        """As the generation step draws: what shifts and scales share is drawn once, all scales in one batch."""
        sampler, found = generation.Sampler(self.pipe, settings=self.settings), []
        plain = sampler.unshifted(NAME, SEED).numpy()
        for file in self.files.values():
            with adapters.loaded(self.pipe, file):
                found.append(np.concatenate([plain, sampler.shifted(NAME, SEED, self.base.scales[1:]).numpy()]))
        return np.array(found)

    def alone(self) -> tuple[float, float]:
        """Share of values that differ from the reference, one shift at scale 1: drawn alone, and in the batch of its trajectory."""
        sampler, scales, file = generation.Sampler(self.pipe, settings=self.settings), self.base.scales[1:], next(iter(self.files.values()))
        with adapters.loaded(self.pipe, file):
            wanted = reference_image(self.pipe, 1.0, self.settings)
            self.pipe.unet.set_adapters(adapters.NAME, weights=1.0)
            single, batch = sampler.shifted(NAME, SEED, [1.0])[0].numpy(), sampler.shifted(NAME, SEED, scales)[scales.index(1.0)].numpy()
        return float((single != wanted).mean()), float((batch != wanted).mean())


def main() -> int:
    """The measured ratio, and the evaluations at the paper's size; results are apart by the largest difference in grey levels.

    One level is allowed: a batch of another size adds in another order, and a value on the edge is rounded the other way.
    """
    drawing = Drawing()
    shapes = {"shifts": len(drawing.base.shifts), "images": 1, "scales": len(drawing.base.scales)}
    counts = {steps: generation.evaluations(replace(drawing.settings, steps=steps), **shapes) for steps in (STEPS, 100)}
    lines = [f"{steps} steps: {own['separate']} and {own['shared']}" for steps, own in counts.items()]
    notes = f"UNet evaluations, {'; '.join(lines)}: a share of {counts[100]['shared'] / counts[100]['separate']:.3f}"
    single, batch = drawing.alone()
    notes += f"\nvalues of a picture that differ from the reference: {single:.3%} drawn alone, {batch:.3%} in the batch of its trajectory"
    contest = turns.Contest("generation", drawing.reference, drawing.ours, lambda a, b: np.abs(a.astype(int) - b).max(), 1)
    return turns.report(contest, notes=notes)


if __name__ == "__main__":
    sys.exit(main())
