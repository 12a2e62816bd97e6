"""EX1: every scenario, severity and object is asked once, and the answers are the classifiers'."""

import pandas as pd
import pytest
from golden_units import difference
from tiny_garments import garments
from tiny_scenarios import CLASSES, LABELS
from tiny_settings import changed

from cnslib.core import recipes, tables
from cnslib.core.names import UNSHIFTED
from cnslib.models import classifiers
from cnslib.studies.scenarios import experiment1, scenarios, subjects


def test_ex1_asks_every_scenario_severity_and_object_once_and_the_answers_are_the_classifiers(tiny_pipeline_dir, settings, tmp_path, few):
    given = {"labels": LABELS, "settings": settings, "device": "cpu", "folder": tmp_path / "garments"}
    replies = experiment1.garments(CLASSES, **given, drawn=tmp_path / "drawn", pipeline=tiny_pipeline_dir)
    counts = replies.groupby(["shift", "scale"]).size().to_dict()
    graded = [(name, scale) for name in (*scenarios.NAMES, scenarios.SUMMED) for scale in (0.5, 1.0)]
    assert counts == {(UNSHIFTED, 0.0): 4} | dict.fromkeys(graded, 4)
    judge = classifiers.load("tiny", settings.backbones["tiny"], LABELS)
    own = subjects.garments(garments(), "heldout", CLASSES, count=2, seed=1)[1]
    logits = judge.logits([subjects.shown(own, "red", 1.0, seed=1)])
    row = replies.query("shift == 'red' and scale == 1 and `class` == 'sneaker' and seed == 1")
    assert row["top1"].tolist() == [LABELS[int(logits.argmax())]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"severities": [0.0, 0.5]}, r"scenarios\.severities: \[0\.0, 0\.5\] is not accepted; accepted: ascending from 0\.0 to 1\.0"),
        ({"backbones": {}}, r"scenarios\.backbones: \{\} is not accepted; accepted: .*at least 1 item"),
        ({"steps": 0}, r"scenarios\.steps: 0 is not accepted; accepted: greater than or equal to 1"),
        ({"cutouts": 1}, r"scenarios\.cutouts: 1 is not accepted; accepted: greater than or equal to 2"),
    ],
)
def test_settings_that_make_no_sense_are_named(settings, change, message):
    with pytest.raises(ValueError, match=message):
        changed(settings, **change)


def test_replies_have_one_row_per_question():
    row = {"model": "a", "shift": "grey", "class": "bag", "seed": 1, "scale": 1.0, "top1": "bag"}
    with pytest.raises(ValueError, match="breaks its schema"):
        tables.check(pd.DataFrame([row, row]), experiment1.replies)


def test_the_tiny_unit_is_the_golden_one(tiny_pipeline_dir, settings, tmp_path, few):
    given = {"labels": LABELS, "settings": settings, "device": "cpu", "folder": tmp_path / "garments"}
    assert not difference(recipes.EX1, experiment1.garments(CLASSES, **given, drawn=tmp_path / "drawn", pipeline=tiny_pipeline_dir))


def test_nothing_is_composed_for_answers_that_are_there(tiny_pipeline_dir, settings, tmp_path, few, monkeypatch):
    given = {"labels": LABELS, "settings": settings, "device": "cpu", "folder": tmp_path / "garments"}
    given |= {"drawn": tmp_path / "drawn", "pipeline": tiny_pipeline_dir}
    first = experiment1.garments(CLASSES, **given)
    monkeypatch.setattr(subjects, "garments", None)
    pd.testing.assert_frame_equal(experiment1.garments(CLASSES, **given), first)
