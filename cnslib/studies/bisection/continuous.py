"""Statistics of continuous failure points: what the grid's resolution costs, and how monotone answers are along the scale.

Intervals resample what was drawn together, paired over models and over the two resolutions.
"""

import dataclasses
import itertools

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.stats import norm
from statsmodels.stats.proportion import proportion_confint

from cnslib.core import tables
from cnslib.core.settings.analyses import Bisection
from cnslib.core.settings.method import FEWEST, Bootstrap
from cnslib.plots.captions.bisection import FIRST, HIDDEN, MONOTONE
from cnslib.stats import accuracy, bootstrap, failure, ranking
from cnslib.stats.accuracy import ALL, NEVER, Outcomes, Shares
from cnslib.stats.bootstrap import percentiles
from cnslib.studies.bisection.search import between, bracketed, multiples, requests

Means = Float[np.ndarray, "resamples+1 models"]


def refined(found: Outcomes, points: pd.DataFrame, *, resolution: float) -> Outcomes:
    """The outcomes on a grid as fine as the resolution: wrong from the bisected failure point on.

    Only first failures may be read from it; what happens behind them was not looked at.
    """
    scales = multiples(found.scales[-1], resolution)
    until = points.pivot(index=tables.TRAJECTORY, columns="model", values="until")
    until = until.loc[pd.MultiIndex.from_frame(found.trajectories), found.models].to_numpy()
    return Outcomes(found.trajectories, found.models, scales, until[..., None] <= np.array(scales) + accuracy.TINY)


def cautious_share(hits: pd.Series, rows: pd.DataFrame, *, settings: Bootstrap) -> dict:
    """A share with Wilson's interval over as many independent cases as its resamples vary like (Korn and Graubard 1998).

    At most as many as there are trajectories: for shares near 0 or 1, where resampling would claim certainty, the models of a
    trajectory count as one. Trajectories of one seed say less than as many others; counted one by one they hold 70 in 100.
    """
    if not len(rows):
        return dict(bootstrap.NOTHING)
    cases, share = len(rows.drop_duplicates(tables.TRAJECTORY)), float(hits.mean())
    units, _ = bootstrap.units_of(rows, settings.target)
    t_interval = bootstrap.of_few(np.bincount(units, weights=np.asarray(hits, float)), np.bincount(units), settings.confidence)
    variance = ((t_interval["high"] - share) / norm.ppf((1 + settings.confidence) / 2)) ** 2
    cases = min(cases, share * (1 - share) / variance) if variance > accuracy.TINY**2 else cases
    low, high = proportion_confint(share * cases, cases, alpha=1 - settings.confidence, method="wilson")
    return {"n": len(rows), "estimate": share, "low": float(low), "high": float(high)}


def pooled(failures: Shares) -> Shares:
    """The shares averaged over the models: every model has one answer per trajectory, so each answer weighs the same."""
    return dataclasses.replace(failures, samples=failures.samples.mean(2, keepdims=True), models=["all models"])


def survival(grid: Shares, fine: Shares) -> pd.DataFrame:
    """Kaplan-Meier estimates of both resolutions in one table; the column `grid` tells them apart."""
    return pd.concat([failure.curves(shares).assign(grid=flag) for flag, shares in ((True, grid), (False, fine))], ignore_index=True)


def without_few(table: pd.DataFrame, rows: pd.DataFrame, *, settings: Bootstrap) -> pd.DataFrame:
    """A table by shift without the intervals of shifts of which `rows` have fewer than `FEWEST` units.

    Resamples of so few give too short an interval, and their t interval may reach beyond what is possible.
    """
    units, _ = bootstrap.units_of(rows, settings.target)
    few = table["shift"].map(pd.Series(units, rows.index).groupby(rows["shift"]).nunique()) < FEWEST
    return table.assign(low=table["low"].mask(few), high=table["high"].mask(few))


def readings(points: pd.DataFrame) -> pd.DataFrame:
    """The bisected failures with what one would read: the grid's first wrong scale, the middle of its cell, and the bisected centre.

    `delay` is the grid's minus the centre, `bias` middle minus centre; `place` is where in its cell the failure lies, from 0 to 1.
    """
    rows = points[bracketed(points)].copy()
    rows["middle"], rows["centre"] = (rows["grid_after"] + rows["grid_until"]) / 2, (rows["after"] + rows["until"]) / 2
    rows["delay"], rows["bias"] = rows["grid_until"] - rows["centre"], rows["middle"] - rows["centre"]
    return rows.assign(place=(rows["centre"] - rows["grid_after"]) / (rows["grid_until"] - rows["grid_after"]))


