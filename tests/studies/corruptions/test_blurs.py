"""Blurs of a point and of flat pictures, whose results are known."""

import numpy as np
import pytest

from cnslib.studies.corruptions import blurs

FLAT = np.full((24, 24, 3), 0.4)


def rng():
    return np.random.default_rng(0)


def point(side=31):
    drawn = np.zeros((side, side, 3))
    drawn[side // 2, side // 2] = 1
    return drawn


CASES = [(blurs.defocus, (3, 0.1)), (blurs.glass, (0.9, 2, 2)), (blurs.motion, (10, 3)), (blurs.zoom, (1.16, 0.01))]


@pytest.mark.parametrize(("effect", "parameters"), CASES)
def test_a_flat_picture_stays_as_it_is(effect, parameters):
    np.testing.assert_allclose(effect(FLAT, rng(), *parameters), FLAT)


@pytest.mark.parametrize(("effect", "parameters"), [case for case in CASES if case[0] is not blurs.zoom])
def test_no_light_is_lost(effect, parameters):
    assert effect(point(), rng(), *parameters)[..., 0].sum() == pytest.approx(1)


def test_a_disk_is_round_even_and_as_wide_as_its_radius():
    kernel = blurs.disk(3, 0.01)
    np.testing.assert_allclose(kernel, kernel.T)
    np.testing.assert_allclose(kernel, kernel[::-1])
    assert (kernel > 0).sum() == 29 and kernel.max() == pytest.approx(1 / 29)  # whole places within 3 of the middle
    assert blurs.disk(10, 0.5).sum() == pytest.approx(1, abs=1e-6)


def test_a_smear_at_angle_zero_is_a_row_of_half_a_gaussian():
    made = blurs.smeared(point(), 0.0, 4, 2.0)[..., 0]
    row = made[15]
    assert made.sum() == pytest.approx(row.sum())
    np.testing.assert_allclose(row[15 - np.arange(9)] / row[15], np.exp(-(np.arange(9) ** 2) / 8))


def test_pixels_are_exchanged_and_none_is_lost():
    order = blurs.exchanged(12, rng(), 2, 3)
    assert sorted(order) == list(range(144)) and order != list(range(144))


def test_enlarging_keeps_the_middle_and_spreads_what_is_around_it():
    ramp = np.arange(21.0)[:, None, None] * np.ones((21, 21, 3))
    np.testing.assert_allclose(blurs.enlarged(ramp, 2.0)[:, 0, 0], 5 + np.arange(21) / 2)
    np.testing.assert_allclose(blurs.enlarged(ramp, 1.0), ramp)
