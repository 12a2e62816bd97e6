"""Generated images of the OOD-CV comparison: scales up to 3, 85 % of the steps with the slider (CNS-Bench supplement L).

Pictures are drawn, looked at and let go: a table per class keeps what was seen in them. The few that a figure shows are drawn again.
Which trajectories stay is for the benchmark's filter to say (section 3.4), with the thresholds of the filtering step's labels.
"""

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
from jaxtyping import UInt8
from torch import Tensor

from cnslib.core import paths, recipes, tables, units, workers
from cnslib.core.names import PROMPT, UNSHIFTED, identifier
from cnslib.core.settings.method import Filtering
from cnslib.core.settings.read import Run
from cnslib.method import filtering, generation
from cnslib.method.filtering import DETECTORS, Views
from cnslib.method.generation import Sampler
from cnslib.method.sliders import slider_path
from cnslib.models import adapters, text_to_image
from cnslib.studies.oodcv import weather
from cnslib.studies.oodcv.weather import FEATURES, Panel


@dataclass(frozen=True)
class Studio:
    """What images are drawn from, where the sliders are, and who looks at the images."""

    sampler: Sampler
    origin: text_to_image.Origin
    sliders: Path
    panel: Panel

    def drawing(self, name: str) -> str:
        """What the images of a class depend on: base model, token, sliders, sampling settings, scales and seeds."""
        settings = self.panel.tuning.settings
        drawn = self.sampler.settings.drawn()
        sliders = [adapters.file_digest(slider_path(self.sliders, shift, name)) for shift in settings.shifts]
        grid = settings.shifts, settings.scales, settings.seeds
        return units.digest(name, PROMPT, grid, drawn, self.origin.base, self.origin.tokens[name], sliders)

    def looking(self, name: str) -> str:
        """What the table of a class depends on: its images and everybody who looks at them."""
        judges = self.panel.judges
        seen = [judges.clip.digest, judges.image_encoder.digest, judges.oracle.digest, self.panel.digest]
        return recipes.WEATHER_DRAWN.stamp(self.drawing(name), seen)


def opened(run: Run, panel: Panel) -> Studio:
    """The studio that a notebook's parameters describe: the benchmark's pipeline and sliders, with more steps under their influence."""
    base, layout = run.base, run.layout
    folder, tokens = paths.resolve(base.pipeline), layout.artifacts("inversion")
    pipe = text_to_image.load_pipeline(folder, base.device)
    text_to_image.load_tokens(pipe, tokens, base.classes)
    drawn = dataclasses.replace(run.generation, start_fraction=run.settings.start_fraction)
    origin = text_to_image.origin(folder, tokens, base.classes)
    return Studio(Sampler(pipe, settings=drawn), origin, layout.artifacts("sliders"), panel)


def schema(names: list[str]) -> pa.DataFrameSchema:
    """Answers and features of every image, scale 0 under each shift, with the filter's four cosines and the oracle's probability."""
    cosines = {name: pa.Column(float, tables.COSINE) for name in DETECTORS}
    return weather.schema(names, **cosines, class_probability=pa.Column(float), **{FEATURES: pa.Column(object)})


def generated(studio: Studio, classes: list[str], *, folder: Path) -> pd.DataFrame:
    """What was seen in the generated images; draws the classes that are missing or outdated, each a resumable unit."""
    shelf = units.Shelf(folder, {name: (f"{identifier(name)}.parquet", studio.looking(name)) for name in classes})
    if waiting := shelf.waiting():
        _ = studio.panel.tuning.classifiers  # trained once, before the work is spread
        pieces = [(studio, name, shelf[name]) for name in waiting]
        workers.each(draw_and_look, pieces, device=studio.sampler.pipe.device, desc="generated")
    return tables.read_units(shelf, schema(studio.panel.models))


def draw_and_look(studio: Studio, name: str, unit: units.Unit) -> None:
    """Draws all images of a class and writes what is seen in them."""
    settings = studio.panel.tuning.settings
    start = look(draw(studio, UNSHIFTED, name, list(range(1, settings.seeds + 1))), studio.panel)
    parts = []
    for shift in settings.shifts:
        views, replies = look(draw(studio, shift, name, list(range(1, settings.seeds + 1))), studio.panel)
        measured = filtering.measure(shift, views, start[0], studio.panel.judges.clip)
        both = pd.concat([start[1], replies], ignore_index=True)
        features = weather.rounded(filtering.join(start[0], views).clip)
        parts.append(measured.join(both).assign(**{FEATURES: features}))
    tables.write_unit(pd.concat(parts, ignore_index=True), unit, schema(studio.panel.models))


