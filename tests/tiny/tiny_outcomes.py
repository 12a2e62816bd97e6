"""Outcomes of random answers."""

import itertools

import numpy as np
import pandas as pd

from cnslib.core import tables
from cnslib.stats import accuracy


def random_outcomes(*, classes: int = 4, seeds: int = 5, models: int = 3) -> accuracy.Outcomes:
    generator = np.random.default_rng(0)
    names = [f"class {i}" for i in range(classes)]
    rows = list(itertools.product(["heavy fog", "heavy snow"], names, range(1, seeds + 1)))
    wrong = generator.random((len(rows), models, 4)) < np.linspace(0.1, 0.7, 4)
    return accuracy.Outcomes(pd.DataFrame(rows, columns=tables.TRAJECTORY), [f"m{i}" for i in range(models)], [0.0, 1.0, 2.0, 3.0], wrong)
