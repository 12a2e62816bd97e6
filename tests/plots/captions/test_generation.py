"""Captions about images: counts and means stand in the sentences, and a guidance that is no longer the best is named."""

import pandas as pd

from cnslib.plots.captions import generation


def test_figures_tell_what_n_counts():
    assert generation.guidance(120, confidence=0.9) == "n = 120 images each; 90% intervals: Wilson, and jackknife over seeds"
    assert generation.change([10, 10], confidence=0.9) == "n = 10 classes per shift; bands: 90% t intervals over classes"


def test_a_guidance_that_the_rule_does_not_take_asks_for_another():
    assert generation.choice(7.5, 7.5) == "The benchmark is drawn at guidance **7.5**, as the rule says."
    assert generation.choice(3.0, 7.5).endswith("**7.5**, but the rule takes 3.0, and params.yaml should say so.")


def test_only_curves_that_rise_in_every_step_are_counted():
    rows = [("fog", 0.5, 5), ("fog", 1.0, 9), ("fog", 2.5, 20), ("rain", 0.5, 5), ("rain", 1.0, 4), ("rain", 2.5, 30)]
    seen = generation.change_seen(pd.DataFrame(rows, columns=["shift", "scale", "estimate"]))
    assert seen == "1 of 2 curves rise in every step. At scale 2.5 pixels change most under rain (30) and least under fog (20)."


def test_the_answer_holds_counts_recognition_and_change():
    text = generation.answer(8520, 1680, {"estimate": 0.876}, scale=2.5, change=41.6)
    assert text.startswith("**They begin with an unshifted garment, which the text-image encoder names in 88% of the cases; at scale 2.5")
    assert text.endswith(
        "by 42 of 255 grey levels on average.** There are 8,520 images in 1,680 trajectories, which share their unshifted ones."
    )
