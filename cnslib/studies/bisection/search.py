"""Continuous failure points (Eq. 3): bisects the slider scale between the last right and the first wrong scale of the grid.

All classifiers bisect the same trajectory together. Each asks for the middle of its own bracket; the pictures are shared.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import pandera.pandas as pa
from jaxtyping import Bool, Float

from cnslib.core import locks, seeds, tables, workers
from cnslib.core.settings.analyses import Bisection
from cnslib.studies.bisection import closeups
from cnslib.studies.bisection.closeups import Closeup, NotOnFile, Studio

Scales = Float[np.ndarray, "models"]
Followed = tuple[pd.DataFrame, pd.DataFrame]  # points and predictions of one trajectory
POINT = ["model", *tables.TRAJECTORY]
points_schema = tables.schema(
    POINT,
    {
        "model": pa.Column(str),
        **{key: tables.IDENTITY[key] for key in tables.TRAJECTORY},
        **{key: pa.Column(float) for key in ("grid_after", "grid_until", "after", "until")},
    },
)


def choose(kept: pd.DataFrame, *, settings: Bisection) -> pd.DataFrame:
    """The first `seeds` kept trajectories of each chosen shift and class, in the order of their seeds: no answer has a say.

    Raises ValueError where none is left.
    """
    asked = kept[kept["shift"].isin(settings.shifts) & kept["class"].isin(settings.classes)]
    chosen = asked.sort_values(tables.TRAJECTORY).groupby(["shift", "class"]).head(settings.seeds)
    if chosen.empty:
        raise ValueError(f"bisection.shifts and bisection.classes: none of {len(kept)} kept trajectories is of {settings.shifts}")
    return chosen[tables.TRAJECTORY].reset_index(drop=True)


def bracketed(table: pd.DataFrame) -> pd.Series:
    """Rows whose failure lies between two scales of the grid: neither at scale 0 nor never."""
    names = ["grid_after", "grid_until"] if "grid_after" in table else ["after", "until"]
    return np.isfinite(table[names]).all(axis=1)


def scanned(intervals: pd.DataFrame, *, settings: Bisection) -> list[tuple[str, str, int]]:
    """The trajectories that are scanned in full: up to `scans` per shift, drawn by lot among those with a failure to bisect."""
    keys = keys_of(intervals[bracketed(intervals)])
    lots = sorted(keys, key=lambda key: seeds.seed_of("scan", *key, settings.seed))
    by_shift = [[key for key in lots if key[0] == shift][: settings.scans] for shift in settings.shifts]
    return sorted(itertools.chain(*by_shift))


def keys_of(table: pd.DataFrame) -> list[tuple[str, str, int]]:
    """The trajectories that occur in a table, each once."""
    found = table[tables.TRAJECTORY].drop_duplicates().sort_values(tables.TRAJECTORY)
    return list(found.itertuples(index=False, name=None))


def multiples(last: float, step: float) -> list[float]:
    """All multiples of a step from 0 to the last scale."""
    return (np.arange(math.floor(last / step + 1e-9) + 1) * step).tolist()


def between(scales: list[float], step: float) -> list[float]:
    """The multiples of a step that are not on the grid."""
    return sorted(set(multiples(scales[-1], step)) - set(scales))


def plan(intervals: pd.DataFrame, *, scales: list[float], settings: Bisection) -> pd.DataFrame:
    """How many images the bisection will ask for, per shift and in total, before any is drawn.

    Scanned trajectories cost `scan` images on top of that, less what the bisection has drawn there already.
    """
    table = intervals.groupby("shift").size().rename("pairs").to_frame().reindex(settings.shifts, fill_value=0)
    table.insert(0, "trajectories", intervals.drop_duplicates(tables.TRAJECTORY).groupby("shift").size())
    table["to bisect"] = bracketed(intervals).groupby(intervals["shift"]).sum()
    table = table.join(bounds(intervals, resolution=settings.resolution).groupby("shift").sum())
    places = pd.Series([shift for shift, _, _ in scanned(intervals, settings=settings)], dtype=object)
    table["scan"] = places.value_counts() * len(between(scales, settings.scan_step))
    table = table.fillna(0).round().astype(int)
    return pd.concat([table, table.sum().rename("total").to_frame().T]).rename_axis("shift")


def bounds(intervals: pd.DataFrame, *, resolution: float) -> pd.DataFrame:
    """The least, expected and greatest number of images that the bisection of each trajectory can ask for.

    Models that fail in the same cell of the grid share at least one path through it and at most all pictures of it. The
    expected number takes their failures as independent and evenly spread in the cell.
    """
    cells = intervals[bracketed(intervals)].groupby([*tables.TRAJECTORY, "after", "until"]).size().rename("models").reset_index()
    counts = [cell_images(cell.until - cell.after, cell.models, resolution) for cell in cells.itertuples()]
    cells[["least", "expected", "most"]] = np.reshape(counts, (-1, 3)).astype(float)
    return cells.groupby(tables.TRAJECTORY)[["least", "expected", "most"]].sum()


def cell_images(width: float, models: int, resolution: float) -> tuple[float, float, float]:
    """Least, expected and greatest number of images when so many models bisect the same cell.

    Round r has 2^r possible middles; one is needed unless none of the models' failures lies around it.
    """
    middles = [2**r for r in range(rounds(width, resolution))]
    expected = sum(count * (1 - (1 - 1 / count) ** models) for count in middles)
    return len(middles), expected, sum(min(count, models) for count in middles)


def rounds(width: float, resolution: float) -> int:
    """How often a bracket must be halved until it is no wider than the resolution."""
    return max(0, math.ceil(math.log2(width / resolution) - 1e-9))


def halve(
    after: Scales, until: Scales, wrong_at: Callable[[list[float]], Bool[np.ndarray, "scales models"]], *, resolution: float
) -> tuple[Scales, Scales]:
    """Bisects the brackets (after, until] of all models of one trajectory until none is wider than the resolution.

    `after` is a scale where the model is right, `until` one where it is wrong; infinite bounds (failed at scale 0, or never)
    stay as they are. Each round asks `wrong_at` once, for the middles of all open brackets.
    """
    while (wide := is_wide(after, until, resolution)).any():
        middle = (after + until) / 2
        asked = np.unique(middle[wide])
        place = np.searchsorted(asked, middle).clip(max=len(asked) - 1)
        wrong = wrong_at(asked.tolist())[place, np.arange(len(middle))]
        after, until = narrowed(after, until, middle, wide, wrong)
    return after, until


def is_wide(after: Scales, until: Scales, resolution: float) -> Bool[np.ndarray, "models"]:
    """Brackets with two finite ends that are wider than the resolution."""
    return np.isfinite(after) & np.isfinite(until) & (until - after > resolution * (1 + 1e-9))


def narrowed(after: Scales, until: Scales, middle: Scales, wide: np.ndarray, wrong: np.ndarray) -> tuple[Scales, Scales]:
    """The half of each wide bracket in which the model turns from right to wrong."""
    return np.where(wide & ~wrong, middle, after), np.where(wide & wrong, middle, until)


def bisect(studio: Studio, intervals: pd.DataFrame, *, scales: list[float], settings: Bisection) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Bisects every failure between two scales of the grid, and scans some trajectories in full.

    `intervals` has a row per model and trajectory (model, shift, class, seed, after, until). Returns the points (with the grid's
    bracket as grid_after and grid_until) and all predictions at scales off the grid. Tables of other trajectories are deleted.
    """
    locks.hold(studio.folder, studio)
    places, extra = scanned(intervals, settings=settings), between(scales, settings.scan_step)
    pieces = [(studio, part, extra if key in places else []) for key, part in intervals.groupby(tables.TRAJECTORY)]
    run, shut = functools.partial(follow, resolution=settings.resolution), dataclasses.replace(studio, draws=False)
    found = [on_file(run, shut, *piece[1:]) for piece in pieces]
    waiting = [piece for piece, one in zip(pieces, found, strict=True) if one is None]
    made = iter(workers.each(run, waiting, device=studio.sampler.pipe.device, desc="trajectories"))
    parts, asked = zip(*(next(made) if one is None else one for one in found), strict=True)
    predictions = closeups.joined(tables.predictions, *asked)
    closeups.prune(studio.folder, keys_of(predictions))
    return pd.concat(parts, ignore_index=True), predictions


