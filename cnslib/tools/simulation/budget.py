"""The paper's benchmark on a cluster: units, hours, wall times on many workers, files and disk (CNS-Bench, supplement G.3).

Hours of a unit are those that the authors report for the whole, over its units, or those that `make plan profile=paper` found for a device.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cnslib.core import paths
from cnslib.core.names import demand
from cnslib.core.settings.analyses import Plan, Trouble
from cnslib.data import published
from cnslib.stats import bootstrap
from cnslib.tools import plan, rates
from cnslib.tools.simulation import fanout

WHOLE, BY_SHIFT = "all answers of a classifier", "answers of a classifier under one shift"
PIECES = (WHOLE, BY_SHIFT)


def stages(
    sections: dict[str, Any], classes: int, *, piece: str = WHOLE, spent: Mapping[str, float] = plan.PAPER_HOURS
) -> list[fanout.Stage]:
    """What workers can share, for so many classes: sliders, the pictures of each slider, and answers in pieces of one of `PIECES`.

    The library makes all answers of a classifier in one piece. `spent` holds the GPU-hours of the whole at the paper's scale, by step.
    """
    base, classifiers = sections["base"], len(sections["evaluation"].classifiers)
    more, sliders = classes / len(base.classes), classes * len(base.shifts)
    answers = classifiers * (len(base.shifts) if piece == BY_SHIFT else 1)
    hours = {step: reported * more for step, reported in spent.items()}
    return [
        fanout.Stage("sliders", sliders, hours["sliders"] / sliders),
        fanout.Stage("images", sliders, hours["generation"] / sliders),
        fanout.Stage("answers", answers, hours["evaluation"] / answers),
    ]


def work(sections: dict[str, Any], classes: Sequence[int]) -> pd.DataFrame:
    """A row per number of classes and stage: units, hours of one unit and of all."""
    rows = [{"classes": count} | dataclasses.asdict(stage) for count in classes for stage in stages(sections, count)]
    table = pd.DataFrame(rows).rename(columns={"name": "stage", "hours": "hours of one"})
    return table.assign(hours=table["units"] * table["hours of one"])


def walls(given: list[fanout.Stage], workers: Sequence[int], trouble: Trouble, *, runs: int, seed: int, confidence: float) -> pd.DataFrame:
    """A row per number of workers: mean wall hours of simulated runs (n, estimate, low, high), busy share of the workers, longest stage.

    ValueError names a stage whose units hardly fit into a block.
    """
    rows = []
    for count in workers:
        found = pd.concat([fanout.scaled(given, [count], trouble, seed=seed + number) for number in range(runs)])
        record = bootstrap.independent_mean(found["wall"].to_numpy(), confidence=confidence)
        rows.append({"workers": count, **record, "busy": found["busy"].mean(), "longest": found["longest"].mode()[0]})
    return pd.DataFrame(rows)


def fits(given: list[fanout.Stage], trouble: Trouble) -> bool:
    """Whether a block is at least twice as long as any unit."""
    return all(fanout.fits(stage, trouble) for stage in given)


def grid(sections: dict[str, Any], settings: Plan, *, confidence: float, spent: Mapping[str, float] = plan.PAPER_HOURS) -> pd.DataFrame:
    """`walls` for every number of classes and piece of answers; pieces that do not fit into a block have no wall time."""
    parts, runs = [], settings.runs
    for count in settings.classes:
        for piece in PIECES:
            given = stages(sections, count, piece=piece, spent=spent)
            known = pd.DataFrame({"workers": settings.workers, "n": runs})
            if fits(given, settings):
                known = walls(given, settings.workers, settings, runs=runs, seed=settings.seed, confidence=confidence)
            ideal = sum(stage.units * stage.hours for stage in given) / known["workers"]
            parts.append(known.assign(classes=count, piece=piece, ideal=ideal))
    return pd.concat(parts, ignore_index=True)


def measured(path: Path) -> dict[str, float]:
    """GPU-hours of each step as `make plan profile=paper` found them on one device. ValueError names a table of other steps."""
    table = pd.read_csv(path).set_index("step")["hours"]
    demand(list(table.index) == list(plan.PAPER_HOURS), f"{path}: steps", ", ".join(table.index), ", ".join(plan.PAPER_HOURS))
    return table.to_dict()


def compared(spent: Mapping[str, float]) -> pd.DataFrame:
    """A row per step: the authors' GPU-hours, those of another device, and how many times less these are."""
    table = pd.DataFrame({"reported": plan.PAPER_HOURS, "measured": spent}).rename_axis("step")
    return table.assign(times=table["reported"] / table["measured"])


def blocks(sections: dict[str, Any], settings: Plan) -> pd.DataFrame:
    """A row per length of a block and piece of answers: share of the answers' worker-hours that was cut off and done again.

    For the first number of classes and of workers; lengths that hold no piece twice are left out.
    """
    rows = []
    for piece in PIECES:
        stage = stages(sections, settings.classes[0], piece=piece)[-1]
        for walltime in settings.walltimes:
            trouble = dataclasses.replace(settings, walltime=walltime)
            if fanout.fits(stage, trouble):
                seeds = range(settings.seed, settings.seed + settings.runs)
                lost = [fanout.simulate([stage], settings.workers[0], trouble, seed=seed)["lost"][0] for seed in seeds]
                rows.append({"piece": piece, "walltime": walltime, "n": settings.runs, "lost": np.mean(lost)})
    return pd.DataFrame(rows)


