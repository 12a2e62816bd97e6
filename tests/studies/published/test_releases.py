"""What follows from released code and from the sibling papers' formulas and tables, against numbers known by hand."""

import math

import numpy as np
import pytest

from cnslib.data import published
from cnslib.studies.published import releases


def test_released_vote_drops_when_three_detectors_fire():
    code = published.facts("released_code")
    assert releases.fires(code) == 3 and releases.fires(code | {"filter_start_count": "0"}) == 2


def test_slider_acts_in_three_quarters_of_a_hundred_steps():
    code = published.facts("released_code")
    assert releases.share_of_steps(100, code=code) == 0.75 and releases.share_of_steps(50, code=code) == 38 / 50


def test_printed_slerp_ends_at_the_target_and_the_exchanged_one_at_the_latent():
    printed, exchanged = (releases.extended(np.pi / 2, size=64, images=5, seed=1, printed=way) for way in (True, False))
    assert printed["target"].max() < 1e-3 and exchanged["z"].max() < 1e-3 and printed["z"].min() > 30


def test_printed_scores_follow_from_the_printed_cells_over_seven():
    table = releases.sibling_scores()
    np.testing.assert_allclose(table["cells"], table["printed"], atol=2e-4)
    by_hand = 1 - (1.17 + 0.18 + 0.50 + 0.68 + 0.10 + 0.38 + 53.04 + 7.12 + 0.10 + 0.11 + 0.17 + 0.20 + 6.96 + 0.30) / 700
    assert table.loc["ResNet50", "cells"] == pytest.approx(by_hand)


def test_swins_two_cells_are_squared_accuracies():
    table = releases.implied_means().set_index(["model", "trained_on"])
    assert table.loc[("Swin", "same scenario"), "zero"] == "blur_object, segmented_image"
    assert (table.drop(index=("Swin", "same scenario"))["zero"] == "").all()
    assert {round(0.7502**2, 4), round(0.8064**2, 4)} == {0.5628, 0.6503}
    assert releases.sibling_scores().loc["Swin", "row_mean"] == pytest.approx(0.803, abs=1e-3)


SIZE = 64


def test_the_printed_formula_ends_at_the_target_where_the_text_says_z():
    printed, meant = (releases.extended(math.pi / 2, size=SIZE, images=20, seed=1, printed=which) for which in (True, False))
    assert np.allclose(printed["target"], 0, atol=1e-5) and np.allclose(meant["z"], 0, atol=1e-5)
    assert (printed["z"] > 45).all()


def test_rings_hold_mean_and_deviation_by_formula_and_angle():
    table = releases.rings([0.0, 1.0], size=64, images=5, seed=1)
    assert table.columns.tolist() == [("printed", 0.0), ("printed", 1.0), ("exchanged", 0.0), ("exchanged", 1.0)]
    own = releases.extended(1.0, size=64, images=5, seed=1, printed=False)
    assert table.loc[("mean", "z"), ("exchanged", 1.0)] == pytest.approx(own["z"].mean())
