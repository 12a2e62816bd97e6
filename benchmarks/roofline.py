"""How near each heavy step comes to what the machine can calculate. `python benchmarks/roofline.py [--device cuda]`.

On a CPU with the mini world's models in fp32; on a card with random weights of Stable Diffusion 2's shape, in bfloat16.
"""

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import open_clip
import pandas as pd
import shapes
import timm
import torch
from timm.data import resolve_data_config
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from cnslib.core import paths
from cnslib.core.settings import read
from cnslib.models import adapters, encoders

ROUNDS, PASSES = 5, 4
MATRIX = {"cpu": 2048, "cuda": 8192}  # rows of the two square matrices whose product is the ceiling
TOKENS = {"cpu": 16, "cuda": 77}  # of a prompt
CLASSIFIERS = ["resnet", "vit"]


@dataclass(frozen=True)
class Step:
    """A heavy step: one pass of it, and what it carries."""

    name: str
    run: Callable[[], object]
    extent: str


def synchronize(device: str) -> None:
    """Waits for a card; a CPU is done when a call returns."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def seconds(run: Callable[[], object], device: str) -> np.ndarray:
    """Seconds of a pass in every round, each the mean over some passes; the first pass of all is not counted."""
    run()
    found = []
    for _ in range(ROUNDS):
        synchronize(device)
        start = time.perf_counter()
        for _ in range(PASSES):
            run()
        synchronize(device)
        found.append((time.perf_counter() - start) / PASSES)
    return np.array(found)


def operations(run: Callable[[], object]) -> int:
    """Operations of a pass as torch counts them: two per multiplication and addition in matrix products and convolutions.

    Attention is counted in its plain form, whose products are those of the fused kernels that are timed and not all counted.
    """
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
            run()
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
    return counter.get_total_flops()


def ceiling(device: str, dtype: torch.dtype) -> float:
    """Operations per second of the fastest round of a large matrix product."""
    size = MATRIX[device.split(":")[0]]
    one, other = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    return 2 * size**3 / seconds(lambda: one @ other, device).min()


def measured(steps: list[Step], device: str, top: float) -> pd.DataFrame:
    """One row per step: operations, seconds with spread, operations per second and their share of the ceiling."""
    rows = []
    for step in steps:
        taken, count = seconds(step.run, device), operations(step.run)
        rate = count / np.median(taken)
        spread = f"{np.median(taken):.3f} ({taken.min():.3f} to {taken.max():.3f})"
        columns = {"carries": step.extent, "GFLOP": f"{count / 1e9:.1f}", "s": spread, "GFLOP/s": f"{rate / 1e9:.0f}"}
        rows.append({"step": step.name, **columns, "of the ceiling": f"{rate / top:.0%}"})
    return pd.DataFrame(rows).set_index("step")


def noise(*shape: int, like: nn.Module) -> torch.Tensor:
    """Random values in the type and on the device of a module."""
    parameter = next(like.parameters())
    return torch.randn(shape, device=parameter.device, dtype=parameter.dtype)


@torch.no_grad()
def forward(module: Callable, *inputs) -> None:
    """One pass without gradient."""
    module(*inputs)


def diffusion(sections: dict, device: str, dtype: torch.dtype) -> list[Step]:
    """A step of sampling one trajectory, one of slider training without and with gradient, and the decoding of a trajectory."""
    base, settings = sections["base"], sections["sliders"]
    unet, vae = shapes.models(paths.resolve(base.pipeline) if device == "cpu" else paths.ROOT / "none", device)
    adapters.attach(unet.requires_grad_(False).eval(), rank=settings.rank, alpha=settings.alpha, generator=torch.Generator())
    for part in (unet, vae.requires_grad_(False).eval()):
        part.to(dtype)
    images = len(base.scales) - 1
    sampling, training, side = 2 * images, settings.batch_size, unet.config.sample_size
    text = noise(1, TOKENS[device], unet.config.cross_attention_dim, like=unet)
    latents = noise(images, vae.config.latent_channels, side, side, like=vae)

    def sample() -> None:
        with adapters.scaled(unet, [*base.scales[1:]] * 2):
            forward(shapes.predict, unet, sampling, side, text)

    def train() -> None:
        shapes.predict(unet, training, side, text).square().mean().backward()

    return [
        Step("UNet, sampling", sample, f"{sampling} samples"),
        Step("UNet, slider training, no gradient", lambda: forward(shapes.predict, unet, training, side, text), f"{training} samples"),
        Step("UNet, slider training, gradient", train, f"{training} samples"),
        Step("VAE, decoding", lambda: forward(vae.decode, latents), f"{images} pictures"),
    ]


def seeing(sections: dict, device: str, dtype: torch.dtype) -> list[Step]:
    """The passes of the filter's two encoders and of two classifiers."""
    batch, found = sections["evaluation"].batch_size, []
    for name, (module, side) in (mini(sections) if device == "cpu" else large(device)).items():
        pictures = noise(batch, 3, side, side, like=module.requires_grad_(False).eval().to(dtype))
        found.append(Step(name, partial(forward, module, pictures), f"{batch} pictures"))
    return found


def mini(sections: dict) -> dict[str, tuple[nn.Module, int]]:
    """The mini world's encoders and classifiers, each with the width of its pictures."""
    base, sources = sections["base"], sections["evaluation"].classifiers
    clip = encoders.Clip(base.clip).model.visual
    found = {"CLIP": (clip, clip.image_size[0])}
    named = {"image encoder": base.image_encoder} | {f"classifier {name}": sources[name] for name in CLASSIFIERS}
    for name, source in named.items():
        model, _ = encoders.timm_model(name, source, "cpu")
        found[name] = model, resolve_data_config({}, model=model)["input_size"][-1]
    return found


def large(device: str) -> dict[str, tuple[nn.Module, int]]:
    """Random weights in the shapes of the paper's encoders and two of its classifiers."""
    with torch.device(device):
        clip = open_clip.create_model("ViT-B-16", pretrained=None, device=device).visual
        found = {"CLIP": (clip, 224)}
        for name in ("vit_large_patch14_reg4_dinov2", "resnet50", "vit_base_patch16_224"):
            model = timm.create_model(name)
            found[name] = model, resolve_data_config({}, model=model)["input_size"][-1]
    return found


def main() -> int:
    """Prints the ceilings and the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=list(MATRIX), default="cpu")
    device = parser.parse_args().device
    torch.set_num_threads(1)
    sections, dtype = read.load(paths.resolve("params.yaml")), torch.float32 if device == "cpu" else torch.bfloat16
    tops = {kind: ceiling(device, kind) for kind in (torch.float32, torch.bfloat16)}
    print("ceiling, GFLOP/s: " + ", ".join(f"{str(kind).removeprefix('torch.')} {top / 1e9:.0f}" for kind, top in tops.items()))
    print(measured(diffusion(sections, device, dtype) + seeing(sections, device, dtype), device, tops[dtype]).to_string())
    return 0


if __name__ == "__main__":
    sys.exit(main())
