"""Failure points between the scales of the grid (Eq. 3, our extension): bisection between the last right and the first wrong scale.

All classifiers bisect a trajectory together and share its images, which are drawn and classified one by one; a table per trajectory.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
import torch

from cnslib.core import recipes, seeds, tables, units, workers
from cnslib.core.names import PROMPT
from cnslib.core.settings.sections import Bisection
from cnslib.method import evaluation, generation
from cnslib.models import adapters, classifiers, text_to_image

POINT = ["model", *tables.TRAJECTORY]
BRACKETS = ["grid_after", "grid_until", "after", "until"]
columns = {"model": pa.Column(str), **{key: tables.IDENTITY[key] for key in tables.TRAJECTORY}}
points_schema = tables.schema(POINT, columns | {key: pa.Column(float) for key in BRACKETS})


@dataclasses.dataclass(frozen=True)
class Studio:
    """What is drawn from, who classifies, and where images and predictions are kept."""

    sampler: generation.Sampler
    origin: text_to_image.Origin
    sliders: Path
    classifiers: list[classifiers.Classifier]
    folder: Path

    @cached_property
    def digests(self) -> tuple[str, str]:
        """Of what all images have in common, sampling settings and base model; and of the classifiers."""
        drawn = self.sampler.settings.drawn() | self.sampler.identity
        members = [[one.name, classifiers.digest(one.source), one.labels, one.preprocessing] for one in self.classifiers]
        return units.digest(PROMPT, drawn, self.origin.base), units.digest(members)


class Closeup:
    """One trajectory between the grid's scales: the images and predictions that were requested so far.

    Images are written after every round; outdated tables count as empty.
    """

    def __init__(self, studio: Studio, shift: str, name: str, seed: int):
        self.studio, self.key = studio, (shift, name, int(seed))
        self.slider = adapters.slider_path(studio.sliders, shift, name)
        self.paths = [studio.folder / kind / units.file_below(self.key) for kind in ("pictures", "predictions")]
        drawing, token = studio.digests[0], studio.origin.tokens[name]
        self.stamp = recipes.CLOSEUPS.stamp(drawing, token, adapters.file_digest(self.slider), *self.key)
        self.images, self.predictions = (self.restored(kind) for kind in (tables.images, tables.predictions))

    def unit(self, kind: pa.DataFrameSchema) -> units.Unit:
        """The table of images, or that of predictions, which depends on the bytes of the images."""
        if kind is tables.images:
            return units.Unit(self.paths[0], self.stamp)
        pictures_digest = units.file_digest(self.paths[0]) if self.paths[0].exists() else ""
        return units.Unit(self.paths[1], recipes.CLOSEUP_PREDICTIONS.stamp(self.studio.digests[1], self.stamp, pictures_digest))

    @property
    def done(self) -> bool:
        """Whether a finished run left both tables."""
        return self.unit(tables.images).done and self.unit(tables.predictions).done

    def restored(self, kind: pa.DataFrameSchema) -> pd.DataFrame:
        """The table of a unit, or an empty one where it is missing or outdated."""
        unit = self.unit(kind)
        return tables.read(unit.path, kind) if unit.done else pd.DataFrame(columns=list(kind.columns))

    def predict(self, scales: list[float]) -> pd.DataFrame:
        """The predictions of all classifiers at these scales; draws the images that are missing."""
        if missing := sorted(set(scales) - set(self.predictions["scale"])):
            self.draw(sorted(set(missing) - set(self.images["scale"])))
            rows = self.images[self.images["scale"].isin(missing)]
            pictures = tables.pictures(rows, self.paths[0].name)
            for one in self.studio.classifiers:  # each image in a batch of its own: a batch of another size may round differently
                logits = torch.cat([evaluation.batch_logits(one, [picture], size=1) for picture in pictures])
                self.predictions = joined(tables.predictions, self.predictions, evaluation.predictions(one, rows, logits))
        return self.predictions[self.predictions["scale"].isin(scales)]

    def draw(self, scales: list[float]) -> None:
        """Draws images, one scale per forward pass, and writes the table."""
        (shift, name, seed), sampler = self.key, self.studio.sampler
        with adapters.loaded(sampler.pipe, self.slider):
            drawn = [
                generation.rows(shift, name, seed, [scale], sampler.shifted(name, seed, [scale]), quality=sampler.settings.quality)
                for scale in scales
            ]
        self.images = joined(tables.images, self.images, pd.DataFrame(itertools.chain(*drawn)))
        tables.write_unit(self.images, self.unit(tables.images), tables.images)

    def keep(self, scales: set[float]) -> None:
        """Writes both tables with exactly these scales, so that equal requests leave equal bytes."""
        if set(self.images["scale"]) != scales:
            self.images = self.images[self.images["scale"].isin(scales)]
            tables.write_unit(self.images, self.unit(tables.images), tables.images)
        self.predictions = self.predictions[self.predictions["scale"].isin(scales)]
        if not (unit := self.unit(tables.predictions)).done:
            tables.write_unit(self.predictions, unit, tables.predictions)


def joined(kind: pa.DataFrameSchema, *parts: pd.DataFrame) -> pd.DataFrame:
    """The rows of tables of one kind in the order of its key; empty ones are left out, since they have no column types."""
    rows = pd.concat([part for part in parts if len(part)] or parts[:1])
    return rows.sort_values(kind.metadata["key"], ignore_index=True)[list(kind.columns)]


def bracketed(points: pd.DataFrame) -> pd.Series:
    """Points whose failure lies between two scales of the grid: neither at scale 0 nor never."""
    return np.isfinite(points[["grid_after", "grid_until"]]).all(axis=1)


def scanned(points: pd.DataFrame, *, settings: Bisection) -> list[tuple[str, str, int]]:
    """The trajectories that are drawn in full: up to `scans` per shift, by lot among those with a failure to bisect."""
    keys = points[bracketed(points)][tables.TRAJECTORY].drop_duplicates().itertuples(index=False, name=None)
    lots = sorted(keys, key=lambda key: seeds.seed_of("scan", *key, settings.seed))
    return [key for shift in settings.shifts for key in [key for key in lots if key[0] == shift][: settings.scans]]


def bisect(studio: Studio, failures: pd.DataFrame, *, scales: list[float], settings: Bisection) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The points (model, trajectory, bracket of the grid, bisected bracket) of a table by `failure_points`, and all new predictions."""
    units.hold(studio.folder, studio)
    points = failures.assign(grid_after=failures["after"], grid_until=failures["failure_point"].fillna(np.inf))[[*POINT, *BRACKETS[:2]]]
    every = np.arange(int(scales[-1] / settings.scan_step + 1e-9) + 1) * settings.scan_step
    extra = dict.fromkeys(scanned(points, settings=settings), sorted(set(every.tolist()) - set(scales)))
    trajectories = [(part, extra.get(key, [])) for key, part in points.groupby(tables.TRAJECTORY)]
    follow_all, keys = functools.partial(follow, resolution=settings.resolution), points[bracketed(points)][tables.TRAJECTORY]
    work = [(studio, *trajectory) for trajectory in trajectories]
    if all(Closeup(studio, *key).done for key in keys.drop_duplicates().itertuples(index=False, name=None)):
        results = list(itertools.starmap(follow_all, work))  # faster than copying a studio with its models to another process
    else:
        results = workers.each(follow_all, work, device=studio.sampler.pipe.device, desc="trajectories")
    parts, predictions = zip(*results, strict=True)
    predictions = joined(tables.predictions, *predictions)
    files = map(units.file_below, predictions[tables.TRAJECTORY].drop_duplicates().itertuples(index=False, name=None))
    units.prune(studio.folder, {f"{kind}/{file}" for file in files for kind in ("pictures", "predictions")}, "*/*/*.parquet")
    return pd.concat(parts, ignore_index=True), predictions


