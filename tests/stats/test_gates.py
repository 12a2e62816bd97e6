"""Gates: what each counts, which group is the worst, and on which side of its bound a number holds."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from cnslib.core.settings.method import Bootstrap
from cnslib.stats import gates

SETTINGS = Bootstrap(200, 0.95, 1, "same classes")


def trajectory(values, *, shift="heavy snow", seed=1, name="bag"):
    """The readings of one trajectory at scales 0, 0.5, 1, ..."""
    scales = [number / 2 for number in range(len(values))]
    return pd.DataFrame({"shift": shift, "class": name, "seed": seed, "scale": scales, "asked": values})


def record(estimate):
    return {"n": 10, "estimate": estimate, "low": 0.0, "high": 1.0}


@pytest.mark.parametrize(
    ("key", "estimate", "expected"),
    [
        ("start_worst_class", 0.9, True),  # the bound itself
        ("start_worst_class", 0.899, False),
        ("filter_good_dropped", 0.12, True),
        ("filter_good_dropped", 0.121, False),
        ("kept_start_in_class", 1 - 1e-9, True),  # rounding of a mean of ones
        ("rising_mean", float("nan"), False),
    ],
)
def test_a_gate_holds_on_the_right_side_of_its_bound_and_at_it(key, estimate, expected):
    assert gates.holds(key, estimate) is expected
    assert gates.table({key: record(estimate)})["reached"].tolist() == [expected]


def test_the_sentence_names_every_gate_that_is_missed_with_its_number():
    text = gates.said({"rising_mean": record(0.9), "zoo_scale_0_all": record(0.55)})
    assert text == "1 of 2 gates hold. **Missed: zoo_scale_0_all (0.55, to reach 0.8).**"
    assert gates.said({"rising_mean": record(0.9)}) == "1 of 1 gates hold."


def test_a_name_that_is_no_gate_is_refused():
    with pytest.raises(KeyError, match="rising_meen"):
        gates.table({"rising_meen": record(1.0)})


def test_the_worst_group_is_the_least_or_the_greatest_and_nothing_is_worse_than_no_number():
    found = {"snow": record(0.5), "rain": record(0.3), "fog": record(0.4)}
    assert gates.worst(found) == ("rain", record(0.3))
    assert gates.worst(found, side=gates.AT_MOST) == ("snow", record(0.5))
    assert gates.worst(found | {"dust": record(float("nan"))})[0] == "dust"


def test_shares_are_counted_within_each_group():
    rows = pd.DataFrame({"shift": ["a"] * 4 + ["b"] * 4, "class": "bag", "seed": [1, 2, 3, 4] * 2})
    hits = pd.Series([True, True, True, False, False, False, False, False])
    found = gates.shares(hits, rows, "shift", settings=SETTINGS)
    assert (found["a"]["estimate"], found["b"]["estimate"], found["a"]["n"]) == (0.75, 0.0, 4)
    assert gates.over_shifts(hits, rows, settings=SETTINGS)["estimate"] == 3 / 8


def test_a_step_rises_only_where_the_reading_is_higher_than_at_the_scale_before():
    seen = pd.concat([trajectory([0.1, 0.2, 0.2, 0.4]), trajectory([0.5, 0.4, 0.6, 0.7], seed=2)])
    found = gates.rises(seen.sample(frac=1, random_state=0), "asked")
    assert found.groupby("seed")["rises"].apply(list).to_dict() == {1: [True, False, True], 2: [False, True, True]}


def test_the_largest_step_is_a_share_of_the_rise_of_the_mean():
    seen = pd.concat([trajectory([0.0, 0.2, 0.3, 0.8]), trajectory([0.2, 0.2, 0.7, 0.8], seed=2)])
    found = gates.largest_step(seen, "asked", settings=SETTINGS)  # means 0.1, 0.2, 0.5, 0.8
    assert found["estimate"] == pytest.approx(0.3 / 0.7) and found["n"] == 2
    assert found["low"] <= found["estimate"] <= found["high"]
    even = pd.concat([trajectory([0.0, 0.25, 0.5, 0.75], seed=seed) for seed in range(1, 5)])
    found = gates.largest_step(even, "asked", settings=SETTINGS)
    assert (found["estimate"], found["low"], found["high"]) == pytest.approx((1 / 3,) * 3)


def test_without_a_rise_there_is_no_largest_step():
    assert np.isnan(gates.largest_step(trajectory([0.4, 0.6, 0.4]), "asked", settings=SETTINGS)["estimate"])


def test_agreement_is_pearsons_r_and_its_n_the_classifiers():
    draws = np.random.default_rng(0)
    real, generated = draws.random((50, 8)), draws.random((50, 8))
    found = gates.agreement(real, generated, 0.95)
    assert found["estimate"] == pytest.approx(scipy.stats.pearsonr(real[0], generated[0]).statistic) and found["n"] == 8
    assert gates.agreement(real, 0.2 + 0.5 * real, 0.95)["estimate"] == pytest.approx(1)
