"""Maps from scale to severity, simulated: how often do the intervals of what is read off them hold what endless seeds would show?

Trajectories, answers and their truth are those of `tiny_benchmark`: 8 classes by 40 seeds, of 14 shifts the four whose sliders are
straight, late, early and S-shaped. A ruler reads a bent line that each seed, each (class, seed) and each image makes steeper or
flatter, on average not at all: so the true map is the bent line, and what is read off it is known by NumPy's interpolation alone.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau
from tiny_benchmark import CLASSES, SCALES, World, answers, truth, world
from tiny_coverage import covers

from cnslib.core.settings.method import OTHER, SAME, Bootstrap, Target
from cnslib.stats import accuracy, calibration
from cnslib.stats.accuracy import Outcomes

DATA_SETS, SEEDS, LADDER, MODELS, STEPS = 100, 40, 16, 7, 5
PLACES = [3, 6, 9, 12]  # of the shifts
LINES = np.array(
    [
        [0.0, 0.2, 0.4, 0.6, 0.8, 1.0],
        [0.0, 0.014, 0.07, 0.21, 0.455, 0.7],
        [0.0, 0.54, 0.9, 1.08, 1.16, 1.2],
        [0.0, 0.04, 0.24, 0.56, 0.76, 0.8],
    ]
)
NAMES = [f"shift {place:02d}" for place in PLACES]
RULERS = [calibration.NOMINAL, "oracle"]
INNER = slice(1, -1)  # scales and steps whose place is not given


def only(found: Outcomes) -> Outcomes:
    """The trajectories under the four shifts."""
    rows = found.trajectories["shift"].isin(NAMES).to_numpy()
    return replace(found, trajectories=found.trajectories[rows].reset_index(drop=True), wrong=found.wrong[rows])


def readings(rng: np.random.Generator, found: Outcomes) -> calibration.Readings:
    """What the nominal ruler and one with noise read along the trajectories."""
    rows = found.trajectories
    label, seed, shift = rows["class"].astype(int).to_numpy(), rows["seed"].to_numpy(), rows["shift"].map(NAMES.index).to_numpy()
    steeper = rng.normal(0, 0.2, SEEDS)[seed] + rng.normal(0, 0.5, (CLASSES, SEEDS))[label, seed] + np.linspace(-0.3, 0.3, CLASSES)[label]
    level = rng.normal(0, 0.05, (CLASSES, SEEDS))[label, seed]
    ruler = LINES[shift] * (1 + steeper[:, None]) + level[:, None] + rng.normal(0, 0.08, (len(rows), len(SCALES)))
    plain = np.broadcast_to(SCALES, ruler.shape)
    return calibration.Readings(replace(found, models=["oracle"], wrong=found.wrong[:, :1]), RULERS, np.stack([plain, ruler], 1))


def along(line: np.ndarray, share: np.ndarray) -> np.ndarray:
    """The scales at which a rising line has done some shares of its rise."""
    return np.interp(line[0] + share * (line[-1] - line[0]), line, SCALES)


def harder(drops: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """How much more each shift costs than the others at equal severity, pair by pair, on a fine grid."""
    mean, gaps = drops.mean(1), np.zeros((len(axis), len(axis)))
    for one in range(len(axis)):
        for other in range(len(axis)):
            both = np.linspace(0, min(axis[one, -1], axis[other, -1]), 2001)
            gaps[one, other] = np.mean(np.interp(both, axis[one], mean[one]) - np.interp(both, axis[other], mean[other]))
    return gaps.sum(1) / (len(axis) - 1)


def true(given: World) -> dict[str, np.ndarray]:
    """What endless seeds would show, kind by kind, in the order of the library's tables."""
    error = truth(given)[0][PLACES]
    right, drops = 1 - error, error - error[..., :1]
    shares = np.linspace(0, 1, STEPS + 1)
    area = {
        name: np.trapezoid(right, axis[:, None], axis=-1) / np.ptp(axis, axis=1)[:, None]
        for name, axis in (("nominal", np.tile(SCALES, (4, 1))), ("oracle", LINES))
    }
    hard = {name: harder(drops, axis) for name, axis in (("nominal", np.tile(SCALES, (4, 1))), ("oracle", LINES))}
    return {
        "map": LINES[:, INNER],
        "progress": (LINES / LINES[:, -1:])[:, INNER],
        "rise": LINES[:, -1],
        "half": np.array([along(line, 0.5) for line in LINES]),
        "equal steps": np.array([along(line, shares) for line in LINES])[:, INNER],
        "accuracy on an axis": right.mean(1),
        "mean accuracy along an axis": area["oracle"].mean(0),
        "hardness": hard["oracle"],
        "order of the classifiers": kendalltau(area["nominal"].mean(0), area["oracle"].mean(0)).statistic,
        "order of the shifts": kendalltau(hard["nominal"], hard["oracle"]).statistic,
    }


