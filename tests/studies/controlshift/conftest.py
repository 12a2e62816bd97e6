import numpy as np
import pandas as pd
import pytest
from tiny_settings import TRAINED as SETTINGS
from tiny_settings import TRAINED_CLASSES as CLASSES

from cnslib.core import tables
from cnslib.studies.controlshift import datasets
from cnslib.studies.controlshift.training import Experiment


def picture(name: str, seed: int, changed: bool) -> bytes:
    """A grey square with some noise: dark for a bag, light for a coat, and in between where a shift has changed it."""
    level = 125 if changed else {"bag": 60, "coat": 190}[name]
    noise = np.random.default_rng(seed).integers(-20, 20, (32, 32, 3))
    return tables.encode((level + noise).astype(np.uint8))


@pytest.fixture(scope="session")
def experiment(tmp_path_factory) -> Experiment:
    """Data sets whose classes are distinguished by their grey, until a shift takes that away."""
    folder = tmp_path_factory.mktemp("sets")
    for piece in datasets.plan(SETTINGS):
        numbers, changed = range(piece.first, piece.first + piece.count), piece.split == "test" and piece.step > 0
        keys = [(piece.kind, name, n, float(piece.step)) for name in CLASSES for n in numbers]
        rows = pd.DataFrame(keys, columns=tables.KEY)
        rows["image"] = [picture(name, n + len(piece.split), changed) for _, name, n, _ in keys]
        tables.write(rows, folder / f"{piece.name}.parquet", tables.images)
    return Experiment(SETTINGS, folder, CLASSES, tmp_path_factory.mktemp("checkpoints"), "cpu")
