"""The oracle's second opinion: the probability of its own class that it gives to an image turned round from left to right."""

from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
from jaxtyping import Float
from tqdm.auto import tqdm

from cnslib.core import recipes, tables, units
from cnslib.core.names import UNSHIFTED, identifier
from cnslib.data import artifacts
from cnslib.method import filtering
from cnslib.models.encoders import Oracle

schema = tables.schema(tables.KEY, {**tables.IDENTITY, "mirrored_probability": pa.Column(float, pa.Check.in_range(0, 1))})


def look(images: Path, shifts: list[str], *, oracle: Oracle, folder: Path) -> pd.DataFrame:
    """The second opinion on every generated image, each once; computes the shifts that are missing or outdated.

    `images` is the folder of the generation step's tables, `folder` receives one table for each of them.
    """
    made = {name: units.verified(filtering.shard(images, name)) for name in (UNSHIFTED, *shifts)}
    made_from = {name: recipes.MIRRORED.stamp(name, content, oracle.digest, oracle.labels) for name, content in made.items()}
    shelf = units.Shelf(folder, {name: (f"{identifier(name)}.parquet", made_from[name]) for name in made})
    for name in tqdm(shelf.waiting(), desc="mirrored", disable=None):
        table = artifacts.images(images, name)
        tables.write_unit(table[tables.KEY].assign(mirrored_probability=probability(table, oracle)), shelf[name], schema)
    return tables.read_units(shelf, schema)


def probability(rows: pd.DataFrame, oracle: Oracle) -> Float[np.ndarray, "rows"]:
    """The oracle's probability of each row's own class when it sees the row's `image` turned round from left to right."""
    if rows.empty:
        return np.zeros(0)
    own = [oracle.labels.index(name) for name in rows["class"]]
    pictures = np.ascontiguousarray(tables.pictures(rows, "images to label")[:, :, ::-1])
    return oracle.class_probability(pictures).double().numpy()[np.arange(len(own)), own]


def among(seen: pd.DataFrame, rows: pd.DataFrame) -> Float[np.ndarray, "rows"]:
    """The second opinion on the image of each row, a row of scale 0 under the name of any shift; KeyError where there is none."""
    return seen.set_index(tables.KEY)["mirrored_probability"].loc[drawn_as(rows)].to_numpy()


def drawn_as(rows: pd.DataFrame) -> pd.MultiIndex:
    """The keys under which the images of rows were drawn: those of scale 0 once, unshifted."""
    return pd.MultiIndex.from_frame(rows[tables.KEY].assign(shift=rows["shift"].where(rows["scale"] > 0, UNSHIFTED)))
