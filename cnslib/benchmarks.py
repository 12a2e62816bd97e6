"""What a classifier of your own can be asked about: the generated images of the benchmark, or the photo set for ImageNet models."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from cnslib import encoders, evaluation, parameters, paths, photos, tables
from cnslib.analyses import Accuracy
from cnslib.classifiers import Classifier
from cnslib.config import UNSHIFTED, demand, identifier


@dataclass(frozen=True)
class Benchmark:
    """What a classifier is asked and compared with: image tables with their keys, kept trajectories, and the others' answers."""

    shards: dict[Path, list[tuple]]
    kept: pd.DataFrame
    answers: pd.DataFrame
    labels: list[str]
    batch_size: int
    settings: Accuracy

    @property
    def models(self) -> list[str]:
        """The classifiers that have answered already."""
        return sorted(self.answers["model"].unique())

    def ask(self, classifier: Classifier) -> pd.DataFrame:
        """The predictions of one classifier for every image."""
        return evaluation.predict(classifier, self.shards, batch_size=self.batch_size)


@dataclass(frozen=True)
class Drawn(Benchmark):
    """A benchmark whose images are drawn when a classifier is asked."""

    draw_and_ask: Callable[[Classifier], pd.DataFrame]

    def ask(self, classifier: Classifier) -> pd.DataFrame:
        """The predictions of one classifier for every image."""
        return self.draw_and_ask(classifier)


def benchmark(params: str = "params.yaml", overlay: str | None = None, *, data: str = "images") -> Benchmark:
    """The benchmark of a parameter file, as its steps have left it: generated "images", or "photos" of ImageNet classes.

    FileNotFoundError names what has not been made or restored, ValueError data that is neither.
    """
    demand(data in MAKERS, "data", data, ", ".join(MAKERS))
    return MAKERS[data](parameters.load(paths.resolve(params), paths.resolve(overlay) if overlay else None))


def generated(sections: dict) -> Benchmark:
    """The generated images of every kept trajectory."""
    base, layout = sections["base"], paths.Layout(sections["base"].out)
    shards = evaluation.grid(layout.artifacts("generation"), base.shifts, base.classes, scales=base.scales, seeds=base.seeds)
    kept = layout.artifacts("filtering") / "kept.parquet"
    files = [layout.artifacts("evaluation") / f"{identifier(name)}.parquet" for name in sections["evaluation"].classifiers]
    evaluation.shard_digests(shards)
    chosen = tables.load(kept).to_pandas()[tables.TRAJECTORY]
    others = tables.read_answers(files).astype(dict.fromkeys(tables.TEXTS, str))
    return Benchmark(shards, chosen, others, encoders.read_labels(base.labels), sections["evaluation"].batch_size, sections["accuracy"])


def photo_set(sections: dict) -> Drawn:
    """The photo set for classifiers with ImageNet's 1,000 outputs; every trajectory counts, and `scale` is the severity."""
    base, settings = sections["base"], sections["photos"]
    folder = paths.Layout(base.out).artifacts("photos")
    objects, asked = photos.chosen(paths.PHOTOS, settings), (UNSHIFTED, *base.shifts)
    others = tables.read_answers([folder / f"{identifier(shift)}.parquet" for shift in asked]).astype(dict.fromkeys(tables.TEXTS, str))
    rows = [(shift, own.label, own.seed) for shift in base.shifts for own in objects]
    return Drawn(
        {},
        pd.DataFrame(rows, columns=tables.TRAJECTORY),
        others,
        photos.labels(),
        1,
        Accuracy(settings.reference, settings.resamples, settings.confidence, settings.seed),
        lambda classifier: photos.ask([classifier], objects, asked, settings=settings),
    )


MAKERS: dict[str, Callable[[dict], Benchmark]] = {"images": generated, "photos": photo_set}
