"""Slider training, fast mode: the released code's iteration against ours, and the health of sliders of both recipes.

`python benchmarks/fastsliders.py [health | time]`
"""

import argparse
import functools
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import sliders as exact_row
import turns

from cnslib.core import paths, workers
from cnslib.core.settings import read
from cnslib.core.settings.method import Base, Sliders
from cnslib.method import health, sliders
from cnslib.method.generation import Sampler
from cnslib.models import encoders, text_to_image
from cnslib.stats import bootstrap

ITERATIONS = 8  # of the contest: two trajectories of four points
COMPARED = 20  # sliders by each recipe: every shift once or twice, each class two or three times
REDUCED = {"iterations": 20, "batch_size": 4}  # of their training, half of the benchmark's own: an exact one takes a minute then
RECIPES = {"exact": "paper", "fast": "fast"}
MEASURES = {"rising": "share of rising steps", "gain": "alignment gain", "structure": "structure kept"}


def trained(recipe: str, pipe, *, base: Base, settings: Sliders, origin: text_to_image.Origin) -> dict[tuple[str, str], Path]:
    """The compared sliders by one recipe; those that are there already are kept."""
    pairs = [(base.shifts[n % len(base.shifts)], base.classes[n % len(base.classes)]) for n in range(COMPARED)]
    folder, given = paths.resolve("build/fastsliders") / recipe, {"settings": settings, "origin": origin, "recipe": RECIPES[recipe]}
    shelf = sliders.shelf_of({pair: sliders.stamp(*pair, **given) for pair in pairs}, folder)
    make = functools.partial(sliders.train, **given)
    workers.each(make, [(pipe, *pair, shelf[pair]) for pair in shelf.waiting()], device=pipe.device, desc=recipe)
    return shelf.paths


def reports() -> dict[str, pd.DataFrame]:
    """Gain, share of rising steps and structure of every compared slider by each recipe, from the same number of updates."""
    sections = read.load(paths.resolve("params.yaml"))
    base = sections["base"]
    settings = replace(sections["sliders"], denoising_steps=exact_row.RELEASED["denoising_steps"], **REDUCED)
    tokens = paths.Layout(base.out).artifacts("inversion")
    pipe = text_to_image.load_pipeline(paths.resolve(base.pipeline), base.device)
    text_to_image.load_tokens(pipe, tokens, base.classes)
    origin = text_to_image.origin(paths.resolve(base.pipeline), tokens, base.classes)
    judge = health.Judge(encoders.Clip(base.clip, device=base.device), encoders.ImageEncoder(base.image_encoder, device=base.device))
    shared, found = {"settings": settings, "origin": origin}, {}
    drawing = health.drawing_settings(settings, sections["generation"].start_fraction)
    sampler, grid = Sampler(pipe, settings=drawing), {"scales": base.scales, "seeds": settings.health_seeds, "origin": origin}
    for recipe in RECIPES:
        made = trained(recipe, pipe, base=base, **shared)
        rows = health.report(sampler, made, **grid, judge=judge)
        found[recipe] = health.per_slider(rows).set_index(health.SLIDER)
    return found


def compare(found: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Each measure by each recipe and the paired difference, with intervals over sliders. Not worse: not below the exact interval."""
    rows = []
    for column, name in MEASURES.items():
        exact, fast = (found[recipe][column] for recipe in ("exact", "fast"))
        named = {"exact": exact, "fast": fast, "fast - exact": fast - exact}
        records = {side: bootstrap.independent_mean(values.to_numpy(), confidence=0.95) for side, values in named.items()}
        verdict = "not worse" if records["fast"]["estimate"] >= records["exact"]["low"] else "WORSE"
        rows += [{"measure": name, "of": side, **record, "verdict": verdict} for side, record in records.items()]
    return pd.DataFrame(rows)


def compared() -> int:
    """Prints the comparison; 1 where the fast mode's monotone share or alignment gain is worse."""
    table = compare(reports())
    print(table.round(4).to_string(index=False))
    judged = table[table["measure"].isin([MEASURES["rising"], MEASURES["gain"]])]
    return int((judged["verdict"] == "WORSE").any())


def timed() -> int:
    """Prints seconds and samples of the same number of updates by both; there is no equal result to check."""
    settings = replace(read.load(paths.resolve("params.yaml"))["sliders"], iterations=ITERATIONS, **exact_row.RELEASED)
    training = exact_row.Training(settings, "cpu")
    fast = functools.partial(training.losses, functools.partial(sliders.fit, recipe=sliders.RECIPES["fast"]))
    fast()
    expected = exact_row.doubled(settings), sliders.evaluations(settings, "fast")
    notes = f"samples through the UNet per iteration: {training.samples / ITERATIONS:.0f}, expected {expected[1] / ITERATIONS:.1f}"
    notes += f" and by the reference {expected[0] / ITERATIONS:.0f}, {expected[0] / expected[1]:.2f} times"
    updates = turns.Contest("slider training, fast (results: updates made)", training.reference, fast, lambda a, b: abs(len(a) - len(b)), 0)
    return turns.report(updates, notes=notes)


def main(arguments: list[str]) -> int:
    """Command line: the comparison, the times, or both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", choices=("health", "time"), help="one of the two (default both)")
    part = parser.parse_args(arguments).part
    return max(run() for name, run in (("health", compared), ("time", timed)) if part in (None, name))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