def follow(studio: Studio, part: pd.DataFrame, extra: list[float], *, resolution: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Halves the brackets of all models on one trajectory, then predicts the extra scales; its points and its new predictions."""
    closeup, visited = Closeup(studio, *part[tables.TRAJECTORY].iloc[0]), set(extra)

    def wrong_at(scales: list[float]) -> np.ndarray:
        visited.update(scales)
        predicted = closeup.predict(scales)
        wrong = predicted.assign(wrong=predicted["top1"] != predicted["class"]).pivot(index="scale", columns="model", values="wrong")
        return wrong[part["model"]].to_numpy(bool)

    after, until = halve(part["grid_after"].to_numpy(), part["grid_until"].to_numpy(), wrong_at, resolution=resolution)
    if extra:
        closeup.predict(extra)
    if visited:
        closeup.keep(visited)
    return part.assign(after=after, until=until), closeup.predictions[closeup.predictions["scale"].isin(visited)]


def halve(
    after: np.ndarray, until: np.ndarray, wrong_at: Callable[[list[float]], np.ndarray], *, resolution: float
) -> tuple[np.ndarray, np.ndarray]:
    """Halves the brackets of all models until they are as narrow as the resolution; `wrong_at` is of [scales, models]."""
    while (wide := np.isfinite(after) & np.isfinite(until) & (until - after > resolution + 1e-9)).any():
        middle = (np.where(wide, after, 0) + np.where(wide, until, 0)) / 2
        scales = sorted(set(middle[wide].tolist()))
        wrong = wrong_at(scales)[np.searchsorted(scales, middle).clip(max=len(scales) - 1), np.arange(len(middle))]
        after, until = np.where(wide & ~wrong, middle, after), np.where(wide & wrong, middle, until)
    return after, until
