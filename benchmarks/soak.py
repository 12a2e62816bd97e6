"""Draws shards for an hour in one process and watches its memory and its open files. `python benchmarks/soak.py [--minutes 60]`."""

import argparse
import os
import sys
import tempfile
import time
from itertools import cycle
from pathlib import Path

import numpy as np
from tqdm.auto import tqdm

from cnslib.core import paths
from cnslib.core.settings import read
from cnslib.method import generation
from cnslib.models import text_to_image

NAMES, SEEDS, SCALES = ["sneaker", "dress"], 2, [0.0, 1.0, 2.5]
GROWTH = 0.01  # of the memory from the second quarter to the last; what is loaded on first use is there by then


def draw(folder: Path, minutes: float) -> list[tuple[int, int, int]]:
    """Draws the shard of one shift after the other, each anew, until the time is up; bytes, open files and threads after each."""
    sections = read.load(paths.resolve("params.yaml"))
    base, layout = sections["base"], paths.Layout(sections["base"].out)
    place, tokens = paths.resolve(base.pipeline), layout.artifacts("inversion")
    pipe = text_to_image.load_pipeline(place, "cpu")
    text_to_image.load_tokens(pipe, tokens, NAMES)
    sampler = generation.Sampler(pipe, settings=sections["generation"])
    given: dict = {"scales": SCALES, "seeds": SEEDS, "sliders": layout.artifacts("sliders")}
    given["origin"] = text_to_image.origin(place, tokens, NAMES)
    found: list = []
    end = time.monotonic() + 60 * minutes
    for shift in tqdm(cycle(base.shifts), desc="shards", disable=None):
        if time.monotonic() > end:
            return found
        generation.generate(sampler, [shift], NAMES, folder=folder, **given)  # takes the shard before it away
        memory = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        found.append((memory, len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))))
    return found


def quarters(values: list[int]) -> list[float]:
    """The median of each quarter of a series."""
    return [float(np.median(part)) for part in np.array_split(values, 4)]


def main() -> int:
    """1 where memory grows, or files or threads are left open."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    minutes = parser.parse_args().minutes
    os.environ["LOKY_MAX_CPU_COUNT"] = "1"  # all in this process
    with tempfile.TemporaryDirectory() as folder:
        found = draw(Path(folder), minutes)
    memory, files, threads = ([row[place] for row in found] for place in range(3))
    pictures = len(found) * len(NAMES) * SEEDS * len(SCALES)
    print(f"{len(found)} shards, {pictures} pictures in {minutes:g} minutes; medians of the quarters:")
    print(f"MiB: {', '.join(f'{value / 2**20:.1f}' for value in quarters(memory))}; files: {quarters(files)}; threads: {quarters(threads)}")
    _, second, _, last = quarters(memory)
    return int(last > second * (1 + GROWTH) or quarters(files)[-1] > quarters(files)[1] or quarters(threads)[-1] > quarters(threads)[1])


if __name__ == "__main__":
    sys.exit(main())
