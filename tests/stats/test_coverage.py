"""Every kind of number that is published with an interval, simulated: how often does the interval hold what endless data would show?

100 data sets with the benchmark's own structure (`tiny_benchmark`): 8 classes, 40 seeds, 14 shifts, 23 models, each in a world of its
own. So few tell a coverage to 3 in 100, so that a single kind is held to three standard errors below 92, and their mean to 92 to 98.
Spreads are asked of all models at once, and held to 92 to 98 themselves. Over 600 data sets every kind came to 92 to 98 in 100 with
these exceptions. Numbers that are counted in whole steps (a rank, a tau of a few classifiers, the scale by which half have failed)
cannot be exact: their intervals err on the wide side. Partial correlations of size err by the noise of ID accuracy: 85 in 100
intervals of the pooled one hold the truth and 91 of that at one scale, 93 of those from which `size.noise_free` takes that noise. For
other classes the numbers that are published with that target are asked, on eight units.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from tiny_benchmark import CLASSES, SCALES, SHIFTS, answers, recovery, truth, world

from cnslib.core.settings.method import OTHER, SAME, Bootstrap
from cnslib.stats import accuracy, axes, failure, gates, line, ranking, size
from cnslib.stats.accuracy import ALL, by_shift

DATA_SETS, SEEDS, MODELS = 100, 40, 23
SETTINGS = Bootstrap(200, 0.95, 1, SAME)
FEW, MANY = "shift 00", f"shift {SHIFTS - 1:02d}"  # the shifts with the fewest and with the most trajectories
AXIS = [f"m{i:02d}" for i in range(7)]
WEIGHTS = {name: 10**6 * 2**place for place, name in enumerate(AXIS)}  # numbers of weights, each twice the one before
WHOLE = {
    "rank",
    "tau",
    "tau, every shift alike",
    "tau of neighbouring scales",
    "tau under one shift",
    "order along an axis",
    "median scale",
    "lines that rise",
}


def exact(values: np.ndarray, like: xr.DataArray) -> xr.DataArray:
    """Shares that are known: the resamples are the sample."""
    known = like[:3].copy(data=np.broadcast_to(values, (3, *values.shape)))
    return known.assign_coords(n=("shift", np.full(SHIFTS + 1, 10**6)))


def restricted(rates: xr.DataArray) -> xr.DataArray:
    """Two shifts and all of them."""
    return rates.sel(shift=[FEW, MANY, ALL])


def against(errors, **side: str) -> pd.DataFrame:
    """Drops less that of one model or shift."""
    lost = accuracy.drop(errors)
    return accuracy.interval(lost - lost.sel(side).drop_vars([*side, "n"], errors="ignore"))


def only(table: pd.DataFrame, **chosen: object) -> dict:
    """Estimate and interval of the one row with these values."""
    (row,) = np.flatnonzero(np.logical_and.reduce([table[key].to_numpy() == value for key, value in chosen.items()]))
    return {name: table[name].to_numpy()[row] for name in ("estimate", "low", "high")}


LAST, OWN = {"scale": SCALES[-1]}, {"model": "m12"}
EVERYTHING = {"shift": ALL} | OWN


def at(errors: xr.DataArray, *places: int) -> xr.DataArray:
    """The rates at some scales."""
    return errors.isel(scale=list(places))


def for_other_classes(errors: xr.DataArray) -> dict[str, dict]:
    """One number of every kind that is published for other classes, too, as the library publishes it."""
    few = restricted(errors)
    accuracies = accuracy.accuracy(few)
    return {
        "accuracy": only(accuracies, **EVERYTHING, **LAST),
        "accuracy without a shift": only(accuracies, **EVERYTHING, scale=0.0),
        "mean accuracy": only(accuracy.mean_accuracy(few), shift=ALL, **LAST),
        "drop": only(accuracy.interval(accuracy.drop(few)), **EVERYTHING, **LAST),
        "difference of drops": only(against(few, model="m03"), **EVERYTHING, **LAST),
        "CE": only(accuracy.corruption_error(errors, reference="m03"), shift=accuracy.MEAN, **OWN),
        "tau": only(ranking.agreement(at(few, 0, -1)), shift=ALL, **LAST),
    }


def numbers(errors: xr.DataArray, failures: xr.DataArray) -> dict[str, dict]:
    """One number of every kind."""
    even, whole = accuracy.over_shifts(errors), for_other_classes(errors)
    errors, failures = restricted(errors), restricted(failures)
    order, catalog = ranking.agreement(at(errors, 0, 1, -1)), at(errors, 0)
    points, end = line.points(errors, catalog), line.points(at(errors, -1), catalog)
    sizes = size.sized(points, WEIGHTS, {"axis": AXIS})
    doubling = size.per_doubling(points, sizes).set_index("of")
    published = pd.DataFrame({"axis": "axis", "classifier": AXIS, "x": [3.0, 1.0, 7.0, 2.0, 6.0, 4.0, 5.0]})
    return whole | {
        "accuracy under one shift": only(accuracy.accuracy(errors), shift=MANY, **OWN, **LAST),
        "mean accuracy, every shift alike": only(accuracy.mean_accuracy(even), **LAST),
        "average drop": only(axes.average_drop(errors), **EVERYTHING),
        "rank": only(ranking.ranks(errors), **EVERYTHING, **LAST),
        "tau, every shift alike": only(ranking.agreement(at(even, 0, -1)), **LAST),
        "tau of neighbouring scales": only(order, shift=ALL, scale=0.5),
        "tau under one shift": only(order, shift=MANY, **LAST),
        "order along an axis": axes.order_agreement(accuracy.drop(errors).mean("scale")[:, -1], published, column="x").iloc[0].to_dict(),
        "spread along an axis": axes.deviations_along(errors, {"axis": AXIS}).iloc[0].to_dict(),
        "slope": only(line.slopes(end), shift=ALL),
        "R without noise": only(line.noise_free(end), shift=ALL),
        "partial correlation of size": only(size.partial(end, sizes), shift=ALL),
        "partial correlation, pooled": size.pooled(points, sizes).iloc[0].to_dict(),
        "partial correlation, pooled, without noise": size.noise_free(points, sizes).iloc[0].to_dict(),
        "accuracy per doubling": doubling.loc["OOD accuracy"].to_dict(),
        "gain per doubling": doubling.loc["gain"].to_dict(),
        "gain": only(line.mean_gains(points), **OWN),
        "survival": only(failure.curves(failures), **EVERYTHING, **LAST),
        "never": only(failure.failure_distribution(failures), **EVERYTHING, scale=accuracy.NEVER),
        "median scale": only(failure.median_scale(failures), **EVERYTHING),
        **of_tables(errors, failures),
        **of_lines(points, end),
    }


def of_tables(errors: xr.DataArray, failures: xr.DataArray) -> dict[str, dict]:
    """The numbers that are published in tables alone, or as gates."""
    table, gated = failure.definitions(failures, errors), gates.classifiers(errors, errors, errors)
    return {
        "drop beyond the mean": only(against(errors, shift=ALL), shift=MANY, **OWN, **LAST),
        "mean drop of a shift": only(accuracy.hardest(accuracy.drop(errors).isel(scale=-1, drop=True).mean("model")), shift=MANY),
        "average accuracy": only(accuracy.interval(1 - errors.mean("scale")), **EVERYTHING),
        "loss of the reference": only(axes.reference_drop(errors, "m03"), shift=MANY),
        "difference of two models": only(ranking.pairs(errors), first="m03", second="m12", **LAST),
        "share of a model's failures": only(table[table["definition"] == "per model"], **EVERYTHING, scale=1.0),
        "share of all failures": only(table[table["definition"] == "pooled"], **EVERYTHING, scale=1.0),
        "fate": accuracy.metric(failures.sel(shift=ALL).mean("model").isel(scale=slice(1, -1)).sum("scale")),
        "accuracy of the zoo": gated["zoo_scale_0_kept"],
        "R of two accuracies": gates.agreement(*(1 - errors[:, -1, :, place] for place in (0, -1))),
    }


def of_lines(points, end) -> dict[str, dict]:
    """The numbers of a line beyond its slope."""
    gains = line.overall(line.gain(points))
    families = {"axis": AXIS, "others": [name for name in end["model"].to_numpy().tolist() if name not in AXIS]}
    without = line.left_out(end, families).query("left_out == 'axis' and shift == @ALL").iloc[0]
    seen = line.scatter(end, shift=MANY, scale=SCALES[-1]).set_index("model").loc["m12"]
    return {
        "gain under one shift": only(accuracy.interval(line.gain(end), within=line.ANYWHERE), shift=MANY, **OWN),
        "difference of gains": accuracy.metric(gains.sel(model="m03") - gains.sel(model="m12"), within=line.ANYWHERE),
        "growth of the slope": line.steeper(points),
        "lines that rise": line.followed(points),
        "change of the slope without an axis": {name: without[f"change_{name}"] for name in ("estimate", "low", "high")},
        "ID accuracy": only(line.leverage(points), **OWN),
        "OOD accuracy of a point": {"estimate": seen["ood"], "low": seen["ood_low"], "high": seen["ood_high"]},
    }


NOISY = "partial correlation, pooled"


def least(share: float) -> float:
    """The measured share that lies three standard errors below a true one."""
    return share - 3 * np.sqrt(share * (1 - share) / DATA_SETS)


def held(found: dict[str, dict], true: dict[str, dict]) -> dict[str, bool]:
    """Which intervals hold the truth, up to rounding."""
    return {name: own["low"] - 1e-9 <= true[name]["estimate"] <= own["high"] + 1e-9 for name, own in found.items()}


def relative(errors: xr.DataArray, known: xr.DataArray) -> bool | None:
    """Whether the interval of a mean rCE holds the mean of the true quotients under the shifts that count; None where none does."""
    table = accuracy.relative_corruption_error(errors, reference="m03").query("model == 'm12'").set_index("shift")
    used = np.flatnonzero(table["defined"].drop(accuracy.MEAN))
    if not len(used):
        return None
    drops = accuracy.drop(known)[0, :-1].mean("scale").to_numpy()[used]
    true, mean = (drops[:, 12] / drops[:, 3]).mean(), table.loc[accuracy.MEAN]
    return not mean["low"] > true and not mean["high"] < true


def abrupt(found: xr.DataArray, true: np.ndarray, *, settings: Bootstrap) -> bool:
    """Whether the interval of a difference of spreads holds the truth, of the shares of endless failure points: there is no n - 1."""
    counts = true[..., 1:-1] / true[..., 1:-1].sum(-1, keepdims=True)
    known = np.sqrt(counts @ SCALES[1:] ** 2 - (counts @ SCALES[1:]) ** 2)
    apart = failure.more_abrupt(found, FEW, MANY, settings=settings)
    return bool(apart["low"] <= (known[SHIFTS - 1] - known[0]).mean() <= apart["high"])


def coverage(target: str) -> pd.Series:
    """Share of data sets whose interval holds the truth, by kind of number that is published with this target."""
    rows = []
    for number in range(DATA_SETS):
        rng = np.random.default_rng([9, number])
        given = world(rng, models=MODELS)
        found, settings = answers(rng, given, seeds=SEEDS), replace(SETTINGS, seed=number, target=target)
        errors, endless = by_shift(found, settings), truth(given, other_classes=target == OTHER)
        known = exact(endless[0], errors)
        if target == OTHER:
            row = held(for_other_classes(errors), for_other_classes(known))
        else:
            failures = by_shift(failure.first_failures(found), settings)
            row = held(numbers(errors, failures), numbers(known, exact(endless[1], failures)))
            again = only(accuracy.interval(accuracy.by_shift(failure.recovers(found), settings), share=True), **EVERYTHING)
            row["recovered"] = bool(again["low"] <= recovery(given)[-1, 12] <= again["high"])
            row["more abrupt"] = abrupt(found, endless[1], settings=settings)
        rows.append(row | {"rCE": relative(errors, known)})
    return pd.DataFrame(rows).astype(float).mean()


@pytest.fixture(scope="module")
def same() -> pd.Series:
    return coverage(SAME)


@pytest.fixture(scope="module")
def other() -> pd.Series:
    return coverage(OTHER)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["same", "other"])
def test_intervals_hold_the_truth_as_often_as_they_say(request, target):
    found = request.getfixturevalue(target)
    others = found[~found.index.isin(WHOLE)]
    own = found.drop(NOISY, errors="ignore")
    assert own.min() >= least(0.92), own[own < least(0.92)]
    assert 0.92 <= others.drop(NOISY, errors="ignore").mean() <= 0.98


@pytest.mark.slow
def test_an_interval_covers_better_where_the_noise_of_id_accuracy_is_taken_out(same):
    assert 0.75 <= same[NOISY] < same[f"{NOISY}, without noise"]


def test_a_class_more_or_less_is_a_larger_change_than_a_seed():
    rng = np.random.default_rng(3)
    found = answers(rng, world(rng, models=2), seeds=SEEDS)
    assert len(np.unique(found["class"])) == CLASSES
    widths = {}
    for target in (SAME, OTHER):
        table = accuracy.accuracy(by_shift(found, SETTINGS.of(target))).query("shift == @ALL")
        widths[target] = (table["high"] - table["low"]).mean()
    assert widths[OTHER] > 1.5 * widths[SAME]