def files(sections: dict[str, Any], classes: Sequence[int]) -> pd.DataFrame:
    """A row per number of classes: files of each kind, each beside a record of what it was made from, pictures, and GiB on disk.

    The pictures of a shift are one table, whose size counts where a file system or a reader has a limit.
    """
    base, rows = sections["base"], []
    unet, vae, _ = rates.models(paths.resolve(base.pipeline), "meta")
    disk = plan.sizes(sections, unet, vae)
    for count in classes:
        more = count / len(base.classes)
        tables = {"image tables": 1 + len(base.shifts), "answer tables": len(sections["evaluation"].classifiers)}
        counts = {"sliders": count * len(base.shifts)} | tables
        pictures = count * base.seeds * (1 + len(base.shifts) * (len(base.scales) - 1))
        space = {f"GiB of {name.removeprefix('disk: ')}": size * more for name, size in disk.items() if name.startswith("disk")}
        table = {"GiB of one image table": space["GiB of images"] / len(base.shifts)}
        rows.append({"classes": count, **counts, "files": 2 * sum(counts.values()), "pictures": pictures, **space, **table})
    return pd.DataFrame(rows)


def reported(sections: dict[str, Any]) -> pd.DataFrame:
    """The units and hours that the plan rests on beside other numbers of the same supplement; `fits` where they agree.

    Hours of a slider and minutes of its pictures are printed as ranges, which the quotients of the totals must lie in.
    """
    facts = published.facts("cns_text")
    sliders, images, _ = stages(sections, len(sections["base"].classes))
    ends = {name: [float(facts[f"{name}_{end}"]) for end in ("low", "high")] for name in ("slider_hours", "generation_minutes")}
    count = float(facts["sliders"])
    rows = [
        ("sliders", sliders.units, count, count),
        ("GPU-hours of a slider", sliders.hours, *ends["slider_hours"]),
        ("GPU-minutes of the pictures of a slider", 60 * images.hours, *ends["generation_minutes"]),
    ]
    table = pd.DataFrame(rows, columns=["quantity", "ours", "least published", "most published"])
    return table.assign(fits=table["ours"].between(table["least published"], table["most published"]))


def told(found: pd.DataFrame, workers: int, classes: int) -> str:
    """How long the run takes on so many workers, and by which stage, in a sentence."""
    parts = []
    for row in found[(found["workers"] == workers) & (found["classes"] == classes)].itertuples():
        if np.isnan(row.estimate):
            parts.append(f"impossible where a piece is {row.piece}, since it does not fit into a block")
        else:
            busy = f"the {row.longest} take longest, GPUs work {row.busy:.0%} of the time"
            parts.append(f"{duration(row.estimate, row.low, row.high)} where a piece is {row.piece} ({busy})")
    return f"{classes:,} classes on {workers:,} GPUs: {'; '.join(parts)}."


def duration(estimate: float, low: float, high: float) -> str:
    """Hours with their interval as a reader wants them: in days from two days on."""
    unit, hours = ("days", 24) if estimate >= 48 else ("hours", 1)
    return f"{estimate / hours:.1f} {unit} ({low / hours:.1f} to {high / hours:.1f})"


def extent(settings: Plan) -> str:
    """What n and band of the simulated numbers are, for captions."""
    failures = f"a failure of each worker every {settings.between:g} hours and blocks of {settings.walltime:g} hours"
    return f"n = {settings.runs} simulated runs with {failures}; in brackets the interval of their mean"


def blocks_extent(settings: Plan) -> str:
    """What the simulated blocks are and what their share is of, for a caption (as `blocks`: the first classes and workers)."""
    given = f"{settings.classes[0]:,} classes, {settings.workers[0]:,} GPUs, a failure of each every {settings.between:g} hours"
    return f"Share of the answers' GPU-hours that were cut off and done again: {given}; mean of {settings.runs} simulated runs"


def lost(found: pd.DataFrame) -> str:
    """What short blocks cost, in a sentence: by piece what the shortest block that holds it loses, and the longest."""
    parts = []
    for piece, own in found.groupby("piece", sort=False):
        first, last = (own.iloc[place] for place in (0, -1))
        parts.append(
            f"where a piece is {piece}, blocks of {first['walltime']:g} hours lose {first['lost']:.1%} and blocks of "
            f"{last['walltime']:g} hours {last['lost']:.1%}"
        )
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}. Blocks too short for two pieces are left out."


def shares(found: pd.DataFrame) -> str:
    """Which stage costs how much of the GPU-hours, in a sentence."""
    own = found[found["classes"] == found["classes"].iloc[0]]
    parts = [f"{row.stage} {row.hours / own['hours'].sum():.0%}" for row in own.itertuples()]
    return f"Of {own['hours'].sum():,.0f} GPU-hours: {', '.join(parts)}."


def records(found: pd.DataFrame) -> dict[str, dict]:
    """The wall hours as metrics, by classes, workers and piece; those that cannot be are left out."""
    known = found.dropna(subset="estimate")
    keys = [f"{row.classes} classes, {row.workers} workers, {row.piece}" for row in known.itertuples()]
    return {key: dict(row) for key, (_, row) in zip(keys, known[["n", "estimate", "low", "high"]].iterrows(), strict=True)}
