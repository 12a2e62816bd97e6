"""Our curves and lines beside the published ones (CNS-Bench Tables 5 and 7, section 5.3, Figs. 20 to 24, the authors' notebook).

Published accuracies have a row per classifier and a column per scale (for lines also `accuracy`, that without a shift); both sides of a
curve are formed on shared classifiers (`axes.alike`).
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from scipy.stats import linregress, pearsonr, t

from cnslib.stats import line, ranking
from cnslib.stats.accuracy import ALL, MEAN_MODEL, drop, interval, metric
from cnslib.stats.axes import alike, same, themselves
from cnslib.stats.bootstrap import ANYWHERE, RECORD

SIDES = {"slope": ["estimate", "models_low", "models_high"], "R": ["r", "r_low", "r_high"]}


def read(folder: Path, scales: list[float]) -> pd.DataFrame:
    """Published accuracies over all shifts at our scales, from accuracy.csv."""
    table = pd.read_csv(folder / "accuracy.csv").pivot(index="model", columns="scale", values="accuracy")
    return table.reindex(columns=scales)


def shape(errors: xr.DataArray, published: pd.DataFrame) -> tuple[pd.DataFrame, list[float], list[float | None]]:
    """Records on the shape of the mean curve, the same of the published one, and the null of each.

    Accuracy at scale 0, the drop at the last scale, its share that is done by scale 1 (an even drop: 1 / last scale), and Kendall's tau
    between the orders by mean error and by mean drop.
    """
    wrong = same(errors, published).sel(shift=ALL).assign_coords(n=errors["n"].sel(shift=ALL).item())
    _, theirs = alike(pd.DataFrame(index=wrong["model"].to_numpy()), published)
    right, curve = 1 - wrong.mean("model"), theirs.mean()
    last, fall = curve.index[-1], right.isel(scale=0) - right.isel(scale=-1)
    rows = {"accuracy at scale 0": metric(right.isel(scale=0)), "drop at the last scale": metric(fall)}
    printed, nulls = [curve.iloc[0], curve.iloc[0] - curve[last]], [None, None]
    if 1.0 in right["scale"]:
        rows["share of the drop by scale 1"] = metric((right.isel(scale=0) - right.sel(scale=1.0)) / fall)
        printed.append((curve.iloc[0] - curve[1.0]) / printed[1])
        nulls.append(1 / last)
    error, lost = (values.mean("scale").transpose("resample", "model").to_numpy() for values in (wrong, drop(wrong)))
    rows["tau of error and drop"] = ranking.order_record(error, lost, wrong["n"].item(), wrong["confidence"].item())
    mean = theirs.mean(axis=1)
    return pd.DataFrame(rows).T, [*printed, (theirs.iloc[:, 0] - mean).corr(1 - mean, "kendall")], [*nulls, None]


def harder(errors: xr.DataArray, digitised: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Drops under single shifts minus those over all shifts at the last scale: published ones (index shift) beside ours.

    `digitised` has shift, model, scale and accuracy. Ours are that classifier's or else the mean's (column `ours of`).
    """
    first, last = published.columns[0], published.columns[-1]
    table = digitised.pivot(index=["shift", "model"], columns="scale", values="accuracy")
    fall = table[first] - table[last]
    pooled = fall.xs(ALL).combine_first(published[first] - published[last])
    theirs = (fall - fall.index.get_level_values("model").map(pooled)).drop(ALL).rename("published").reset_index("model")
    drops = drop(errors).isel(scale=-1, drop=True)
    beyond = drops - drops.sel(shift=ALL, drop=True)
    both = [beyond, beyond.mean("model").expand_dims(model=[MEAN_MODEL])]
    ours = pd.concat([interval(values.transpose("resample", "shift", "model").assign_coords(n=errors["n"])) for values in both]).set_index(
        ["shift", "model"]
    )[RECORD]
    whose = [model if model in errors["model"] else MEAN_MODEL for model in theirs["model"]]
    rows = ours.reindex(pd.MultiIndex.from_arrays([theirs.index, whose])).set_index(theirs.index)
    return theirs.assign(**{"ours of": whose}, **rows).dropna(subset="estimate")


