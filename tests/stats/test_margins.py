import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.proportion import proportion_confint

from cnslib.stats import margins


def said(model: str, right: int, wrong: int) -> pd.DataFrame:
    return pd.DataFrame({"model": model, "class": "bag", "top1": ["bag"] * right + ["coat"] * wrong})


def test_two_exams_have_shares_with_wilson_intervals_and_their_difference():
    known = margins.exams(
        {"real": pd.concat([said("a", 8, 2), said("b", 5, 5)]), "drawn": pd.concat([said("a", 3, 7), said("b", 5, 5)])}, confidence=0.95
    )
    real, drawn = (known[known["exam"] == exam].set_index("model").drop(columns="exam").astype(float) for exam in ("real", "drawn"))
    assert real["estimate"].to_dict() == {"a": 0.8, "b": 0.5}
    assert real.loc["a", ["low", "high"]].tolist() == pytest.approx(proportion_confint(8, 10, method="wilson"))
    cost = margins.cost(real, drawn, confidence=0.95)
    assert cost["cost"].to_dict() == pytest.approx({"b": 0.0, "a": 0.5}) and list(cost.index) == ["b", "a"]
    assert cost.loc["a", "low"] > 0 > cost.loc["b", "low"]
    (p1, low1, high1), (p2, low2, high2) = (table.loc["a", ["estimate", "low", "high"]] for table in (real, drawn))
    newcombe = [0.5 - np.hypot(p1 - low1, high2 - p2), 0.5 + np.hypot(high1 - p1, p2 - low2)]  # 1998, his method 10
    assert cost.loc["a", ["low", "high"]].tolist() == pytest.approx(newcombe)


def test_what_is_left_of_the_margin_before_an_answer_flips_late():
    """Half of it under snow; a flip in the first step, one that was wrong from the start and one that stays right do not count."""
    readings = {"snow": [4.0, 2.0, -1.0], "fog": [4.0, -1.0, -2.0], "rain": [-4.0, 3.0, -2.0], "smog": [4.0, 3.0, 2.0]}
    rows = [("a", shift, "bag", 1, scale, value) for shift, own in readings.items() for scale, value in enumerate(own)]
    table = pd.DataFrame(rows, columns=["model", "shift", "class", "seed", "scale", "margin"])
    left = margins.before_the_flip(table.assign(wrong=table["margin"] < 0))
    assert left.to_dict() == {("a", "snow", "bag", 1): 0.5}


def shown(*levels):
    return np.repeat(np.array(levels, np.uint8), 4).reshape(-1, 2, 2)


def test_the_five_most_similar_pictures_vote_and_the_most_frequent_error_is_named():
    known = shown(0, 1, 2, 3, 4, 100, 101, 102, 103, 104, 200, 201, 202, 203, 204), np.repeat([0, 1, 3], 5)
    asked = shown(2, 90, 210, 102, 200, 203), np.array([0, 0, 0, 1, 3, 3])
    table = margins.neighbour_accuracy(known, asked, classes=["bag", "coat", "shirt", "dress"], confidence=0.95).set_index("class")
    assert table["n"].to_dict() == {"bag": 3, "coat": 1, "dress": 2}
    assert table["estimate"].to_dict() == pytest.approx({"bag": 1 / 3, "coat": 1, "dress": 1})
    assert table.loc["bag", "taken for"] == "coat" and table.loc["bag", "how often"] == pytest.approx(1 / 3)
    assert table.loc["bag", ["low", "high"]].tolist() == pytest.approx([0.0615, 0.7923], abs=1e-4)  # Wilson's of 1 in 3
