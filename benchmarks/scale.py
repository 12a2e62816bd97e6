"""Scale test: every table of the accuracy, ranking, axes, failure and line analyses at the paper's size, timed in a fresh interpreter.

`python benchmarks/scale.py` simulates the predictions where they are missing, then measures. See README.md in this folder.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as arrow
import pyarrow.parquet as parquet
import xarray as xr

from cnslib.core import tables
from cnslib.core.names import SHIFTS
from cnslib.core.paths import resolve
from cnslib.core.settings.method import Bootstrap
from cnslib.stats import accuracy, axes, failure, line, ranking, size

FILE = resolve("build/scale/predictions.parquet")
SCALES = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]
SECONDS, GIGABYTES = 60, 6  # what the analyses may take
BOOTSTRAP, REFERENCE = Bootstrap(resamples=1000, confidence=0.95, seed=1, target="same classes"), "model 00"


@dataclass(frozen=True)
class Extent:
    """How much is simulated: 43 models and 2,288 trajectories per shift, of 100 classes and 50 seeds, are the paper's."""

    models: int = 43
    kept: int = 2288
    classes: int = 100
    seeds: int = 50


def simulate(path: Path, *, extent: Extent) -> None:
    """Predictions with the columns and the order of the evaluation's tables, one row group per model.

    Garments differ in how hard they are under every shift, models in ability and in how fast they lose it.
    """
    rng = np.random.default_rng(1)
    garments = extent.classes * extent.seeds
    cluster = np.concatenate([np.sort(rng.choice(garments, extent.kept, replace=False)) for _ in SHIFTS])
    hardness = rng.normal(size=garments)[cluster] + rng.normal(size=len(cluster))
    growth = np.repeat(rng.uniform(0.3, 1.5, len(SHIFTS)), extent.kept)[:, None] * np.array(SCALES) ** 1.3
    path.parent.mkdir(parents=True, exist_ok=True)
    writer: parquet.ParquetWriter | None = None
    for model in range(extent.models):
        logit = hardness[:, None] - rng.normal(3.5, 0.7) + rng.uniform(0.6, 1.4) * growth  # of a wrong answer
        part = model_table(f"model {model:02d}", logit, cluster, extent=extent, rng=rng)
        writer = writer or parquet.ParquetWriter(path, part.schema, compression="zstd")
        writer.write_table(part)
    if writer:
        writer.close()


