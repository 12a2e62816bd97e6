"""Weather against its definitions: brightness by hand, fog's brightest value, and layers that are drawn from the picture's generator."""

import colorsys

import numpy as np
import pytest

from cnslib.studies.corruptions import weather


def rng(seed=0):
    return np.random.default_rng(seed)


def picture(side=20, seed=0):
    return rng(seed).uniform(0, 1, (side, side, 3))


def test_brightness_adds_to_the_value_alone():
    plain = np.full((2, 2, 3), (0.2, 0.4, 0.3))
    hue, saturation, value = colorsys.rgb_to_hsv(0.2, 0.4, 0.3)
    np.testing.assert_allclose(weather.brightness(plain, rng(), 0.3)[0, 0], colorsys.hsv_to_rgb(hue, saturation, value + 0.3))
    assert weather.brightness(plain, rng(), 0.9).max() == pytest.approx(1)


def test_fog_keeps_the_brightest_value_as_a_bound():
    plain = 0.8 * picture()
    made = weather.fog(plain, rng(), 2.0, 2.0)
    assert made.max() <= plain.max() + 1e-9 and made.std() < plain.std()


def test_plasma_fills_zero_to_one_and_a_smaller_decay_is_rougher():
    smooth, rough = (weather.plasma(64, rng(), decay) for decay in (3.0, 1.4))
    assert smooth.shape == (64, 64)
    for surface in (smooth, rough):
        assert surface.min() >= 0 and surface.max() <= 1
    assert np.abs(np.diff(rough)).mean() > 2 * np.abs(np.diff(smooth)).mean()


def test_a_finer_surface_without_displacement_is_interpolated():
    coarse = np.array([[0.0, 4.0], [8.0, 4.0]])
    fine = weather.finer(coarse, 0.0, rng())
    np.testing.assert_array_equal(fine[::2, ::2], coarse)
    assert fine[1, 1] == 4 and fine[0, 1] == (0 + 4 + 4 + 4) / 4  # two corners, and the middles below and above (it repeats itself)


def test_frost_mixes_the_shares_and_differs_from_picture_to_picture():
    plain = picture()
    np.testing.assert_allclose(weather.frost(plain, rng(), 0.7, 0.5), 0.7 * plain + 0.5 * weather.ice(20, rng()))
    ice, other = weather.ice(64, rng(1)), weather.ice(64, rng(2))
    assert ice.min() >= 0 and ice.max() <= 1 and (ice != other).any()


def test_snow_only_whitens_and_its_flakes_stand_on_their_heads_too():
    dark = np.zeros((32, 32, 3))
    made = weather.snow(dark, rng(), 0.3, 0.3, 1.25, 0.65, 14, 12, 0.6)
    flakes = made[..., 0] - 0.4 * 0.5  # black is whitened to 0.5, of which 0.4 counts
    assert (made >= 0.2 - 1e-9).all() and flakes.max() > 0.1
    np.testing.assert_allclose(flakes, np.rot90(flakes, 2))