def by_shift(rows: pd.DataFrame, column: str, *, settings: Bootstrap) -> pd.DataFrame:
    """The mean of a column per shift and over all shifts, with n and interval."""
    groups = {shift: rows[rows["shift"] == shift] for shift in sorted(rows["shift"].unique())} | {ALL: rows}
    return pd.DataFrame([{"shift": name, **bootstrap.mean(part[column], part, settings=settings)} for name, part in groups.items()])


def mean_scale(failures: Shares, *, centred: bool) -> Means:
    """Mean failure scale of each model over all shifts, with its resamples; who never fails counts with the last scale.

    It is the area under the survival curve up to the last scale (the restricted mean). `centred` puts a failure between two
    scales in their middle; otherwise it counts with the upper one, as the grid reads it.
    """
    upper = np.array([float(b) for b in failures.bins if b != NEVER])
    lower = np.concatenate([upper[:1], upper[:-1]])
    values = np.append((lower + upper) / 2 if centred else upper, upper[-1])
    return failures.samples[:, failures.groups.index(ALL)] @ values


def tabulate(means: dict[str, Means], models: list[str], *, n: int, confidence: float) -> pd.DataFrame:
    """Estimate and interval of each model under each reading."""
    parts = [
        pd.DataFrame({"model": models, "reading": reading, **bootstrap.estimates(values, n, confidence)})
        for reading, values in means.items()
    ]
    return pd.concat(parts, ignore_index=True)


def median_interpolated(failures: Shares) -> pd.DataFrame:
    """The median failure scale with failures spread evenly in their cell (Turnbull's estimate, made unique), per shift and model.

    Infinite where more than half never fail.
    """
    scales = np.array([float(b) for b in failures.bins if b != NEVER])
    rows = []
    for (i, shift), (j, model) in itertools.product(enumerate(failures.groups), enumerate(failures.models)):
        failed = failures.samples[0, i, j, :-1].cumsum()
        rows.append({"shift": shift, "model": model, "n": int(failures.n[i]), "estimate": half_way(failed, scales)})
    return pd.DataFrame(rows)


def half_way(failed: Float[np.ndarray, "scales"], scales: Float[np.ndarray, "scales"]) -> float:
    """Where the share of failures, straight between the scales, reaches one half; infinite if it does not."""
    reached = np.flatnonzero(failed >= 0.5 - accuracy.TINY)
    if not len(reached) or reached[0] == 0:
        return float(scales[0]) if len(reached) else np.inf
    right = reached[0]
    share = (0.5 - failed[right - 1]) / (failed[right] - failed[right - 1])
    return float(scales[right - 1] + share * (scales[right] - scales[right - 1]))


def tied(points: pd.DataFrame) -> pd.DataFrame:
    """Pairs of models that fail in the same cell of the grid on the same trajectory, and whether bisection separates them."""
    own = points.loc[bracketed(points), ["model", *tables.TRAJECTORY, "grid_until", "until"]]
    both = own.merge(own, on=[*tables.TRAJECTORY, "grid_until"], suffixes=("_first", "_second"))
    both = both[both["model_first"] < both["model_second"]].reset_index(drop=True)
    return both.assign(apart=(both["until_first"] - both["until_second"]).abs(), separated=both["until_first"] != both["until_second"])


def showcase(points: pd.DataFrame, answers: pd.DataFrame, *, scales: list[float]) -> pd.DataFrame:
    """The two points of one trajectory that show best what the grid cannot tell apart; one point where no two are tied.

    That is the largest product of their distance and the smaller of the two margins' falls across the cell. `left` and `right`
    are the ends of their cell of the grid.
    """
    pairs, failed = tied(points), points[bracketed(points)]
    if pairs.empty:
        best = (failed if len(failed) else points).iloc[:1]
        names = best["model"].tolist()
    else:
        falls = crossings(points, answers).assign(fall=lambda t: t["right"] - t["wrong"])
        falls = falls.set_index(["model", *tables.TRAJECTORY])["fall"]
        both = [
            falls.loc[pd.MultiIndex.from_frame(pairs[[side, *tables.TRAJECTORY]])].to_numpy() for side in ("model_first", "model_second")
        ]
        best = pairs.iloc[[int(np.argmax(pairs["apart"] * np.minimum(*both)))]]
        names = best[["model_first", "model_second"]].iloc[0].tolist()
    shown = points[points["model"].isin(names)].merge(best[tables.TRAJECTORY], on=tables.TRAJECTORY)
    right = min(max(best["grid_until"].iloc[0], scales[1]), scales[-1])
    return shown.assign(left=scales[scales.index(right) - 1], right=right)


