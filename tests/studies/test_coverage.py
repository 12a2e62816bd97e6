"""Intervals that only one study publishes, simulated: how often do they hold what endless data would show?

Trajectories and their truth are those of `stats/test_coverage.py`; objects, readings and features are made here.
"""

import numpy as np
import pandas as pd
from tiny_benchmark import KEPT, SCALES, WEIGHTS, World, answers, covers, truth, world, wrong_given

from cnslib.core.settings.method import SAME, Bootstrap
from cnslib.method import inversion
from cnslib.stats import accuracy, failure
from cnslib.studies.ablation import subsets
from cnslib.studies.scenarios import claims

CLASSES, DATA_SETS = 8, 100


def inside(record: dict | pd.Series, true: float) -> bool:
    return bool(record["low"] <= true <= record["high"])


def steady(given: World) -> float:
    """The deviation over the halves of the classes of accuracy at scale 0 less that of the drop, from errors by quadrature."""
    wrong = wrong_given(given) @ WEIGHTS / WEIGHTS.sum()
    right = 1 - np.average(wrong, axis=0, weights=KEPT).mean(1)
    halves = subsets.members(CLASSES, CLASSES // 2)
    means = np.array([right[half].mean(0) for half in halves])
    return means[:, 0].std() - (means[:, 0] - means[:, -1]).std()


def of_trajectories(number: int) -> dict[str, float]:
    """Mean failure scale (who never fails counts with the last), and what classes change."""
    rng, settings = np.random.default_rng([31, number]), Bootstrap(200, 0.95, number, SAME)
    given = world(rng, models=5)
    wrong = answers(rng, given, seeds=40)
    first = truth(given)[1][-1]
    failed = wrong.isel(scale=0, drop=True).copy(data=np.append(SCALES, SCALES[-1])[failure.first_failure(wrong)])
    scale = accuracy.interval(accuracy.by_shift(failed, settings).sel(shift=accuracy.ALL))
    true = first[:, :-1] @ SCALES + first[:, -1] * SCALES[-1]
    return {
        "mean failure scale": np.mean((scale["low"] <= true) & (true <= scale["high"])),
        "steadier": float(inside(subsets.steadier(wrong, CLASSES // 2, settings=settings), steady(given))),
    }


def test_failure_scales_and_the_gap_of_deviations_are_covered():
    found = pd.DataFrame([of_trajectories(number) for number in range(DATA_SETS)])
    assert all(covers(found[kind]) for kind in found), found.mean()


def test_the_jackknife_covers_distances_shares_and_their_differences():
    """Pictures of a seed share half of what makes them differ. The truth is the mean over all data sets of this size."""
    rows, reference = pd.DataFrame({"seed": np.tile(range(24), CLASSES)}), np.random.default_rng(33).normal(0, 1, (200, 4))
    found = []
    for number in range(200):
        rng = np.random.default_rng([33, number])
        features = rng.normal(0.3, 0.7, (24, 4))[rows["seed"]] + rng.normal(0, 0.7, (len(rows), 4))
        other = features + rng.normal(0.1, 0.4, features.shape)
        one, two = (inversion.distance(own, rows["seed"].to_numpy(), reference) for own in (features, other))
        near = rows.assign(learned=features[:, 0], heldout=other[:, 0])
        records = inversion.jackknife(one, 1, confidence=0.95), inversion.jackknife(two - one, 1, confidence=0.95)
        found.append([*records, inversion.nearer(near, "learned", "heldout", confidence=0.95)])
    for kind in zip(*found, strict=True):
        true = np.mean([record["estimate"] for record in kind])
        assert covers(pd.Series([inside(record, true) for record in kind], dtype=float))


def test_clustered_coefficients_are_covered():
    """An object gives an answer under each of six scenarios. Effects of scenarios are known; those of objects are not independent."""
    effect, hits = np.array([0.0, -0.1, -0.2, -0.3, 0.1, 0.2]), []
    for number in range(100):
        rng = np.random.default_rng([34, number])
        value = rng.normal(0, 0.3, (64, 1)) + rng.normal(0, 0.2, (64, 6)) + effect
        table = pd.DataFrame({"y": value.ravel(), "scenario": list("abcdef") * 64, "object": np.repeat(range(64), 6)})
        fitted = claims.regression(table, "y ~ scenario", confidence=0.95).set_index("variable")
        own = fitted.loc[[f"scenario[{name}]" for name in "bcdef"]]
        hits.append(np.mean((own["low"] <= effect[1:]) & (effect[1:] <= own["high"])))
    assert covers(pd.Series(hits)), np.mean(hits)
