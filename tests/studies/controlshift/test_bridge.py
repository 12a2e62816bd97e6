"""The benchmark's classifiers under shifts of latents: their order beside that on the benchmark, and what they are asked."""

from pathlib import Path

import pandas as pd
import pytest
from tiny_trainings import CLASSES, SETTINGS

from cnslib.core.names import UNSHIFTED
from cnslib.stats import accuracy
from cnslib.studies.controlshift import bridge, findings


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
        accuracy.outcomes(predictions(lost, [UNSHIFTED, "heavy snow", "heavy fog"], [0.0, 1.0])), settings=SETTINGS.bootstrap
    )
    away = predictions({"a": [0, 0]}, ["extend", "overlap"], [0.0, 1.0]).drop(columns=["model", "top1"])
    away = away.assign(pixel=1 + away["scale"])
    for sign, own in ((1, lost), (-1, dict(zip(lost, reversed(lost.values()), strict=True)))):
        found = accuracy.outcomes(predictions(own, ["extend", "overlap"], [0.0, 1.0]))
        tau = bridge.agreement(found, away, benchmark, space="pixel", reference="a", settings=SETTINGS.bootstrap)
        assert {record["estimate"] for record in tau.values()} == {sign}
        assert {group: record["n"] for group, record in tau.items()} == {"extend": 60, "overlap": 60, accuracy.ALL: 120}
        slopes = findings.steepness(found, away, space="pixel", settings=SETTINGS.bootstrap)
        assert slopes.samples[0, -1, :, 0].tolist() == pytest.approx([-row[1] / 10 for row in own.values()])
        beside = bridge.both(slopes, benchmark, reference="a")
        assert beside["rce"].tolist() == pytest.approx([1, 1.4, 1.8])


def test_who_is_asked_about_a_picture_once_answers_it_for_both_shifts_that_begin_there(monkeypatch):
    asked = {}
    monkeypatch.setattr(bridge.evaluation, "answered_shards", lambda shards, **how: asked.update(shards) or {"a": Path("a")})
    rows = [("a", kind, "bag", 1, step, "bag") for kind, step in (("extend", 0.0), ("extend", 1.0), ("overlap", 1.0))]
    table = pd.DataFrame(rows, columns=["model", "shift", "class", "seed", "scale", "top1"])
    monkeypatch.setattr(bridge.tables, "read_answers", lambda files: table)
    how = {"labels": CLASSES, "settings": None, "device": "cpu", "folder": Path()}
    found = bridge.ask(Path("sets"), SETTINGS, CLASSES, **how)
    assert {path.stem for path in asked} == {"test_truncation_0", "test_truncation_1", "test_extend_0", "test_extend_1", "test_overlap_1"}
    assert asked[Path("sets/test_overlap_1.parquet")] == [("overlap", name, number, 1.0) for name in CLASSES for number in (1, 2)]
    assert found.groupby(["shift", "scale"]).size().to_dict() == {(kind, step): 1 for kind in ("extend", "overlap") for step in (0.0, 1.0)}
