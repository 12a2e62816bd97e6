"""Wall time of a run over many workers, by simulation of discrete events: units, workers that fail, and blocks that reach their walltime.

All units of a stage must be there before the next begins. A unit that is cut off, by a failure or the walltime, begins anew on
whichever worker is free: units keep nothing of a half.
"""

import functools
from collections.abc import Generator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd
import simpy

from cnslib.core.names import demand
from cnslib.core.settings.analyses import Trouble


@dataclass(frozen=True)
class Stage:
    """Units of one kind, and the hours that a worker takes for one, on average."""

    name: str
    units: int
    hours: float


class Run:
    """One stage on some workers: `wall` hours, `lost` hours of work that was cut off, and how many units are done."""

    def __init__(self, stage: Stage, workers: int, trouble: Trouble, rng: np.random.Generator):
        self.trouble, self.rng = trouble, rng
        self.environment = simpy.Environment()
        self.waiting = simpy.Store(self.environment)
        self.hours = durations(stage, trouble.spread, rng)
        room = trouble.walltime - trouble.loading
        if self.hours.max(initial=0.0) > room:
            raise ValueError(f"{stage.name}: its longest unit takes {self.hours.max():.2g} hours; accepted: {room:g}, what loading leaves")
        self.waiting.items = list(range(stage.units))
        self.done, self.lost, self.finished = 0, 0.0, self.environment.event()
        for _ in range(workers):
            self.environment.process(self.worker())
        self.environment.run(self.finished)
        self.wall = self.environment.now

    def worker(self) -> Generator[simpy.Event, Any, None]:
        """Takes units until its end comes, is replaced, and goes on."""
        clock = self.environment
        while True:
            ends = clock.now + min(self.trouble.walltime, self.rng.exponential(self.trouble.between))
            yield clock.timeout(self.trouble.loading)
            while True:
                unit = yield self.waiting.get()
                left = ends - clock.now
                if self.hours[unit] > left:
                    yield clock.timeout(max(0.0, left))
                    self.lost += max(0.0, left)
                    self.waiting.put(unit)
                    break
                yield clock.timeout(self.hours[unit])
                self.done += 1
                if self.done == len(self.hours):
                    self.finished.succeed()
            yield clock.timeout(self.trouble.replacing)


def fits(stage: Stage, trouble: Trouble) -> bool:
    """Whether a block is at least twice as long as a unit, which it would cut off again and again else."""
    return 2 * stage.hours <= trouble.walltime


def durations(stage: Stage, spread: float, rng: np.random.Generator) -> np.ndarray:
    """Hours of every unit: gamma distributed about the mean, or all the same without spread."""
    if not spread:
        return np.full(stage.units, stage.hours)
    return rng.gamma(spread**-2, stage.hours * spread**2, stage.units)


def simulate(stages: Sequence[Stage], workers: int, trouble: Trouble, *, seed: int) -> pd.DataFrame:
    """One row per stage: units, wall hours, share of the workers' hours that ended up in a unit, and the share that was cut off.

    ValueError names a stage whose units hardly fit into a block, as they would be cut off for ever, and fewer workers than one.
    """
    demand(workers >= 1, "workers", workers, "1 or more")
    plain = Trouble(*(getattr(trouble, field.name) for field in fields(Trouble)))  # a plan holds lists, which are no key of a cache
    rows = []
    for number, stage in enumerate(stages):
        if not fits(stage, trouble):
            raise ValueError(
                f"{stage.name}: a unit of {stage.hours:g} hours in blocks of {trouble.walltime:g}; accepted: half a block or less"
            )
        ended = outcome(stage, workers, plain, (seed, number, workers))
        rows.append({"stage": stage.name, "units": stage.units, "workers": workers, **ended})
    return pd.DataFrame(rows)


@functools.cache
def outcome(stage: Stage, workers: int, trouble: Trouble, key: tuple[int, ...]) -> dict[str, float]:
    """How one stage ended: `wall`, `busy` and `lost` as `simulate` tells them. Plans that differ in another stage share it."""
    run = Run(stage, workers, trouble, np.random.default_rng(key))
    paid = workers * run.wall
    return {"wall": run.wall, "busy": run.hours.sum() / paid, "lost": run.lost / paid}


def scaled(stages: Sequence[Stage], counts: Sequence[int], trouble: Trouble, *, seed: int) -> pd.DataFrame:
    """The whole run on several numbers of workers: wall hours, worker-hours paid for, and busy share; `alone` is one without trouble."""
    rows = []
    work = sum(stage.units * stage.hours for stage in stages)
    for count in counts:
        found = simulate(stages, count, trouble, seed=seed)
        paid = count * found["wall"].sum()
        longest = found.loc[found["wall"].idxmax(), "stage"]
        rows.append({"workers": count, "wall": found["wall"].sum(), "paid": paid, "busy": work / paid, "longest": longest})
    return pd.DataFrame(rows).assign(alone=work)
