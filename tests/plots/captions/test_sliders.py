"""Captions about sliders: the records stand in the sentences, and the verdict follows from the interval."""

import pandas as pd
import pytest

from cnslib.plots.captions import sliders


def test_the_health_figure_tells_how_many_sliders_a_shift_has():
    assert sliders.health([10, 9, 10]) == "n = 9 to 10 sliders per shift; bands: 95 % bootstrap over sliders"


def test_the_pilot_names_the_shifts_that_do_not_have_the_eta_of_the_rule_or_miss_a_bound():
    best = pd.DataFrame({"shift": ["heavy snow", "heavy fog"], "eta": [0.8, 0.7], "shortfall": [0.0, 0.1]})
    missed = "No candidate meets every bound for heavy fog."
    assert sliders.pilot(best, pd.Series([0.8, 0.7])) == f"Of 2 shifts, all have the eta that the rule takes. {missed}"
    apart = "Of 2 shifts, all but heavy snow (1 instead of 0.8) have the eta that the rule takes."
    assert sliders.pilot(best, pd.Series([1.0, 0.7])) == f"{apart} {missed}"
    assert sliders.pilot(best.head(1), pd.Series([1.0])) == apart.replace("2 shifts", "1 shifts")


def test_without_a_pilot_nothing_is_claimed_of_its_rule():
    assert sliders.pilot(pd.DataFrame({"shift": [], "eta": [], "shortfall": []}), pd.Series()).startswith("No pilot was asked for")


@pytest.mark.parametrize(("low", "word"), [(0.51, "Yes, in"), (0.5, "Not reliably: only in")])
def test_a_knob_works_if_the_whole_interval_lies_above_a_half(low, word):
    rising = {"n": 140, "estimate": 0.62, "low": low, "high": 0.7}
    assert sliders.answer(rising, {"estimate": 0.456}, 2.5) == (
        f"**{word} 62% of the steps over 140 sliders (95 % interval {low:.0%} to 70%); "
        "at scale 2.5 the features keep a cosine of 0.46 with the unshifted picture.**"
    )
