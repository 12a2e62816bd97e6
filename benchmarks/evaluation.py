"""Answers of ten classifiers: a launch per classifier and shift against one run. `python benchmarks/evaluation.py`."""

import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import turns

from cnslib import classifiers, encoders, evaluation, parameters, paths, tables
from cnslib.config import UNSHIFTED, identifier

SHIFTS, SEEDS, COUNT = ["cartoon style", "heavy snow"], 4, 10
LAUNCH = "from cnslib import classifiers"  # what a launch imports before it can do anything


class Asking:
    """Ten classifiers' answers to the same pictures by either procedure."""

    def __init__(self, folder: Path):
        """Writes a part of the benchmark's pictures, so that one run takes seconds."""
        sections = parameters.load(paths.resolve("params.yaml"))
        self.base, self.folder, settings = sections["base"], folder, sections["evaluation"]
        chosen = dict(list(settings.classifiers.items())[:COUNT])
        self.settings, self.labels = replace(settings, classifiers=chosen), encoders.read_labels(self.base.labels)
        source = paths.Layout(self.base.out).artifacts("generation")
        for name in (UNSHIFTED, *SHIFTS):
            table = tables.read(source / f"{identifier(name)}.parquet", tables.images)
            tables.write(table[table["seed"] <= SEEDS], self.folder / f"{identifier(name)}.parquet", tables.images)

    def reference(self) -> pd.DataFrame:
        """What one launch does after its imports, for every classifier and shift: load, decode, transform, answer."""
        parts = []
        for name, source in self.settings.classifiers.items():
            for shift in SHIFTS:
                table = pd.concat([self.shard(shift), self.shard(UNSHIFTED)], ignore_index=True)
                classifier = classifiers.load(name, source, self.labels, preprocessing=self.settings.preprocessing)
                size = self.settings.batch_size
                batches = [tables.pictures(table[start : start + size], shift) for start in range(0, len(table), size)]
                answers = [classifier.logits(pictures).argmax(1).numpy() for pictures in batches]
                parts.append(table[tables.KEY].assign(model=name, top1=np.array(self.labels)[np.concatenate(answers)]))
        return pd.concat(parts).drop_duplicates(["model", *tables.KEY])

    def shard(self, shift: str) -> pd.DataFrame:
        """The pictures of one shift."""
        return tables.read(self.folder / f"{identifier(shift)}.parquet", tables.images)

    def ours(self) -> pd.DataFrame:
        """As the evaluation step answers, from nothing."""
        grid = {"scales": self.base.scales, "seeds": SEEDS, "labels": self.labels, "settings": self.settings, "device": "cpu"}
        with tempfile.TemporaryDirectory() as folder:
            paths_made = evaluation.evaluate(self.folder, SHIFTS, self.base.classes, **grid, folder=Path(folder))
            return pd.concat([tables.read(path, tables.predictions) for path in paths_made.values()])

    def differing(self, first: pd.DataFrame, second: pd.DataFrame) -> float:
        """How many pictures and classifiers have another first answer."""
        both = first.merge(second, on=["model", *tables.KEY], suffixes=("", "_ours"), validate="one_to_one")
        return float((both["top1"] != both["top1_ours"]).sum() + abs(len(first) - len(both)) + abs(len(second) - len(both)))


def launch_seconds() -> float:
    """The median wall time of three launches that do nothing but import."""
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", LAUNCH], cwd=paths.ROOT, check=True)
        taken.append(time.perf_counter() - start)
    return float(np.median(taken))


def main() -> int:
    """The measured ratio without launches, and what the launches add to the reference; results are apart by differing answers."""
    with tempfile.TemporaryDirectory() as folder:
        asking = Asking(Path(folder))
        launches = f"{COUNT * len(SHIFTS)} here, {COUNT * len(asking.base.shifts)} on all shifts"
        notes = f"not counted: the reference's launches ({launches}) at {launch_seconds():.1f} s each"
        contest = turns.Contest("evaluation", asking.reference, asking.ours, asking.differing, 0)
        return turns.report(contest, notes=notes)


if __name__ == "__main__":
    sys.exit(main())