def cell_lines(shown: pd.DataFrame, answers: pd.DataFrame, *, resolution: float) -> pd.DataFrame:
    """The margins of the shown models in their cell, at its ends and wherever one of them asked, with the round of its own request."""
    asked = requests(shown, resolution=resolution)
    ends = shown.loc[0, ["left", "right"]].tolist()
    rows = answers.merge(shown[["model", *tables.TRAJECTORY]], on=["model", *tables.TRAJECTORY])
    rows = rows[rows["scale"].isin([*ends, *asked["scale"]])].merge(asked, on=["model", *tables.KEY], how="left")
    return rows[["model", *tables.KEY, "margin", "round"]].fillna({"round": 0}).sort_values(["model", "scale"], ignore_index=True)


def told_apart(means: Means, *, confidence: float) -> tuple[int, int]:
    """How many pairs of models have a difference of means whose interval excludes zero, and how many pairs there are."""
    pairs = list(itertools.combinations(range(means.shape[1]), 2))
    bounds = [percentiles(means[1:, i] - means[1:, j], confidence) for i, j in pairs]
    return sum(bool(low * high > 0) for low, high in bounds), len(pairs)


def tau(first: Means, second: Means, *, n: int, confidence: float) -> dict:
    """Kendall's tau between the orders of the models under two readings, as a record; 1 is the same order."""
    return ranking.order_record(first, second, n, confidence)


