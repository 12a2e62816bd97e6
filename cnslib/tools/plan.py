"""What a parameter file costs, before anything runs: `cns plan [--params FILE] [--overlay FILE]`.

Units of work and passes of the UNet follow from the parameters. Hours come from a rate that is measured here, on the UNet that the
parameters name, or on one of Stable Diffusion 2's shape with random weights where its directory is empty. Encoders and classifiers cost
their operations at a rate of operations that is measured here, see `operations`; no weights of theirs are read.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from diffusers import AutoencoderKL, UNet2DConditionModel

from cnslib.core import paths
from cnslib.core.settings import read
from cnslib.method import generation, health, sliders
from cnslib.method.drawing import chosen
from cnslib.models import adapters
from cnslib.studies.bisection import search
from cnslib.tools import operations, rates, recorded
from cnslib.tools.operations import Network, Speed
from cnslib.tools.rates import Rate, guided

PNG, JPEG = 0.48, 0.11  # bytes of a stored picture over those of its pixels, in the mini world; JPEG of quality 90, photographs need more
PAPER_HOURS = {"sliders": 2000, "generation": 350, "evaluation": 1000}  # CNS-Bench (ICCV 2025), supplement G.3; A40, A100, RTX 8000
GIB = 2**30
GIGA = 1e9
UNET_SHARE = 5 / 8  # of the time for the measurement: five kinds of passes of the UNet, and three of what looks at pictures
LEFT_OUT = """Left out: text encoders, the catalog's held-out pictures, what encoders and classifiers see of inversion, health report and
bisection, and the chapters beyond the benchmark. Hours of the paper are those of its full size."""


@dataclass(frozen=True)
class Work:
    """One step's units and what they cost: passes of the UNet for single samples, without and with gradient, pictures that its decoder
    makes, and pictures that each network of the step looks at."""

    step: str
    what: str
    units: int
    passes: float = 0
    training: float = 0
    decoded: int = 0
    looked: int = 0


def work(sections: dict[str, Any]) -> list[Work]:
    """The steps that cost something, in order; what the figures draw beside the benchmark is left out.

    The bisection's images are an upper bound: how many it asks for depends on the answers.
    """
    base, way = sections["base"], chosen(sections["base"].drawing)
    drawing, unshifted = way.settings(sections["generation"]), len(base.classes) * base.seeds
    drawn = len(base.classes) * way.drawn(base.seeds)
    images = unshifted * (1 + len(base.shifts) * (len(base.scales) - 1))
    cost = generation.evaluations(drawing, shifts=len(base.shifts), images=drawn, scales=len(base.scales))["shared"]
    others = [value for value in set(drawing.guidances) if value != drawing.guidance]
    tried = sum(drawn * drawing.steps * guided(value) for value in others)
    answers = len(sections["evaluation"].classifiers) * images
    found = [
        *token_work(sections),
        *slider_work(sections),
        Work("generation", "images", images, cost, decoded=images),
        Work("generation", "images at other guidances", unshifted * len(others), tried, decoded=unshifted * len(others)),
        Work("filtering", "images judged by three encoders", images, looked=images),
        Work("evaluation", "answers of classifiers", answers, looked=images),
        bisection_work(sections),
    ]
    return [one for one in found if one.units]


def token_work(sections: dict[str, Any]) -> list[Work]:
    """Textual inversion, unless the tokens are given, and the images that compare token and name."""
    base, settings = sections["base"], sections["inversion"]
    learned = 0 if base.in_star else len(base.classes) * settings.steps * settings.batch_size
    images = 2 * len(base.classes) * settings.validation_images
    return [
        Work("inversion", "tokens, given" if base.in_star else "tokens", len(base.classes), training=learned),
        Work("inversion", "images compared", images, images * settings.sampling_steps * guided(settings.guidance), decoded=images),
    ]


def slider_work(sections: dict[str, Any]) -> list[Work]:
    """Training of the sliders, unless they are given, and the images of their health report."""
    base, settings = sections["base"], sections["sliders"]
    count = len(base.shifts) * len(base.classes)
    each = [sliders.for_shift(settings, shift) for shift in base.shifts]
    trained = sum(own.iterations for own in each) * len(base.classes) * settings.batch_size if base.recipe in sliders.RECIPES else 0
    passes = sum(sliders.evaluations(own, base.recipe) for own in each) * len(base.classes) - trained
    drawn = count * settings.health_seeds
    drawing = health.drawing_settings(settings, sections["generation"].start_fraction)
    report = generation.evaluations(drawing, shifts=1, images=drawn, scales=len(base.scales))["shared"]
    return [
        Work("sliders", "sliders" if trained else "sliders, given", count, passes, trained),
        Work("sliders", "images of the health report", drawn * len(base.scales), report, decoded=drawn * len(base.scales)),
    ]


def bisection_work(sections: dict[str, Any]) -> Work:
    """Pictures between the grid's scales, at most: each classifier halves one cell of a trajectory by itself."""
    base, settings = sections["base"], sections["bisection"]
    drawing = chosen(base.drawing).settings(sections["generation"])
    halvings = [search.rounds(cell, settings.resolution) for cell in np.diff(base.scales)]
    most = min(len(settings.classifiers) * max(halvings), sum(2**number - 1 for number in halvings))
    trajectories = len(settings.shifts) * len(settings.classes) * settings.seeds
    images = trajectories * most + len(settings.shifts) * settings.scans * len(search.between(base.scales, settings.scan_step))
    late = drawing.steps - generation.steps_without_slider(drawing)
    early = trajectories * (drawing.steps - late)
    return Work("bisection", "images at most", images, guided(drawing.guidance) * (images * late + early), decoded=images)


