"""Trajectories: the steps in which a reading rises."""

import pandas as pd

from cnslib.core import tables


def rises(table: pd.DataFrame, reading: str) -> pd.DataFrame:
    """One row per step between neighbouring scales of a trajectory, at its upper scale: whether the reading rises.

    Steps from or to a picture without a reading are left out.
    """
    table = table.sort_values(tables.KEY)
    rise = table.groupby(tables.TRAJECTORY, sort=False)[reading].diff()
    return table[tables.KEY].assign(rises=rise > 0)[rise.notna()]
