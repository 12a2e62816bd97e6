"""What the oracle predicts for the generated images: the shift that they were drawn with, or another, and how severe it is.

No part of CNS-Bench, whose people were asked about the class alone. The gates and the rulers of notebook 12 rest on it.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
from jaxtyping import UInt8

from cnslib.core import recipes, tables, units, workers
from cnslib.core.names import SHIFTS, UNSHIFTED, identifier
from cnslib.data import artifacts
from cnslib.models.encoders import Oracle

SHARE = pa.Check.in_range(0, 1)
READING = {"oracle": pa.Column(float, SHARE, nullable=True), "asked": pa.Column(float, SHARE, nullable=True), "named": pa.Column(str)}
CLASS = "class_probability"  # of the image's own class
BLIND = "not asked"  # what an oracle of the class alone names
schema = tables.schema(tables.KEY, {**tables.IDENTITY, **READING, CLASS: pa.Column(float, SHARE)})


def predict(table: pd.DataFrame, pictures: UInt8[np.ndarray, "rows height width 3"], *, oracle: Oracle) -> pd.DataFrame:
    """The rows of a table with the oracle's probability of their class, its severity, the shift it names, and a column per shift.

    These hold the shifts' probabilities. An oracle of the class alone sees no shift: its severities are not numbers, and there are no
    such columns. Raises ValueError for a class that the oracle does not know.
    """
    if unknown := sorted(set(table["class"]) - set(oracle.labels)):
        raise ValueError(f"labels: the oracle knows no class {unknown[0]!r}; accepted: {', '.join(oracle.labels)}")
    blind = not hasattr(oracle, "parts")
    classes, *sight = [oracle.class_probability(pictures)] if blind else oracle.parts(pictures)
    probability = (classes if blind else classes.softmax(dim=1)).numpy()
    own = probability[np.arange(len(table)), [oracle.labels.index(name) for name in table["class"]]].astype(float).round(6)
    found = table[tables.KEY].assign(**{CLASS: own})
    if blind:
        return found.assign(oracle=np.nan, named=BLIND)
    shifts, severity = sight
    named = pd.DataFrame(shifts.softmax(dim=1).double().numpy(), columns=[*SHIFTS, UNSHIFTED], index=table.index)
    return found.assign(oracle=severity[:, 0].sigmoid().double().numpy().round(6), named=named.idxmax(axis=1)).join(named)


def of_shift(seen: pd.DataFrame, shift: str) -> pd.DataFrame:
    """What the oracle predicts of one shift: `asked` is its severity times the probability that it gives to that shift, if it knows it."""
    asked = (seen["oracle"] * seen.get(shift, np.nan)).round(6)
    return seen[[*tables.KEY, CLASS, "oracle", "named"]].assign(shift=shift, asked=asked)


def predict_all(images: Path, shifts: list[str], *, oracle: Oracle, folder: Path) -> pd.DataFrame:
    """What the oracle predicts in every generated image, scale 0 under every shift; computes the shifts that are missing or outdated.

    `images` is the folder of the generation step's tables, `folder` receives one table per shift.
    """
    made = {name: units.verified(images / f"{identifier(name)}.parquet") for name in (UNSHIFTED, *shifts)}
    made_from = {one: recipes.SIGHTS.stamp(one, [made[UNSHIFTED], made[one]], oracle.digest, oracle.labels) for one in shifts}
    shelf = units.Shelf(folder, {shift: (f"{identifier(shift)}.parquet", made_from[shift]) for shift in shifts})
    if waiting := shelf.waiting():
        unshifted = predict_table(images, UNSHIFTED, oracle)
        pieces = [(images, shift, oracle, unshifted, shelf[shift]) for shift in waiting]
        workers.each(predict_shift, pieces, device=oracle.device, desc="oracle")
    return tables.read_units(shelf, schema)


def predict_shift(images: Path, shift: str, oracle: Oracle, unshifted: pd.DataFrame, unit: units.Unit) -> None:
    """Writes what the oracle sees in the images of one shift."""
    tables.write_unit(of_shift(pd.concat([unshifted, predict_table(images, shift, oracle)]), shift), unit, schema)


def predict_table(images: Path, shift: str, oracle: Oracle) -> pd.DataFrame:
    """What the oracle predicts in the images of one table of the generation step."""
    table = artifacts.images(images, shift)
    return predict(table, tables.pictures(table, f"{identifier(shift)}.parquet"), oracle=oracle)


def beside(seen: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """What the oracle predicts beside the filter's cosines, with `alignment` and `distance`, the readings of the two encoders.

    The alignment is the cosine with the caption in the shift minus that with the caption of the class, as in the health of the
    sliders; the distance is one minus the cosine with the features of scale 0. Raises ValueError where the two tables are not about
    the same images.
    """
    tables.complete(seen, scores[tables.KEY].itertuples(index=False, name=None), tables.KEY, "the oracle's predictions")
    both = seen.drop(columns=CLASS).merge(scores, on=tables.KEY, validate="one_to_one")
    return both.assign(alignment=both["clip_class_shift"] - both["clip_class"], distance=1 - both["image_reference"])
