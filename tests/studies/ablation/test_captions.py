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
        ((0.02, 0.01, 0.03), (0.01, -0.02, 0.04), ("the accuracy more than its drop", "no more than the 0.05 that count as none")),
        ((-0.02, -0.03, -0.01), (-0.1, -0.2, -0.06), ("the drop more than the accuracy", "more than counts as none")),
        ((0.0, -0.03, 0.01), (-0.04, -0.1, -0.01), ("which of them more is undecided", "the 0.05 that count as none is undecided")),
    ],
)
def test_the_answer_takes_its_words_from_the_verdicts(steady, few, said):
    ours = {"steady": record(*steady), "fast": record(*few), "few": record(*few), "order": record(0.9, 0.8, 1.0)}
    table = pd.read_csv(paths.PUBLISHED / "ablation.csv")
    claims = verdicts.statements(ours, table).set_index(table["id"])
    orders = {"DDIM 16": record(0.9, 0.8, 1.0), "chance": record(0.57, 0.4, 0.7)}
    text = captions.answer(claims, orders, (16, 100), ("DDIM 16", "chance"))
    assert all(words in text for words in said) and f"{few[0]:+.3f} ({few[1]:+.3f} to {few[2]:+.3f})" in text
    assert "In 16 steps instead of 100" in text and "of 100 steps is 0.90 (0.80 to 1.00); by other" in text
    assert text.endswith("garments alone it is 0.57 (0.40 to 0.70).")


@pytest.mark.parametrize(("numbers", "opening"), [((1, 0.5, 2), "The accuracy"), ((-1, -2, -0.5), "The drop"), ((0, -1, 1), "Whether")])
def test_what_depends_more_on_the_classes(numbers, opening):
    assert captions.steady_seen(record(*numbers), 4).startswith(opening)


def test_the_least_tau_is_held_against_that_of_other_garments():
    orders = {"a": record(0.9, 0.8, 1), "b": record(0.5, 0.4, 0.6), "chance": record(0.57, 0.4, 0.7)}
    text = captions.orders_seen(orders, "chance")
    assert "0.50 (0.40 to 0.60) (b), that of other garments by the same sampler 0.57 (0.40 to 0.70). The intervals overlap" in text
    del orders["b"]
    assert "0.90 (0.80 to 1.00) (a)" in (apart := captions.orders_seen(orders, "chance")) and "do not overlap" in apart
    assert "too few seeds" in captions.orders_seen(orders | {"chance": record(float("nan"), 0, 0, n=0)}, "chance")


def test_differences_that_leave_out_zero_are_counted():
    gap = pd.DataFrame({"sampler": ["a", "a", "b", "b"], "shift": "all", "scale": [0.0, 1.0] * 2, "n": 5})
    gap = gap.assign(estimate=[0.1, 0.0, -0.2, -0.3], low=[0.05, -0.1, -0.3, -0.4], high=[0.2, 0.1, -0.1, -0.2])
    text = captions.difference(gap.assign(shift=captions.ALL), "slow", note="x")
    assert text == "Accuracy differs surely from that by slow for a at 1 of 2 scales and b at 2 of 2 scales. n = 5 x"