def hours(works: list[Work], rate: Rate | None, looking: dict[str, float]) -> pd.DataFrame:
    """One row per kind of work with its hours on one device; not a number where nothing was measured.

    `looking` holds the seconds per picture of the networks that look, by step; a step without any is not known.
    """
    rows = []
    for one in works:
        passing, training = (rate.passing, rate.inversion_training) if rate else (np.nan, np.nan)
        if rate and one.what.startswith("sliders"):
            passing, training = rate.slider_passing, rate.slider_training
        seconds = one.passes * passing + one.training * training + one.decoded * (rate.decoding if rate else np.nan)
        seconds += one.looked * looking.get(one.step, np.nan) if one.looked else 0
        rows.append({"step": one.step, "work": one.what, "units": one.units, "UNet passes": round(one.passes + one.training)})
        rows[-1] |= {"hours": seconds / 3600}
    return pd.DataFrame(rows)


def looking_speed(sections: dict[str, Any], networks: dict[str, list[Network]], side: int, *, seconds: float) -> Speed:
    """How fast the device looks at pictures of `side` pixels, in batches as the evaluation's."""
    everyone = [one for own in networks.values() for one in own]
    asked = {"device": sections["base"].device, "batch_size": sections["evaluation"].batch_size}
    return operations.measure(everyone, **asked, side=side, seconds=seconds)


def feeding(works: list[Work], speed: Speed, networks: dict[str, list[Network]]) -> str:
    """Hours of one core that make inputs of stored pictures."""
    needed = {one.step: one.looked * speed.feeding(networks[one.step]) / 3600 for one in works if one.looked}
    parts = [f"{step} {rounded(value)}" for step, value in needed.items()]
    return f"decoding and resizing, hours of one core: {', '.join(parts)}"


def looks(networks: dict[str, list[Network]], unknown: dict[str, str], speed: Speed | None) -> list[str]:
    """What the networks that look at pictures cost for each of these, how fast they ran, and which of them are left out."""
    parts = [f"{step} {rounded(sum(one.operations for one in own) / GIGA)}" for step, own in networks.items()]
    lines = [f"operations per picture, GFLOP: {', '.join(parts)}"]
    if speed:
        texts = {kind: f"{rounded(value / GIGA)} GFLOP/s, by {speed.measured[kind]}" for kind, value in speed.rates.items()}
        lines += [f"measured rate of {kind}: {text} with random weights" for kind, text in texts.items()]
    count = len(unknown) + sum(len(own) for own in networks.values())
    lines += [f"{len(unknown)} of {count} encoders and classifiers not known and left out of the sum:"] if unknown else []
    return [*lines, *(f"  {text}" for text in unknown.values())]


def sizes(sections: dict[str, Any], unet: UNet2DConditionModel, vae: AutoencoderKL) -> dict[str, float]:
    """GiB on disk of sliders and pictures, and of the largest arrays of pictures that a step holds in memory at once."""
    base, inversion = sections["base"], sections["inversion"]
    count = {one.what: one.units for one in work(sections)}
    slider = sum(math.prod(shape) for shape in adapters.factor_shapes(unet, sections["sliders"].rank).values()) * 2
    picture = rates.side_of(unet, vae) ** 2 * 3
    stored = count["images"] + count["images compared"] + count.get("images at other guidances", 0)
    looked = len(base.classes) * (inversion.images_per_class + 3 * inversion.validation_images)
    found = {
        "disk: sliders": len(base.shifts) * len(base.classes) * slider,
        "disk: images": stored * picture * (JPEG if sections["generation"].quality else PNG),
        "memory: inversion": looked * picture,
        "memory: filtering": len(base.classes) * base.seeds * len(base.scales) * picture,
    }
    return {name: value / GIB for name, value in found.items()}


