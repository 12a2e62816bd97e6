"""What sliders and texts make of a trajectory, side by side, and what two sliders do in one picture (CNS-Bench suppl. H and K).

Scales of a slider and weights of a text are not in one unit: what is fair to compare is what is left where both have gained as much.
"""

import numpy as np
import pandas as pd

from cnslib.core import tables
from cnslib.core.settings.method import Bootstrap
from cnslib.stats import bootstrap
from cnslib.studies.directions.composition import KEY, PAIR, WEIGHTS
from cnslib.studies.directions.texts import METHODS, PROMPTS, SLIDER

SHARES = (0.25, 0.5, 0.75)  # of the gain that both reach; at its end a path is flat, and where it first has a gain is chance
YES_NO = ("class_kept", "reached")  # columns of ones and zeros
PATH_KEY = ["method", *tables.TRAJECTORY]
EFFECTS = ["alone", "lent", "together", "added", "interaction"]
SHOWN = ["shows", "adds", "without"]


def gains(scores: pd.DataFrame, *, labels: int = 1) -> pd.DataFrame:
    """The scores in order, with `gain`, the alignment beyond that of scale 0, and `class_kept`.

    The class is kept, 1, where the oracle gives it at least chance, 1 / labels, else 0; NaN for a trajectory that did not start so.
    """
    ordered = scores.sort_values([*PATH_KEY, "scale"], ignore_index=True)
    first = ordered.groupby(PATH_KEY)[["alignment", "class_probability"]].transform("first")
    kept = (ordered["class_probability"] >= 1 / labels).astype(float).where(first["class_probability"] >= 1 / labels)
    return ordered.assign(gain=ordered["alignment"] - first["alignment"], class_kept=kept)


def per_trajectory(scores: pd.DataFrame, *, labels: int) -> pd.DataFrame:
    """One row per method and trajectory: gain, structure and class at the last scale, `rising`, the share of steps that raise the
    alignment, and `largest`, the share of the way through the image encoder's features that the largest step makes."""
    ordered = gains(scores, labels=labels)
    groups = ordered.groupby(PATH_KEY)
    rise = groups["alignment"].diff()
    rising = (rise > 0)[rise.notna()].groupby([ordered[key] for key in PATH_KEY]).mean()
    # not `last`, which would skip a class that has no value
    table = groups.tail(1).set_index(PATH_KEY)[["gain", "structure", "class_kept"]]
    return table.assign(largest=groups["step"].max() / groups["step"].sum(), rising=rising).reset_index()


def matched(scores: pd.DataFrame, *, labels: int) -> pd.DataFrame:
    """Structure and class of each method at its first scale that gains as much alignment as two prompts do, per trajectory.

    Only trajectories in which two prompts gain anything; `reached` says whether the method gets there, else both are NaN.
    """
    ordered = gains(scores, labels=labels)
    prompts = ordered[(ordered["method"] == PROMPTS) & (ordered["scale"] > 0) & (ordered["gain"] > 0)]
    wanted = ordered.merge(prompts[[*tables.TRAJECTORY, "gain"]], on=tables.TRAJECTORY, suffixes=("", "_wanted"))
    there = (
        wanted[wanted["gain"] >= wanted["gain_wanted"]].drop_duplicates(PATH_KEY).set_index(PATH_KEY)[["scale", "structure", "class_kept"]]
    )
    return there.reindex(wanted.groupby(PATH_KEY).size().index).assign(reached=lambda t: t["scale"].notna().astype(float)).reset_index()


def equal_gain(scores: pd.DataFrame, *, labels: int) -> pd.DataFrame:
    """The slider minus each text with a weight, both where they gained as much: (method, trajectory, share, gain, structure, class_kept).

    `lost` is the structure that the slider itself has lost there. The gain is a share of the largest that both reach on the trajectory,
    looked at in the same steps. A trajectory on which either gains nothing is left out.
    """
    rows, paths = [], {key: path.set_index("scale") for key, path in gains(scores).groupby(PATH_KEY)}
    for (method, *key), path in paths.items():
        if method in (SLIDER, PROMPTS):
            continue
        both = [one.loc[path.index.intersection(paths[SLIDER, *key].index)] for one in (paths[SLIDER, *key], path)]
        reached = min(one["gain"].max() for one in both)
        for share in SHARES if reached > 0 else ():
            ours, theirs = (at_gain(one, share * reached, labels=labels) for one in both)
            place = {**dict(zip(PATH_KEY, (method, *key), strict=True)), "share": share, "gain": share * reached}
            rows.append({**place, **{name: ours[name] - theirs[name] for name in ours}, "lost": 1 - ours["structure"]})
    return pd.DataFrame(rows, columns=[*PATH_KEY, "share", "gain", "structure", "class_kept", "lost"])


def at_gain(path: pd.DataFrame, gain: float, *, labels: int) -> dict[str, float]:
    """Structure and class of one path, by rising scale, where it first has a gain above 0; straight lines between its pictures."""
    after = int(np.argmax(path["gain"] >= gain))
    ends = path[["gain", "structure", "class_probability"]].to_numpy()[after - 1 : after + 1]
    fraction = (gain - ends[0, 0]) / (ends[1, 0] - ends[0, 0])
    _, structure, probability = ends[0] + fraction * (ends[1] - ends[0])
    begun = path["class_probability"].iloc[0] >= 1 / labels
    return {"structure": structure, "class_kept": float(probability >= 1 / labels) if begun else np.nan}


