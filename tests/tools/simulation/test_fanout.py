"""The simulated run: what can be counted by hand without trouble, and the known mean of work that begins anew after each failure."""

import dataclasses
import math

import numpy as np
import pytest
from tiny_settings import CALM

from cnslib.core.settings.analyses import Trouble
from cnslib.tools.simulation import fanout
from cnslib.tools.simulation.fanout import Stage

TROUBLE = Trouble(between=500.0, replacing=0.25, walltime=24.0, loading=0.05, spread=0.1)


@pytest.mark.parametrize("workers", [1, 3, 8, 20])
def test_without_trouble_the_wall_time_is_that_of_full_rounds(workers):
    """20 units of 2 hours, then 5 of half an hour."""
    found = fanout.simulate([Stage("sliders", 20, 2.0), Stage("images", 5, 0.5)], workers, CALM, seed=1)
    assert found["wall"].tolist() == pytest.approx([math.ceil(20 / workers) * 2.0, math.ceil(5 / workers) * 0.5])
    assert found["busy"].tolist() == pytest.approx([40 / (workers * found["wall"][0]), 2.5 / (workers * found["wall"][1])])
    assert (found["lost"] == 0).all()


def test_more_workers_than_units_change_nothing():
    found = fanout.scaled([Stage("sliders", 10, 1.0)], [10, 64], CALM, seed=1)
    assert found["wall"].tolist() == pytest.approx([1.0, 1.0]) and found["busy"].tolist() == pytest.approx([1.0, 10 / 64])


def test_work_that_begins_anew_after_each_failure_takes_its_known_mean():
    """A unit of d hours on a worker that fails every m hours, exponentially: m (e^(d/m) - 1) on average, here 1.718 with d = m = 1."""
    trouble = dataclasses.replace(CALM, between=1.0)
    wall = fanout.simulate([Stage("sliders", 4000, 1.0)], 1, trouble, seed=1)["wall"][0]
    assert wall / 4000 == pytest.approx(math.e - 1, rel=0.1)


def test_a_block_that_ends_costs_the_unit_that_it_cuts_off():
    """Blocks of 5 hours hold two units of 2, and lose an hour; a new one takes half an hour: 4 units in 5 + 0.5 + 4 hours."""
    trouble = dataclasses.replace(CALM, walltime=5.0, replacing=0.5)
    found = fanout.simulate([Stage("sliders", 4, 2.0)], 1, trouble, seed=1)
    assert found["wall"][0] == pytest.approx(9.5) and found["lost"][0] == pytest.approx(1.0 / 9.5)


def test_loading_is_paid_once_for_each_worker_and_stage():
    trouble = dataclasses.replace(CALM, loading=0.25)
    assert fanout.simulate([Stage("a", 4, 1.0), Stage("b", 2, 1.0)], 2, trouble, seed=1)["wall"].tolist() == pytest.approx([2.25, 1.25])


def test_a_unit_that_hardly_fits_into_a_block_is_refused():
    with pytest.raises(ValueError, match=r"sliders: a unit of 13 hours in blocks of 24; accepted: half a block or less"):
        fanout.simulate([Stage("sliders", 1, 13.0)], 1, TROUBLE, seed=1)


def test_a_unit_that_never_ends_in_what_loading_leaves_of_a_block_is_refused():
    tight = dataclasses.replace(TROUBLE, walltime=2.0, loading=1.5, spread=0.0)
    with pytest.raises(ValueError, match=r"sliders: its longest unit takes 1 hours; accepted: 0\.5, what loading leaves"):
        fanout.simulate([Stage("sliders", 1, 1.0)], 1, tight, seed=1)
    with pytest.raises(ValueError, match=r"workers: 0 is not accepted; accepted: 1 or more"):
        fanout.simulate([Stage("sliders", 1, 1.0)], 0, TROUBLE, seed=1)


def test_durations_have_their_mean_and_spread():
    found = fanout.durations(Stage("sliders", 20_000, 2.0), 0.1, np.random.default_rng(1))
    assert found.mean() == pytest.approx(2.0, rel=0.01) and found.std() == pytest.approx(0.2, rel=0.05)
