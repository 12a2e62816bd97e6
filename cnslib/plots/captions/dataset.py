"""The data set and its licences (notebook 15): what the filter leaves, and the answer of the page.

Tables are those of `studies.dataset.datasheet`: trajectories by class (rows) and shift (columns).
"""

from collections.abc import Mapping

import pandas as pd

from cnslib.plots.captions.words import interval


def told(kept: pd.DataFrame, drawn: pd.DataFrame) -> str:
    """How much the filter leaves, how many fields are empty, and the class and the shift of which least is left."""
    parts = [(kept.sum(axis) / drawn.sum(axis)).sort_values(kind="stable") for axis in (1, 0)]
    least = " and ".join(f"'{part.index[0]}' ({part.iloc[0]:.0%})" for part in parts)
    whole, all_drawn = int(kept.to_numpy().sum()), int(drawn.to_numpy().sum())
    empty = f"{int((kept == 0).to_numpy().sum())} of {kept.size} fields are empty"
    return f"The filter keeps {whole:,} of {all_drawn:,} trajectories, least of {least}; {empty}"


def answer(kept: pd.DataFrame, scales: int, wrong: Mapping, licence: str) -> str:
    """The answer of the page: kept trajectories, how many different pictures they have, under which licence, and how many are wrong.

    `wrong` is the record of the different pictures that are out of class.
    """
    size = f"{int(kept.to_numpy().sum()):,} trajectories of {scales} pictures ({wrong['n']:,} distinct pictures)"
    size = f"{size} of {kept.shape[0]} classes under {kept.shape[1]} shifts, free to use ({licence})"
    return f"**{size}; by the oracle's verdict {interval(wrong, '.1%')} of the distinct pictures no longer show their label.**"
