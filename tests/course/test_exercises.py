import numpy as np
import pandas as pd
import pytest
from checks import exercises
from checks.exercises import Exercise

NUMBER = Exercise(0.2, {"The sign is turned round.": -0.2, "That is in percent.": 20.0}, praise="Well.", hints=("Subtract.", "0.8 - 0.6"))


def test_a_right_answer_within_the_tolerance_is_praised():
    assert NUMBER.check(0.8 - 0.6) == NUMBER.check(np.float32(0.2)) == NUMBER.check(0.2019) == exercises.Reply("Well.", True)
    assert NUMBER.check(0.2021).right is False


def test_a_known_mistake_is_told_and_an_unknown_one_gets_the_first_hint():
    assert NUMBER.check(-0.2) == exercises.Reply("The sign is turned round.", False)
    assert NUMBER.check(20) == exercises.Reply("That is in percent.", False)
    assert NUMBER.check(0.5) == exercises.Reply("Hint: Subtract.", False)


@pytest.mark.parametrize(
    "right, answer, said",
    [
        (0.9342, 0.93, "rounded too far"),
        (np.array([0.11, 0.333]), [0.1, 0.3], "rounded too far"),
        (0.9342, 93, "in percent"),
        (1.4048, 140.48, "in percent"),
        (pd.Series({"fog": 0.25, "snow": 0.5}), pd.Series({"fog": 25, "snow": 50}), "in percent"),
        (0.9342, 1.0, "Hint"),
    ],
)
def test_the_right_number_in_other_clothes_is_known(right, answer, said):
    assert said in Exercise(right).check(answer).text


@pytest.mark.parametrize(
    "right, answer, wanted",
    [
        (0.2, "0.2", "a number; yours is a str"),
        (np.array([0.1, 0.3]), 0.2, "2 numbers; yours is a float"),
        (("sneaker",), 3, "a text in quotation marks; yours is a int"),
        (frozenset({"vit"}), "vit", "a set or list of names; yours is a str"),
        (pd.Series({"fog": 1.0}), 1.0, "a Series with a number for each of fog; yours is a float"),
        (pd.Series({"fog": 1.0}), pd.Series({"fog": "much"}), "a Series with a number for each of fog; yours is a Series"),
    ],
)
def test_an_answer_of_another_form_is_told_the_form(right, answer, wanted):
    assert Exercise(right).check(answer) == exercises.Reply(f"The answer should be {wanted}.", False)


@pytest.mark.parametrize(
    "right, answer",
    [
        (np.array([0.1, 0.3]), (0.1, 0.3)),
        (("sneaker", "bag"), "bag"),
        (frozenset({"vit", "deit"}), ["deit", "vit"]),
        (pd.Series({"fog": 1.0, "snow": 2.0}), pd.Series({"snow": 2, "fog": 1})),
    ],
)
def test_an_answer_may_have_another_type_order_or_be_one_of_several(right, answer):
    assert Exercise(right).check(answer).right is True
