"""What each of two sliders still does beside the other: gains of alignment, alone and together, and their interaction."""

import pandas as pd

from cnslib import clustered
from cnslib.composition import KEY, PAIR, WEIGHTS
from cnslib.config import Bootstrap

IMAGE = [*PAIR, "class", "seed"]
SIDE = ["pair", "shift", "weight", "other_weight"]
EFFECTS = ["alone", "together", "lent", "interaction"]


def gains(scores: pd.DataFrame) -> pd.DataFrame:
    """The scores in order with `gain_first` and `gain_second`, the alignment with each shift beyond that at weights (0, 0)."""
    ordered = scores.sort_values(KEY, ignore_index=True)
    start = ordered.groupby(IMAGE)[["alignment_first", "alignment_second"]].transform("first")
    return ordered.assign(**{f"gain_{side}": ordered[f"alignment_{side}"] - start[f"alignment_{side}"] for side in PAIR})


def sides(scores: pd.DataFrame) -> pd.DataFrame:
    """Both sliders in one form, a row per image and slider: its pair, shift, weight, the other's weight, and the gain of its shift."""
    table = gains(scores)
    pair = table["first"] + " + " + table["second"]
    parts = []
    for own, other in (PAIR, PAIR[::-1]):
        columns = {"pair": pair, "shift": table[own], "weight": table[f"{own}_weight"], "other_weight": table[f"{other}_weight"]}
        parts.append(table[["class", "seed", *WEIGHTS]].assign(**columns, gain=table[f"gain_{own}"]))
    return pd.concat(parts, ignore_index=True)


def effects(scores: pd.DataFrame) -> pd.DataFrame:
    """Every image with two sliders, once per slider: what its shift gains alone, together with the other, and by the other alone.

    `interaction` is together minus alone minus lent: 0 where the gains add up, below 0 where one slider takes from the other.
    """
    table = sides(scores)
    key = ["pair", "shift", "class", "seed"]
    alone = table[table["other_weight"] == 0].rename(columns={"gain": "alone"})[[*key, "weight", "alone"]]
    lent = table[table["weight"] == 0].rename(columns={"gain": "lent"})[[*key, "other_weight", "lent"]]
    both = table[(table["weight"] > 0) & (table["other_weight"] > 0)].rename(columns={"gain": "together"})
    found = both.merge(alone, on=[*key, "weight"], validate="many_to_one").merge(lent, on=[*key, "other_weight"], validate="many_to_one")
    return found.assign(interaction=found["together"] - found["alone"] - found["lent"])


def curves(scores: pd.DataFrame, *, settings: Bootstrap) -> pd.DataFrame:
    """Mean gain of each slider's shift over its weight, for every weight of the other: (pair, shift, weight, other_weight, ...)."""
    return clustered.means(sides(scores), ["gain"], SIDE, settings=settings)


def summary(found: pd.DataFrame, *, settings: Bootstrap) -> pd.DataFrame:
    """The means of EFFECTS per pair, slider and weights: (pair, shift, weight, other_weight, measure, n, estimate, low, high)."""
    return clustered.means(found.sort_values([*SIDE, "class", "seed"], ignore_index=True), EFFECTS, SIDE, settings=settings)


def both_show(found: pd.DataFrame) -> pd.DataFrame:
    """Every image with two sliders: 1 where both shifts gain something, and at least half of what each gains alone, else 0."""
    shows = (found["together"] > 0) & (found["together"] >= found["alone"] / 2)
    return found.assign(shows=shows.astype(float)).groupby(["pair", "class", "seed", *WEIGHTS], as_index=False)["shows"].min()
