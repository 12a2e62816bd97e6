"""Captions about axes: extremes, counts and verdicts of hand-made tables stand in the sentences."""

import pandas as pd
import pytest

from cnslib.plots.captions import axes
from cnslib.stats.accuracy import ALL

CLAIMS = pd.DataFrame(
    {
        "claim": ["one", "two", "three"],
        "measure": ["rCE", "rCE", "held-out error"],
        "verdict": ["agrees", "undecided", "opposite direction"],
        "drop_verdict": ["agrees", "same direction", ""],
        "caution": ["", "another recipe", "wrong preprocessing"],
    }
)
GATES = {key: {"n": 9, "estimate": 0.5, "low": 0.4, "high": 0.6} for key in ("real_generated_r", "claims_decided")}


def test_drops_are_told_at_the_last_scale_each_classifier_once():
    rows = [("size", "vit", 0.5, 0.9), ("size", "vit", 2.5, 0.3), ("training", "vit", 2.5, 0.3), ("size", "resnet", 2.5, 0.125)]
    pooled = pd.DataFrame(rows, columns=["axis", "model", "scale", "estimate"])
    assert axes.drop(pooled, 300, note="95% intervals") == (
        "Over all shifts vit (0.30) loses most accuracy by scale 2.5 and resnet (0.12) least. "
        "n = 300 trajectories; at the right: 95% intervals at the last scale"
    )
    assert axes.drop_seen(pooled) == (
        "At scale 2.5 the drops go from resnet (0.12) to vit (0.30) along size and from vit (0.30) to vit (0.30) along training."
    )


def test_those_who_are_left_out_are_named_axis_by_axis():
    members = {"training": ["vit", "web", "clip"], "size": ["vit", "web"]}
    assert axes.pool(members, {"training": ["vit"], "size": ["vit"]}) == "size: without web; training: without web, clip"
    assert axes.pool(members, {}) == "no axis has such classifiers"


def test_the_shift_that_tells_classifiers_apart_has_enough_trajectories():
    rows = [(ALL, 900, 0.0, 1.0), ("heavy snow", 60, 0.1, 0.3), ("heavy fog", 50, 0.2, 0.2), ("heavy rain", 49, 0.0, 0.9)]
    found = [(shift, n, model, value) for shift, n, *both in rows for model, value in zip("aba", [*both, both[0]], strict=True)]
    text = axes.by_shift(pd.DataFrame(found, columns=["shift", "n", "model", "estimate"]), note="95% intervals")
    assert text.startswith("Classifiers differ most under heavy snow (standard deviation of their drops 0.14), least under heavy fog")
    assert text.endswith("zero lies outside the 95% intervals")


def test_the_classifier_whose_drops_lie_furthest_apart_is_named():
    rows = [(ALL, 900, "a", 9.0), ("heavy snow", 60, "a", 0.1), ("heavy fog", 50, "a", 0.2), ("heavy rain", 49, "a", 0.9)]
    rows += [("heavy snow", 60, "b", 0.5), ("heavy fog", 50, "b", 0.2)]
    seen = axes.by_shift_seen(pd.DataFrame(rows, columns=["shift", "n", "model", "estimate"]))
    assert seen == "The drops of b lie furthest apart: its largest is under heavy snow (0.50), its smallest under heavy fog (0.20)."


def test_only_shifts_that_rce_counts_have_their_trajectories_counted():
    guard = pd.DataFrame({"shift": ["heavy snow", "heavy fog", "heavy rain"], "n": [60, 70, 80], "defined": [True, False, True]})
    assert axes.corruption(guard, 210, reference="alexnet", note="x") == (
        "rCE: n = 140 trajectories of 2 shifts, dotted: alexnet; drop: n = 210; lines: x; diamonds: the paper's counterparts"
    )


def test_ends_of_both_measures_and_steps_of_size_are_told():
    rows = [("wide", "a", 1, 0.5), ("wide", "b", 4, 0.25), ("wide", "c", 2, 0.75), ("other", "a", 1, 0.5)]
    table = pd.DataFrame(rows, columns=["axis", "model", "parameters", "estimate"])
    assert axes.corruption_seen({"rCE": table, "drop": table[:2]}) == (
        "By rCE b (0.25) is lowest and c (0.75) highest. By drop b (0.25) is lowest and a (0.50) highest."
    )
    seen = axes.size_seen(table[:3].assign(measure="rCE"))
    assert seen == "From the smallest to the largest classifier: wide, rCE: from 0.50 to 0.25, lower at 1 of 2 steps."
    assert axes.size_seen(table.assign(measure="rCE", estimate=float("nan"))) == "No size is measured."
    assert axes.size(table.assign(measure="rCE"), 9, note="x") == (
        "The next larger classifier has the lower value in 1 of 2 steps. "
        "n = 9 trajectories (rCE: those of the shifts where it is defined); bands: x"
    )


def test_claims_on_which_the_measures_disagree_are_listed():
    said = axes.claims(CLAIMS, 0.95)
    assert said.startswith("Of 3 claims 1 holds, 1 opposite, 1 undecided and 0 not measured. 95% intervals before, verdicts after Holm's")
    first, blank, row = axes.disagreement(CLAIMS).splitlines()
    assert first == "The two measures disagree on 1 of the 2 claims that both can judge." and blank == ""
    assert row == "- two: *undecided* by rCE, *same direction* by average drop"
    unknown = CLAIMS.assign(verdict="not measured", drop_verdict=["not measured", "agrees", ""])
    assert axes.disagreement(unknown).startswith("The two measures disagree on 0 of the 0 claims")


def test_missed_gates_and_cautions_are_counted():
    assert axes.cautioned(CLAIMS) == "1 of the 2 claims that hold or are opposite carry a caution in the table"
    assert axes.cautioned(CLAIMS.assign(verdict="undecided")).startswith("0 of the 0 claims")
    assert axes.gated(GATES) == "1 of 2 gates is missed: by our rule these verdicts are not safe"
    unknown = GATES | {"rising_mean": {"n": 0, "estimate": float("nan")}}
    assert axes.gated(unknown) == "1 of 3 gates is missed and 1 not measured: by our rule these verdicts are not safe"
    assert axes.gated({"claims_decided": GATES["claims_decided"]}) == "No gate is missed"
    sure = GATES | {"kept_start_in_class": GATES["claims_decided"]}  # cannot fail
    assert axes.gated(sure) == axes.gated(GATES)
    assert axes.gated(dict.fromkeys(("real_generated_r", "rising_mean"), GATES["real_generated_r"])).startswith("2 of 2 gates are missed:")


@pytest.mark.parametrize(
    ("sure", "said"),
    [(True, "**Classifiers differ most by size:"), (False, "**No axis stands out with certainty; classifiers differ most by size:")],
)
def test_an_axis_that_does_not_stand_out_is_not_called_the_widest(sure, said):
    spread = pd.DataFrame({"estimate": [0.02, 0.05, 0.01], "low": 0.04, "high": 0.0625}, index=["training", "size", "data"])
    text = axes.answer(spread, CLAIMS, GATES, sure=sure)
    assert text.startswith(f"{said} their average accuracy drops have a standard deviation of 0.050 (0.040 to 0.062), against ")
    assert "against 0.020 along training and 0.010 along data.** Claims about" in text
    assert "robustness: of 2, 1 holds, 0 opposite, 1 undecided and 0 not measured. About" in text
    assert "without a shift: of 1, 0 hold, 1 opposite, 0 undecided and 0 not measured. 1 of the 2 claims" in text
    assert text.endswith("a caution in the table. 1 of 2 gates is missed: by our rule these verdicts are not safe.")
