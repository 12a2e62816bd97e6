"""What is said of samplers and classes: sentences follow from verdicts and numbers."""

import pandas as pd
import pytest

from cnslib.core import paths
from cnslib.stats import verdicts
from cnslib.studies.ablation import captions


def record(estimate, low, high, n=40):
    return {"n": n, "estimate": estimate, "low": low, "high": high}


@pytest.mark.parametrize(
    ("steady", "few", "said"),
    [
        ((0.02, 0.01, 0.03), (0.01, -0.02, 0.04), ("the accuracy more than its drop", "no more than the 0.05 that we count as none")),
        ((-0.02, -0.03, -0.01), (-0.1, -0.2, -0.06), ("the drop more than the accuracy", "), more than the 0.05 that we count as none.")),
        (
            (0.0, -0.03, 0.01),
            (-0.04, -0.1, -0.01),
            ("which of them more is undecided", "and it is undecided whether this exceeds 0.05, which we"),
        ),
    ],
)
def test_the_answer_takes_its_words_from_the_verdicts(steady, few, said):
    ours = {"steady": record(*steady), "fast": record(*few), "few": record(*few), "order": record(0.9, 0.8, 1.0)}
    table = pd.read_csv(paths.PUBLISHED / "ablation.csv")
    claims = verdicts.statements(ours, table).set_index(table["id"])
    orders = {"DDIM 16": record(0.9, 0.8, 1.0), "chance": record(0.57, 0.4, 0.7, n=190)}
    text = captions.answer(claims, orders, (16, 100), ("DDIM 16", "chance"), confidence=0.95)
    assert all(words in text for words in said) and f"{few[0]:+.3f} ({few[1]:+.3f} to {few[2]:+.3f})" in text
    assert "In 16 steps instead of 100" in text and "of 100 steps is 0.90 (0.80 to 1.00); by other" in text
    assert text.endswith("alone it is 0.57 on average, and 0.40 to 0.70 in the middle 95% of 190 pairs of seed sets.")


@pytest.mark.parametrize(("numbers", "opening"), [((1, 0.5, 2), "The accuracy"), ((-1, -2, -0.5), "The drop"), ((0, -1, 1), "Whether")])
def test_what_depends_more_on_the_classes(numbers, opening):
    assert captions.steady_seen(record(*numbers), 4).startswith(opening)


def test_the_least_tau_stands_beside_the_range_of_pairs_and_is_not_tested_against_it():
    orders = {"a": record(0.9, 0.8, 1), "b": record(0.5, 0.4, 0.6), "chance": record(0.57, 0.4, 0.7, n=190)}
    text = captions.orders_seen(orders, "chance", confidence=0.9)
    assert text.startswith("The least tau of a sampler is 0.50 (0.40 to 0.60) (b). Between two sets of other seeds")
    assert text.endswith("it is 0.57 on average, and 0.40 to 0.70 in the middle 90% of 190 pairs of seed sets.") and "overlap" not in text
    del orders["b"]
    assert "0.90 (0.80 to 1.00) (a)" in captions.orders_seen(orders, "chance", confidence=0.9)
    assert "too few seeds" in captions.orders_seen(orders | {"chance": record(float("nan"), 0, 0, n=0)}, "chance", confidence=0.9)


def test_differences_that_leave_out_zero_are_counted():
    gap = pd.DataFrame({"sampler": ["a", "a", "b", "b"], "shift": "all", "scale": [0.0, 1.0] * 2, "n": 5})
    gap = gap.assign(estimate=[0.1, 0.0, -0.2, -0.3], low=[0.05, -0.1, -0.3, -0.4], high=[0.2, 0.1, -0.1, -0.2])
    text = captions.difference(gap.assign(shift=captions.ALL), "slow", note="x")
    assert text == "Over all shifts, accuracy differs surely from that by slow for a at 1 of 2 scales and b at 2 of 2 scales. n = 5 x"
