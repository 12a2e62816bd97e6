"""How the cost of images grows with their number, kind and size, and memory per image. `python benchmarks/growth.py [--device cuda]`."""

import argparse
import functools
import os
import resource
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import statsmodels.api as sm
import torch

from cnslib.core import paths
from cnslib.core.settings import read
from cnslib.method import generation
from cnslib.method.sliders import slider_path
from cnslib.models import adapters, text_to_image

STEPS, ROUNDS = 4, 3
COUNTS = [1, 2, 4, 8]  # of classes, shifts and seeds, the other two being 1
SIDES = [8, 16, 24, 32]  # of the latents; pictures are four times as wide
BATCHES = [96, 128, 160, 192]  # images in one pass of the UNet, twice each because of guidance; fewer hide behind what loading took

PROMPT_FREEING = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "0"}  # glibc gives back at once what is freed


class Drawing:
    """Images of the mini world in a few steps, at any size: the UNet is convolutional."""

    def __init__(self, device: str):
        """Loads the model with all class tokens."""
        sections = read.load(paths.resolve("params.yaml"))
        self.base, self.settings = sections["base"], replace(sections["generation"], steps=STEPS)
        layout = paths.Layout(self.base.out)
        self.sliders, self.above = layout.artifacts("sliders"), self.base.scales[1:]
        self.pipe = text_to_image.load_pipeline(paths.resolve(self.base.pipeline), device)
        text_to_image.load_tokens(self.pipe, layout.artifacts("inversion"), self.base.classes)
        self.side = self.pipe.unet.config.sample_size

    def draw(self, *, classes: int = 1, shifts: int = 1, seeds: int = 1, side: int | None = None) -> float:
        """Seconds for all images of so many of each, as the generation step draws them: of CPU time, which other programs leave alone.

        On any other device of wall time; the pictures end on the CPU, so it is done by then.
        """
        self.pipe.unet.register_to_config(sample_size=side or self.side)
        clock = time.process_time if self.pipe.device.type == "cpu" else time.perf_counter
        sampler, start = generation.Sampler(self.pipe, settings=self.settings), clock()
        for name in self.base.classes[:classes]:
            for seed in range(1, seeds + 1):
                sampler.unshifted(name, seed)
            for shift in self.base.shifts[:shifts]:
                with adapters.loaded(self.pipe, slider_path(self.sliders, shift, name)):
                    for seed in range(1, seeds + 1):
                        sampler.shifted(name, seed, self.above)
        return clock() - start

    def peak(self, images: int) -> float:
        """Most MB that were held at once while so many images of one trajectory were drawn in one batch; everything else included."""
        name, shift = self.base.classes[0], self.base.shifts[0]
        with adapters.loaded(self.pipe, slider_path(self.sliders, shift, name)):
            generation.Sampler(self.pipe, settings=self.settings).shifted(name, 1, [1.0] * images)
        if self.pipe.device.type == "cuda":
            return torch.cuda.max_memory_allocated() / 1e6
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def timed(drawing: Drawing) -> pd.DataFrame:
    """Seconds of every size in every round: (measure, size, round, seconds)."""
    sizes = {"classes": COUNTS, "shifts": COUNTS, "seeds": COUNTS, "side": SIDES}
    for side in SIDES:
        drawing.draw(side=side)  # the first pass of a size prepares what later ones find
    rows = [
        {"measure": measure, "size": size, "round": number, "seconds": drawing.draw(**{measure: size})}
        for number in range(ROUNDS)
        for measure, own in sizes.items()
        for size in own
    ]
    return pd.DataFrame(rows)


def exponent(sizes: np.ndarray, values: np.ndarray) -> tuple[float, float, float]:
    """The exponent e of values ~ sizes ** e by least squares of the logarithms, with its 95 % interval."""
    return slope(np.log(sizes), np.log(values))


def slope(sizes: np.ndarray, values: np.ndarray) -> tuple[float, float, float]:
    """The slope of a line by least squares with its 95 % interval."""
    fit = sm.OLS(np.asarray(values, float), sm.add_constant(np.asarray(sizes, float))).fit()
    low, high = fit.conf_int()[1]
    return float(fit.params[1]), float(low), float(high)


def table(times: pd.DataFrame) -> pd.DataFrame:
    """One row per measure: the median seconds at every size, and the exponent over all rounds."""
    rows = {}
    for measure, part in times.groupby("measure", sort=False):
        medians = part.groupby("size")["seconds"].median()
        found = exponent(part["size"].to_numpy(), part["seconds"].to_numpy())
        listed = {"sizes": ", ".join(map(str, medians.index)), "median s": ", ".join(f"{value:.2f}" for value in medians)}
        rows[measure] = listed | {"exponent": "{:.2f} ({:.2f} to {:.2f})".format(*found)}
    return pd.DataFrame(rows).T


def peaks(device: str) -> pd.Series:
    """Most MB by batch size, each in a process of its own, since the peak of a process never falls."""
    command = [sys.executable, __file__, "--device", device, "--images"]
    run = functools.partial(subprocess.run, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | PROMPT_FREEING)
    return pd.Series({images: float(run([*command, str(images)]).stdout.split()[-1]) for images in BATCHES}, name="peak MB")


def main() -> int:
    """Prints both tables; with `--images`, only the peak of one batch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--images", type=int)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    drawing = Drawing(chosen.device)
    if chosen.images:
        print(drawing.peak(chosen.images))
        return 0
    print(f"{STEPS} steps, {len(drawing.base.scales)} scales, {ROUNDS} rounds; seconds ~ size ** exponent")
    print(table(timed(drawing)).to_string())
    memory = peaks(chosen.device)
    print(memory.round().to_frame().T.to_string())
    print("MB per image: {:.1f} ({:.1f} to {:.1f})".format(*slope(memory.index.to_numpy(), memory.to_numpy())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
