"""Answers of ten classifiers: a launch per classifier and shift against one launch for all. `python benchmarks/evaluation.py`."""

import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import turns

from cnslib import classifiers, encoders, evaluation, parameters, paths, tables
from cnslib.config import UNSHIFTED, identifier

SHIFTS, SEEDS, COUNT = ["heavy snow"], 12, 10


class Asking:
    """Ten classifiers' answers to the same pictures by either procedure."""

    def __init__(self, folder: Path):
        """`folder` holds, or will hold, the pictures of the unshifted table and of the shifts."""
        sections = parameters.load(paths.resolve("params.yaml"))
        self.base, self.folder, settings = sections["base"], folder, sections["evaluation"]
        chosen = dict(list(settings.classifiers.items())[:COUNT])
        self.settings, self.labels = replace(settings, classifiers=chosen), encoders.read_labels(self.base.labels)

    def write(self) -> None:
        """Writes a part of the benchmark's pictures, so that one run takes seconds."""
        source = paths.Layout(self.base.out).artifacts("generation")
        for name in (UNSHIFTED, *SHIFTS):
            table = tables.read(source / f"{identifier(name)}.parquet", tables.images)
            tables.write(table[table["seed"] <= SEEDS], self.folder / f"{identifier(name)}.parquet", tables.images)

    def shard(self, shift: str) -> pd.DataFrame:
        """The pictures of one shift."""
        return tables.read(self.folder / f"{identifier(shift)}.parquet", tables.images)

    def one(self, name: str, shift: str, path: Path) -> None:
        """What one launch of the reference does: load a classifier, decode, transform and answer the pictures of a shift."""
        table = pd.concat([self.shard(shift), self.shard(UNSHIFTED)], ignore_index=True)
        classifier = classifiers.load(name, self.settings.classifiers[name], self.labels, preprocessing=self.settings.preprocessing)
        size = self.settings.batch_size
        batches = [tables.pictures(table[start : start + size], shift) for start in range(0, len(table), size)]
        answers = [classifier.logits(pictures).argmax(1).numpy() for pictures in batches]
        rows = table[tables.KEY].assign(model=name, top1=np.array(self.labels)[np.concatenate(answers)])
        rows.to_parquet(path)

    def all(self, folder: Path) -> None:
        """What our one launch does: the evaluation step, from nothing."""
        grid = {"scales": self.base.scales, "seeds": SEEDS, "labels": self.labels, "settings": self.settings, "device": "cpu"}
        evaluation.evaluate(self.folder, SHIFTS, self.base.classes, **grid, folder=folder)

    def reference(self) -> pd.DataFrame:
        """A launch for every classifier and shift."""
        with tempfile.TemporaryDirectory() as folder:
            for name in self.settings.classifiers:
                for shift in SHIFTS:
                    launch("one", self.folder, Path(folder) / f"{name}_{identifier(shift)}.parquet", name, shift)
            return pd.concat([pd.read_parquet(path) for path in Path(folder).iterdir()]).drop_duplicates(["model", *tables.KEY])

    def ours(self) -> pd.DataFrame:
        """One launch."""
        with tempfile.TemporaryDirectory() as folder:
            launch("all", self.folder, Path(folder))
            return pd.concat([tables.read(path, tables.predictions) for path in Path(folder).glob("*.parquet")])

    def differing(self, first: pd.DataFrame, second: pd.DataFrame) -> float:
        """How many pictures and classifiers have another first answer."""
        both = first.merge(second, on=["model", *tables.KEY], suffixes=("", "_ours"), validate="one_to_one")
        return float((both["top1"] != both["top1_ours"]).sum() + abs(len(first) - len(both)) + abs(len(second) - len(both)))


def launch(what: str, pictures: Path, target: Path, *which: str) -> None:
    """This script in a process of its own, with one thread."""
    subprocess.run([sys.executable, __file__, what, str(pictures), str(target), *which], check=True, env=turns.one_thread())


def inside(asking: Asking) -> str:
    """How the two compare without launches, all in this process: a pass per classifier and shift, and the evaluation step."""

    def passes() -> None:
        for name in asking.settings.classifiers:
            for shift in SHIFTS:
                asking.one(name, shift, Path(folder) / "answers.parquet")

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as target:
        seconds = [turns.seconds(work)[1]["CPU s"] for work in (passes, lambda: asking.all(Path(target)))]
    return f"without launches, once: {seconds[0]:.1f} and {seconds[1]:.1f} CPU s, a ratio of {seconds[0] / seconds[1]:.2f}"


def main() -> int:
    """The measured ratio; results are apart by differing answers."""
    with tempfile.TemporaryDirectory() as folder:
        asking = Asking(Path(folder))
        asking.write()
        contest = turns.Contest("evaluation", asking.reference, asking.ours, asking.differing, 0)
        return turns.report(contest, notes=inside(asking))


def launched(what: str, pictures: str, target: str, *which: str) -> int:
    """What a launched process does."""
    asking = Asking(Path(pictures))
    if what == "one":
        name, shift = which
        asking.one(name, shift, Path(target))
    else:
        asking.all(Path(target))
    return 0


if __name__ == "__main__":
    sys.exit(launched(*sys.argv[1:]) if len(sys.argv) > 1 else main())