def average(values: pd.Series, rows: pd.DataFrame, *, settings: Bootstrap) -> dict:
    """`bootstrap.rate` of a column of ones and zeros (`YES_NO`), `bootstrap.mean` of any other."""
    return (bootstrap.rate if values.name in YES_NO else bootstrap.mean)(values, rows, settings=settings)


def summary(table: pd.DataFrame, columns: list[str], *, settings: Bootstrap, statistic=average) -> pd.DataFrame:
    """The mean of each column per method, methods in their order; n counts rows, those of one trajectory are resampled together."""
    ordered = table.assign(method=pd.Categorical(table["method"], METHODS)).sort_values("method", kind="stable")
    return bootstrap.means(ordered.astype({"method": str}), columns, ["method"], settings=settings, statistic=statistic)


def differences(table: pd.DataFrame, columns: list[str], *, settings: Bootstrap) -> pd.DataFrame:
    """The same of differences: a side is told only where enough classes differ; those of shares lie between -1 and 1."""
    return summary(table, columns, settings=settings, statistic=apart)


def difference(values: pd.Series, rows: pd.DataFrame, *, settings: Bootstrap) -> dict:
    """The mean of one difference per row; its interval reaches 0 where too few units differ to tell a side (`bootstrap.too_few`)."""
    record, present = bootstrap.mean(values, rows, settings=settings), values.notna().to_numpy()
    sums = np.bincount(bootstrap.units_of(rows[present], settings.target)[0], weights=values[present].to_numpy(float))
    if present.any() and bootstrap.too_few(sums, settings.confidence):
        record |= {"low": min(record["low"], 0.0), "high": max(record["high"], 0.0)}
    return record


def apart(values: pd.Series, rows: pd.DataFrame, *, settings: Bootstrap) -> dict:
    """`difference`; where none of the rows differ, to either side Wilson's bound of a share that no unit shows."""
    record = difference(values, rows, settings=settings)
    if not np.isnan(record["low"]) and not values.any(skipna=True):  # a single unit has no interval
        bound = bootstrap.rate(values.abs(), rows, settings=settings)["high"]
        return record | {"low": -bound, "high": bound}
    limit = 1 if values.name == "class_kept" else np.inf
    return record | {"low": max(record["low"], -limit), "high": min(record["high"], limit)}


def against_slider(table: pd.DataFrame, columns: list[str], *, settings: Bootstrap) -> pd.DataFrame:
    """The slider minus each text-based method, paired on the trajectory: (method, measure, n, estimate, low, high)."""
    both = table.merge(table[table["method"] == SLIDER], on=tables.TRAJECTORY, suffixes=("", "_slider"), validate="many_to_one")
    other = both[both["method"] != SLIDER]
    return differences(other[PATH_KEY].assign(**{c: other[f"{c}_slider"] - other[c] for c in columns}), columns, settings=settings)


def effects(scores: pd.DataFrame) -> pd.DataFrame:
    """Every image with two sliders, once per slider: what its shift gains alone, by the other alone (lent), and together.

    `added` is together minus lent; `interaction` is that minus alone, 0 where the gains add up.
    """
    table = scores.sort_values(KEY, ignore_index=True)
    start, parts = table.groupby([*PAIR, "class", "seed"]), []
    for side, other in (PAIR, PAIR[::-1]):
        gain = table[f"alignment_{side}"] - start[f"alignment_{side}"].transform("first")
        sides = {"shift": table[side], "weight": table[f"{side}_weight"], "other_weight": table[f"{other}_weight"], "gain": gain}
        parts.append(table[["class", "seed", *WEIGHTS]].assign(pair=table["first"] + " + " + table["second"], **sides))
    both, key = pd.concat(parts, ignore_index=True), ["pair", "shift", "class", "seed"]
    alone = both[both["other_weight"] == 0].set_index([*key, "weight"])["gain"].rename("alone")
    lent = both[both["weight"] == 0].set_index([*key, "other_weight"])["gain"].rename("lent")
    combined = both[(both["weight"] > 0) & (both["other_weight"] > 0)].rename(columns={"gain": "together"})
    combined = combined.join(alone, on=alone.index.names).join(lent, on=lent.index.names)
    return combined.assign(
        added=combined["together"] - combined["lent"], interaction=combined["together"] - combined["lent"] - combined["alone"]
    )


def both_show(combined: pd.DataFrame) -> pd.DataFrame:
    """Every image with two sliders (pair, class, seed, weights), and 1 or 0 in three columns.

    `shows`: each slider adds at least half of what it gains alone; `adds`: each adds anything; `without`: the other slider alone brings
    half of that gain along.
    """
    half, adds = combined["alone"] / 2, combined["added"] > 0
    each = combined.assign(shows=adds & (combined["added"] >= half), adds=adds, without=(combined["lent"] > 0) & (combined["lent"] >= half))
    groups = each.astype(dict.fromkeys(SHOWN, float)).groupby(["pair", "class", "seed", *WEIGHTS], as_index=False)
    return groups.agg({"shows": "min", "adds": "min", "without": "max"})