def table_of(found: Outcomes, ruler: calibration.Readings, settings: Bootstrap) -> dict[str, pd.DataFrame]:
    """The library's rows of every kind."""
    errors, mean = accuracy.error_shares(found, settings=settings), calibration.means(ruler, settings=settings)
    maps, moving = calibration.monotone(mean), calibration.moving(mean)
    assert moving.all()
    own, inner = "ruler == 'oracle'", f"scale > {SCALES[0]} and scale < {SCALES[-1]}"
    summary = calibration.summary(mean, maps).query(own)
    half = summary[["half_estimate", "half_low", "half_high"]].set_axis(["estimate", "low", "high"], axis=1)
    equal = calibration.equal_steps(maps, moving, steps=STEPS).query(own).query(f"step > 0 and step < {STEPS}")
    places, orders = calibration.standings(errors, maps, moving).query(own), calibration.orders(errors, maps, moving).query(own)
    named = {"order of the classifiers": "classifiers", "order of the shifts": "shifts"}
    return {
        "map": calibration.tabulate(maps.samples, maps, maps.bins).query(own).query(inner),
        "progress": calibration.progress(maps, moving).query(own).query(inner),
        "rise": summary,
        "half": half,
        "equal steps": equal,
        "accuracy on an axis": calibration.curves(errors, maps, moving).query(own),
        "mean accuracy along an axis": places[places["order"] == "classifiers"],
        "hardness": places[places["order"] == "shifts"],
        **{name: orders[orders["order"] == what] for name, what in named.items()},
    }


@pytest.fixture(scope="module")
def coverage() -> pd.DataFrame:
    """Share of each data set's intervals that hold the truth, by kind of number."""
    rows = []
    for number in range(DATA_SETS):
        rng = np.random.default_rng([17, number])
        given = world(rng, models=MODELS)
        found = only(answers(rng, given, seeds=SEEDS))
        tables = table_of(found, readings(rng, found), Bootstrap(200, 0.95, number, SAME))
        known = {name: np.ravel(value) for name, value in true(given).items()}
        held = {n: np.mean((t["low"] <= known[n] + 1e-9) & (known[n] <= t["high"] + 1e-9)) for n, t in tables.items()}
        rows.append(held)
    return pd.DataFrame(rows)


WHOLE = {"order of the classifiers", "order of the shifts"}  # a whole number of pairs: the interval errs on the wide side


@pytest.mark.slow
@pytest.mark.parametrize("kind", true(world(np.random.default_rng(0), models=MODELS)))
def test_what_is_read_off_a_map_lies_in_its_interval_as_often_as_that_says(coverage, kind):
    assert covers(coverage[kind], whole=kind in WHOLE), coverage[kind].mean()


def two(number: int, target: Target) -> tuple[list[accuracy.Shares], list[np.ndarray]]:
    """Errors on trajectories, and on a ladder of garments that are each by themselves, with what endless ones of both would show."""
    rng, settings = np.random.default_rng([18, number]), Bootstrap(100, 0.95, number, target)
    given = world(rng, models=MODELS)
    other = replace(given, start=given.start - 0.3, steep=1.3 * given.steep)  # reaches beyond both ends of the first
    asked = [(given, SEEDS, settings), (other, LADDER, settings.one_by_one.apart(10**4))]
    shares = [accuracy.error_shares(only(answers(rng, own, seeds=seeds)), settings=how) for own, seeds, how in asked]
    return shares, [truth(own, other_classes=target == OTHER)[0][PLACES] for own in (given, other)]


def at(wanted: np.ndarray, curves: np.ndarray) -> np.ndarray:
    """Where curves of shifts and models reach the wanted errors; NaN beyond their ends."""
    rows = zip(wanted.reshape(-1, wanted.shape[-1]), curves.reshape(-1, curves.shape[-1]), strict=True)
    return np.array([np.interp(own, curve, SCALES, left=np.nan, right=np.nan) for own, curve in rows])


def matched(number: int, target: Target) -> dict[str, float]:
    """The share of intervals of matched curves that hold the truth, by kind."""
    (drawn, ladder), (error, rungs) = two(number, target)
    middle = replace(ladder, samples=ladder.samples[..., 2:3], bins=[0.0])  # as if these were pictures of one unknown severity
    kinds = {
        "severity": (calibration.severities(drawn, ladder), at(error, rungs)),
        "scale": (calibration.scales(drawn, middle), at(rungs[..., 2:3], error)),
        "difference": (calibration.differences(drawn, middle).query("shift in @NAMES"), rungs[..., 2:3] - error),
    }
    held = {}
    for name, (table, known) in kinds.items():
        inside = ~np.isnan(known.ravel())
        low, high = table["low"].to_numpy()[inside], table["high"].to_numpy()[inside]
        held[name] = np.mean((low <= known.ravel()[inside]) & (known.ravel()[inside] <= high))
    return held


@pytest.mark.slow
@pytest.mark.parametrize("target", [SAME, OTHER])
def test_matched_severities_and_scales_lie_in_their_intervals_as_often_as_these_say(target):
    found = pd.DataFrame([matched(number, target) for number in range(DATA_SETS)])
    assert all(covers(found[kind]) for kind in found), found.mean()