def beside(table: pd.DataFrame, sections: dict[str, Any], counts: list[int]) -> list[str]:
    """Wall time on several numbers of workers, simulated: from hours that were measured, else the paper's.

    What no worker can take, the notebooks do alone: those hours are added as they are.
    """
    from cnslib.tools.simulation import fanout

    hours = table["hours"].fillna(table["paper, hours"]).fillna(0.0)
    units = recorded.units(sections)
    known = [(step, work) in units for step, work in table[["step", "work"]].itertuples(index=False)]
    shared = [(one.step, one.work, spent) for one, spent in zip(table[known].itertuples(), hours[known], strict=True)]
    stages = [fanout.Stage(work, units[step, work], spent / units[step, work]) for step, work, spent in shared if spent]
    alone, trouble = hours[[not one for one in known]].sum(), sections["plan"]
    try:
        found = fanout.scaled(stages, counts, trouble, seed=1) if stages else pd.DataFrame()
    except ValueError as error:
        return [f"not simulated: {error}"]
    lines = [f"simulated, with a failure of each worker every {trouble.between:g} hours and blocks of {trouble.walltime:g}:"]
    lines += [
        f"  {one.workers} workers: {rounded(one.wall + alone)} hours, {rounded(alone)} of them the notebooks' own; "
        f"busy {one.busy:.0%} of the rest; longest: {one.longest}"
        for one in found.itertuples()
    ]
    largest = max((stage.units for stage in stages), default=0)
    return [*lines, f"  more than {largest:,} workers change nothing: no step has more units"]


def rounded(value: float) -> str:
    """A number of hours or GiB as a reader wants it."""
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.2g}"


def report(sections: dict[str, Any], *, seconds: float, workers: Sequence[int] = ()) -> str:
    """The plan as text. Where the device of the parameters is not here, hours stay open."""
    base = sections["base"]
    here = not base.device.startswith("cuda") or torch.cuda.is_available()
    unet, vae, source = rates.models(paths.resolve(base.pipeline), base.device if here else "meta")
    works, (networks, unknown) = work(sections), operations.count(sections)
    rate = rates.measure(unet, vae, sections, device=base.device, seconds=seconds * UNET_SHARE) if here else None
    speed = looking_speed(sections, networks, rates.side_of(unet, vae), seconds=seconds * (1 - UNET_SHARE)) if here else None
    table = hours(works, rate, {step: speed.looking(own) for step, own in networks.items() if speed and own})
    best = table["hours"]
    table["paper, hours"] = table["step"].map(PAPER_HOURS).where(table["step"] != table["step"].shift(), np.nan)
    grid = [f"{len(base.classes)} classes", f"{len(base.shifts)} shifts", f"{len(base.scales)} scales", f"{base.seeds} seeds"]
    lines = [", ".join([*grid, f"{len(sections['evaluation'].classifiers)} classifiers"]), ""]
    many = beside(table, sections, list(workers)) if workers else []
    lines += [
        table.to_string(index=False, na_rep="", formatters={"units": "{:,}".format, "UNet passes": "{:,}".format}, float_format=rounded)
    ]
    lines += [] if rate else [f"no hours: {base.device} is not here"]
    lines += [f"sum: {rounded(best.sum())} hours of one device"] if best.notna().any() else []
    lines += many
    lines += [*([feeding(works, speed, networks)] if speed else []), ""]
    lines += [f"{name}: {rounded(value)} GiB" for name, value in sizes(sections, unet, vae).items()]
    lines += [f"memory: device {rounded(rate.memory / GIB)} GiB"] if rate and rate.memory else []
    lines += [f"measured on {base.device}: {rate.passing:.3g} s per pass and picture, {source}"] if rate else [f"sizes of {source}"]
    return "\n".join([*lines, *looks(networks, unknown, speed), LEFT_OUT])


def main(arguments: list[str]) -> int:
    """Command line; returns 2, with one line, for parameters that are not accepted."""
    parser = argparse.ArgumentParser(prog="cns plan", description=__doc__.splitlines()[0])
    parser.add_argument("--params", default="params.yaml", help="parameter file (default params.yaml)")
    parser.add_argument("--overlay", help="file whose keys replace some of its values")
    parser.add_argument("--seconds", type=float, default=40, help="time for the measurement (default 40)")
    parser.add_argument("--workers", type=int, nargs="+", default=[], help="simulate the run on so many workers, such as 8 64 512")
    options = parser.parse_args(arguments)
    overlay = paths.resolve(options.overlay) if options.overlay else None
    try:
        sections = read.load(paths.resolve(options.params), overlay)
    except (ValueError, FileNotFoundError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(report(sections, seconds=options.seconds, workers=options.workers))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
