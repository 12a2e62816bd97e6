"""Rendered and drawn weather before the same eyes (CNS-Bench section 4.3 and supplement L).

The reference are held-out garments, each rendered in one weather of an unknown severity. On the ladder other garments stand at known
severities from 0 to 1. Drawn images have scales up to 3, and 85 % of the steps with the slider; they are looked at and let go, and the
few that a figure shows are drawn again. In all tables `scale` is the severity where a picture is rendered, the slider scale where drawn.
"""

import itertools
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
import torch
from jaxtyping import Float, UInt8

from cnslib.core import paths, recipes, seeds, tables, units, workers
from cnslib.core.names import PROMPT, UNSHIFTED, demand, identifier
from cnslib.core.settings.sections import Oodcv
from cnslib.method import filtering, generation
from cnslib.method.filtering import Judges, Views
from cnslib.method.generation import Sampler
from cnslib.method.sliders import slider_path
from cnslib.models import adapters, encoders, text_to_image
from cnslib.studies.oodcv.training import FineTuning
from cnslib.world import scenes

OTHERS = (UNSHIFTED, "heavy sandstorm")  # neither snow nor fog nor rain; OOD-CV's own file names add the query "desert"
FEATURES = "features"
Pictures = UInt8[np.ndarray, "rows side side 3"]


@dataclass(frozen=True)
class Study:
    """What images are drawn from, and the models that look at all pictures: the filter's judges and the fine-tuned classifiers."""

    sampler: Sampler
    origin: text_to_image.Origin
    sliders: Path
    judges: Judges
    tuning: FineTuning

    @cached_property
    def digest(self) -> str:
        """What a prediction depends on besides the picture."""
        return units.digest([self.tuning.stamp(name) for name in self.tuning.settings.networks], self.judges.clip.digest)

    def drawing(self, name: str) -> str:
        """What the images of a class depend on: base model, token, sliders, sampling settings, scales and seeds."""
        settings = self.tuning.settings
        sliders = [adapters.file_digest(slider_path(self.sliders, shift, name)) for shift in settings.shifts]
        grid, origin = (settings.shifts, settings.scales, settings.seeds), self.origin
        return units.digest(name, PROMPT, grid, self.sampler.settings.drawn(), origin.base, origin.tokens[name], sliders)

    def looking(self, name: str) -> str:
        """What the table of a class depends on: its images and everybody who looks at them."""
        judges = self.judges
        seen = [judges.clip.digest, judges.image_encoder.digest, judges.oracle.digest, self.digest]
        return recipes.WEATHER_DRAWN.stamp(self.drawing(name), seen)

    def schema(self, *, features: bool = True, drawn: bool = False) -> pa.DataFrameSchema:
        """Key, predictions and CLIP's features; of drawn images the filter's cosines and the oracle's probability as well."""
        columns = {name: pa.Column(str) for name in self.tuning.settings.networks}
        if drawn:
            columns |= {name: pa.Column(float, tables.COSINE) for name in filtering.DETECTORS} | {"class_probability": pa.Column(float)}
        return tables.schema(tables.KEY, {**tables.IDENTITY, **columns, **({FEATURES: pa.Column(object)} if features else {})})


def predictions(pictures: Pictures, tuning: FineTuning) -> pd.DataFrame:
    """The prediction of every classifier, one column each."""
    found = {}
    for one in tuning.classifiers:
        parts = [one.logits(pictures[start : start + encoders.BATCH]) for start in range(0, len(pictures), encoders.BATCH)]
        found[one.name] = [one.labels[i] for i in torch.cat(parts).argmax(dim=1)]
    return pd.DataFrame(found)


def rounded(features: Float[torch.Tensor, "rows features"]) -> list[np.ndarray]:
    """CLIP features as rows of a table."""
    return list(features.numpy().round(4).astype(np.float32))


