"""Data sets whose classes are distinguished by their grey."""

import numpy as np
import pandas as pd
import pytest
from tiny_settings import TRAINED as SETTINGS
from tiny_settings import TRAINED_CLASSES as CLASSES

from cnslib.core import tables
from cnslib.studies.controlshift import datasets
from cnslib.studies.controlshift.training import Experiment

LEVELS = {"bag": 60, "coat": 190}


def picture(name: str, seed: int, step: float) -> bytes:
    """A grey square with some noise: dark for a bag, light for a coat; at the last step of overlap both are of the same grey."""
    level = LEVELS[name] if step == 0 else 125
    noise = np.random.default_rng(seed).integers(-20, 20, (32, 32, 3))
    return tables.encode((level + noise).astype(np.uint8))


@pytest.fixture(scope="session")
def experiment(tmp_path_factory) -> Experiment:
    """Data sets whose classes are distinguished by their grey, until a shift takes that away."""
    folder = tmp_path_factory.mktemp("sets")
    for piece in datasets.plan(SETTINGS):
        numbers = range(piece.first, piece.first + piece.count)
        step = float(piece.step) if piece.split == "test" else 0.0
        rows = [
            {"shift": piece.kind, "class": name, "seed": n, "scale": float(piece.step), "image": picture(name, n + len(piece.split), step)}
            for name in CLASSES
            for n in numbers
        ]
        tables.write(pd.DataFrame(rows), folder / f"{piece.name}.parquet", tables.images)
    return Experiment(SETTINGS, folder, CLASSES, tmp_path_factory.mktemp("checkpoints"), "cpu")
