"""Noise and digital corruptions against their definitions: known pixels and moments."""

import numpy as np
import pytest

from cnslib.studies.corruptions import effects


def rng(seed=0):
    return np.random.default_rng(seed)


def picture(side=16, seed=0):
    return rng(seed).integers(0, 256, (side, side, 3)) / 255


GREY = np.full((64, 64, 3), 0.5)


def test_gaussian_noise_has_the_wanted_deviation_and_grows_along_one_direction():
    mild, strong = (effects.gaussian_noise(GREY, rng(), value) - GREY for value in (0.04, 0.08))
    assert mild.std() == pytest.approx(0.04, rel=0.03) and abs(mild.mean()) < 0.002
    np.testing.assert_allclose(strong, 2 * mild)


def test_shot_noise_keeps_the_mean_and_has_poissons_variance():
    made = effects.shot_noise(GREY, rng(), 50)
    assert made.mean() == pytest.approx(0.5, abs=0.005) and made.var() == pytest.approx(0.5 / 50, rel=0.05)
    assert effects.shot_noise(np.zeros((4, 4, 3)), rng(), 50).max() == 0


def test_impulse_noise_changes_the_wanted_share_to_black_or_white():
    made = effects.impulse_noise(GREY, rng(), 0.1)
    assert set(np.unique(made)) == {0.0, 0.5, 1.0}
    assert (made != 0.5).mean() == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize("value", [0.4, 0.05])
def test_contrast_draws_each_channel_to_its_own_mean(value):
    plain = picture()
    made = effects.contrast(plain, rng(), value)
    np.testing.assert_allclose(made.mean((0, 1)), plain.mean((0, 1)))
    np.testing.assert_allclose(np.ptp(made, (0, 1)), value * np.ptp(plain, (0, 1)))


def test_pixelate_makes_blocks_of_the_mean():
    plain = picture()
    made = effects.pixelate(plain, rng(), 0.25)
    blocks = made.reshape(4, 4, 4, 4, 3)
    assert (blocks == blocks[:, :1, :, :1]).all()
    np.testing.assert_allclose(blocks[:, 0, :, 0], plain.reshape(4, 4, 4, 4, 3).mean((1, 3)), atol=1 / 255)


def test_a_lower_jpeg_quality_leaves_less_of_the_picture():
    plain = picture(32)
    apart = [np.abs(effects.jpeg_compression(plain, rng(), quality) - plain).mean() for quality in (65, 40, 7)]
    assert apart == sorted(apart) and apart[0] > 0


def test_an_elastic_transform_without_reach_and_strength_is_the_picture():
    plain = picture()
    np.testing.assert_allclose(effects.elastic_transform(plain, rng(), 0, 1, 0), plain, atol=1e-9)


def test_the_pulled_corners_come_from_the_corners():
    move, moved = effects.affine(rng(), 60, 5), rng().uniform(-5, 5, (3, 2))
    corners = np.array([[50, 50], [50, 10], [10, 10]], float)
    np.testing.assert_allclose(move(corners + moved), corners, atol=1e-9)


def test_bending_moves_no_pixel_further_than_its_strength():
    away = effects.bending(rng(), 32, 4.0, 2.0) - np.indices((32, 32))
    assert 0 < np.abs(away).max() <= 4
    assert np.abs(np.diff(away, axis=1)).max() < np.abs(np.diff(effects.bending(rng(), 32, 4.0, 0.1), axis=1) - [[[1]], [[0]]]).max()
