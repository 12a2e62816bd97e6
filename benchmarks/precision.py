"""Generation in 16 bits: the same trajectories in fp32 and in bfloat16. `python benchmarks/precision.py [--device cuda]`.

Weights and activations of the UNet are bfloat16, adapter included. The latents, the scheduler's arithmetic and the guidance stay in
fp32: errors of theirs would add up over the steps. So do the text encoder and the VAE's decoder, which run once per picture.
"""

import argparse
import copy
import itertools
import sys

import numpy as np
import torch
import turns
from diffusers import StableDiffusionPipeline, UNet2DConditionModel
from torch import nn

from cnslib import adapters, classifiers, encoders, generation, models, parameters, paths, stats
from cnslib.sliders import slider_path

SHIFTS, SEEDS, NAME = ["heavy snow", "cartoon style"], [1, 2], "sneaker"
AGREEING = 0.99  # share of the zoo's answers that are the same, at least


def halved(pipe: StableDiffusionPipeline) -> StableDiffusionPipeline:
    """The same pipeline with a UNet in bfloat16 that takes and gives fp32."""
    parts = {key: part for key, part in pipe.components.items() if key != "unet"}
    unet = copy.deepcopy(pipe.unet).to(torch.bfloat16)
    unet.register_forward_pre_hook(narrowed)
    unet.register_forward_hook(widened)
    return StableDiffusionPipeline(**parts, unet=unet, requires_safety_checker=False)


def narrowed(unet: UNet2DConditionModel, inputs: tuple) -> tuple:
    """Latents and text in the UNet's own type; the timestep as it is."""
    latents, timestep, text = inputs
    return latents.to(unet.dtype), timestep, text.to(unet.dtype)


def widened(unet: nn.Module, inputs: tuple, output):
    """The prediction in fp32."""
    output.sample = output.sample.float()
    return output


class Drawing:
    """Trajectories of the mini world in either precision."""

    def __init__(self, device: str):
        """Loads the model twice and finds its sliders."""
        sections = parameters.load(paths.resolve("params.yaml"))
        self.base, self.evaluation, self.settings = (sections[name] for name in ("base", "evaluation", "generation"))
        self.resampling, self.layout = sections["accuracy"], paths.Layout(self.base.out)
        self.device, self.above = device, self.base.scales[1:]
        self.full = models.load_pipeline(paths.resolve(self.base.pipeline), device)
        models.load_tokens(self.full, self.layout.artifacts("inversion"), self.base.classes)
        self.half = halved(self.full)

    def trajectories(self, pipe: StableDiffusionPipeline, name: str, seed: int) -> np.ndarray:
        """The pictures of a class and seed: the unshifted one, then all scales above 0 of every shift."""
        sampler = generation.Sampler(pipe, settings=self.settings)
        found = [sampler.unshifted(name, seed)]
        for shift in SHIFTS:
            with adapters.loaded(pipe, slider_path(self.layout.artifacts("sliders"), shift, name)):
                found.append(sampler.shifted(name, seed, self.above))
        return torch.cat(found).numpy()

    def reference(self) -> np.ndarray:
        """In fp32."""
        return self.trajectories(self.full, NAME, SEEDS[0])

    def ours(self) -> np.ndarray:
        """In bfloat16."""
        return self.trajectories(self.half, NAME, SEEDS[0])

    def jury(self) -> list[classifiers.Classifier]:
        """The classifiers of params.yaml, each in fp32 and with its own preprocessing."""
        options = {"labels": encoders.read_labels(self.base.labels), "device": self.device}
        return [classifiers.load(name, source, **options) for name, source in self.evaluation.classifiers.items()]


def agreement(drawing: Drawing) -> tuple[dict, dict, float]:
    """Share of the answers that are the same in both precisions: over all classifiers, and of each; and the mean grey levels apart.

    Intervals resample (class, seed).
    """
    jury, same, apart = drawing.jury(), [], []
    for name, seed in itertools.product(drawing.base.classes, SEEDS):
        pair = [drawing.trajectories(pipe, name, seed) for pipe in (drawing.full, drawing.half)]
        apart.append(np.abs(pair[0].astype(int) - pair[1]).mean())
        answers = [np.stack([one.logits(list(pictures)).argmax(1).numpy() for one in jury]) for pictures in pair]
        same.append(answers[0] == answers[1])
    hits = np.stack(same)  # clusters, classifiers, pictures
    clusters = np.arange(len(hits)).repeat(hits[0].size)
    overall = stats.clustered_share(hits.ravel(), clusters, settings=drawing.resampling)
    return overall, {one.name: hits[:, i].mean() for i, one in enumerate(jury)}, float(np.mean(apart))


def main() -> int:
    """The measured ratio, then the agreement; 1 where too few answers are the same."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    drawing = Drawing(parser.parse_args().device)
    torch.set_num_threads(1)
    overall, each, levels = agreement(drawing)
    text = "{estimate:.2%} ({low:.2%} to {high:.2%}) of {n} answers".format(**overall)
    worst = min(each, key=each.__getitem__)
    notes = f"same: {text}, {AGREEING:.0%} wanted; fewest of {worst}, {each[worst]:.2%}; pictures {levels:.2f} grey levels apart on average"
    contest = turns.Contest("bfloat16", drawing.reference, drawing.ours, lambda *_: 1 - overall["estimate"], 1 - AGREEING)
    return turns.report(contest, notes=notes)


if __name__ == "__main__":
    sys.exit(main())
