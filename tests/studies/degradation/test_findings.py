"""What Control+Shift found: differences that a hand can take, verdicts by the interval, and orders of classifiers."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from tiny_degradation import SETTINGS

from cnslib.core.names import UNSHIFTED
from cnslib.stats import accuracy
from cnslib.studies.degradation import findings


def shares(curves: dict[str, list[float]], shift: str = "overlap") -> accuracy.Shares:
    """Error rates of some classifiers along the steps, the same in every resample and in both groups."""
    values = np.array(list(curves.values()), float)
    samples = np.broadcast_to(values, (11, 2, *values.shape)).copy()
    return accuracy.Shares(samples, [shift, accuracy.ALL], np.array([20, 20]), list(curves), list(range(values.shape[1])), 0.95)


def test_findings_are_differences_that_a_hand_can_take():
    mixer = {"mixer": [0.9, 0.9, 0.9], "mixer + RandAugment": [0.2, 0.9, 0.9]}  # the first has learned nothing
    curves = {"resnet20": [0.1, 0.2, 0.3], "vit": [0.1, 0.3, 0.5], "resnet20 + RandAugment": [0.1, 0.1, 0.2]}
    errors = shares(curves | mixer)
    slopes = dataclasses.replace(errors, samples=-(errors.samples[..., -1:] - errors.samples[..., :1]), bins=[0.0])
    sets = shares({"full support": [0.1, 0.1, 0.1], "half sphere": [0.1, 0.2, 0.3], "large": [0.1, 0.2, 0.2]})
    found = {name: row["estimate"] for name, row in findings.findings(errors, slopes, sets, least=0.2).items()}
    expected = {"decline": 0.3, "augmented": 0.1, "augmentation": 0.1, "size": 0.05, "support": 0.1, "bias": 0.2}
    assert found == pytest.approx(expected)


def test_verdicts_follow_from_the_interval():
    said = ["above 0"] * 3 + ["about 0"] * 3 + ["0.1"]
    tolerance = [np.nan] * 3 + [0.15] * 3 + [np.nan]
    published = pd.DataFrame({"id": list("abcdefg"), "finding": "f", "quantity": "q", "published": said, "tolerance": tolerance})
    bounds = [(0.1, 0.2), (-0.1, 0.2), (-0.2, -0.1), (-0.1, 0.1), (0.1, 0.2), (0.2, 0.3), (0.05, 0.3)]
    found = {name: {"n": 1, "estimate": sum(own) / 2, "low": own[0], "high": own[1]} for name, own in zip("abcdefg", bounds, strict=True)}
    table = findings.against(found, published)
    directions = ["same direction", "undecided", "opposite direction"]
    assert table["verdict"].tolist() == [*directions, "agrees", "undecided", "opposite direction", "agrees"]
    assert table.loc["g", "difference"] == pytest.approx(0.175 - 0.1)


def predictions(lost: dict[str, list[int]], shifts: list[str], steps: list[float]) -> pd.DataFrame:
    """Answers to sixty bags per shift; at step i a model gets the first six times `lost[model][i]` of them wrong."""
    rows = [
        {"model": model, "shift": shift, "class": "bag", "seed": seed, "scale": step, "top1": "coat" if seed <= 6 * count else "bag"}
        for model, counts in lost.items()
        for step, count in zip(steps, counts, strict=True)
        for shift in ([UNSHIFTED] if UNSHIFTED in shifts and step == 0 else [s for s in shifts if s != UNSHIFTED])
        for seed in range(1, 61)
    ]
    return pd.DataFrame(rows)


def test_the_bridge_says_one_for_the_same_order_and_minus_one_for_the_reverse():
    lost = {"a": [0, 5], "b": [0, 7], "c": [0, 9]}
    benchmark = accuracy.error_shares(
        accuracy.outcomes(predictions(lost, [UNSHIFTED, "heavy snow"], [0.0, 1.0])), settings=SETTINGS.bootstrap
    )
    away = predictions({"a": [0, 0]}, ["extend", "overlap"], [0.0, 1.0]).drop(columns=["model", "top1"])
    away = away.assign(pixel=1 + away["scale"])
    for sign, own in ((1, lost), (-1, dict(zip(lost, reversed(lost.values()), strict=True)))):
        found = accuracy.outcomes(predictions(own, ["extend", "overlap"], [0.0, 1.0]))
        tau = findings.agreement(found, away, benchmark, space="pixel", reference="a", settings=SETTINGS.bootstrap)
        assert {record["estimate"] for record in tau.values()} == {sign}
        slopes = findings.steepness(found, away, space="pixel", settings=SETTINGS.bootstrap)
        assert slopes.samples[0, -1, :, 0].tolist() == pytest.approx([-row[1] / 10 for row in own.values()])
        beside = findings.both(slopes, benchmark, reference="a")
        assert beside["rce"].tolist() == pytest.approx([1, 1.4, 1.8])


def test_change_of_accuracy_stands_beside_the_distance_of_its_step():
    errors = shares({"vit": [0.1, 0.4]})
    means = pd.DataFrame({"shift": "overlap", "scale": [0, 1], "pixel": [2.0, 2.5]})
    found = findings.against_distance(errors, means, space="pixel")
    assert found["estimate"].tolist() == pytest.approx([0, -0.3]) and found["distance"].tolist() == [2.0, 2.5]
