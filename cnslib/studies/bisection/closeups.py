"""Close-ups: pictures of one trajectory between the grid's scales and the classifiers' answers to them, made on demand and kept.

A picture is drawn alone and asked about alone. So it depends on its key and on nothing else that anybody asked for.
"""

import dataclasses
from functools import cached_property
from pathlib import Path

import pandas as pd
import pandera.pandas as pa
import torch

from cnslib.core import recipes, tables, units
from cnslib.core.names import PROMPT, UNSHIFTED, demand, identifier
from cnslib.method import evaluation, generation
from cnslib.method.generation import Sampler
from cnslib.method.sliders import slider_path
from cnslib.models import adapters, classifiers, text_to_image
from cnslib.models.classifiers import Classifier


class NotOnFile(LookupError):
    """An answer that is asked of a studio which does not draw."""


@dataclasses.dataclass(frozen=True)
class Studio:
    """What close-ups are drawn from, who is asked about them, and where pictures and answers are kept."""

    sampler: Sampler
    origin: text_to_image.Origin
    sliders: Path
    classifiers: list[Classifier]
    folder: Path
    draws: bool = True  # whether a picture that is not on file is drawn; else asking for it raises NotOnFile

    @cached_property
    def drawing(self) -> str:
        """A digest of what all pictures have in common: sampling settings and base model."""
        drawn = self.sampler.settings.drawn()
        drawn |= self.sampler.identity
        return units.digest(PROMPT, drawn, self.origin.base)

    @cached_property
    def asked(self) -> str:
        """A digest of the classifiers: names, files, labels and preprocessing."""
        members = [[one.name, classifiers.digest(one.source), one.labels, one.preprocessing] for one in self.classifiers]
        return units.digest(members)


class Closeup:
    """One trajectory between the grid's scales, as far as anybody has asked: a table of pictures and one of answers.

    The pictures are written after every round of questions, so a killed run loses one round. An outdated table (another slider,
    base model, setting or recipe) counts as empty; answers are outdated when their pictures or the classifiers change.
    """

    def __init__(self, studio: Studio, shift: str, name: str, seed: int):
        """Reads what is there. FileNotFoundError names a missing slider."""
        self.studio, self.key = studio, (shift, name, int(seed))
        self.slider = slider_path(studio.sliders, shift, name)
        self.drawn_from = recipes.CLOSEUPS.stamp(studio.drawing, studio.origin.tokens[name], adapters.file_digest(self.slider), *self.key)
        self.picture_path, self.answer_path = (studio.folder / kind / relative_path(*self.key) for kind in ("pictures", "answers"))
        self.pictures = restored(self.picture_path, self.drawn_from, tables.images)
        self.answers = restored(self.answer_path, self.answered_from(), tables.predictions)

    def answered_from(self) -> str:
        """What the answers depend on: the classifiers, and the bytes of the pictures."""
        seen = units.file_digest(self.picture_path) if self.picture_path.exists() else ""
        return recipes.CLOSEUP_ANSWERS.stamp(self.studio.asked, self.drawn_from, seen)

    def ask(self, scales: list[float]) -> pd.DataFrame:
        """The predictions of all classifiers at these scales; draws the pictures that are missing, if the studio draws."""
        missing = sorted(set(scales) - set(self.answers["scale"]))
        if missing and not self.studio.draws:
            raise NotOnFile(f"{self.answer_path.name} holds no answers at scale {', '.join(map(str, missing))}")
        if missing:
            self.draw(missing)
            rows = self.pictures[self.pictures["scale"].isin(missing)]
            new = [replies(one, rows, self.picture_path.name) for one in self.studio.classifiers]
            self.answers = joined(tables.predictions, self.answers, *new)
        return self.answers[self.answers["scale"].isin(scales)]

    def draw(self, scales: list[float]) -> None:
        """Draws the pictures that are not there, one scale per forward pass, and writes the table."""
        missing = sorted(set(scales) - set(self.pictures["scale"]))
        if missing:
            with adapters.loaded(self.studio.sampler.pipe, self.slider):
                rows = [row for scale in missing for row in self.picture(scale)]
            self.pictures = joined(tables.images, self.pictures, pd.DataFrame(rows))
            self.write_pictures()

    def picture(self, scale: float) -> list[dict]:
        """The row of one picture, drawn alone with the adapter that is loaded."""
        (shift, name, seed), sampler = self.key, self.studio.sampler
        return list(generation.rows(shift, name, seed, [scale], sampler.shifted(name, seed, [scale]), quality=sampler.settings.quality))

    def write_pictures(self) -> None:
        """Writes the table of pictures and what it was made from."""
        tables.write_unit(self.pictures, units.Unit(self.picture_path, self.drawn_from), tables.images)

    def keep(self, scales: set[float]) -> None:
        """Writes both tables with exactly these scales, which must have been asked: equal requests leave equal bytes."""
        if set(self.pictures["scale"]) != scales:
            self.pictures = self.pictures[self.pictures["scale"].isin(scales)]
            self.write_pictures()
        self.answers = self.answers[self.answers["scale"].isin(scales)]
        unit = units.Unit(self.answer_path, self.answered_from())
        if not unit.done:
            tables.write_unit(self.answers, unit, tables.predictions)


