"""The user study: whom it asks about, and what stands beside the paper's."""

import itertools

import pandas as pd
import pytest

from cnslib.core import tables
from cnslib.studies.validation import study

SCALES = [0.0, 1.0, 2.0]


def benchmark():
    keys = itertools.product(["heavy snow", "cartoon style"], ["bag", "coat"], range(1, 26), SCALES)
    return pd.DataFrame([key for key in keys if key[0] == "heavy snow" or key[2] > 10], columns=tables.KEY)


def test_the_user_study_is_seeded_and_every_shift_and_scale_has_its_place():
    table = benchmark()
    chosen = study.sample(table, 60, seed=1)
    assert len(chosen) == 60 and not chosen.duplicated(tables.KEY).any()
    assert chosen.equals(study.sample(table.sample(frac=1, random_state=5), 60, seed=1))
    sizes = pd.DataFrame({"all": table.groupby(["shift", "scale"]).size(), "chosen": chosen.groupby(["shift", "scale"]).size()})
    assert (sizes["chosen"] - 60 * sizes["all"] / len(table)).abs().max() < 1
    assert set(study.sample(table, 60, seed=2).index) != set(chosen.index)


def test_a_small_benchmark_is_asked_as_a_whole():
    assert len(study.sample(benchmark(), 10_000, seed=1)) == len(benchmark())


def test_the_study_puts_the_papers_three_of_three_hundred_beside_ours():
    table = benchmark().assign(class_probability=0.5)
    table.loc[:14, "class_probability"] = 0.0  # 15 of 240 are below chance
    kinds = pd.Series(["out of class"] * 2 + ["in class"] * 38)
    found = study.shares(kinds, table[:40], table, who="oracle", chance=0.1, confidence=0.95).set_index("what")
    assert found["estimate"].tolist() == [3 / 300, 2 / 40, 15 / 40, 15 / len(table)]
    # Wilson's interval of 3 in 300, from its formula
    assert found.loc["paper (people)", ["low", "high"]].tolist() == pytest.approx([0.003407, 0.028987], abs=1e-5)
