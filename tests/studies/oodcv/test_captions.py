"""What is said of drawn and rendered weather: sentences follow from verdicts and numbers."""

import pandas as pd
import pytest

from cnslib.studies.oodcv import captions

WORTH = pd.DataFrame(
    [
        {"compared": way, "shift": "heavy fog", "scale": scale, "estimate": scale / 4, "low": 0.1, "high": 0.9}
        for way in ("absolute", "relative")
        for scale in (1.0, 3.0)
    ]
)
RIGHT = {"n": 960, "estimate": 0.85, "low": 0.83, "high": 0.87}


def statement(ours: float, n: int = 96) -> pd.DataFrame:
    return pd.DataFrame({"n": n, "ours": ours, "low": ours - 0.1, "high": ours + 0.1}, index=[captions.EASIER])


@pytest.mark.parametrize(
    ("ours", "opening", "word"),
    [
        (0.3, "Drawn weather at the last scale hurts less than", "easier"),
        (-0.3, "Drawn weather at the last scale hurts more than", "harder"),
        (0.05, "Whether drawn or rendered weather hurts more is undecided: ", "undecided"),
    ],
)
def test_the_answer_opens_with_what_the_interval_says_of_all_images(ours, opening, word):
    said = {"all": statement(ours), "kept": statement(0.25, n=11)}
    text = captions.answer(said, model="resnet", scale=3.0)
    numbers = f"{ours:+.2f} ({ours - 0.1:+.2f} to {ours + 0.1:+.2f})"
    assert text.startswith(opening) and f"at scale 3, {numbers} on all 96 trajectories ({word})" in text
    assert text.endswith("and without a verdict on the 11 kept trajectories, which are too few.") and "+0.25" not in text
    assert text.count(". ") == 0  # one sentence
    assert captions.answer(said | {"all": statement(ours, n=49)}, model="resnet", scale=3.0).startswith("Too few trajectories say")


def test_starting_points_are_compared_classifier_by_classifier():
    rows = {"resnet": (0.9, 0.7, 0.8), "vit": (0.8, 0.5, 0.4), "mixer": (0.6, 0.9, 0.7)}
    names = ("real", "drawn, kept", "drawn, all")
    begin = pd.DataFrame([{"model": m, "of": of, "estimate": x} for m, row in rows.items() for of, x in zip(names, row, strict=True)])
    begin = begin.assign(low=begin["estimate"] - 0.06, high=begin["estimate"] + 0.06, n=begin["of"].map({"drawn, kept": 5}).fillna(32))
    text = captions.starts_seen(begin.astype({"n": int}))
    assert "surely harder than real ones for 1 of 3 classifiers, surely easier for 0, and" in text  # only vit's intervals lie apart
    assert text.endswith("for mixer (intervals that do not overlap; 32 drawn garments, of which the filter keeps 5).")


def test_failures_of_the_weather_leave_out_both_ends():
    bars = pd.DataFrame({"shift": "heavy fog", "model": "vit", "scale": [0.0, 1.0, 2.0, captions.NEVER], "estimate": [0.3, 0.1, 0.2, 0.4]})
    assert captions.failures(bars.assign(n=40), note="x").startswith(
        "The weather itself makes classifiers fail on 30% under heavy fog. n = 40"
    )


def test_mistaken_and_missed_weather_are_told_apart():
    rows = [("heavy fog", "heavy fog", 0.8), ("heavy fog", "heavy rain", 0.0), ("heavy fog", "unknown", 0.2), ("unshifted", "unknown", 1.0)]
    confused = pd.DataFrame(rows, columns=["truth", "label", "estimate"]).assign(low=0.1, high=0.3)
    assert captions.mistaken(confused) == "no picture gets the name of another weather"
    assert captions.missed(confused) == "most often called unknown is fog, 0.20 (0.10 to 0.30)"
    other = confused.assign(estimate=[0.8, 0.2, 0.0, 1.0])
    assert captions.mistaken(other) == "most mistaken is fog as rain, 0.20 (0.10 to 0.30)"
    assert captions.missed(other) == "none of the named weathers is called unknown"


def test_pictures_without_a_severity_have_no_order():
    examples = pd.DataFrame({"shift": ["heavy fog"] * 2, "scale": [0.1, 0.9]})
    said = "Severities from 0.10 to 0.90: 2 of 1,200 pictures, each row ordered by severity"
    assert captions.reference(examples, 1200) == said
    unshifted = pd.DataFrame({"shift": ["unshifted"], "scale": [0.0]})
    assert captions.reference(pd.concat([examples, unshifted]), 1200).endswith("unshifted ones have none, and no order")


def test_captions_take_the_last_scale():
    named = pd.DataFrame({"shift": "heavy fog", "scale": [0.0, 3.0], "estimate": [0.1, 0.98], "n": 40})
    rows = [("heavy sandstorm", "heavy fog", 0.7), ("heavy fog", "heavy fog", 0.9), ("unshifted", "unknown", 1.0)]
    confused = pd.DataFrame(rows, columns=["truth", "label", "estimate"]).assign(low=0.5, high=1.0)
    text = captions.labels(RIGHT, confused, named, note="x")
    assert "0.85 (0.83 to 0.87) of 960 reference pictures; most mistaken is sandstorm as fog, 0.70 (0.50 to 1.00), none" in text
    assert "At the last scale it is right for fog 0.98." in text
    curves = pd.DataFrame({"model": "vit", "images": ["all", "all", "kept"], "shift": "heavy fog", "scale": [0.0, 3.0, 3.0]})
    lines = pd.DataFrame({"model": ["vit"], "shift": ["heavy fog"], "estimate": [0.4]})
    text = captions.against_reference(curves.assign(estimate=[0.9, 0.2, 0.7]), lines, "vit", note="x")
    assert text == "Accuracy of vit at scale 3 on all generated images, and on the reference: fog 0.20 (0.40). x"
    assert "is worth the severity fog 0.75 (0.10 to 0.90). mean over 3" in captions.severities(WORTH, ("n = 4", "n = 5", 3), note="x")


def test_a_true_mean_outside_the_looked_up_interval_is_told_with_what_the_bend_explains():
    rows = {"heavy rain": (0.5, 0.4, 0.6, 0.5, 0.45, 0.05, -0.1, 0.2), "heavy snow": (0.6, 0.55, 0.65, 0.5, 0.58, 0.02, -0.03, 0.07)}
    names = ["estimate", "low", "high", "true", "expected", "gap_estimate", "gap_low", "gap_high"]
    table = pd.DataFrame(rows, index=names).T.rename_axis("shift")
    text = captions.looked_up_seen(table)
    assert text.startswith(
        "The looked-up severity holds the true mean under rain (0.500 (0.400 to 0.600), true 0.500), and leaves it out under"
    )
    near = captions.looked_up_seen(table.assign(low=[0.4, 0.5125], true=[0.5, 0.5083]))
    assert "leaves it out under snow (0.600 (0.512 to 0.650), true 0.508)" in near  # with two decimals both would be 0.51
    assert text.endswith("at 0.58 under snow; found minus that is +0.020 (-0.030 to +0.070): the bend can explain it.")
    assert captions.looked_up_seen(table.assign(gap_low=0.01)).endswith("the bend does not explain it all.")
    assert captions.looked_up_seen(table.head(1)).endswith("and leaves it out under none.")
