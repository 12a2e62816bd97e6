import functools
import math
import random
from collections import defaultdict

import numpy as np
import pandas as pd
import pytest
from tiny_settings import resampled

from cnslib.core.names import UNSHIFTED
from cnslib.stats import accuracy, failure

FEW = resampled(2)  # estimates do not depend on the resamples
QUICK, TABLES = 20, 60


@functools.cache
def random_table(seed: int) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    rng = random.Random(seed)
    shifts = rng.sample(["heavy snow", "heavy fog", "cartoon style", "painting style"], rng.randint(1, 3))
    scales = [0.0, *sorted(rng.sample([0.5, 1.0, 1.5, 2.0, 2.5], rng.randint(1, 4)))]
    garments = rng.sample([(name, number) for name in ("bag", "coat", "ankle boot") for number in (1, 2, 10)], rng.randint(1, 6))
    kept = {shift: rng.sample(garments, rng.randint(1, len(garments))) for shift in shifts}
    once, rows = seed % 2 == 0, []
    for model in rng.sample(["alexnet", "resnet", "vit"], rng.randint(1, 3)):
        risk = rng.choice([0, 0.1, 0.4, 0.7, 1])
        for shift in [UNSHIFTED, *shifts] if once else shifts:
            for name, number in garments if once else kept[shift]:
                for scale in scales:
                    if not once or (shift == UNSHIFTED) == (scale == 0):
                        answer = "sandal" if rng.random() < risk else name
                        rows.append((model, shift, name, number, scale, answer))
    rng.shuffle(rows)
    table = pd.DataFrame(rows, columns=["model", "shift", "class", "seed", "scale", "top1"])
    wanted = [(shift, *garment) for shift, own in kept.items() for garment in own]
    return table, pd.DataFrame(wanted, columns=["shift", "class", "seed"]) if once else None


def answers_by_trajectory(table: pd.DataFrame, kept: pd.DataFrame | None) -> dict[tuple, dict[float, bool]]:
    wanted = None if kept is None else [tuple(row) for row in kept.to_numpy().tolist()]
    found = defaultdict(dict)
    for model, shift, name, number, scale, answer in table.to_numpy().tolist():
        if wanted is None:
            found[model, shift, name, number][scale] = answer == name
            continue
        for own in wanted:
            if own[1:] == (name, number) and shift in (own[0], UNSHIFTED):
                found[(model, *own)][scale] = answer == name
    return found


def fate(right: dict[float, bool]) -> dict:
    point, last_right, again = None, -math.inf, False
    for scale in sorted(right):
        if point is None and not right[scale]:
            point = scale
        elif point is None:
            last_right = scale
        elif right[scale]:
            again = True
    kind = "never" if point is None else "at scale 0" if point == 0 else "between scales"
    return {"point": point, "after": last_right, "again": again, "kind": kind}


def counted(answers: dict[tuple, dict[float, bool]]) -> dict[str, dict[tuple, float]]:
    fates = {key: fate(right) for key, right in answers.items()}
    models, scales = sorted({key[0] for key in answers}), sorted(next(iter(answers.values())))
    expected = defaultdict(dict)
    for shift in [*{key[1] for key in answers}, accuracy.ALL]:
        inside = {key for key in answers if shift in (key[1], accuracy.ALL)}
        for model in models:
            own = [key for key in inside if key[0] == model]
            failed = [fates[key]["point"] for key in own if fates[key]["point"] is not None]
            expected["recovered"][shift, model] = sum(fates[key]["again"] for key in own) / len(own)
            expected["never"][shift, model] = (len(own) - len(failed)) / len(own)
            for scale in scales:
                here, until = failed.count(scale), sum(point <= scale for point in failed)
                cell = (shift, model, scale)
                expected["over trajectories"][cell] = here / len(own)
                expected["error count"][cell] = sum(not answers[key][scale] for key in own) / len(own)
                expected["survival"][cell] = 1 - until / len(own)
    return expected


def assert_equal(table: pd.DataFrame, expected: dict[tuple, float]) -> None:
    keys = table[["shift", "model", "scale"] if "scale" in table else ["shift", "model"]]
    found = dict(zip(keys.itertuples(index=False, name=None), table["estimate"], strict=True))
    assert found.keys() == expected.keys()
    np.testing.assert_allclose(list(found.values()), [expected[key] for key in found], rtol=1e-9, atol=1e-12)


def by_trajectory(table: pd.DataFrame, columns: list[str]) -> dict[tuple, tuple]:
    keys = table[["model", "shift", "class", "seed"]].itertuples(index=False, name=None)
    return dict(zip(keys, table[columns].itertuples(index=False, name=None), strict=True))


@pytest.mark.parametrize("seeds", [range(QUICK), pytest.param(range(QUICK, TABLES), marks=pytest.mark.slow)])
def test_failure_points_are_those_counted_row_by_row(seeds):
    for seed in seeds:
        table, kept = random_table(seed)
        answers = answers_by_trajectory(table, kept)
        expected, fates = counted(answers), {key: fate(right) for key, right in answers.items()}
        wrong = accuracy.wrong_predictions(table, kept)
        failures = accuracy.by_shift(failure.first_failures(wrong), FEW)
        assert_equal(accuracy.interval(accuracy.by_shift(wrong, FEW)), expected["error count"])
        assert_equal(failure.curves(failures), expected["survival"])
        assert_equal(accuracy.interval(accuracy.by_shift(failure.recovers(wrong), FEW)), expected["recovered"])
        shares = failure.failure_distribution(failures)
        assert_equal(shares[shares["scale"] == accuracy.NEVER].drop(columns="scale"), expected["never"])
        assert_equal(shares[shares["scale"] != accuracy.NEVER], expected["over trajectories"])
        points = by_trajectory(failure.failure_points(wrong), ["failure_point", "failed", "after"])
        lying = {key: (point if failed else None, after) for key, (point, failed, after) in points.items()}
        assert lying == {key: (f["point"], f["after"]) for key, f in fates.items()}
