"""Captions about images: counts and means stand in the sentences, and a guidance that is no longer the best is named."""

from cnslib.plots.captions import generation


def test_figures_tell_what_n_counts():
    assert generation.guidance(120) == "n = 120 images each; 95 % intervals: Wilson, and jackknife over seeds"
    assert generation.change([10, 10]) == "n = 10 classes per shift; bands: 95 % bootstrap over classes"


def test_a_guidance_that_is_not_the_best_any_more_asks_for_another():
    assert generation.choice(7.5, 7.5) == "The benchmark is drawn at guidance **7.5**, which is still the best."
    assert generation.choice(3.0, 7.5).endswith("**7.5**, which is not the best any more: 3.0 is, and params.yaml should say so.")


def test_the_answer_holds_counts_recognition_and_change():
    text = generation.answer(8520, 1680, {"estimate": 0.876}, scale=2.5, change=41.6)
    assert text.startswith("**8520 images in 1680 trajectories; 88% of the unshifted ones are recognised, and at scale 2.5")
    assert text.endswith("by 42 of 255 grey levels on average.**")