def reference_plan(classes: list[str], *, settings: Oodcv) -> pd.DataFrame:
    """The pictures of the reference: each garment once, in one weather; a weather's severities are even in [0, 1).

    `OTHERS` share the place of one further weather. The seed counts the held-out garments of a class.
    """
    counts = dict.fromkeys(settings.shifts, settings.reference_images) | dict.fromkeys(OTHERS, settings.reference_images // 2)
    weathers = [shift for shift, count in counts.items() for _ in range(count)]
    rows = [(shift, name, number) for name in classes for number, shift in enumerate(weathers, start=1)]
    key = ("oodcv", "severity", settings.seed)
    drawn = [0.0 if row[0] == UNSHIFTED else round(float(torch.rand(1, generator=seeds.generator(*key, *row))), 6) for row in rows]
    return pd.DataFrame(rows, columns=tables.TRAJECTORY).assign(scale=drawn)


def ladder_plan(classes: list[str], shift: str, *, settings: Oodcv) -> pd.DataFrame:
    """Garments that the reference does not use, the same under every weather, at evenly spaced severities from 0 to 1."""
    first = len(settings.shifts) * settings.reference_images + 2 * (settings.reference_images // 2) + 1
    steps = np.linspace(0, 1, settings.severities + 1).round(6).tolist()
    rows = itertools.product([shift], classes, range(first, first + settings.ladder_images), steps)
    return pd.DataFrame(rows, columns=tables.KEY)


def heldout(classes: list[str]) -> scenes.Garments:
    """Garments that no model has seen. ValueError for a class that is not a garment."""
    for name in classes:
        demand(name in scenes.CLASSES, "base.classes", name, ", ".join(scenes.CLASSES))
    return scenes.garments(paths.GARMENTS, "heldout")


def rendered(pool: scenes.Garments, plan: pd.DataFrame, *, seed: int) -> Pictures:
    """The pictures of a plan in the catalog's look; a garment keeps its pose, its colours and its weather at every severity."""
    places = {name: np.flatnonzero(pool.labels == scenes.CLASSES.index(name)) for name in plan["class"].unique()}
    pairs = list(zip(plan["class"], plan["seed"].astype(int), strict=True))
    rows, keys = [places[name][number - 1] for name, number in pairs], [("oodcv", seed, *pair) for pair in pairs]
    amount = torch.tensor(plan["scale"].to_numpy(), dtype=torch.float32)
    return scenes.to_uint8(scenes.render(pool.grey[rows], keys, style="catalog", shift=plan["shift"].tolist(), severity=amount)).numpy()


def seen(study: Study, plans: dict[str, pd.DataFrame], *, folder: Path, features: bool, pattern: str = "*.parquet") -> pd.DataFrame:
    """Predictions, and CLIP's `features`, on the rendered pictures of some plans; computes the tables that are missing or outdated."""
    tuning, kind = study.tuning, study.schema(features=features)
    stamps = {name: recipes.WEATHER.stamp(plan.to_dict("list"), tuning.settings.seed, study.digest) for name, plan in plans.items()}
    shelf = units.Shelf(folder, {name: (f"{identifier(name)}.parquet", stamp) for name, stamp in stamps.items()}, pattern)
    if waiting := shelf.waiting():
        pool, _ = heldout(tuning.classes), tuning.classifiers  # trained once, before the work is spread
        pieces = [(tuning, study.judges.clip if features else None, pool, plans[name], shelf[name], kind) for name in waiting]
        workers.each(look_at_rendered, pieces, device=tuning.device, desc="rendered")
    return tables.read_units(shelf, kind)


def look_at_rendered(
    tuning: FineTuning, clip: encoders.Clip | None, pool: scenes.Garments, plan: pd.DataFrame, unit: units.Unit, kind: pa.DataFrameSchema
) -> None:
    """Writes what is seen in the pictures of one plan."""
    pictures = rendered(pool, plan, seed=tuning.settings.seed)
    features = {FEATURES: rounded(clip.image_features(pictures))} if clip else {}
    tables.write_unit(plan.join(predictions(pictures, tuning)).assign(**features), unit, kind)


def generated(study: Study, classes: list[str], *, folder: Path) -> pd.DataFrame:
    """What is seen in the generated images, scale 0 under each shift; draws the classes that are missing or outdated."""
    shelf = units.Shelf(folder, {name: (f"{identifier(name)}.parquet", study.looking(name)) for name in classes})
    if waiting := shelf.waiting():
        _ = study.tuning.classifiers  # trained once, before the work is spread
        pieces = [(study, name, shelf[name]) for name in waiting]
        workers.each(draw_and_look, pieces, device=study.sampler.pipe.device, desc="generated")
    return tables.read_units(shelf, study.schema(drawn=True))


def draw_and_look(study: Study, name: str, unit: units.Unit) -> None:
    """Draws all images of a class and writes what is seen in them."""
    numbers = list(range(1, study.tuning.settings.seeds + 1))
    start, of_start = look(study, draw(study, UNSHIFTED, name, numbers))
    parts = []
    for shift in study.tuning.settings.shifts:
        views, predicted = look(study, draw(study, shift, name, numbers))
        measured = filtering.measure(shift, views, start, study.judges.clip)
        features = rounded(filtering.join(start, views).clip)
        parts.append(measured.join(pd.concat([of_start, predicted], ignore_index=True)).assign(**{FEATURES: features}))
    tables.write_unit(pd.concat(parts, ignore_index=True), unit, study.schema(drawn=True))


def draw(study: Study, shift: str, name: str, numbers: list[int]) -> pd.DataFrame:
    """Images of one class and some seeds in one shift at all scales above 0, or unshifted, as a table of pictures."""
    sampler, scales = study.sampler, [scale for scale in study.tuning.settings.scales if scale > 0]
    if shift == UNSHIFTED:
        scales, drawn = [0.0], [sampler.unshifted(name, seed) for seed in numbers]
    else:
        with adapters.loaded(sampler.pipe, slider_path(study.sliders, shift, name)):
            drawn = [sampler.shifted(name, seed, scales) for seed in numbers]
    how, pairs = {"quality": sampler.settings.quality}, zip(numbers, drawn, strict=True)
    return pd.DataFrame([row for seed, images in pairs for row in generation.rows(shift, name, seed, scales, images, **how)])


def look(study: Study, table: pd.DataFrame) -> tuple[Views, pd.DataFrame]:
    """What the filter's judges see in the pictures of a table, and the prediction of every classifier."""
    pictures, judges = tables.pictures(table, "drawn"), study.judges
    places = [judges.oracle.labels.index(name) for name in table["class"]]
    probability = judges.oracle.class_probability(pictures).numpy()[np.arange(len(places)), places]
    features = judges.clip.image_features(pictures), judges.image_encoder.features(pictures)
    return Views(table.drop(columns="image"), *features, probability), predictions(pictures, study.tuning)


def shown(study: Study, wanted: pd.DataFrame, *, path: Path) -> pd.DataFrame:
    """The pictures of some rows, drawn again with their whole trajectory, as it was when they were looked at."""
    rows = wanted[tables.KEY].assign(shift=wanted["shift"].where(wanted["scale"] > 0, UNSHIFTED)).drop_duplicates()
    keys = sorted(rows.itertuples(index=False, name=None))
    unit = units.Unit(path, recipes.WEATHER_DRAWN.stamp(keys, {name: study.drawing(name) for name in sorted(set(rows["class"]))}))
    if not unit.done:
        groups = rows.groupby(["shift", "class"])["seed"].unique()
        pieces = [(study, *key, sorted(map(int, numbers))) for key, numbers in groups.items()]
        parts = workers.each(draw, pieces, device=study.sampler.pipe.device, desc="shown")
        tables.write_unit(tables.select(pd.concat(parts), rows, tables.KEY, "shown"), unit, tables.images)
    return tables.read(path, tables.images)
