"""Captions about the filter: what is counted by hand stands in the sentences."""

import pandas as pd
import pytest

from cnslib.plots.captions import filtering

KEPT = {"n": 1200, "estimate": 0.25, "low": 0.2, "high": 0.3}
RECORD = {"n": 40, "estimate": 0.875, "low": 0.8, "high": 0.95}


def test_shifts_without_an_out_of_class_image_are_named():
    outside = pd.Series({"heavy snow": 3, "heavy fog": 0, "heavy rain": 0})
    assert filtering.labels(outside, 50, 60) == (
        "50 of 60 shifted images are labelled, 3 of them out of class. There is none under heavy fog and heavy rain."
    )
    assert filtering.labels(outside.head(1), 50, 60).endswith("There are some under every shift.")


def test_the_answer_tells_what_goes_with_the_bad_images_and_what_clip_alone_does():
    ours = {"tpr": RECORD, "fpr": RECORD | {"n": 900, "estimate": 0.125, "low": 0.1, "high": 0.15}}
    clip = {"tpr": {"estimate": 0.8}, "fpr": {"estimate": 0.333}}
    assert filtering.answer(ours, clip, KEPT) == (
        "**25% (20% to 30%) of 1,200 trajectories are kept: they start in class and pass the vote at every scale.** "
        "The vote removes 87.5% (80.0% to 95.0%) of 40 out-of-class images, and with them 12.5% (10.0% to 15.0%) of 900 good ones. "
        "CLIP alone removes 80.0% and 33.3%."
    )


def test_without_out_of_class_images_the_answer_gives_no_rates():
    nothing = {"tpr": RECORD | {"n": 0, "estimate": float("nan")}, "fpr": RECORD}
    assert filtering.answer(nothing, nothing, KEPT).endswith("No labelled image is out of class, so the vote drops nothing.")


def test_figures_tell_their_images():
    outside = pd.Series([True] * 3 + [False] * 997)
    assert filtering.roc(outside, 0.8) == "3 of 1,000 images out of class; grey: recall 80%"
    assert filtering.outcomes(120).startswith("n = 120 images per shift and scale; out of class: caught, missed")
    assert filtering.gallery(2.5).startswith(
        "Kept and lost are in class, missed and caught out of class; under each picture its class, and"
    )
    picked = {"kept": pd.DataFrame({"class_probability": [0.9, 0.5, 1.0]}), "lost": pd.DataFrame({"class_probability": []})}
    assert filtering.gallery_seen(picked) == "The median probability of the class, by the oracle: kept 0.90."


def test_detectors_are_ordered_and_the_text_with_the_shift_is_asked_where_there_is_little_of_it():
    rows = [("image_reference", 0.9, 0.88, 0.92), ("clip_class_shift", 0.6, 0.5, 0.7), ("clip_class", 0.8, 0.7, 0.85)]
    areas = pd.DataFrame(rows, columns=["detector", "estimate", "low", "high"])
    labelled = pd.DataFrame(
        {"scale": [0.5, 0.5, 0.5, 2.5], "oracle_ooc": [False, False, True, False], "clip_class_shift": [0.2, 0.9, 0.1, 0.1]}
    )
    seen = filtering.detectors_seen(areas, labelled, {"clip_class_shift": 0.5})
    assert "largest area is that of `image_reference`, 0.90 (0.88 to 0.92), the smallest that of `clip_class_shift`" in seen
    assert seen.endswith("At scale 0.5, where there is little of the shift, `clip_class_shift` alone would drop 50% of the good images.")
    assert filtering.detectors_seen(areas.head(0), labelled, {}) == "Images of one kind alone cannot be ordered."


@pytest.mark.parametrize(("low", "high", "word"), [(0.85, 0.95, "above"), (0.75, 0.95, "not clearly apart from"), (0.6, 0.7, "below")])
def test_the_dot_is_above_all_curves_only_if_its_interval_is(low, high, word):
    curves = pd.DataFrame({"detector": ["a", "a", "b", "b"], "fpr": [0, 0.4] * 2, "tpr": [0.6, 1.0, 0.0, 1.0]})
    ours = {"fpr": {"estimate": 0.2}, "tpr": {"estimate": (low + high) / 2, "low": low, "high": high}}
    assert filtering.roc_seen(curves, ours).endswith(f"its dot is {word} the best curve there, `a` (0.80).")
    assert filtering.roc_seen(curves.head(0), ours) == "Without images of both kinds there is no curve."


def test_numbers_of_tests_shifts_and_outcomes_are_told():
    sweep = pd.DataFrame({"passes": [1, 1, 2, 2], "measure": ["kept", "fpr"] * 2, "estimate": [0.7, 0.1, 0.4, 0.2]})
    assert filtering.passes_seen(sweep).endswith(
        "1: 70% kept, 10% of the good images dropped; 2: 40% kept, 20% of the good images dropped."
    )
    counted = sweep.assign(n=[100, 8000, 100, 8000])
    other = pd.DataFrame({"passes": [1, 2], "measure": "tpr", "estimate": 0.9, "n": 7})
    counts = "n = 7 images out of class, 8,000 in class and 100 trajectories; bands: x; grey: our rule"
    assert filtering.passes(pd.concat([counted, other]), 2, note="x") == (
        f"With 2 tests to pass 40% of the trajectories stay, and 20% of the good images go. {counts}"
    )
    assert filtering.passes(pd.concat([counted, other]), 1, note="x").startswith("With 1 test to pass 70% of")
    assert "most are kept under rain (9) and fewest under fog (0)" in filtering.kept_seen(pd.Series({"fog": None, "rain": 9.0}), 20)
    index = pd.MultiIndex.from_product([["fog", "rain"], [0.0, 2.5]], names=["shift", "scale"])
    shares = pd.DataFrame({"caught": [0, 0.5, 0, 0.1], "lost": [0.9, 0.2, 0.9, 0.3], "missed": 0.0}, index=index)
    rest = "of all pictures of a shift at that scale."
    assert filtering.outcomes_seen(shares).endswith(f"under 1 of 2 shifts; most are lost under rain, 30% {rest}")
    assert filtering.outcomes_seen(shares.assign(lost=0.2)).endswith(f"most are lost under fog and rain, 20% {rest}")
    assert filtering.outcomes_seen(shares.assign(lost=0.0)).endswith("under 0 of 2 shifts; none is lost.")


def test_shifts_that_are_rarely_named_or_jump_are_doubted():
    rows = [("fog", "named", 0.7), ("fog", "step of asked", 0.3), ("fog", "step of distance", 0.4)]
    rows += [("rain", "named", 0.9), ("rain", "step of asked", 0.6), ("rain", "step of distance", 0.2)]
    seen = filtering.doubtful(pd.DataFrame(rows, columns=["shift", "measure", "estimate"]), named=0.8, step=0.45)
    assert seen == "Named in fewer than 80% of the pictures: fog. More than 0.45 of a rise in one step: rain (0.60 of asked)."
