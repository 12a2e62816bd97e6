"""What sliders and texts make of a trajectory, side by side (CNS-Bench suppl. H; Figs. 2 and 3 of the submission).

Of every method is measured what it gains of the shift, keeps of the structure and of the class, and how gradually. All draw the same
trajectories, so differences are paired. Scales of a slider and weights of a text are not in one unit: what is fair to compare is what
is left where both have gained as much.
"""

import numpy as np
import pandas as pd

from cnslib.core import tables
from cnslib.core.settings.method import Bootstrap
from cnslib.plots.captions import words
from cnslib.stats import bootstrap
from cnslib.studies.directions.texts import CLASS, METHODS, PROMPTS, SLIDER, WHOLE, grid

SHARES = (0.25, 0.5, 0.75)  # of the gain that both reach; at its end a path is flat, and where it first has a gain is chance
YES_NO = ("class_kept", "reached")  # columns of ones and zeros
MARGIN = 0.05  # differences of a cosine below this count as none
EXAMPLES = MOST, LEAST, FEWEST = ("most gain", "least structure", "fewest rises")
OWN = ["method", *tables.TRAJECTORY]
MEASURES = {
    "gain": "alignment gained at the last scale",
    "rising": "share of steps that raise the alignment",
    "structure": "structure kept at the last scale",
    "largest": "share of the way that the largest step makes",
    "class_kept": "class kept at the last scale",
}


def gains(scores: pd.DataFrame) -> pd.DataFrame:
    """The scores in order, with `gain`, the alignment beyond that of scale 0."""
    ordered = scores.sort_values([*OWN, "scale"], ignore_index=True)
    return ordered.assign(gain=ordered["alignment"] - ordered.groupby(OWN)["alignment"].transform("first"))


def per_trajectory(scores: pd.DataFrame, *, labels: int) -> pd.DataFrame:
    """One row per method and trajectory with the columns of MEASURES.

    The class is kept where the oracle gives it at least chance, 1 / labels; a trajectory that did not start so has no value. The
    largest step is measured in the image encoder's features: 1 where all happens at once, 1 / steps where all steps are equal.
    """
    ordered = gains(scores)
    groups = ordered.groupby(OWN)
    first, last = groups.first(), groups.last()
    table = last[["gain", "structure"]].assign(largest=groups["step"].max() / groups["step"].sum())
    rise = groups["alignment"].diff()
    table["rising"] = (rise > 0)[rise.notna()].groupby([ordered[key] for key in OWN]).mean()
    kept = (last["class_probability"] >= 1 / labels).astype(float)
    return table.assign(class_kept=kept.where(first["class_probability"] >= 1 / labels)).reset_index()


def matched(scores: pd.DataFrame, *, labels: int) -> pd.DataFrame:
    """Structure and class of each method at its first scale that gains as much alignment as two prompts do, per trajectory.

    Only trajectories in which two prompts gain anything; `reached` says whether the method gets there, and one that does not has
    neither structure nor class. The class is counted as in `per_trajectory`.
    """
    ordered = gains(scores)
    prompts = ordered[(ordered["method"] == PROMPTS) & (ordered["scale"] > 0) & (ordered["gain"] > 0)]
    asked = ordered.merge(prompts[[*tables.TRAJECTORY, "gain"]], on=tables.TRAJECTORY, suffixes=("", "_asked"))
    start = asked.groupby(OWN)["class_probability"].transform("first")
    asked["class_kept"] = (asked["class_probability"] >= 1 / labels).astype(float).where(start >= 1 / labels)
    there = asked[asked["gain"] >= asked["gain_asked"]].drop_duplicates(OWN).set_index(OWN)[["scale", "structure", "class_kept"]]
    every = asked.groupby(OWN).size().index
    return there.reindex(every).assign(reached=lambda t: t["scale"].notna().astype(float)).reset_index()


def equal_gain(scores: pd.DataFrame, *, labels: int) -> pd.DataFrame:
    """The slider minus each text with a weight, both where they gained as much: (method, trajectory, share, gain, structure, class_kept).

    `lost` is the structure that the slider itself has lost there: what a difference must be read beside.
    The gain is a share of the largest that both reach on the trajectory, looked at in the same steps: scales that one of them lacks do
    not count. A trajectory on which either gains nothing is left out. The class is counted as in `per_trajectory`.
    """
    rows, paths = [], {key: path.set_index("scale") for key, path in gains(scores).groupby(OWN)}
    for (method, *key), path in paths.items():
        if method in (SLIDER, PROMPTS):
            continue
        both = [one.loc[path.index.intersection(paths[SLIDER, *key].index)] for one in (paths[SLIDER, *key], path)]
        reached = min(one["gain"].max() for one in both)
        for share in SHARES if reached > 0 else ():
            ours, theirs = (at_gain(one, share * reached, labels=labels) for one in both)
            place = {**dict(zip(OWN, (method, *key), strict=True)), "share": share, "gain": share * reached}
            rows.append({**place, **{name: ours[name] - theirs[name] for name in ours}, "lost": 1 - ours["structure"]})
    return pd.DataFrame(rows, columns=[*OWN, "share", "gain", "structure", "class_kept", "lost"])


