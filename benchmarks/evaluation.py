"""Answers of ten classifiers: a launch per classifier and shift against one for all. `python benchmarks/evaluation.py [--device cuda]`.

At the paper's picture size: a decode per classifier against one per group. `python benchmarks/evaluation.py large [--device cuda]`.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import timm
import torch
import turns
from PIL import Image
from torch import Tensor

from cnslib.core import paths, tables
from cnslib.core.names import UNSHIFTED, identifier
from cnslib.core.settings import read
from cnslib.method import evaluation
from cnslib.method.evaluation import Batch
from cnslib.models import classifiers, encoders
from cnslib.models.classifiers import Classifier

SHIFTS, SEEDS, COUNT = ["heavy snow"], 12, 10
SIDE, PICTURES, BATCH, GRAIN = 768, 48, 8, 8  # of the large pictures; grey levels of noise, without which they would decode faster
NETWORKS = [  # small ones, to which pictures matter on a CPU as much as they do to large ones on a card
    *(f"mobilenetv3_small_{width}" for width in ("050", "075", "100")),
    *(f"lcnet_{width}" for width in ("050", "075", "100")),
    *("mnasnet_small", "mobilenetv4_conv_small", "efficientvit_b0", "tinynet_d"),
]


class Asking:
    """Ten classifiers' answers to the same pictures by either procedure."""

    def __init__(self, folder: Path, device: str):
        """`folder` holds, or will hold, the pictures of the unshifted table and of the shifts."""
        sections = read.load(paths.resolve("params.yaml"))
        self.base, self.folder, self.device, settings = sections["base"], folder, device, sections["evaluation"]
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
        classifier = classifiers.load(
            name, self.settings.classifiers[name], self.labels, self.device, preprocessing=self.settings.preprocessing
        )
        size = self.settings.batch_size
        batches = [tables.pictures(table[start : start + size], shift) for start in range(0, len(table), size)]
        answers = [classifier.logits(pictures).argmax(1).numpy() for pictures in batches]
        rows = table[tables.KEY].assign(model=name, top1=np.array(self.labels)[np.concatenate(answers)])
        rows.to_parquet(path)

    def all(self, folder: Path) -> None:
        """What our one launch does: the evaluation step, from nothing."""
        shards = evaluation.grid(self.folder, SHIFTS, self.base.classes, scales=self.base.scales, seeds=SEEDS)
        evaluation.evaluate(shards, labels=self.labels, settings=self.settings, device=self.device, folder=folder)

    def reference(self) -> pd.DataFrame:
        """A launch for every classifier and shift."""
        with tempfile.TemporaryDirectory() as folder:
            for name in self.settings.classifiers:
                for shift in SHIFTS:
                    launch("one", self.device, self.folder, Path(folder) / f"{name}_{identifier(shift)}.parquet", name, shift)
            return pd.concat([pd.read_parquet(path) for path in Path(folder).iterdir()]).drop_duplicates(["model", *tables.KEY])

    def ours(self) -> pd.DataFrame:
        """One launch."""
        with tempfile.TemporaryDirectory() as folder:
            launch("all", self.device, self.folder, Path(folder))
            return pd.concat([tables.read(path, tables.predictions) for path in Path(folder).glob("*.parquet")])

    def share(self) -> float:
        """The share of wall time during which a network works, once the classifiers are loaded."""
        together, how = evaluation.TOGETHER, {"device": self.device, "preprocessing": self.settings.preprocessing}
        loaded = [classifiers.load(name, source, self.labels, **how) for name, source in self.settings.classifiers.items()]
        shards = evaluation.grid(self.folder, SHIFTS, self.base.classes, scales=self.base.scales, seeds=SEEDS)
        size = self.settings.batch_size
        groups = [loaded[start : start + together] for start in range(0, len(loaded), together)]
        return busy(groups, lambda: evaluation.shard_batches(shards, size=size), size=size)[1]

    def differing(self, first: pd.DataFrame, second: pd.DataFrame) -> float:
        """How many pictures and classifiers have another first answer."""
        both = first.merge(second, on=["model", *tables.KEY], suffixes=("", "_ours"), validate="one_to_one")
        return float((both["top1"] != both["top1_ours"]).sum() + abs(len(first) - len(both)) + abs(len(second) - len(both)))


