"""Captions about the filter: what is counted by hand stands in the sentences."""

import pandas as pd

from cnslib.plots.captions import filtering

RECORD = {"n": 40, "estimate": 0.875, "low": 0.8, "high": 0.95}


def test_shifts_without_an_out_of_class_image_are_named():
    outside = pd.Series({"heavy snow": 3, "heavy fog": 0, "heavy rain": 0})
    assert filtering.labels(outside, 50, 60) == (
        "50 of 60 shifted images are labelled, 3 of them out of class. Shifts without a single out-of-class image: heavy fog, heavy rain."
    )
    assert filtering.labels(outside.head(1), 50, 60).endswith("out-of-class image: none.")


def test_the_answer_tells_what_goes_with_the_bad_images_and_what_clip_alone_does():
    ours = {"tpr": RECORD, "fpr": RECORD | {"n": 900, "estimate": 0.125, "low": 0.1, "high": 0.15}}
    clip = {"tpr": {"estimate": 0.8}, "fpr": {"estimate": 0.333}}
    assert filtering.answer(ours, clip) == (
        "**The vote removes 87.5% (80.0% to 95.0%) of 40 out-of-class images, and with them 12.5% (10.0% to 15.0%) of 900 good ones. "
        "CLIP alone removes 80.0% and 33.3%.**"
    )


def test_without_out_of_class_images_the_answer_gives_no_rates():
    nothing = {"tpr": RECORD | {"n": 0, "estimate": float("nan")}, "fpr": RECORD}
    assert filtering.answer(nothing, nothing) == "**No labelled image is out of class, so the filter drops nothing.**"


def test_figures_tell_their_images():
    outside = pd.Series([True] * 3 + [False] * 997)
    assert filtering.roc(outside, 0.8) == "3 of 1,000 images out of class; grey: recall 80%"
    assert filtering.outcomes(120).startswith("n = 120 images per shift and scale; out of class: caught, missed")
    assert filtering.gallery(2.5) == "scale 2.5; kept and lost: in class; missed and caught: out of class"
