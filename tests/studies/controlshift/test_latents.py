"""Shifts in the latent space of a decoder: where they lead, what they leave and refuse; their intensity, closed and simulated."""

import math

import numpy as np
import pytest
from scipy.spatial import geometric_slerp

from cnslib.studies.controlshift import latents

SIZE = 64
TARGETS = latents.targets(SIZE, seed=1)
Z = latents.start("test", range(8), SIZE, seed=1)
FIRST, SECOND = latents.unit(Z[0]), latents.unit(Z[1])


@pytest.mark.parametrize("tau", [0.0, 0.25, 0.5, 0.9, 1.0])
def test_slerp_agrees_with_scipy(tau):
    assert np.allclose(latents.slerp(FIRST, SECOND, tau), geometric_slerp(FIRST, SECOND, tau), atol=1e-12)


def test_slerp_keeps_the_norm_and_hits_both_ends():
    path = [latents.slerp(FIRST, SECOND, tau) for tau in np.linspace(0, 1, 11)]
    assert np.allclose(np.linalg.norm(path, axis=1), 1)
    assert np.allclose(path[0], FIRST) and np.allclose(path[-1], SECOND)


def test_slerp_between_equal_vectors_stays_there():
    assert np.allclose(latents.slerp(FIRST, FIRST, 0.3), FIRST)


def test_slerp_between_opposite_vectors_is_refused():
    with pytest.raises(ValueError, match="opposite"):
        latents.slerp(FIRST, -FIRST, 0.5)


@pytest.mark.parametrize(("kind", "value"), [("extend", 0.0), ("extend", 1.0), ("overlap", 0.0), ("overlap", 1.2)])
def test_latents_of_angles_have_the_norm_that_a_decoder_was_trained_on(kind, value):
    assert np.allclose(np.linalg.norm(latents.shifted(Z, kind, value, TARGETS), axis=1), math.sqrt(SIZE))


def test_truncation_scales_and_keeps_z_at_one():
    assert np.array_equal(latents.shifted(Z, "truncation", 1.0, TARGETS), Z)
    assert np.allclose(np.linalg.norm(latents.shifted(Z, "truncation", 0.9, TARGETS), axis=1), 0.9 * np.linalg.norm(Z, axis=1))


def test_extend_starts_half_way_to_the_target_and_ends_at_z():
    begin, end = (latents.shifted(Z, "extend", theta, TARGETS) for theta in (0.0, math.pi / 2))
    assert np.allclose(begin @ TARGETS.first, (begin * latents.unit(Z) * math.sqrt(SIZE)).sum(1))
    assert np.allclose(latents.unit(end), latents.unit(Z))


def test_overlap_at_zero_is_extend_at_zero_and_at_half_pi_turns_to_the_second_target():
    assert np.allclose(latents.shifted(Z, "overlap", 0.0, TARGETS), latents.shifted(Z, "extend", 0.0, TARGETS))
    swapped = latents.Targets(TARGETS.second, TARGETS.first)
    assert np.allclose(latents.shifted(Z, "overlap", math.pi / 2, TARGETS), latents.shifted(Z, "overlap", 0.0, swapped))


def test_an_image_starts_from_the_same_latent_in_any_batch_and_another_in_another_split():
    assert np.array_equal(latents.start("test", range(5, 8), SIZE, seed=1), Z[5:])
    assert not np.allclose(latents.start("train", range(8), SIZE, seed=1), Z)


@pytest.mark.parametrize(
    ("kind", "value", "size", "message"),
    [
        ("rotation", 0.5, SIZE, "shift: 'rotation' is not accepted; accepted: truncation, extend, overlap"),
        ("truncation", 0.0, SIZE, "truncation: R: 0.0 is not accepted; accepted: a factor above 0"),
        ("extend", -0.1, SIZE, "extend: theta: -0.1 is not accepted; accepted: radians from 0 to pi/2"),
        ("overlap", 90, SIZE, "theta: 90"),
        ("overlap", float("nan"), SIZE, "theta: nan"),
        ("extend", 0.5, 32, "dimensions of the latents: 32 is not accepted; accepted: 64"),
    ],
)
def test_what_is_no_shift_is_refused(kind, value, size, message):
    with pytest.raises(ValueError, match=message):
        latents.shifted(Z[:, :size], kind, value, TARGETS)


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
