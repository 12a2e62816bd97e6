"""Shifts in the latent space of a decoder: where they lead, what they leave, and what they refuse."""

import math

import numpy as np
import pytest
from scipy.spatial import geometric_slerp

from cnslib.studies.controlshift import latents
from cnslib.studies.published import releases

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


def test_the_printed_formula_ends_at_the_target_where_the_text_says_z():
    printed, meant = (releases.extended(math.pi / 2, size=SIZE, images=20, seed=1, printed=which) for which in (True, False))
    assert np.allclose(printed["target"], 0, atol=1e-5) and np.allclose(meant["z"], 0, atol=1e-5)
    assert (printed["z"] > 45).all()


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
        ("rotation", 0.5, SIZE, "shift 'rotation'; accepted: truncation, extend, overlap"),
        ("truncation", 0.0, SIZE, "R is 0.0; accepted: a factor above 0"),
        ("extend", -0.1, SIZE, "theta is -0.1; accepted: radians from 0 to pi/2"),
        ("overlap", 90, SIZE, "theta is 90"),
        ("overlap", float("nan"), SIZE, "theta is nan"),
        ("extend", 0.5, 32, "latents have 32 dimensions, the targets 64"),
    ],
)
def test_what_is_no_shift_is_refused(kind, value, size, message):
    with pytest.raises(ValueError, match=message):
        latents.shifted(Z[:, :size], kind, value, TARGETS)
