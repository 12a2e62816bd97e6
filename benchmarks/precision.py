"""Generation in 16 bits: merged sliders in fp32 and in bfloat16. `python benchmarks/precision.py [--device cuda]`.

Weights and activations of the UNet are bfloat16, but for its last block and what follows. Sliders are merged in fp32 and the sums
rounded once. The latents, the scheduler's arithmetic and the guidance stay in fp32: errors of theirs would add up over the steps. So
do the text encoder and the VAE's decoder, which run once per picture.
"""

import argparse
import copy
import sys
from collections.abc import Iterable

import numpy as np
import pandas as pd
import torch
import turns
from diffusers import StableDiffusionPipeline, UNet2DConditionModel
from torch import nn

from cnslib.core import paths
from cnslib.core.settings import read
from cnslib.core.settings.method import Generation
from cnslib.method.generation import PASS, SAMPLING_MODES, Sampler, SamplingMode, changes, merged
from cnslib.method.sliders import slider_path
from cnslib.models import classifiers, encoders, text_to_image
from cnslib.stats import bootstrap

SHIFTS, SEEDS, NAME = ["heavy snow", "cartoon style"], PASS, "sneaker"
AGREEING = 0.99  # share of the zoo's answers that are the same, at least


class Half(Sampler):
    """Draws as the named option "fused", with a UNet in 16 bits."""

    def __init__(self, pipe: StableDiffusionPipeline, *, settings: Generation, mode: SamplingMode = SAMPLING_MODES["fused"]):
        """Keeps the pipeline in fp32, from which the weights of every scale are rounded."""
        super().__init__(halved(pipe), settings=settings, mode=mode)
        self.full = pipe

    @torch.no_grad()
    def images(self, name: str, seeds: int, change: dict, scale: float) -> torch.Tensor:
        """As `generation.Sampler.images`; what all scales share is drawn before the weights change."""
        for members in self.mode.passes(seeds):
            self.start(name, members)
        with merged(self.full.unet, change, scale):
            rounded(self.full.unet, self.pipe.unet, change)
            found = super().images(name, seeds, {}, 0.0)
        rounded(self.full.unet, self.pipe.unet, change)
        return found


def halved(pipe: StableDiffusionPipeline) -> StableDiffusionPipeline:
    """The same pipeline with a UNet in bfloat16 that takes and gives fp32, and ends in fp32."""
    parts = {key: part for key, part in pipe.components.items() if key != "unet"}
    unet = copy.deepcopy(pipe.unet).to(torch.bfloat16)
    unet.register_forward_pre_hook(narrowed)
    for last in (unet.up_blocks[-1], unet.conv_norm_out, unet.conv_out):
        last.float().register_forward_pre_hook(widened, with_kwargs=True)
    rounded(pipe.unet, unet, [""])
    return StableDiffusionPipeline(**parts, unet=unet, requires_safety_checker=False)


@torch.no_grad()
def rounded(full: UNet2DConditionModel, half: UNet2DConditionModel, names: Iterable[str]) -> None:
    """Copies the weights of some layers, each in the target's own precision."""
    for name in names:
        for target, source in zip(half.get_submodule(name).parameters(), full.get_submodule(name).parameters(), strict=True):
            target.copy_(source)


def narrowed(unet: UNet2DConditionModel, inputs: tuple) -> tuple:
    """Latents and text in the UNet's own type; the timestep as it is."""
    latents, timestep, text = inputs
    return latents.to(unet.dtype), timestep, text.to(unet.dtype)


def widened(module: nn.Module, inputs: tuple, named: dict) -> tuple[tuple, dict]:
    """Every tensor among the inputs in fp32."""
    return tuple(wide(value) for value in inputs), {key: wide(value) for key, value in named.items()}


def wide(value):
    """A tensor, or a tuple of tensors, in fp32; anything else as it is."""
    if isinstance(value, tuple):
        return tuple(wide(one) for one in value)
    return value.float() if torch.is_tensor(value) and value.is_floating_point() else value


class Drawing:
    """Trajectories of the mini world in either precision."""

    def __init__(self, device: str):
        """Loads the model twice and finds its sliders."""
        sections = read.load(paths.resolve("params.yaml"))
        self.base, self.evaluation, self.settings = (sections[name] for name in ("base", "evaluation", "generation"))
        self.resampling, self.layout = self.base.bootstrap, paths.Layout(self.base.out)
        self.device, self.above = device, self.base.scales[1:]
        self.pipe = text_to_image.load_pipeline(paths.resolve(self.base.pipeline), device)
        text_to_image.load_tokens(self.pipe, self.layout.artifacts("inversion"), self.base.classes)

    def trajectories(self, kind: type[Sampler], name: str) -> np.ndarray:
        """The pictures of a class: of every seed the unshifted one, then all scales above 0 of every shift."""
        sampler = kind(self.pipe, settings=self.settings, mode=SAMPLING_MODES["fused"])
        found = [sampler.images(name, SEEDS, {}, 0.0)]
        for shift in SHIFTS:
            change = changes(self.pipe, slider_path(self.layout.artifacts("sliders"), shift, name))
            found += [sampler.images(name, SEEDS, change, scale) for scale in self.above]
        return torch.stack(found, dim=1).numpy()

    def reference(self) -> np.ndarray:
        """In fp32."""
        return self.trajectories(Sampler, NAME)

    def ours(self) -> np.ndarray:
        """In bfloat16."""
        return self.trajectories(Half, NAME)

    def asked(self) -> list[classifiers.Classifier]:
        """The classifiers of params.yaml, each in fp32 and with its own preprocessing."""
        labels = encoders.read_labels(self.base.labels)
        return [classifiers.load(name, source, labels, self.device) for name, source in self.evaluation.classifiers.items()]


def agreement(drawing: Drawing) -> tuple[dict, dict, float]:
    """Share of the answers that are the same in both precisions: over all classifiers, and of each; and the mean grey levels apart.

    Intervals are about other seeds of the same classes.
    """
    asked, same, apart, rows = drawing.asked(), [], [], []
    for name in drawing.base.classes:
        for number, pair in enumerate(zip(*(drawing.trajectories(kind, name) for kind in (Sampler, Half)), strict=True)):
            rows.append((name, number))
            apart.append(np.abs(pair[0].astype(int) - pair[1]).mean())
            answers = [np.stack([one.logits(list(pictures)).argmax(1).numpy() for one in asked]) for pictures in pair]
            same.append(answers[0] == answers[1])
    hits = np.stack(same)  # clusters, classifiers, pictures
    drawn = pd.DataFrame(rows, columns=bootstrap.CLUSTER).loc[np.arange(len(hits)).repeat(hits[0].size)]
    overall = bootstrap.rate(hits.ravel(), drawn, settings=drawing.resampling)
    return overall, {one.name: hits[:, i].mean() for i, one in enumerate(asked)}, float(np.mean(apart))


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
