"""Rulers: what the oracle, CLIP and the image encoder read off an image of a shift (extends CNS-Bench appendix H).

They are checked on rendered garments whose severity is known exactly, and then laid on the generated images.
"""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
from jaxtyping import UInt8

from cnslib.core import recipes, tables, workers
from cnslib.core.settings.sections import Calibration
from cnslib.method import filtering
from cnslib.method.filtering import CLASS, CLASS_PROMPT, READING, SHIFT_PROMPT, Judges, of_shift, predict
from cnslib.studies import pools
from cnslib.world.scenes import Garments

RULERS = {
    "oracle": "severity (oracle)",
    "asked": "severity of the asked shift (oracle)",
    "alignment": "alignment with the shift (CLIP)",
    "distance": "distance from scale 0 (encoder)",
}
readings = tables.schema(tables.KEY, {**tables.IDENTITY, **READING, "alignment": pa.Column(float), "distance": pa.Column(float)})


def rendered(shifts: list[str], classes: list[str], *, judges: Judges, settings: Calibration, folder: Path) -> pd.DataFrame:
    """All rulers on rendered held-out garments, where `scale` is the true severity; computes the shifts that are missing or outdated."""
    digests = [judges.clip.digest, judges.image_encoder.digest, judges.oracle.digest, judges.oracle.labels]
    made_from = recipes.RULERS.stamp(classes, settings.scenes, settings.severities, settings.seed, digests)
    rows = lambda shift, pool: measure(*scenes(pool, shift, classes, settings=settings), judges=judges)  # noqa: E731
    how: dict = {"device": judges.oracle.device, "common": lambda: [pools.garments(classes)]}
    return workers.stored(dict.fromkeys(shifts, made_from), rows, readings, folder=folder, **how)


def scenes(
    pool: Garments, shift: str, classes: list[str], *, settings: Calibration
) -> tuple[pd.DataFrame, UInt8[np.ndarray, "rows side side 3"]]:
    """Held-out garments in the catalog's look under one shift, at severities 0 to 1 in equal steps; severity 0 comes first."""
    severities = np.linspace(0, 1, settings.severities + 1).round(6).tolist()
    index = itertools.product(severities, classes, range(1, settings.scenes + 1))
    table = pd.DataFrame(index, columns=["scale", "class", "seed"]).assign(shift=shift)
    return table, pools.rendered(pool, table, "calibration", settings.seed)


def measure(table: pd.DataFrame, pictures: UInt8[np.ndarray, "rows side side 3"], *, judges: Judges) -> pd.DataFrame:
    """All rulers on the pictures of one shift, a table that begins with the rows of severity 0."""
    shift = table["shift"].iloc[0]
    plain, in_shift = (filtering.prompt_features(table, judges.clip, prompt, shift) for prompt in (CLASS_PROMPT, SHIFT_PROMPT))
    start = filtering.references(table, table[table["scale"] == 0])
    clip, image = judges.clip.image_features(pictures), judges.image_encoder.features(pictures)
    cosines = {"alignment": (clip * (in_shift - plain)).sum(dim=1), "distance": 1 - (image * image[start]).sum(dim=1)}
    numbers = {name: values.double().numpy().round(6) for name, values in cosines.items()}
    return of_shift(predict(table, pictures, oracle=judges.oracle), shift).drop(columns=CLASS).assign(**numbers)
