"""The paper's statements and tables about OOD-CV beside ours, where they are built in and where they are not."""

import numpy as np
import pandas as pd
import pytest

from cnslib.core import paths
from cnslib.stats.accuracy import Shares
from cnslib.studies.oodcv import claims
from cnslib.studies.oodcv.labels import UNKNOWN

SHIFTS = ["heavy snow", "heavy fog", "heavy rain"]


def test_table_10_is_made_of_the_labels_that_clip_gives():
    label = pd.Series(["heavy snow", "heavy snow", UNKNOWN, "heavy fog"])
    found = claims.table10(np.array([True, False, True, True]), label, paths.PUBLISHED / "cns_table10.csv", confidence=0.95)
    assert found["n"].to_dict() == {"Snow": 2, "Unknown": 1, "Fog": 1, "Total": 4}
    assert found.loc["Total", "ours"] == 0.75 and found.loc["Total", "published"] == 0.684
    assert found.loc["Snow", "difference"] == pytest.approx(0.5 - 0.703)


def test_label_shares_are_split_by_severity_with_the_other_weather_apart():
    reference = pd.DataFrame({"scale": [0.1, 0.2, 0.9, 0.5], "shift": ["heavy fog", "heavy snow", "heavy rain", "heavy sandstorm"]})
    found = claims.doubt(reference, {"right": np.array([True, False, True, False])}, shifts=SHIFTS, confidence=0.95)
    assert found.set_index("severity")["estimate"].to_dict() == {"light": 0.5, "heavy": 1.0, claims.BEYOND: 0.0}


def errors(samples: list[list[float]], bins: list[float], *, scatter: float = 0.0) -> Shares:
    """Error rates [shift][scale] of one classifier, and their mean as the pooled group."""
    first = np.array(samples)[:, None]
    first = np.concatenate([first, first.mean(0, keepdims=True)])
    drawn = first + scatter * np.random.default_rng(0).normal(size=(200, *first.shape))
    counts = np.full(len(samples) + 1, 30)
    return Shares(np.concatenate([first[None], drawn]), [*sorted(SHIFTS)[: len(samples)], "all shifts"], counts, ["resnet"], bins, 0.95)


def test_the_papers_statements_hold_where_they_are_built_in_and_fail_where_they_are_not():
    named = pd.Series({"n": 90, "estimate": 0.99, "low": 0.97, "high": 1.0})
    reference = errors([[0.5]] * 3, [0.0], scatter=0.01)
    paper = errors([[0.05, 0.06, 0.45], [0.05, 0.05, 0.2], [0.05, 0.05, 0.2]], [0.0, 1.5, 3.0], scatter=0.01)  # fog comes first
    found = claims.statements(paper, reference, model="resnet", named=named)
    assert found["verdict"].tolist() == ["not measured", "same direction", "not measured", "agrees"]
    assert found["rule"].tolist()[::2] == ["a scale of other sliders", "a reference without the paper's faults"]
    assert found["ours"].tolist() == pytest.approx([0.01 / 3, 0.25, 0.5 - 0.85 / 3, 0.99])
    other = errors([[0.05, 0.4, 0.6], [0.05, 0.5, 0.9], [0.05, 0.4, 0.9]], [0.0, 1.5, 3.0], scatter=0.01)
    bad = claims.statements(other, reference, model="resnet", named=named.replace({0.97: 0.5, 1.0: 0.7}))
    assert bad["verdict"].tolist() == ["not measured", "opposite direction", "not measured", "opposite direction"]
    assert bad["ours"].iloc[0] > 0.3 and bad["ours"].iloc[2] < -0.2  # told all the same
    alone = claims.statements(errors([[0.1, 0.2]], [0.0, 3.0]), errors([[0.5]], [0.0]), model="resnet", named=named)
    assert alone["verdict"].iloc[1] == "not measured"


def test_tables_below_each_other_keep_their_names():
    parts = {"all": pd.DataFrame({"n": [1]}), "kept": pd.DataFrame({"n": [2]})}
    assert claims.long(parts, "images")[["images", "n"]].to_numpy().tolist() == [["all", 1], ["kept", 2]]
    both = claims.joined(claims.long(parts, "images"), pd.DataFrame({"n": [3]}))
    assert both["images"].tolist() == ["all", "kept", "reference"] and both["scale"].isna().all()


def test_metrics_are_kept_by_table_classifier_and_shift():
    row = {"model": "vit", "shift": "heavy fog", "n": 4, "estimate": 0.5, "low": 0.4, "high": 0.6}
    assert claims.metrics({"reference": pd.DataFrame([row])}) == {
        "reference": {"vit": {"heavy fog": {"n": 4, "estimate": 0.5, "low": 0.4, "high": 0.6}}}
    }


def test_statements_on_few_trajectories_get_no_verdict():
    found = pd.DataFrame({"n": [49, 50], "rule": "above 0", "verdict": "opposite direction", "smallest": 0.1, "ours": -0.5})
    few, enough = claims.measured(found).to_dict("records")
    assert few["verdict"] == "not measured" and few["rule"] == "needs 50 trajectories" and np.isnan(few["smallest"]) and few["ours"] == -0.5
    assert enough["verdict"] == "opposite direction" and enough["rule"] == "above 0" and enough["smallest"] == 0.1


def test_a_mixture_is_looked_up_where_the_ladder_itself_puts_it():
    """On a ladder that falls early a mixture of both ends costs less than its mean: half of the error lies at a severity of a quarter."""
    ladder = errors([[0.0, 0.8, 0.8]] * 2, [0.0, 0.5, 1.0], scatter=0.01)
    mixed = pd.DataFrame({"shift": ["heavy fog", "heavy rain"] * 2, "scale": [0.0, 0.0, 1.0, 1.0]})
    found = claims.of_reference(ladder, errors([[0.4]] * 2, [0.0], scatter=0.01), mixed)
    assert found.index.tolist() == ["heavy fog", "heavy rain"] and found["true"].tolist() == [0.5, 0.5]
    assert found["estimate"].tolist() == pytest.approx([0.25, 0.25]) and found["expected"].tolist() == pytest.approx([0.25, 0.25])
    assert (found["high"] < found["true"]).all() and (found["gap_low"] < 0).all() and (found["gap_high"] > 0).all()
