"""Captions about sliders: the records stand in the sentences, and the verdict follows from the interval."""

import pytest

from cnslib.plots.captions import sliders


def test_the_health_figure_tells_how_many_sliders_a_shift_has():
    assert sliders.health([10, 9, 10]) == "n = 9 to 10 sliders per shift; bands: 95 % bootstrap over sliders"


@pytest.mark.parametrize(("low", "word"), [(0.51, "Yes, in"), (0.5, "Not reliably: only in")])
def test_a_knob_works_if_the_whole_interval_lies_above_a_half(low, word):
    rising = {"n": 140, "estimate": 0.62, "low": low, "high": 0.7}
    assert sliders.answer(rising, {"estimate": 0.456}, 2.5) == (
        f"**{word} 62% of the steps over 140 sliders (95 % interval {low:.0%} to 70%); "
        "at scale 2.5 the features keep a cosine of 0.46 with the unshifted picture.**"
    )