def model_table(model: str, logit: np.ndarray, cluster: np.ndarray, *, extent: Extent, rng: np.random.Generator) -> arrow.Table:
    """One model's rows: right where its margin is above zero, else any other class."""
    own = np.repeat(cluster // extent.seeds, len(SCALES))
    margin = rng.logistic(size=own.size) - logit.ravel()
    top1 = np.where(margin > 0, own, (own + rng.integers(1, extent.classes, own.size)) % extent.classes)
    top5 = (top1[:, None] + np.arange(5)) % extent.classes
    columns = {
        "model": repeated([model], np.zeros(own.size)),
        "shift": repeated(sorted(SHIFTS), np.repeat(np.arange(len(SHIFTS)), extent.kept * len(SCALES))),
        "class": repeated(names(extent), own),
        "seed": np.repeat(cluster % extent.seeds + 1, len(SCALES)),
        "scale": np.tile(SCALES, len(cluster)),
        "top1": repeated(names(extent), top1),
        "top5": arrow.ListArray.from_arrays(np.arange(own.size + 1, dtype=np.int32) * 5, repeated(names(extent), top5.ravel())),
        "probability": (1 / (1 + np.exp(-margin))).round(3),
        "margin": margin.round(2),
        "preprocessing": repeated(["simulated"], np.zeros(own.size)),
    }
    return arrow.table(columns)


def names(extent: Extent) -> list[str]:
    """The classes, in the order of their numbers."""
    return [f"class {number:03d}" for number in range(extent.classes)]


def repeated(texts: list[str], places: np.ndarray) -> arrow.Array:
    """Texts by their place in a list."""
    return arrow.DictionaryArray.from_arrays(places.astype(np.int32), texts).cast(arrow.string())


def accuracy_tables(errors: xr.DataArray) -> dict[str, pd.DataFrame]:
    """Accuracy, drop, CE and rCE per model, shift and scale."""
    reference = REFERENCE
    return {
        "accuracy": accuracy.accuracy(errors),
        "drop": accuracy.interval(accuracy.drop(errors)),
        "mean": accuracy.mean_accuracy(errors),
        "against": accuracy.interval(accuracy.drop(errors) - accuracy.drop(errors).sel(model=reference, drop=True)),
        "ce": accuracy.corruption_error(errors, reference=reference),
        "rce": accuracy.relative_corruption_error(errors, reference=reference),
    }


def ranking_tables(errors: xr.DataArray) -> dict[str, pd.DataFrame]:
    """Ranks, agreement, pairs and flips."""
    return {
        "ranks": ranking.ranks(errors),
        "agreement": ranking.agreement(errors),
        "pairs": ranking.pairs(errors),
        "flips": ranking.flips(errors),
    }


def axes_tables(errors: xr.DataArray) -> dict[str, pd.DataFrame]:
    """Drop and rCE along four axes of every fourth model, how far each axis spreads, and what rCE divides by."""
    models = errors["model"].to_numpy().tolist()
    members = {f"axis {number}": models[number::4] for number in range(4)}
    made = {"axes drop": axes.along(accuracy.interval(accuracy.drop(errors).mean("scale")), members)}
    rce = axes.along(accuracy.relative_corruption_error(errors, reference=REFERENCE), members)
    guard = axes.reference_drop(errors, REFERENCE)
    return made | {"axes rce": rce, "axes guard": guard, "axes deviations": axes.deviations_along(errors, members)}


def failure_tables(wrong: xr.DataArray) -> dict[str, pd.DataFrame]:
    """Failure points of all trajectories, their distribution, and failures as survival data."""
    failures = accuracy.by_shift(failure.first_failures(wrong), BOOTSTRAP)
    return {
        "intervals": failure.failure_points(wrong),
        "distribution": failure.failure_distribution(failures),
        "curves": failure.curves(failures),
        "median": failure.median_scale(failures),
        "log_rank": failure.log_rank(wrong, settings=BOOTSTRAP),
        "recovered": accuracy.interval(accuracy.by_shift(failure.recovers(wrong), BOOTSTRAP), share=True),
        "abrupt": pd.DataFrame([failure.more_abrupt(wrong, "cartoon style", "heavy snow", settings=BOOTSTRAP)]),
    }


def line_tables(errors: xr.DataArray) -> dict[str, pd.DataFrame]:
    """Lines per shift and scale on linear and probit axes, gains over them, without each family, and what size adds."""
    models = errors["model"].to_numpy().tolist()
    families = {f"family {number}": models[number::6] for number in range(6)}
    parameters = {model: round(10 ** (6 + 0.05 * number)) for number, model in enumerate(models)}
    found = {axes: line.points(errors, axes=axes) for axes in line.AXES}
    linear, each = found["linear"], (line.slopes, line.noise_free, line.mean_gains)
    sized = size.sized(linear, parameters, families)
    made = {f"{table.__name__} {axes}": table(own) for axes, own in found.items() for table in each}
    made |= {table.__name__: table(linear, sized) for table in (size.partial, size.noise_free, size.per_doubling)}
    return made | {"left out": line.left_out(linear, families), "leverage": line.leverage(linear)}


def analyse(path: Path) -> tuple[dict[str, pd.DataFrame], pd.DataFrame]:
    """All tables, and what each step took."""
    clocks = {"start": read_clocks()}
    wrong = accuracy.wrong_predictions(tables.read_top1([path]))
    clocks["read"] = read_clocks()
    errors = accuracy.by_shift(wrong, BOOTSTRAP)
    clocks["resample"] = read_clocks()
    made = accuracy_tables(errors)
    clocks["accuracy"] = read_clocks()
    made |= ranking_tables(errors)
    clocks["ranking"] = read_clocks()
    made |= axes_tables(errors)
    clocks["axes"] = read_clocks()
    made |= failure_tables(wrong)
    clocks["failure"] = read_clocks()
    made |= line_tables(errors)
    clocks["line"] = read_clocks()
    return made, spent(clocks)


def read_clocks() -> dict[str, float]:
    """Wall clock, user and system seconds of all threads, and the largest memory so far (kibibytes in Linux)."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {"wall s": time.perf_counter(), "CPU s": used.ru_utime + used.ru_stime, "peak GB": used.ru_maxrss * 1024 / 1e9}


def spent(clocks: dict[str, dict[str, float]]) -> pd.DataFrame:
    """Seconds per step and in total, and the peak of memory up to its end."""
    table = pd.DataFrame(clocks).T
    table[["wall s", "CPU s"]] = table[["wall s", "CPU s"]].diff()
    table.loc["total"] = [table["wall s"].sum(), table["CPU s"].sum(), table["peak GB"].max()]
    return table.drop(index="start")


def report(path: Path) -> int:
    """Prints what the analyses took; 1 beyond the limits, else 0."""
    rows = parquet.read_metadata(path).num_rows
    made, table = analyse(path)
    total = table.loc["total"]
    print(
        f"{rows:,} predictions, {len(made)} tables, {BOOTSTRAP.resamples} resamples; "
        f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )
    print(table.round(1).to_string())
    within = total["wall s"] <= SECONDS and total["peak GB"] <= GIGABYTES
    print(f"{'within' if within else 'BEYOND'} the limits of {SECONDS} s and {GIGABYTES} GB")
    return int(not within)


def main() -> int:
    """Each part runs in an interpreter of its own, so that the one does not count in the memory of the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", choices=["simulate", "analyse"], help="default: both, the first where its file is missing")
    part = parser.parse_args().part
    if part == "simulate":
        simulate(FILE, extent=Extent())
        return 0
    if part == "analyse":
        return report(FILE)
    for name in ["analyse"] if FILE.exists() else ["simulate", "analyse"]:
        code = subprocess.run([sys.executable, __file__, name]).returncode
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
