"""Trajectories: their rising steps, and one out of all, chosen, counted and worded by hand."""

import numpy as np
import pandas as pd

from cnslib.core.names import UNSHIFTED
from cnslib.stats import trajectory
from cnslib.stats.accuracy import Outcomes

SCALES = [0.0, 0.5, 1.0]


def outcomes(*words: str) -> Outcomes:
    """A trajectory per word, a classifier per part of it; x is a wrong answer."""
    wrong = np.array([[[letter == "x" for letter in part] for part in word.split()] for word in words])
    keys = pd.DataFrame([("heavy snow", "bag", seed) for seed in range(1, len(words) + 1)], columns=["shift", "class", "seed"])
    return Outcomes(keys, ["alexnet", "resnet", "vit"], SCALES, wrong)


def test_rising_steps_are_counted_within_trajectories_and_only_between_readings():
    ways = {1: [0.0, 0.2, 0.1, 0.3], 2: [0.5, 0.5, 0.6, 0.7], 3: [0.1, np.nan, 0.3, 0.4]}
    parts = [
        pd.DataFrame({"shift": "heavy snow", "class": "bag", "seed": s, "scale": [*SCALES, 1.5], "asked": way}) for s, way in ways.items()
    ]
    steps = trajectory.rises(pd.concat(parts).sample(frac=1, random_state=0), "asked")
    assert steps.groupby("seed")["rises"].agg(["size", "sum"]).to_numpy().tolist() == [[3, 2], [3, 2], [1, 1]]  # no change is no rise
    assert set(steps["scale"]) == {0.5, 1.0, 1.5}


def test_the_most_divided_trajectory_is_known_at_scale_0_and_spreads_most():
    found = outcomes("x.. ..x ...", "..x ..x ..x", ".xx ..x ...", ".xx .xx ...")
    one = trajectory.most_divided(found)
    assert one.trajectories["seed"].tolist() == [4]  # places 1, 1 and 3 spread more than 1, 2 and 3; the first is missed at scale 0
    assert np.array_equal(one.wrong[0], found.wrong[3])


def test_where_every_trajectory_is_missed_at_scale_0_the_least_missed_one_is_taken():
    assert trajectory.most_divided(outcomes("xxx xxx ...", "x.. ..x ...")).trajectories["seed"].tolist() == [2]


def test_of_equally_divided_trajectories_the_first_is_taken():
    assert trajectory.most_divided(outcomes(".x. ... ...", ".xx ... ...")).trajectories["seed"].tolist() == [1]


def test_answers_along_a_trajectory_recover_behind_the_failure_point():
    table = trajectory.along(outcomes(".x. x.. ...")).set_index(["model", "scale"])
    assert table.loc["alexnet", "right"].tolist() == [True, False, True]
    points = table["failure_point"].groupby("model").first()
    assert points["alexnet"] == 0.5 and points["resnet"] == 0 and np.isnan(points["vit"])


def test_the_sentence_counts_what_fails_before_under_and_never():
    said = trajectory.division(outcomes("x.. .xx ..."))
    start = "On this one garment (bag in heavy snow, seed 1) the 3 classifiers fail at 2 different scales"
    assert said == f"{start}: 1 without any shift, 1 under it, 1 never"


def predictions(values: dict[tuple[str, float], float]) -> pd.DataFrame:
    """Answers to one bag in snow and, as a trap, to another seed and another shift."""
    rows = [(UNSHIFTED if scale == 0 else "heavy snow", "bag", 1, scale, model, share) for (model, scale), share in values.items()]
    rows += [("heavy snow", "bag", 2, 1.0, "vit", 0.5), ("heavy fog", "bag", 1, 1.0, "vit", 0.5), (UNSHIFTED, "coat", 1, 0.0, "vit", 0.5)]
    return pd.DataFrame(rows, columns=["shift", "class", "seed", "scale", "model", "probability"])


def test_certainty_is_that_of_the_trajectory_with_scale_0_from_the_unshifted_picture():
    values = {("vit", 0.0): 0.9, ("vit", 1.0): 0.2, ("resnet", 0.0): 0.8, ("resnet", 1.0): 0.3}
    one = outcomes("... ... ...")
    table = trajectory.certainty(predictions(values), one)
    found = table[["model", "scale", "probability"]].to_numpy().tolist()
    assert found == [["resnet", 0, 0.8], ["resnet", 1, 0.3], ["vit", 0, 0.9], ["vit", 1, 0.2]]
    assert set(table["shift"]) == {"heavy snow"} and table.index.tolist() == [0, 1, 2, 3]
    assert "vit (0.90) is surest of the class at scale 0 and resnet (0.30) at scale 1" in trajectory.leaders(table, one)


def test_answers_without_probabilities_are_told_as_such():
    table = trajectory.certainty(predictions({("vit", 0.0): np.nan, ("vit", 1.0): np.nan}), outcomes("... ... ..."))
    assert trajectory.leaders(table, outcomes("... ... ...")) == "The answers to bag in heavy snow, seed 1 tell no probabilities"