def on_file(run: Callable[..., Followed], studio: Studio, part: pd.DataFrame, extra: list[float]) -> Followed | None:
    """What `run` finds where the studio, which does not draw, has all answers on file, else None.

    Looking here first is faster than copying a studio with its models to another process for every trajectory.
    """
    try:
        return run(studio, part, extra)
    except NotOnFile:
        return None


def follow(studio: Studio, part: pd.DataFrame, extra: list[float], *, resolution: float) -> Followed:
    """Bisects the failures of all models on one trajectory, then asks for the extra scales; its points and its predictions."""
    closeup = Closeup(studio, *keys_of(part)[0])
    seen: set[float] = set(extra)

    def wrong_at(scales: list[float]) -> Bool[np.ndarray, "scales models"]:
        seen.update(scales)
        reply = closeup.ask(scales)
        wrong = reply.assign(wrong=reply["top1"] != reply["class"]).pivot(index="scale", columns="model", values="wrong")
        return wrong[part["model"]].to_numpy(bool)

    after, until = halve(part["after"].to_numpy(), part["until"].to_numpy(), wrong_at, resolution=resolution)
    if extra:
        closeup.ask(extra)
    if seen:
        closeup.keep(seen)
    found = part.rename(columns={"after": "grid_after", "until": "grid_until"}).assign(after=after, until=until)
    return found, closeup.answers[closeup.answers["scale"].isin(seen)]


def requests(points: pd.DataFrame, *, resolution: float) -> pd.DataFrame:
    """Which scales each bisection asked for, and in which round: its path is fixed by where it ended."""
    after, until = points["grid_after"].to_numpy(), points["grid_until"].to_numpy()
    parts = [points[POINT].head(0).assign(scale=0.0, round=0)]
    for number in itertools.count(1):
        if not (wide := is_wide(after, until, resolution)).any():
            return pd.concat(parts, ignore_index=True)
        middle = (after + until) / 2
        parts.append(points.loc[wide, POINT].assign(scale=middle[wide], round=number))
        after, until = narrowed(after, until, middle, wide, middle >= points["until"].to_numpy())


def cost(points: pd.DataFrame, *, scales: list[float], settings: Bisection) -> pd.DataFrame:
    """Images beyond the grid for every resolution on the way: of the bisection, of one without sharing, of a uniform grid.

    "uniform" draws all multiples of the resolution on each of the trajectories.
    """
    asked = requests(points, resolution=settings.resolution)
    cells = np.diff(scales)
    rows = []
    for number in range(1, rounds(cells.max(), settings.resolution) + 1):
        done, width = asked[asked["round"] <= number], cells.max() / 2**number
        uniform = len(keys_of(points)) * sum(max(0, math.ceil(cell / width - 1e-9) - 1) for cell in cells)
        counts = {"uniform": uniform, "each model alone": len(done), "shared": len(done.drop_duplicates([*tables.TRAJECTORY, "scale"]))}
        rows += [{"resolution": width, "method": method, "images": count} for method, count in counts.items()]
    return pd.DataFrame(rows)
