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

from cnslib.core import kinds, paths, tables, units
from cnslib.core.names import SHIFTS, UNSHIFTED, demand, identifier
from cnslib.core.settings.analyses import Calibration
from cnslib.data import artifacts
from cnslib.method import filtering
from cnslib.method.filtering import CLASS_PROMPT, SHIFT_PROMPT, Judges
from cnslib.models.encoders import Oracle
from cnslib.world.scenes import CLASSES, Garments, garments, render, to_uint8

RULERS = {
    "oracle": "severity (oracle)",
    "asked": "severity of the asked shift (oracle)",
    "alignment": "alignment with the shift (CLIP)",
    "distance": "distance from scale 0 (encoder)",
}
SHARE = pa.Check.in_range(0, 1)
SIGHT = {"oracle": pa.Column(float, SHARE), "asked": pa.Column(float, SHARE), "named": pa.Column(str)}
sight = tables.schema(tables.KEY, {**tables.IDENTITY, **SIGHT})
readings = tables.schema(tables.KEY, {**tables.IDENTITY, **SIGHT, "alignment": pa.Column(float), "distance": pa.Column(float)})


def see(table: pd.DataFrame, pictures: UInt8[np.ndarray, "rows height width 3"], *, oracle: Oracle) -> pd.DataFrame:
    """The rows of a table with the oracle's severity, the shift it names, and one column per shift with that shift's probability."""
    _, shifts, severity = oracle.parts(pictures)
    probability = pd.DataFrame(shifts.softmax(dim=1).double().numpy(), columns=[*SHIFTS, UNSHIFTED], index=table.index)
    found = table[tables.KEY].assign(oracle=severity[:, 0].sigmoid().double().numpy().round(6), named=probability.idxmax(axis=1))
    return found.join(probability)


def ask(seen: pd.DataFrame, shift: str) -> pd.DataFrame:
    """What the oracle sees of one shift: `asked` is its severity times the probability that it gives to that shift."""
    asked = (seen["oracle"] * seen[shift]).round(6)
    return seen[[*tables.KEY, "oracle", "named"]].assign(shift=shift, asked=asked)


def sights(images: Path, shifts: list[str], *, oracle: Oracle, folder: Path) -> pd.DataFrame:
    """What the oracle sees in every generated image, scale 0 under every shift; computes the shifts that are missing or outdated.

    `images` is the folder of the generation step's tables, `folder` receives one table per shift.
    """
    made = {name: units.verified(filtering.shard(images, name)) for name in (UNSHIFTED, *shifts)}
    made_from = {one: kinds.SIGHTS.stamp(one, [made[UNSHIFTED], made[one]], oracle.digest, oracle.labels) for one in shifts}
    shelf = units.Shelf(folder, {shift: (f"{identifier(shift)}.parquet", made_from[shift]) for shift in shifts})
    unshifted = None
    for shift in tqdm(shelf.waiting(), desc="oracle", disable=None):
        unshifted = see_shard(images, UNSHIFTED, oracle) if unshifted is None else unshifted
        tables.write_unit(ask(pd.concat([unshifted, see_shard(images, shift, oracle)]), shift), shelf[shift], sight)
    return tables.read_units(shelf, sight)


def see_shard(images: Path, shift: str, oracle: Oracle) -> pd.DataFrame:
    """What the oracle sees in the images of one table of the generation step."""
    path = filtering.shard(images, shift)
    table = artifacts.images(images, shift)
    return see(table, tables.pictures(table, str(path)), oracle=oracle)


def lay(seen: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """All rulers on the generated images: the oracle's sights beside the filter's cosines, with `keep` of the filter.

    `alignment` is the cosine with the caption in the shift minus that with the caption of the class, as in the health of the
    sliders; `caption` is the first cosine alone. Raises ValueError where the two tables are not about the same images.
    """
    tables.complete(seen, scores[tables.KEY].itertuples(index=False, name=None), tables.KEY, "the oracle's sights")
    both = seen.merge(scores, on=tables.KEY, validate="one_to_one")
    cosines = {"alignment": both["clip_class_shift"] - both["clip_class"], "distance": 1 - both["image_reference"]}
    both = both.assign(**cosines, caption=both["clip_class_shift"])
    return both[[*readings.columns, "caption", "keep"]]


def rendered(shifts: list[str], classes: list[str], *, judges: Judges, settings: Calibration, folder: Path) -> pd.DataFrame:
    """All rulers on rendered held-out garments, where `scale` is the true severity; computes the shifts that are missing or outdated.

    `folder` receives one table per shift. Raises ValueError for a class that is not a garment.
    """
    for name in classes:
        demand(name in CLASSES, "base.classes", name, ", ".join(CLASSES))
    digests = [judges.clip.digest, judges.image_encoder.digest, judges.oracle.digest, judges.oracle.labels]
    made_from = kinds.RULERS.stamp(classes, settings.scenes, settings.severities, settings.seed, digests)
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
    return ask(see(table, pictures, oracle=judges.oracle), shift).assign(**numbers)


def strips(garment: pd.DataFrame, equal: pd.Series, *, scales: list[float]) -> dict[str, pd.DataFrame]:
    """The rows of one garment at equally spaced scales and at those of `equal` perceived steps, each the nearest that was drawn.

    A row may come twice; a step that is not known stands at scale 0.
    """
    grid, rows = np.array(scales), garment.set_index("scale")
    asked = {"scales": np.linspace(0, grid[-1], len(equal)), "severity": equal.fillna(0).to_numpy()}
    nearest = {name: grid[np.abs(grid - np.c_[own]).argmin(axis=1)] for name, own in asked.items()}
    return {f"equal {name}": rows.loc[own].reset_index() for name, own in nearest.items()}