def at_gain(path: pd.DataFrame, gain: float, *, labels: int) -> dict[str, float]:
    """Structure and class of one path, by rising scale, where it first has a gain above 0; straight lines between its pictures."""
    gained = path["gain"].to_numpy()
    after = int(np.argmax(gained >= gain))
    way = (gain - gained[after - 1]) / (gained[after] - gained[after - 1])
    columns = ["structure", "class_probability"]
    before, behind = path[columns].to_numpy()[after - 1 : after + 1]
    structure, probability = before + way * (behind - before)
    begun = path["class_probability"].iloc[0] >= 1 / labels
    return {"structure": structure, "class_kept": float(probability >= 1 / labels) if begun else np.nan}


def average(values: pd.Series, rows: pd.DataFrame, *, settings: Bootstrap) -> dict:
    """`bootstrap.rate` of a column of ones and zeros (`YES_NO`), `bootstrap.mean` of any other."""
    return (bootstrap.rate if values.name in YES_NO else bootstrap.mean)(values, rows, settings=settings)


def summary(table: pd.DataFrame, columns: list[str], *, settings: Bootstrap, statistic=average) -> pd.DataFrame:
    """The mean of each column per method: (method, measure, n, estimate, low, high), methods in their order.

    n counts rows; those of one trajectory are resampled together.
    """
    ordered = table.assign(method=pd.Categorical(table["method"], METHODS)).sort_values("method", kind="stable")
    return bootstrap.means(ordered.astype({"method": str}), columns, ["method"], settings=settings, statistic=statistic)


def differences(table: pd.DataFrame, columns: list[str], *, settings: Bootstrap) -> pd.DataFrame:
    """The same of differences: a side is told only where enough classes differ (see `apart`).

    Those of shares lie between -1 and 1, beyond which the interval of a few trajectories would reach.
    """
    found = summary(table, columns, settings=settings, statistic=apart)
    within = found[["low", "high"]].clip(-1, 1)
    return found.assign(**within.where(found["measure"] == "class_kept", found[["low", "high"]]))


def apart(values: pd.Series, rows: pd.DataFrame, *, settings: Bootstrap) -> dict:
    """`bootstrap.difference`; where none of the rows differ, to either side Wilson's bound of a share that no unit shows.

    Resamples of rows that are all alike know no other, and their interval would claim that no difference could have been missed.
    """
    found = bootstrap.difference(values, rows, settings=settings)
    if np.isnan(found["low"]) or values.any(skipna=True):  # a single unit has no interval
        return found
    bound = bootstrap.rate(values.abs(), rows, settings=settings)["high"]
    return found | {"low": -bound, "high": bound}


def against_slider(table: pd.DataFrame, columns: list[str], *, settings: Bootstrap) -> pd.DataFrame:
    """The slider minus each text-based method, paired on the trajectory: (method, measure, n, estimate, low, high)."""
    both = table.merge(table[table["method"] == SLIDER], on=tables.TRAJECTORY, suffixes=("", "_slider"), validate="many_to_one")
    other = both[both["method"] != SLIDER]
    apart = {column: other[f"{column}_slider"] - other[column] for column in columns}
    return differences(other[OWN].assign(**apart), columns, settings=settings)


def cells(table: pd.DataFrame) -> pd.DataFrame:
    """A summary in words: a row per method in their order, a column per measure."""
    text = [f"{words.interval(row)}, n = {row['n']}" for _, row in table.iterrows()]
    methods = [method for method in METHODS if method in set(table["method"])]
    wide = table.assign(text=text).pivot(index="method", columns="measure", values="text")
    return wide.loc[methods, list(dict.fromkeys(table["measure"]))]


