"""Distance of shifted images from what was trained on, in pixels and in features (Control+Shift Eq. 3)."""

from pathlib import Path

import pandas as pd
import pandera.pandas as pa

from cnslib import degradation, kinds, latentsets, lessons, tables, units
from cnslib.encoders import ImageEncoder
from cnslib.studies import Controlshift

SPACES = ("pixel", "feature")
schema = tables.schema(tables.KEY, {**tables.IDENTITY, **{space: pa.Column(float, pa.Check.ge(0)) for space in SPACES}})


def distances(sets: Path, shifted: Controlshift, encoder: ImageEncoder, path: Path) -> pd.DataFrame:
    """Distance of every test image from its nearest training image; made where the file is missing or outdated.

    Training images are those of the standard sets, of all classes. Pixel values lie in [0, 1]; features have length 1.
    """
    files = [units.file_digest(file) for file in sorted(sets.glob("*.parquet"))]
    unit = units.Unit(path, kinds.NEIGHBOURS.stamp(files, encoder.digest))
    if not unit.done:
        groups = {"truncation": ("truncation",), "half sphere": lessons.ON_SPHERE}
        parts = [from_training(sets, shifted, encoder, training, kinds) for training, kinds in groups.items()]
        tables.write_unit(pd.concat(parts, ignore_index=True), unit, schema)
    return tables.read(path, schema)


def from_training(sets: Path, shifted: Controlshift, encoder: ImageEncoder, training: str, kinds: tuple[str, ...]) -> pd.DataFrame:
    """Distances of the test images of some shifts from one training set."""
    table = latentsets.test_set(sets, shifted, kinds)
    known, asked = (tables.pictures(one, "images") for one in (latentsets.load(sets, *lessons.SETS[training]), table))
    spaces = {"pixel": lessons.flat, "feature": lambda pictures: encoder.features(pictures).double().numpy()}
    return table[tables.KEY].assign(**{space: degradation.nearest(seen(known), seen(asked)) for space, seen in spaces.items()})


def means(away: pd.DataFrame) -> pd.DataFrame:
    """The 1-NN distance of every step (shift, scale, n and one column per space)."""
    groups = away.groupby(["shift", "scale"])
    return groups[list(SPACES)].mean().assign(n=groups.size()).reset_index()