def relative_path(shift: str, name: str, seed: int) -> Path:
    """Where the table of a trajectory is kept below its folder."""
    return Path(identifier(shift)) / f"{identifier(name)}_{seed}.parquet"


def restored(path: Path, made_from: str, kind: pa.DataFrameSchema) -> pd.DataFrame:
    """The table of a unit, or an empty one where it is missing or outdated."""
    return tables.read(path, kind) if units.Unit(path, made_from).done else pd.DataFrame(columns=list(kind.columns))


def joined(kind: pa.DataFrameSchema, *parts: pd.DataFrame) -> pd.DataFrame:
    """The rows of tables of one kind in the order of its key; empty ones are left out, since they have no column types."""
    rows = pd.concat([part for part in parts if len(part)] or parts[:1])
    return rows.sort_values(kind.metadata["key"], ignore_index=True)[list(kind.columns)]


def replies(classifier: Classifier, pictures: pd.DataFrame, name: str) -> pd.DataFrame:
    """The answers of one classifier, each picture in a batch of its own: a batch of another size may round differently."""
    rows = [pictures[i : i + 1] for i in range(len(pictures))]
    logits = torch.cat([evaluation.batch_logits(classifier, [*tables.pictures(row, name)], size=1) for row in rows])
    return evaluation.answers(classifier, pictures, logits)


def film(images: Path, folder: Path, shift: str, name: str, seed: int) -> pd.DataFrame:
    """All pictures of one trajectory in the order of the scale: those of the grid, and those that were drawn between them."""
    paths = [images / f"{identifier(part)}.parquet" for part in (UNSHIFTED, shift)]
    paths += [path for path in [folder / "pictures" / relative_path(shift, name, seed)] if path.exists()]
    table = tables.trajectories(pd.concat([tables.read(path, tables.images) for path in paths]), [shift])
    return table[(table["class"] == name) & (table["seed"] == seed)].sort_values("scale", ignore_index=True)


def drift(studio: Studio, images: Path, answers: pd.DataFrame, key: tuple[str, str, int], *, scale: float) -> dict[str, float]:
    """How far a picture of the grid drawn anew, alone, is from the stored one, and new answers to the stored one from those on file.

    Mean absolute difference in grey levels, and the largest one of the logit margins. Raises ValueError where the settings,
    models or classifiers are not those of the grid: then what lies between its scales would belong to another benchmark.
    """
    shot = Closeup(studio, *key)
    stored = film(images, studio.folder, *key).query("scale == @scale")
    with adapters.loaded(studio.sampler.pipe, shot.slider):
        drawn = tables.decode(shot.picture(scale)[0]["image"], "redrawn").astype(int)
    distance = float(abs(drawn - tables.pictures(stored, "grid")[0]).mean())
    demand(distance <= 1, "generation", distance, f"at most 1 grey level between the stored picture {key} at {scale} and a new one")
    new = pd.concat([replies(one, stored, "grid") for one in studio.classifiers])
    both = new.merge(answers, on=["model", *tables.KEY], suffixes=("", "_stored"), validate="one_to_one")
    same = both["model"][both["top1"] == both["top1_stored"]].tolist()
    demand(len(same) == len(new), "evaluation.classifiers", same, "the answers of the evaluation step from every classifier")
    return {"grey levels": distance, "margin": float((both["margin"] - both["margin_stored"]).abs().max())}


def prune(folder: Path, keys: list[tuple[str, str, int]]) -> None:
    """Deletes the tables of trajectories other than these, and what a killed run left half written."""
    kept = {f"{kind}/{relative_path(*key).as_posix()}" for key in keys for kind in ("pictures", "answers")}
    units.prune(folder, kept, "*/*/*.parquet")
    units.prune(folder, set(), "*/*/.*.partial")