def claimed(found: dict[str, pd.DataFrame]) -> dict[str, dict]:
    """The records that are held against what was published, by the id of the line; `found` are the summaries by their name."""
    asked = {
        "knob": ("knob_for_knob", WHOLE, "structure"),
        "rising": ("summary", SLIDER, "rising"),
        "gradual": ("slider_minus", PROMPTS, "largest"),
        "structure": ("equal_gain_slider_minus", PROMPTS, "structure"),
        "consistent": ("slider_minus", CLASS, "rising"),
        "stable": ("knob_for_knob", CLASS, "class_kept"),
    }
    rows = {name: found[table].set_index(["method", "measure"]) for name, (table, *_) in asked.items()}
    found_rows = {name: rows[name].loc[tuple(key)].to_dict() for name, (_, *key) in asked.items()}
    return {name: {**record, "n": int(record["n"])} for name, record in found_rows.items()}


def over_shares(table: pd.DataFrame) -> pd.DataFrame:
    """A row per method and trajectory: the mean of `equal_gain` over its shares."""
    return table.drop(columns=["share", "gain"]).groupby(OWN, as_index=False).mean()


def along(table: pd.DataFrame, *, settings: Bootstrap) -> pd.DataFrame:
    """The structure of `equal_gain` at each share of the gain that both reach: (method, share, measure, n, estimate, low, high)."""
    return bootstrap.means(table, ["structure"], ["method", "share"], settings=settings, statistic=bootstrap.difference)


def by_shift(table: pd.DataFrame, *, settings: Bootstrap) -> pd.DataFrame:
    """The structure that the slider keeps more than the whole text at equal gain, under each shift, as records."""
    own = over_shares(table).query("method == @WHOLE")
    found = bootstrap.means(own, ["structure"], ["shift"], settings=settings, statistic=bootstrap.difference)
    return found.set_index("shift").drop(columns="measure")


def spread(scores: pd.DataFrame) -> pd.DataFrame:
    """The gains of the slider at each scale above 0 and of two prompts, which come last; `column` names them."""
    rows = gains(scores).query("scale > 0 and method in [@SLIDER, @PROMPTS]").sort_values(["method", "scale"])
    return rows.assign(column=rows["scale"].map("{:g}".format).where(rows["method"] == SLIDER, PROMPTS))


def curves(scores: pd.DataFrame, *, settings: Bootstrap) -> pd.DataFrame:
    """Mean gain and structure of each method at each scale: (method, scale, measure, n, estimate, low, high)."""
    return bootstrap.means(gains(scores), ["gain", "structure"], ["method", "scale"], settings=settings)


def plane(curve: pd.DataFrame) -> pd.DataFrame:
    """The curves as points, one row per method and scale: gain and structure with their bounds."""
    wide = curve.pivot(index=["method", "scale"], columns="measure", values=["n", "estimate", "low", "high"])
    wide.columns = [f"{measure}_{value}" for value, measure in wide.columns]
    return wide.reset_index()


def examples(table: pd.DataFrame, method: str) -> dict[str, tuple[str, str, int]]:
    """Three trajectories of a method as Fig. 26 shows them: the largest gain, the least structure, the fewest rising steps (EXAMPLES).

    Ties go to the first in order; no trajectory comes twice.
    """
    rows = table[table["method"] == method].sort_values(tables.TRAJECTORY)
    chosen: dict[str, tuple[str, str, int]] = {}
    for title, column, sign in zip(EXAMPLES, ("gain", "structure", "rising"), (-1, 1, 1), strict=True):
        order = np.argsort(sign * rows[column].to_numpy(), kind="stable")
        keys = [tuple(rows[tables.TRAJECTORY].iloc[place]) for place in order]
        chosen[title] = next((key for key in keys if key not in chosen.values()), keys[0])
    return chosen


def asked(table: pd.DataFrame) -> list[tuple[str, str, str, int]]:
    """The trajectories of `examples` that were moved by their class token, as (method, shift, class, seed)."""
    return [(CLASS, *key) for key in examples(table, CLASS).values()]


def listed(cases: dict[str, tuple[str, str, int]], method: str) -> pd.DataFrame:
    """Examples as rows: (shift, class, seed, case, method)."""
    return pd.DataFrame(list(cases.values()), columns=tables.TRAJECTORY).assign(case=list(cases), method=method)


def sheet(strips: list[np.ndarray], methods: tuple[str, ...], scales: list[float]) -> np.ndarray:
    """One row of pictures per method, each at its scale; white where a method has none."""
    found = np.full((len(strips), len(scales), *strips[0].shape[1:]), 255, np.uint8)
    for row, (strip, method) in enumerate(zip(strips, methods, strict=True)):
        found[row, [scales.index(scale) for scale in [0.0, *grid(method, scales)]]] = strip
    return found


def metrics(found: dict[str, pd.DataFrame]) -> dict[str, dict]:
    """Summaries by their name as records: summary, method, measure."""
    return {name: {method: bootstrap.records(part, "measure") for method, part in table.groupby("method")} for name, table in found.items()}
