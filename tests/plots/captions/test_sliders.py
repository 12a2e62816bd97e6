"""Captions about sliders: the records stand in the sentences, and the verdict follows from the interval."""

import pandas as pd
import pytest

from cnslib.plots.captions import sliders


def test_the_health_figure_tells_how_many_sliders_a_shift_has():
    assert sliders.health([10, 9, 10], confidence=0.9).endswith("n = 9 to 10 sliders per shift; bands: 90% t intervals over sliders")
    rows = [("fog", 0, -0.5, 1.0), ("fog", 2.5, 0.5, 0.75), ("rain", 0, -0.25, 1.0), ("rain", 2.5, 0.5, 0.5)]
    table = pd.DataFrame(rows, columns=["shift", "scale", "alignment", "structure"])
    seen = sliders.health_seen(table.melt(["shift", "scale"], var_name="measure", value_name="estimate"))
    assert "to 2.5 the alignment changes most under fog (1.00) and least under rain (0.75)" in seen
    assert seen.endswith("the structure falls most under rain (-0.50).")


def test_a_shift_that_trains_longer_is_named_and_read_where_the_others_end():
    remaining = pd.DataFrame({"fog": [1.0, 0.5, None], "rain": [1.0, 0.6, 0.25]})
    text = sliders.loss(remaining)
    assert text.startswith("After 2 iterations the sliders of rain (0.60) have most of the way to go, those of fog (0.50) least.")
    assert text.endswith("2 iterations, but rain: 3") and sliders.loss(remaining.dropna()).endswith("; 2 iterations")


def test_the_step_in_which_the_alignment_rises_least_often_is_named():
    steps = pd.DataFrame({"shift": ["fog", "fog", "rain", "rain"], "scale": [1.0, 2.0] * 2, "rises": [True, True, False, True]})
    seen = sliders.steps_seen(steps)
    assert "by the scale reached: 50% (1) and 100% (2)." in seen and seen.endswith("in the step to 1 under rain (0%).")


def test_equal_steps_are_all_named_or_where_they_are_many_counted():
    steps = pd.DataFrame({"shift": ["fog", "fog", "rain", "rain"], "scale": [1.0, 2.0] * 2, "rises": [True, False, False, False]})
    assert sliders.fewest(steps) == "Least often it does in the step to 1 under rain and to 2 under fog and rain (0%)"
    many = pd.DataFrame({"shift": list("abcdefgh"), "scale": 1.0, "rises": [False] * 7 + [True]})
    assert sliders.fewest(many) == "The least share of a shift and a step, 0%, is that of 7 of 8"


def test_the_pilots_reading_in_the_middle_is_that_of_the_eta_in_use():
    rows = [("fog", 0.5, 0.0, 0.0), ("fog", 0.5, 1.0, 0.1), ("fog", 0.5, 2.0, 0.4), ("fog", 0.9, 1.0, 0.4), ("fog", 0.9, 2.0, 0.4)]
    seen = pd.DataFrame(rows, columns=["shift", "eta", "scale", "asked"])
    assert sliders.pilot_seen(seen, {"fog": 0.5}).endswith(
        "the reading at scale 2 is there at scale 1? Least under fog (25%) and most under fog (25%)."
    )
    assert sliders.pilot_seen(seen, {"fog": 0.7}) == "No pilot has read the etas in use."


def test_the_pilot_names_the_shifts_that_do_not_have_the_eta_of_the_rule_or_miss_a_bound():
    best = pd.DataFrame({"shift": ["heavy snow", "heavy fog"], "eta": [0.8, 0.7], "shortfall": [0.0, 0.1]})
    missed = "No candidate meets every bound for heavy fog."
    assert sliders.pilot(best, pd.Series([0.8, 0.7])) == f"Of 2 shifts, all have the eta that the rule takes. {missed}"
    apart = "Of 2 shifts, all but heavy snow (1 instead of 0.8) have the eta that the rule takes."
    assert sliders.pilot(best, pd.Series([1.0, 0.7])) == f"{apart} {missed}"
    assert sliders.pilot(best.head(1), pd.Series([1.0])) == apart.replace("2 shifts", "1 shifts")


def test_without_a_pilot_nothing_is_claimed_of_its_rule():
    assert sliders.pilot(pd.DataFrame({"shift": [], "eta": [], "shortfall": []}), pd.Series()).startswith("No pilot was asked for")


@pytest.mark.parametrize(
    ("low", "word"),
    [(0.51, "Mostly: the alignment with the shift rises in"), (0.5, "Not reliably: the alignment with the shift rises in only")],
)
def test_a_knob_works_if_the_whole_interval_lies_above_a_half(low, word):
    rising = {"n": 140, "estimate": 0.62, "low": low, "high": 0.7}
    steps = pd.DataFrame({"scale": [1.0, 1.0, 2.0, 2.0], "rises": [True, True, False, True]})
    assert sliders.answer(rising, steps, {"estimate": 0.456}, 2.5, confidence=0.9) == (
        f"**{word} 62% of the steps of 140 sliders (90% interval {low:.0%} to 70%), 100% of those to 1 and 50% of those to 2; "
        "at scale 2.5 the features keep a cosine of 0.46 with the unshifted picture.**"
    )


def test_a_knob_that_works_in_three_quarters_of_the_steps_to_every_scale_works():
    rising, steps = {"n": 4, "estimate": 0.9, "low": 0.8, "high": 1.0}, pd.DataFrame({"scale": [1.0, 2.0], "rises": [True, True]})
    assert sliders.answer(rising, steps, {"estimate": 0.5}, 2.0, confidence=0.9).startswith("**Yes: the alignment")
