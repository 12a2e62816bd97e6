"""Words: numbers and lists by hand."""

import pandas as pd

from cnslib.core.settings.method import Bootstrap
from cnslib.plots.captions import words
from cnslib.stats.accuracy import ALL

RECORD = {"estimate": 0.314, "low": 0.2, "high": 0.4149, "models_low": -0.1, "models_high": 0.9}


def test_a_number_with_its_interval():
    assert words.interval(RECORD) == "0.31 (0.20 to 0.41)"
    assert words.interval(pd.Series(RECORD), "+.1f") == "+0.3 (+0.2 to +0.4)"
    assert words.interval(RECORD, suffix="models_") == "0.31 (-0.10 to 0.90)"


def test_a_list_of_names():
    assert [words.listed(names) for names in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["none", "a", "a and b", "a, b and c"]


def test_intervals_that_touch_the_null_are_not_certain():
    table = pd.DataFrame({"low": [0.1, 0.0, -0.2, -0.3], "high": [0.2, 0.2, -0.1, 0.0]})
    assert words.certain(table) == (1, 1) and words.certain(table, 0.05) == (1, 2)


def test_two_benchmarks_name_what_each_of_them_resamples():
    drawn = Bootstrap(resamples=10, confidence=0.9, seed=1, target="same classes")
    said = words.both_notes({"trajectories": drawn, "real pictures": drawn.of("other objects")})
    assert said == "90% intervals (trajectories: same classes, other pictures; real pictures: same classes, other objects)"


def test_the_ends_of_some_values():
    assert words.extremes(pd.Series({"a": 0.2, "b": 0.7, "c": -0.1}), "+.1f") == ("b (+0.7)", "c (-0.1)")
    assert words.extremes(pd.Series({"a": float("nan")})) == ("none", "none")


def test_findings_are_about_shifts_with_enough_trajectories():
    table = pd.DataFrame({"shift": ["fog", "snow", ALL], "n": [8, 60, 68]})
    assert words.enough(table)["shift"].tolist() == ["snow"]
    assert words.enough(table[table["shift"] != "snow"])["shift"].tolist() == ["fog"]


def test_of_an_answer_the_first_sentence_is_bold():
    assert words.answered("Yes, by 0.5 (n = 3). No pair changes. So be it.") == "**Yes, by 0.5 (n = 3).** No pair changes. So be it."
    assert words.answered("Yes, by 0.5.") == "**Yes, by 0.5.**"
