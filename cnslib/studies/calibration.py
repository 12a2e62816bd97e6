"""Rulers: what the oracle, CLIP and the image encoder read off an image of a shift (extends CNS-Bench appendix H).

They are checked on rendered garments whose severity is known exactly, and then laid on the generated images.
"""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
import torch
from jaxtyping import UInt8
from tqdm.auto import tqdm

from cnslib.core import paths, recipes, tables, units
from cnslib.core.names import demand, identifier
from cnslib.core.settings.sections import Calibration
from cnslib.method import filtering
from cnslib.method.filtering import CLASS_PROMPT, SHIFT_PROMPT, Judges
from cnslib.method.oracle_predictions import CLASS, READING, beside, of_shift, predict
from cnslib.world.scenes import CLASSES, Garments, garments, render, to_uint8

RULERS = {
    "oracle": "severity (oracle)",
    "asked": "severity of the asked shift (oracle)",
    "alignment": "alignment with the shift (CLIP)",
    "distance": "distance from scale 0 (encoder)",
}
readings = tables.schema(tables.KEY, {**tables.IDENTITY, **READING, "alignment": pa.Column(float), "distance": pa.Column(float)})


def lay(seen: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """All rulers on the generated images: the oracle's sights beside the filter's cosines, with `keep` of the filter.

    `alignment` is the cosine with the caption in the shift minus that with the caption of the class, as in the health of the
    sliders; `caption` is the first cosine alone. Raises ValueError where the two tables are not about the same images.
    """
    both = beside(seen, scores)
    return both.assign(caption=both["clip_class_shift"])[[*readings.columns, "caption", "keep"]]


def rendered(shifts: list[str], classes: list[str], *, judges: Judges, settings: Calibration, folder: Path) -> pd.DataFrame:
    """All rulers on rendered held-out garments, where `scale` is the true severity; computes the shifts that are missing or outdated.

    `folder` receives one table per shift. Raises ValueError for a class that is not a garment.
    """
    for name in classes:
        demand(name in CLASSES, "base.classes", name, ", ".join(CLASSES))
    digests = [judges.clip.digest, judges.image_encoder.digest, judges.oracle.digest, judges.oracle.labels]
    made_from = recipes.RULERS.stamp(classes, settings.scenes, settings.severities, settings.seed, digests)
    shelf = units.Shelf(folder, {shift: (f"{identifier(shift)}.parquet", made_from) for shift in shifts})
    pool = None
    for shift in tqdm(shelf.waiting(), desc="rendered", disable=None):
        pool = pool or garments(paths.GARMENTS, "heldout")
        tables.write_unit(measure(*scenes(pool, shift, classes, settings=settings), judges=judges), shelf[shift], readings)
    return tables.read_units(shelf, readings)


def scenes(
    pool: Garments, shift: str, classes: list[str], *, settings: Calibration
) -> tuple[pd.DataFrame, UInt8[np.ndarray, "rows side side 3"]]:
    """Held-out garments in the catalog's look under one shift, at severities 0 to 1 in equal steps; severity 0 comes first.

    A garment keeps its pose, its colours and its weather at all severities and under all shifts.
    """
    severities = np.linspace(0, 1, settings.severities + 1).round(6).tolist()
    index = itertools.product(severities, classes, range(1, settings.scenes + 1))
    table = pd.DataFrame(index, columns=["scale", "class", "seed"]).assign(shift=shift)
    own = {name: np.flatnonzero(pool.labels == CLASSES.index(name)) for name in classes}
    pairs = list(table[["class", "seed"]].itertuples(index=False, name=None))
    rows = [own[name][number - 1] for name, number in pairs]
    keys = [("calibration", settings.seed, *pair) for pair in pairs]
    severity = torch.tensor(table["scale"].to_numpy(), dtype=torch.float32)
    image = render(pool.grey[rows], keys, style="catalog", shift=[shift] * len(rows), severity=severity)
    return table, to_uint8(image).numpy()


def measure(table: pd.DataFrame, pictures: UInt8[np.ndarray, "rows side side 3"], *, judges: Judges) -> pd.DataFrame:
    """All rulers on the pictures of one shift, a table that begins with the rows of severity 0."""
    shift = table["shift"].iloc[0]
    plain, in_shift = (filtering.prompt_features(table, judges.clip, prompt, shift) for prompt in (CLASS_PROMPT, SHIFT_PROMPT))
    start = filtering.references(table, table[table["scale"] == 0])
    clip, image = judges.clip.image_features(pictures), judges.image_encoder.features(pictures)
    cosines = {"alignment": (clip * (in_shift - plain)).sum(dim=1), "distance": 1 - (image * image[start]).sum(dim=1)}
    numbers = {name: values.double().numpy().round(6) for name, values in cosines.items()}
    return of_shift(predict(table, pictures, oracle=judges.oracle), shift).drop(columns=CLASS).assign(**numbers)
