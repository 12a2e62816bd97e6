"""The four alignments that the out-of-class filter looks at, for every generated image (CNS-Bench section 3.4, Eqs. 4 and 5)."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
import torch
from jaxtyping import Float, UInt8
from torch import Tensor
from tqdm.auto import tqdm

from cnslib import kinds, tables, units
from cnslib.config import UNSHIFTED, identifier
from cnslib.encoders import Clip, ImageEncoder, Oracle

CLASS_PROMPT = "a picture of a {name}"
SHIFT_PROMPT = "a picture of a {name} in {shift}"
DETECTORS = ("clip_class", "clip_class_shift", "clip_reference", "image_reference")
schema = tables.schema(
    tables.KEY,
    {**tables.IDENTITY, **{name: pa.Column(float, tables.COSINE) for name in DETECTORS}, "class_probability": pa.Column(float)},
)


@dataclass(frozen=True)
class Judges:
    """The three models that look at every image. None of them saw the classifiers' training data (section 3.4)."""

    clip: Clip
    image_encoder: ImageEncoder
    oracle: Oracle


@dataclass(frozen=True)
class Views:
    """What the judges see in each image of a table; `table` identifies the rows, `probability` is the oracle's for their class."""

    table: pd.DataFrame
    clip: Float[Tensor, "rows clip_features"]
    image: Float[Tensor, "rows image_features"]
    probability: Float[np.ndarray, "rows"]


def align(images: Path, shifts: list[str], *, judges: Judges, folder: Path) -> pd.DataFrame:
    """The four alignments of every image, scale 0 under every shift; computes the shifts that are missing or outdated.

    `images` is the folder of the generation step's tables, `folder` receives one table per shift.
    """
    shelf = units.Shelf(folder, {shift: (f"{identifier(shift)}.parquet", stamp(images, shift, judges)) for shift in shifts})
    unshifted = None
    for shift in tqdm(shelf.waiting(), desc="alignment", disable=None):
        unshifted = unshifted or look(images, UNSHIFTED, judges)
        tables.write_unit(measure(shift, look(images, shift, judges), unshifted, judges.clip), shelf[shift], schema)
    return tables.read_units(shelf, schema)


def stamp(images: Path, shift: str, judges: Judges) -> units.Stamp:
    """What the alignments of a shift depend on: its images, the unshifted ones and the three models."""
    made = [units.file_digest(shard(images, name)) for name in (UNSHIFTED, shift)]
    models = [judges.clip.digest, judges.image_encoder.digest, judges.oracle.digest, judges.oracle.labels]
    return kinds.ALIGNMENT.stamp(shift, made, models)


def shard(images: Path, shift: str) -> Path:
    """The table of one shift's images; FileNotFoundError where the generation step has not made it."""
    path = images / f"{identifier(shift)}.parquet"
    if not path.exists():
        raise FileNotFoundError(f"images {path} of {shift!r} do not exist; the generation step makes them")
    return path


def look(images: Path, shift: str, judges: Judges) -> Views:
    """Shows every image of one shift to each judge once."""
    table = tables.read(shard(images, shift), tables.images)
    unknown = sorted(set(table["class"]) - set(judges.oracle.labels))
    if unknown:
        raise ValueError(f"labels: the oracle knows no class {unknown[0]!r}; accepted: {', '.join(judges.oracle.labels)}")
    pictures = tables.pictures(table, str(shard(images, shift)))
    own = [judges.oracle.labels.index(name) for name in table["class"]]
    probability = judges.oracle.class_probability(pictures).numpy()[np.arange(len(own)), own]
    features = judges.clip.image_features(pictures), judges.image_encoder.features(pictures)
    return Views(table.drop(columns="image"), *features, probability)


def measure(shift: str, shifted: Views, unshifted: Views, clip: Clip) -> pd.DataFrame:
    """Eqs. 4 and 5: cosines of each image with two prompts, and with the unshifted image of its class and seed."""
    views = join(unshifted, shifted)
    plain, in_shift = (prompt_features(views.table, clip, prompt, shift) for prompt in (CLASS_PROMPT, SHIFT_PROMPT))
    start = references(views.table, unshifted.table)
    pairs = [(views.clip, plain), (views.clip, in_shift), (views.clip, views.clip[start]), (views.image, views.image[start])]
    cosines = {name: (a * b).sum(dim=1).double().numpy().round(6) for name, (a, b) in zip(DETECTORS, pairs, strict=True)}
    return views.table.assign(shift=shift, **cosines, class_probability=views.probability.astype(float).round(6))


def prompt_features(table: pd.DataFrame, clip: Clip, prompt: str, shift: str) -> Float[Tensor, "rows clip_features"]:
    """The text feature of each row's class in a prompt."""
    names = sorted(set(table["class"]))
    features = clip.text_features([prompt.format(name=name, shift=shift) for name in names])
    return features[[names.index(name) for name in table["class"]]]


def references(table: pd.DataFrame, unshifted: pd.DataFrame) -> list[int]:
    """For each row of a table that begins with the unshifted images: which of these has its class and seed.

    Raises ValueError, naming class and seed, where there is none.
    """
    start = {key: row for row, key in enumerate(unshifted[["class", "seed"]].itertuples(index=False, name=None))}
    keys = list(table[["class", "seed"]].itertuples(index=False, name=None))
    missing = sorted(set(keys) - set(start))
    if missing:
        raise ValueError(f"images: {len(missing)} trajectories have no unshifted image, for example (class, seed) {missing[0]}")
    return [start[key] for key in keys]


def join(first: Views, second: Views) -> Views:
    """The rows of two tables, one after the other."""
    table = pd.concat([first.table, second.table], ignore_index=True)
    clip, image = torch.cat([first.clip, second.clip]), torch.cat([first.image, second.image])
    return Views(table, clip, image, np.concatenate([first.probability, second.probability]))


def gallery(images: Path, groups: dict[str, pd.DataFrame], *, columns: int) -> UInt8[np.ndarray, "groups columns height width 3"]:
    """The images of the first rows of some tables, one row of pictures per table; white where a table has fewer rows.

    A row of scale 0 is looked up among the unshifted images. Raises ValueError where every table is empty.
    """
    rows = pd.concat([table.head(columns).assign(group=name) for name, table in groups.items()])
    if rows.empty:
        raise ValueError(f"gallery: the tables {', '.join(groups)} are all empty")
    rows["shift"] = rows["shift"].where(rows["scale"] > 0, UNSHIFTED)
    shards = [tables.read(shard(images, shift), tables.images) for shift in sorted(set(rows["shift"]))]
    found = rows.merge(pd.concat(shards), on=tables.KEY, validate="many_to_one")
    pictures = tables.pictures(found, str(images))
    sheet = np.full((len(groups), columns, *pictures.shape[1:]), 255, np.uint8)
    places = found["group"].map(list(groups).index), found.groupby("group").cumcount()
    sheet[places] = pictures
    return sheet
