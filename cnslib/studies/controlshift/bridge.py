"""The bridge to CNS-Bench: its classifiers' order by robustness slope (Control+Shift section 4.2) beside that by rCE on the benchmark.

They were trained on the catalog, not on the shifted sets' training images; the distance is that from these nevertheless.
"""

from pathlib import Path

import pandas as pd

from cnslib.core import tables
from cnslib.core.settings.method import Bootstrap, Evaluation
from cnslib.core.settings.studies import Controlshift
from cnslib.method import evaluation
from cnslib.stats import axes, ranking
from cnslib.stats.accuracy import Outcomes, Shares
from cnslib.studies.controlshift import datasets
from cnslib.studies.controlshift.findings import steepness


def ask(
    sets: Path, shifted: Controlshift, classes: list[str], *, labels: list[str], settings: Evaluation, device: str, folder: Path
) -> pd.DataFrame:
    """The answers of the benchmark's classifiers to all test images, each enlarged by its own preprocessing.

    Tables that are missing or outdated are made, one per classifier. Errors are those of `evaluation.evaluate`.
    """
    evaluation.require_labels(classes, labels)
    numbers = range(1, shifted.test_images + 1)
    pieces = [piece for piece in datasets.plan(shifted) if piece.split == "test"]
    keys = {piece: [(piece.kind, name, number, float(piece.step)) for name in classes for number in numbers] for piece in pieces}
    shards = {sets / f"{piece.name}.parquet": own for piece, own in keys.items()}
    made = evaluation.answered_shards(shards, labels=labels, settings=settings, device=device, folder=folder)
    found = tables.read_answers(made.values()).astype({"shift": str})
    start = found[(found["shift"] == "extend") & (found["scale"] == 0)]
    return pd.concat([found, start.assign(shift="overlap")], ignore_index=True)


def agreement(
    found: Outcomes, away: pd.DataFrame, benchmark: Shares, *, space: str, reference: str, settings: Bootstrap
) -> dict[str, dict]:
    """Kendall's tau between the classifiers' order by robustness slope, per shift, and that by mean rCE on the benchmark.

    1: who loses little there loses little here; n counts the images of the shift, or the benchmark's trajectories where they are fewer.
    The two have no picture in common; give them resamples of different seeds.
    """
    slopes = steepness(found, away, space=space, settings=settings)
    ratios = axes.relative_errors(benchmark, reference=reference)[:, axes.columns(benchmark, slopes.models)]
    robust = {group: (-slopes.samples[:, i, :, 0], min(slopes.n[i], benchmark.n[-1])) for i, group in enumerate(slopes.groups)}
    return {group: ranking.order_record(values, ratios, n, settings.confidence) for group, (values, n) in robust.items()}


def both(slopes: Shares, benchmark: Shares, *, reference: str) -> pd.DataFrame:
    """Robustness slope (all shifts) and mean rCE of every classifier: model, slope, rce."""
    ratios = axes.relative_errors(benchmark, reference=reference)[0, axes.columns(benchmark, slopes.models)]
    return pd.DataFrame({"model": slopes.models, "slope": slopes.samples[0, -1, :, 0], "rce": ratios})
