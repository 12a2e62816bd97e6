"""Two procedures that must give the same result, in turns within one run: medians, the ratio and its spread."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch


@dataclass(frozen=True)
class Contest:
    """A row of the table: the reference procedure, ours, how far their results are apart, and how far they may be."""

    name: str
    reference: Callable[[], Any]
    ours: Callable[[], Any]
    apart: Callable[[Any, Any], float]
    tolerance: float


def measure(contest: Contest, *, rounds: int) -> tuple[pd.DataFrame, float]:
    """Wall and CPU seconds of both procedures in every round, and how far their results were apart at most.

    One thread: CPU seconds are then those of the work, whatever else the machine does. Who begins changes from round to round.
    """
    torch.set_num_threads(1)
    rows, apart = [], 0.0
    for number in range(rounds):
        results = {}
        for side in ("reference", "ours")[:: 1 if number % 2 == 0 else -1]:
            results[side], taken = seconds(getattr(contest, side))
            rows.append({"round": number, "side": side, **taken})
        apart = max(apart, float(contest.apart(results["reference"], results["ours"])))
    return pd.DataFrame(rows), apart


def seconds(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """The result of some work, and its wall and CPU seconds, those of the processes it started and waited for included."""
    wall, cpu = time.perf_counter(), sum(os.times()[:4])
    result = work()
    return result, {"wall s": time.perf_counter() - wall, "CPU s": sum(os.times()[:4]) - cpu}


def one_thread() -> dict[str, str]:
    """The environment of a process that computes in one thread."""
    return os.environ | {"OMP_NUM_THREADS": "1"}


def ratios(times: pd.DataFrame, column: str) -> pd.Series:
    """Reference over ours, round by round."""
    sides = times.pivot(index="round", columns="side", values=column)
    return sides["reference"] / sides["ours"]


def report(contest: Contest, *, rounds: int = 3, notes: str = "") -> int:
    """Measures and prints; 1 where the results are further apart than allowed, else 0."""
    before = os.getloadavg()[0]
    times, apart = measure(contest, rounds=rounds)
    medians = times.groupby("side")[["wall s", "CPU s"]].median().loc[["reference", "ours"]]
    print(f"{contest.name}: {rounds} rounds, load {before:.1f} before and {os.getloadavg()[0]:.1f} after on {os.cpu_count()} cores")
    print(medians.round(2).to_string())
    for column in ("wall s", "CPU s"):
        found = ratios(times, column)
        print(f"ratio of {column}: median {found.median():.2f}, from {found.min():.2f} to {found.max():.2f}")
    if notes:
        print(notes)
    print(f"results apart by {apart:.3g}, {contest.tolerance:g} allowed: {'same' if apart <= contest.tolerance else 'NOT THE SAME'}")
    return int(apart > contest.tolerance)
