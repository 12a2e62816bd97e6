"""What the steps generation, filtering and evaluation leave, for two classes, shifts, seeds and scales and two classifiers."""

import dataclasses
import functools
import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa

from cnslib.core import paths, recipes, tables, units
from cnslib.core.names import UNSHIFTED, identifier
from cnslib.core.settings import read
from cnslib.data import artifacts

SHIFTS, CLASSES, SEEDS, SCALES, MODELS = ["heavy snow", "heavy fog"], ["bag", "coat"], 2, [0.0, 1.0], ["resnet", "vit"]
COSINES = ("clip_class", "clip_class_shift", "clip_reference", "image_reference")
alignment = tables.schema(tables.KEY, {**tables.IDENTITY, **{name: pa.Column(float) for name in (*COSINES, "class_probability")}})

sight = tables.schema(tables.KEY, {**tables.IDENTITY, "oracle": pa.Column(float)})


@functools.cache
def committed() -> dict:
    """The committed parameters, read once."""
    return read.load(paths.resolve("params.yaml"))


def run_in(folder: Path, **changes) -> read.Run:
    """The committed parameters on this small grid; `changes` are further values of `base`."""
    sections = committed()
    grid = {"classes": CLASSES, "shifts": SHIFTS, "scales": SCALES, "seeds": SEEDS}
    base = dataclasses.replace(sections["base"], out=str(folder), **grid | changes)
    asked = dataclasses.replace(sections["evaluation"], classifiers={name: f"weights/{name}" for name in MODELS})
    return read.Run("accuracy", sections | {"base": base, "evaluation": asked}, ())


def keys(shifts: list[str], scales: list[float]) -> pd.DataFrame:
    """All keys of some shifts at some scales."""
    return pd.DataFrame(itertools.product(shifts, CLASSES, range(1, SEEDS + 1), scales), columns=tables.KEY)


def write_images(folder: Path) -> None:
    """One grey picture per key."""
    for number, (shift, scales) in enumerate([(UNSHIFTED, [0.0]), *((shift, [1.0]) for shift in SHIFTS)]):
        rows = keys([shift], scales)
        pictures = [tables.encode(np.full((4, 4, 3), 40 * number + row, np.uint8)) for row in range(len(rows))]
        path = folder / f"{identifier(shift)}.parquet"
        tables.write_unit(rows.assign(image=pictures), units.Unit(path, recipes.GENERATION.stamp(shift)), tables.images)


def write_answers(folder: Path) -> None:
    """Every classifier is right but for the coats in fog, and its number of weights is known."""
    rows = pd.concat([keys([UNSHIFTED], [0.0]), keys(SHIFTS, [1.0])])
    right = rows["class"].where((rows["shift"] != "heavy fog") | (rows["class"] != "coat"), "bag")
    for name in MODELS:
        table = rows.assign(model=name, top1=right, top5=[[answer] for answer in right], probability=0.5, margin=0.0, preprocessing="x")
        tables.write_unit(table, units.Unit(folder / f"{name}.parquet", recipes.EVALUATION.stamp(name)), tables.predictions)
        plain = table[table["shift"] == UNSHIFTED]
        tables.write_unit(
            plain, units.Unit(folder / "heldout" / f"{name}.parquet", recipes.CATALOG_ANSWERS.stamp(name)), tables.predictions
        )
    units.write_recorded(folder / artifacts.MODELS, b"model,parameters\nresnet,10\nvit,20\n")


def write_filter(run: read.Run) -> None:
    """All trajectories but the coats in fog are kept."""
    for shift in SHIFTS:
        table = keys([shift], SCALES).assign(class_probability=0.9, **dict.fromkeys(COSINES, 0.5))
        path = run.layout.artifacts("filtering") / "alignment" / f"{identifier(shift)}.parquet"
        tables.write_unit(table, units.Unit(path, recipes.ALIGNMENT.stamp(shift)), alignment)
        seen = keys([shift], SCALES).assign(oracle=0.5)
        path = run.layout.artifacts("filtering") / "sights" / path.name
        tables.write_unit(seen, units.Unit(path, recipes.SIGHTS.stamp(shift)), sight)
    rows = keys(SHIFTS, SCALES).assign(oracle_ooc=False, **dict.fromkeys(COSINES, 0.5))
    rows["keep"] = (rows["shift"] != "heavy fog") | (rows["class"] != "coat")
    tables.write_unit(rows, artifacts.scored(run), tables.scores)
    kept = rows.loc[rows["keep"] & (rows["scale"] == 0), tables.TRAJECTORY]
    tables.write_unit(kept, artifacts.filtered(run), tables.kept_schema)


def write_all(folder: Path) -> read.Run:
    """Everything; returns the run that reads it."""
    run = run_in(folder)
    write_images(run.layout.artifacts("generation"))
    write_answers(run.layout.artifacts("evaluation"))
    write_filter(run)
    return run