def draw(studio: Studio, shift: str, name: str, seeds: list[int]) -> pd.DataFrame:
    """Images of one class in one shift at all scales above 0, or unshifted, as a table of pictures."""
    scales = [scale for scale in studio.panel.tuning.settings.scales if scale > 0]
    found, quality = list[dict](), studio.sampler.settings.quality
    if shift == UNSHIFTED:
        for seed in seeds:
            found += generation.rows(shift, name, seed, [0.0], studio.sampler.unshifted(name, seed), quality=quality)
        return pd.DataFrame(found)
    with adapters.loaded(studio.sampler.pipe, slider_path(studio.sliders, shift, name)):
        for seed in seeds:
            found += generation.rows(shift, name, seed, scales, studio.sampler.shifted(name, seed, scales), quality=quality)
    return pd.DataFrame(found)


def look(table: pd.DataFrame, panel: Panel) -> tuple[Views, pd.DataFrame]:
    """What the filter's judges see in the pictures of a table, and the first answer of every classifier."""
    pictures, judges = tables.pictures(table, "drawn"), panel.judges
    own = [judges.oracle.labels.index(name) for name in table["class"]]
    probability = judges.oracle.class_probability(pictures).numpy()[np.arange(len(own)), own]
    features: tuple[Tensor, Tensor] = judges.clip.image_features(pictures), judges.image_encoder.features(pictures)
    return Views(table.drop(columns="image"), *features, probability), weather.answers(pictures, panel)


def shown(studio: Studio, wanted: pd.DataFrame, *, path: Path) -> pd.DataFrame:
    """The pictures of some rows, drawn again with their whole trajectory, as it was when they were looked at."""
    rows = wanted[tables.KEY].drop_duplicates().assign(shift=lambda t: t["shift"].where(t["scale"] > 0, UNSHIFTED)).drop_duplicates()
    keys = sorted(rows.itertuples(index=False, name=None))
    drawn_from = {name: studio.drawing(name) for name in sorted(set(rows["class"]))}
    unit = units.Unit(path, recipes.WEATHER_DRAWN.stamp(keys, drawn_from))
    if not unit.done:
        groups = rows.groupby(["shift", "class"])["seed"].unique()
        pieces = [(studio, *key, sorted(map(int, seeds))) for key, seeds in groups.items()]
        parts = workers.each(draw, pieces, device=studio.sampler.pipe.device, desc="shown")
        tables.write_unit(tables.select(pd.concat(parts), rows, tables.KEY, "shown"), unit, tables.images)
    return tables.read(path, tables.images)


def pictured(studio: Studio, wanted: pd.DataFrame, *, path: Path) -> UInt8[np.ndarray, "rows height width 3"]:
    """The pictures of some rows in their order, which may name one twice."""
    stock = shown(studio, wanted, path=path).set_index(tables.KEY)["image"]
    return np.stack([tables.decode(stock[key], path.name) for key in wanted[tables.KEY].itertuples(index=False, name=None)])


def counted(images: pd.DataFrame, kept: pd.DataFrame) -> pd.DataFrame:
    """How many trajectories there are under each shift, and how many of them are kept."""
    every = images.drop_duplicates(tables.TRAJECTORY)["shift"].value_counts().rename("trajectories")
    return every.to_frame().join(kept["shift"].value_counts().rename("kept"))


def filtered(seen: pd.DataFrame, known: pd.DataFrame, *, labels: int, settings: Filtering) -> pd.DataFrame:
    """The trajectories (shift, class, seed) that enter the benchmark; the filter's thresholds are those of the filtering step.

    `known` are that step's cosines, on whose labelled images the thresholds are set; the oracle knows `labels` classes.
    """
    known = known.assign(oracle_ooc=filtering.out_of_class(known["class_probability"], labels=labels))
    limits = filtering.thresholds(filtering.labelled_images(known), settings.recall)
    verdict = filtering.keeps(filtering.rules(settings.passes)["ours"], seen, limits)
    return filtering.kept_trajectories(seen.assign(keep=filtering.enters(seen, verdict)))
