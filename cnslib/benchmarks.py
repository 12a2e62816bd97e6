"""What a classifier of one's own is asked: the generated images, the photo set, or any folder or zip in the published layout."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pandas as pd

from cnslib import answers, archives, encoders, evaluation, imagenet, official, parameters, paths, photos, tables
from cnslib.analyses import Accuracy
from cnslib.classifiers import Classifier
from cnslib.config import UNSHIFTED, demand, identifier
from cnslib.filtering import kept_schema

RESULTS = "results.zip"


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
    others = [layout.artifacts("evaluation") / f"{identifier(name)}.parquet" for name in sections["evaluation"].classifiers]
    grid = {"scales": base.scales, "seeds": base.seeds, "labels": encoders.read_labels(base.labels)}
    asked = {"batch_size": sections["evaluation"].batch_size, "settings": sections["accuracy"]}
    return of_images(layout, base.shifts, base.classes, **grid, **asked, others=others)


def of_images(
    layout: paths.Layout,
    shifts: list[str],
    classes: list[str],
    *,
    scales: list[float],
    seeds: int,
    labels: list[str],
    batch_size: int,
    settings: Accuracy,
    others: list[Path],
) -> Benchmark:
    """The generated images of a layout, its kept trajectories, and the tables of the others' answers. Errors as `benchmark`."""
    shards = evaluation.grid(layout.artifacts("generation"), shifts, classes, scales=scales, seeds=seeds)
    evaluation.shard_digests(shards)
    kept = tables.load(layout.artifacts("filtering") / "kept.parquet").to_pandas()[tables.TRAJECTORY]
    answered = tables.read_answers(others).astype(dict.fromkeys(tables.TEXTS, str))
    return Benchmark(shards, kept, answered, labels, batch_size, settings)


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
        Accuracy(settings.bootstrap, settings.reference),
        lambda classifier: photos.ask([classifier], objects, asked, settings=settings),
    )


def exported(data: Path, *, results: Path | None = None, params: str = "params.yaml", overlay: str | None = None) -> Benchmark:
    """A folder or zip in the layout of the published benchmark, with the answers of others to the same images.

    `results` is a results.zip or a folder of its csv files; unless given, it is looked for beside `data`, and without one there
    are no others. What is imported goes to build/data. Raises ValueError for a damaged source, class folders that fit
    neither the labels of the parameters nor ImageNet's, and answers to other images.
    """
    sections = parameters.load(paths.resolve(params), paths.resolve(overlay) if overlay else None)
    with archives.opened(data) as archive:
        labels = labels_of(archive, encoders.read_labels(sections["base"].labels))
    place = paths.resolve("build/data") / data.resolve().stem
    kept = place / "kept.parquet"
    found = official.import_benchmark(data, labels=labels, classes=labels, folder=place / "images", kept=kept, repeated="any")
    trajectories = tables.read(kept, kept_schema)
    shards = {path: tables.load(path, columns=tables.KEY).to_pandas() for path in found.values()}
    keys = {path: list(rows[tables.KEY].itertuples(index=False, name=None)) for path, rows in shards.items()}
    results = results or (data.parent / RESULTS if (data.parent / RESULTS).exists() else None)
    others = given(results, trajectories, labels, place / "answers") if results else pd.DataFrame(columns=["model", *tables.KEY, "top1"])
    return Benchmark(keys, trajectories, others, labels, sections["evaluation"].batch_size, sections["accuracy"])


def labels_of(archive: archives.Archive, own: list[str]) -> list[str]:
    """The labels that the class folders ("022_bald eagle") number: those given if names and numbers fit, else ImageNet's."""
    folders = sorted({PurePosixPath(name).parts[-2] for name in archive.names if official.NAME.fullmatch(PurePosixPath(name).name)})
    numbered = [re.fullmatch(r"(\d+)_(.*)", folder) for folder in folders]
    demand(bool(folders) and all(numbered), "class folders", folders[:3], "folders such as 022_bald eagle with images in them")
    places = {int(match[1]): match[2] for match in numbered if match}
    if all(number < len(own) and own[number] == name for number, name in places.items()):
        return own
    demand(max(places) < len(imagenet.labels()), "class folders", folders[:3], f"numbers of {own} or of ImageNet's 1,000 classes")
    return list(imagenet.labels())


def given(results: Path, trajectories: pd.DataFrame, labels: list[str], folder: Path) -> pd.DataFrame:
    """The answers of others to the images of these trajectories."""
    found = answers.import_answers(results, labels=labels, classes=labels, folder=folder)
    others = tables.read_answers(found.values()).astype(dict.fromkeys(tables.TEXTS, str))
    return tables.select(others, trajectories, tables.TRAJECTORY, f"answers of {results} to the images")


MAKERS: dict[str, Callable[[dict], Benchmark]] = {"images": generated, "photos": photo_set}