def orderings(errors: xr.DataArray, listed: pd.DataFrame, published: pd.DataFrame, *, units: xr.DataArray | None = None) -> pd.DataFrame:
    """Paired differences of last drops for claims about pairs (claim, first, second, paper_first, paper_second) that are there."""
    models = errors["model"].to_numpy().tolist()
    claims = themselves(listed, models, {"first": "paper_first", "second": "paper_second"})
    claims = claims[claims["first"].isin(models) & claims["second"].isin(models)]
    pair = {side: xr.DataArray(claims[side].to_numpy(), dims="claim") for side in ("first", "second")}

    def apart(values: xr.DataArray) -> xr.DataArray:
        last = drop(values).sel(shift=ALL).isel(scale=-1, drop=True)
        return last.sel(model=pair["first"]).drop_vars("model") - last.sel(model=pair["second"]).drop_vars("model")

    differences = apart(errors).assign_coords(claim=claims["claim"].to_numpy())
    order = interval(differences, units=None if units is None else apart(units)).set_index("claim")[["estimate", "low", "high"]]
    falls = published[published.columns[0]] - published[published.columns[-1]]
    theirs = falls.loc[claims["paper_first"]].to_numpy() - falls.loc[claims["paper_second"]].to_numpy()
    return order.rename(columns={"estimate": "ours"}).assign(published=theirs)


def fits(published: pd.DataFrame, *, confidence: float) -> pd.DataFrame:
    """Per scale the slope of the least-squares line and Pearson's R, with the columns that `line.slopes` has for them."""
    rows = {}
    for scale in (name for name in published if isinstance(name, float)):
        points = published[["accuracy", scale]].dropna().T.to_numpy()
        fit, close = linregress(*points), pearsonr(*points)
        half = t.ppf((1 + confidence) / 2, points.shape[1] - 2) * fit.stderr
        rows[scale] = [fit.slope, fit.slope - half, fit.slope + half, close.statistic, *close.confidence_interval(confidence)]
    return pd.DataFrame.from_dict(rows, orient="index", columns=[*SIDES["slope"], *SIDES["R"]]).rename_axis("scale")


def sides(ours: pd.DataFrame, theirs: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Slope and R over all shifts with the intervals of other classifiers, ours and the published ones: two tables (quantity, scale)."""
    lines = ours[(ours["shift"] == ALL) & ours["scale"].isin(theirs.index)].set_index("scale")
    mine, printed = (
        stacked(lines, ["ours", "low", "high"]),
        stacked(theirs.loc[lines.index], ["published", "published_low", "published_high"]),
    )
    return mine.assign(n=np.tile(lines["models"], len(SIDES))), printed


def stacked(table: pd.DataFrame, heads: list[str]) -> pd.DataFrame:
    """Slope and R of a table of lines one below the other (quantity, scale), under the same heads."""
    return pd.concat({name: table[columns].set_axis(heads, axis=1) for name, columns in SIDES.items()}, names=["quantity"])


def claims(points: dict[str, xr.Dataset], correlation: pd.DataFrame, models: Sequence[str], played: dict[str, str]) -> pd.DataFrame:
    """What the paper says about the lines through some models (claim, source, published) beside our records.

    `correlation` is that of `size.noise_free`, `played` as `axes.roles` gives it. The claim about R at the last scale is one of `sides`.
    """
    linear = points["linear"]
    rows: list[tuple] = [("lines that rise with p below 0.05", "Fig. 21", "above 0.5", line.followed(linear, models))]
    graffiti = "Fig. 23 (graffiti style alone)"  # ours are over all shifts
    rows += [(f"growth of the slope, {axes} axes", graffiti, "above 0", line.steeper(of_axes, models)) for axes, of_axes in points.items()]
    pair = [played.get(name) for name in ("convnext", "deit")]
    if set(pair) <= set(linear["model"].to_numpy()):
        gains = line.overall(line.gain(linear, models)).sel(model=pair)
        better = metric(gains[:, 0] - gains[:, 1], within=ANYWHERE)
        rows.append(("gain of ConvNeXt minus that of DeiT", "Fig. 24", "above 0", better))
    rows += [(f"partial correlation, {row['family']}", "suppl. F", -0.358, row[RECORD].to_dict()) for _, row in correlation.iterrows()]
    table = [{"claim": claim, "source": source, "published": said, **record} for claim, source, said, record in rows]
    return pd.DataFrame(table).set_index("claim")