class Large:
    """Ten networks' answers to pictures of the paper's size by either procedure, in this process."""

    def __init__(self, device: str):
        """Enlarges pictures of the benchmark; networks have random weights."""
        base = read.load(paths.resolve("params.yaml"))["base"]
        path = paths.Layout(base.out).artifacts("generation") / f"{identifier(SHIFTS[0])}.parquet"
        table = tables.read(path, tables.images)[:PICTURES]
        self.rows = table[tables.KEY]
        self.images = [tables.encode(enlarged(picture, number)) for number, picture in enumerate(tables.pictures(table, path.name))]
        self.labels = [*base.classes, *map(str, range(len(base.classes), 1000))]
        self.shares: dict[str, list[float]] = {"the reference's": [], "our": []}  # of wall time during which a network works
        self.group = [self.network(name, device) for name in NETWORKS]

    def network(self, name: str, device: str) -> Classifier:
        """One of timm's architectures with its preprocessing."""
        torch.manual_seed(0)
        return classifiers.user_classifier(timm.create_model(name), name=name, labels=self.labels, device=device)

    def batches(self) -> Iterable[Batch]:
        """The pictures."""
        for start in range(0, PICTURES, BATCH):
            part = slice(start, start + BATCH)
            yield self.rows[part], [partial(tables.decode, image, "large") for image in self.images[part]]

    def reference(self) -> pd.DataFrame:
        """Each classifier decodes and transforms the pictures by itself, in one thread."""
        parts: list[pd.DataFrame] = []
        taken: list[float] = []
        start = time.perf_counter()
        for classifier in self.group:
            watched = replace(classifier, network=timed(classifier.network, taken))
            logits = [watched.logits([picture() for picture in pictures]) for _, pictures in self.batches()]
            parts.append(evaluation.predictions(classifier, self.rows, torch.cat(logits)))
        self.shares["the reference's"].append(sum(taken) / (time.perf_counter() - start))
        return pd.concat(parts)

    def ours(self) -> pd.DataFrame:
        """The evaluation's groups, each fed ahead of its networks."""
        groups = [self.group[start : start + evaluation.TOGETHER] for start in range(0, len(self.group), evaluation.TOGETHER)]
        found, share = busy(groups, self.batches, size=BATCH)
        self.shares["our"].append(share)
        return pd.concat(found)

    def differing(self, first: pd.DataFrame, second: pd.DataFrame) -> float:
        """How many pictures and classifiers have another first answer, probability or margin, by a single bit."""
        columns = ["model", *tables.KEY, "top1", "probability", "margin"]
        return float((first[columns].to_numpy() != second[columns].to_numpy()).any(axis=1).sum())


def enlarged(picture: np.ndarray, seed: int) -> np.ndarray:
    """A picture at the paper's size, with grain."""
    smooth = np.asarray(Image.fromarray(picture).resize((SIDE, SIDE), Image.Resampling.BICUBIC))
    return np.clip(smooth + np.random.default_rng(seed).normal(0, GRAIN, smooth.shape), 0, 255).astype(np.uint8)


def busy(groups: list[list[Classifier]], batches: Callable[[], Iterable[Batch]], *, size: int) -> tuple[list[pd.DataFrame], float]:
    """The answers of groups of classifiers, and the share of wall time during which one of their networks worked."""
    taken: list[float] = []
    start = time.perf_counter()
    watched = [[replace(classifier, network=timed(classifier.network, taken)) for classifier in group] for group in groups]
    found = [table for group in watched for table in evaluation.ask(group, batches(), size=size)]
    return found, sum(taken) / (time.perf_counter() - start)


def timed(network: Callable[[Tensor], Tensor], taken: list[float]) -> Callable[[Tensor], Tensor]:
    """The network, which adds its wall time to `taken`."""

    def call(pixels: Tensor) -> Tensor:
        start = time.perf_counter()
        logits = network(pixels)
        if logits.is_cuda:
            torch.cuda.synchronize()
        taken.append(time.perf_counter() - start)
        return logits

    return call


def launch(what: str, device: str, pictures: Path, target: Path, *which: str) -> None:
    """This script in a process of its own, with one thread."""
    subprocess.run([sys.executable, __file__, what, device, str(pictures), str(target), *which], check=True, env=turns.one_thread())


def inside(asking: Asking) -> str:
    """How the two compare without launches, all in this process: a pass per classifier and shift, and the evaluation step."""

    def passes() -> None:
        for name in asking.settings.classifiers:
            for shift in SHIFTS:
                asking.one(name, shift, Path(folder) / "answers.parquet")

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as target:
        seconds = [turns.seconds(work)[1]["CPU s"] for work in (passes, lambda: asking.all(Path(target)))]
    once = f"without launches, once: {seconds[0]:.1f} and {seconds[1]:.1f} CPU s, a ratio of {seconds[0] / seconds[1]:.2f}"
    return f"{once}; a network works during {asking.share():.0%} of the time, loading apart"


def main(arguments: list[str]) -> int:
    """The measured ratio; results are apart by differing answers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    device = parser.parse_args(arguments).device
    with tempfile.TemporaryDirectory() as folder:
        asking = Asking(Path(folder), device)
        asking.write()
        contest = turns.Contest("evaluation", asking.reference, asking.ours, asking.differing, 0)
        return turns.report(contest, notes=inside(asking))


def large(arguments: list[str]) -> int:
    """The measured ratio at the paper's picture size; results are apart by differing answers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    work = Large(parser.parse_args(arguments).device)
    failed = turns.report(turns.Contest("evaluation of large pictures", work.reference, work.ours, work.differing, 0))
    size = np.mean([len(image) for image in work.images]) / 1e3
    shares = " and ".join(f"{np.median(found):.0%} of {whose} time" for whose, found in work.shares.items())
    print(f"{PICTURES} pictures of {SIDE} px, {size:.0f} kB each; a network works during {shares}")
    return failed


def launched(what: str, device: str, pictures: str, target: str, *which: str) -> int:
    """What a launched process does."""
    asking = Asking(Path(pictures), device)
    if what == "one":
        name, shift = which
        asking.one(name, shift, Path(target))
    else:
        asking.all(Path(target))
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["large"]:
        sys.exit(large(sys.argv[2:]))
    sys.exit(launched(*sys.argv[1:]) if sys.argv[1:2] in (["one"], ["all"]) else main(sys.argv[1:]))
