"""Shift intensity: closed forms against geometry, and Monte Carlo against both."""

import math

import numpy as np
import pytest

from cnslib.studies.controlshift import latents

SHIFTS = [("truncation", 1.05, 0.95), ("extend", 0.4, 0.0), ("overlap", 0.7, 0.0)]


@pytest.mark.parametrize(("kind", "value"), [("truncation", 0.9), ("extend", 0.0), ("overlap", 0.0)])
def test_the_training_distribution_has_no_intensity(kind, value):
    assert latents.exact(kind, value, value, latents.targets(16, seed=1)) == pytest.approx(0, abs=1e-7)


def test_a_ball_of_twice_the_radius_holds_three_quarters_new_area_in_the_plane():
    assert latents.exact("truncation", 2.0, 1.0, latents.targets(2, seed=1)) == pytest.approx(3 / 4)


def test_caps_of_the_ordinary_sphere_have_the_area_of_archimedes():
    for angle in (0.3, 1.0, math.pi / 2, 2.5):
        assert latents.cap(angle, 3) == pytest.approx((1 - math.cos(angle)) / 2)


def test_extending_to_the_whole_sphere_doubles_the_support_in_any_space():
    for size in (3, 1024):
        assert latents.exact("extend", math.pi / 2, 0.0, latents.targets(size, seed=1)) == pytest.approx(0.5)


def test_half_spheres_around_orthogonal_poles_share_half():
    first, second = np.eye(4)[:2] * 2
    assert latents.exact("overlap", math.pi / 2, 0.0, latents.Targets(first, second)) == pytest.approx(0.5)


@pytest.mark.parametrize(("kind", "value", "trained"), SHIFTS)
def test_monte_carlo_covers_the_closed_form(kind, value, trained):
    targets = latents.targets(4, seed=1)
    found = latents.simulated(kind, value, trained, targets, draws=20_000, seed=1, confidence=0.999)
    assert found["low"] <= latents.exact(kind, value, trained, targets) <= found["high"]