def crossings(points: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """The readings, with where a straight line between the grid's two margins would cross zero: a guess that draws nothing.

    `answers` holds the predictions at the grid's scales for every trajectory (scale 0 repeated under every shift).
    """
    rows = readings(points)
    margins = answers.set_index(["model", *tables.KEY])["margin"]
    for name, side in (("right", "grid_after"), ("wrong", "grid_until")):
        keys = pd.MultiIndex.from_frame(rows[["model", *tables.TRAJECTORY, side]])
        rows[name] = margins.loc[keys].to_numpy()
    share = rows["right"] / (rows["right"] - rows["wrong"])
    rows["crossing"] = rows["grid_after"] + share * (rows["grid_until"] - rows["grid_after"])
    return rows.assign(middle_error=rows["bias"].abs(), crossing_error=(rows["crossing"] - rows["centre"]).abs())


def image_ratio(points: pd.DataFrame, *, scales: list[float], settings: Bisection) -> dict:
    """Pictures that bisection asks for, as a share of a uniform grid of the same resolution on the same trajectories, as a record."""
    rows = points[tables.TRAJECTORY].drop_duplicates()
    asked = requests(points, resolution=settings.resolution).drop_duplicates(tables.KEY).groupby(tables.TRAJECTORY).size()
    counts = asked.reindex(pd.MultiIndex.from_frame(rows), fill_value=0)
    return bootstrap.mean(counts / len(between(scales, settings.resolution)), rows, settings=settings.bootstrap)


def scan_lines(answers: pd.DataFrame, keys: list[tuple], *, scales: list[float], step: float) -> pd.DataFrame:
    """The answers along the scanned trajectories at all multiples of the step and at the grid's scales, in order."""
    wanted = pd.DataFrame(keys, columns=tables.TRAJECTORY)
    rows = answers[answers["scale"].isin({*multiples(scales[-1], step), *scales})].merge(wanted, on=tables.TRAJECTORY)
    rows = rows.assign(wrong=rows["top1"] != rows["class"]).sort_values(["model", *tables.KEY], ignore_index=True)
    return rows[["model", *tables.KEY, "margin", "wrong"]]


def verdicts(scan: pd.DataFrame, points: pd.DataFrame) -> pd.DataFrame:
    """What the scan says about each point: how often the answer turned, the first wrong scale, and whether bisection found it.

    `monotone` is True for at most one turn; `first` where the scan is right up to the bracket of the bisected point; `hidden`
    where a model that never fails on the grid fails between its scales. `early` is how far the scan's first failure lies
    before the bisected point.
    """
    line = ["model", *tables.TRAJECTORY]
    turned = scan.groupby(line)["wrong"].transform(lambda wrong: wrong.astype(int).diff().abs())
    found = turned.groupby([scan[key] for key in line]).sum().astype(int).rename("turns").to_frame()
    found["first_wrong"] = scan[scan["wrong"]].groupby(line)["scale"].min().reindex(found.index, fill_value=np.inf)
    rows = points.merge(found.reset_index(), on=line, validate="one_to_one")
    rows["first"], rows["monotone"] = rows["first_wrong"] > rows["after"], rows["turns"] <= 1
    rows["hidden"] = np.isinf(rows["grid_until"]) & np.isfinite(rows["first_wrong"])
    return rows.assign(early=(rows["until"] - rows["first_wrong"]).clip(lower=0))


def delays(points: pd.DataFrame, *, settings: Bootstrap) -> dict[str, pd.DataFrame]:
    """Delay, bias and place of the `readings`, each with its mean per shift (index) and over all shifts; `without_few`."""
    rows = readings(points)
    means = {name: by_shift(rows, name, settings=settings) for name in ("delay", "bias", "place")}
    return {name: without_few(table, rows, settings=settings).set_index("shift") for name, table in means.items()}


def mean_scales(grid: Shares, fine: Shares) -> dict[str, Means]:
    """`mean_scale` in the three readings, by name, and how the grid and the middle differ from the bisected one."""
    means = {name: mean_scale(shares, centred=centred) for name, (shares, centred) in ways(grid, fine).items()}
    return means | {f"{name} minus bisected": means[name] - means["bisected"] for name in ("grid", "middle")}


def ways(grid: Shares, fine: Shares) -> dict[str, tuple[Shares, bool]]:
    """The three readings of a failure: its shares, and whether it lies in the middle between its scales."""
    return {"grid": (grid, False), "middle": (grid, True), "bisected": (fine, True)}


def medians(grid: Shares, fine: Shares) -> pd.DataFrame:
    """Median failure scales per shift and model in three readings (grid, interpolated, bisected), infinite where none is reached."""
    parts = {"grid": failure.median_scale(grid), "interpolated": median_interpolated(grid), "bisected": failure.median_scale(fine)}
    return pd.concat({name: part.set_index(["shift", "model"])["estimate"] for name, part in parts.items()}, axis=1)


def scan_shares(traced: pd.DataFrame, *, settings: Bootstrap) -> dict[str, dict]:
    """Shares of the `verdicts` as records: found the first failure, monotone, and failed unseen between the grid's scales."""
    cases = {
        FIRST: ("first", bracketed(traced)),
        MONOTONE: ("monotone", traced["grid_until"] > 0),
        HIDDEN: ("hidden", np.isinf(traced["grid_until"])),
    }
    return {name: cautious_share(traced.loc[of, flag], traced[of], settings=settings) for name, (flag, of) in cases.items()}


def guess_errors(points: pd.DataFrame, answers: pd.DataFrame, *, settings: Bootstrap) -> dict[str, dict]:
    """Mean errors of two guesses that draw nothing, the middle of the cell and the margin's zero, and their difference, as records."""
    rows = crossings(points, answers).assign(gain=lambda t: t["middle_error"] - t["crossing_error"])
    return {name: bootstrap.mean(rows[column], rows, settings=settings) for column, name in GUESSES.items()}


GUESSES = {
    "middle_error": "middle of the cell, mean error",
    "crossing_error": "zero of the margin, mean error",
    "gain": "difference",
}


def more_abrupt(sides: dict[str, Outcomes], steep: str, gradual: str, *, settings: Bootstrap) -> pd.DataFrame:
    """Whether one shift fails models more abruptly than another, at each resolution; no rows where one of the two is missing."""
    known = {name: found for name, found in sides.items() if {steep, gradual} <= set(found.trajectories["shift"])}
    rows = [{"resolution": name, **failure.more_abrupt(found, steep, gradual, settings=settings)} for name, found in known.items()]
    return pd.DataFrame(rows, columns=["resolution", "n", "estimate", "low", "high"])
