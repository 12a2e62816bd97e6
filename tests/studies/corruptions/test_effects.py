"""ImageNet-C's corruptions against their definitions, by hand and by known moments, and the published parameters by severity."""

import colorsys

import numpy as np
import pandas as pd
import pytest
from golden_units import difference
from tiny_settings import corruption_settings

from cnslib.core import paths, recipes
from cnslib.studies.corruptions import effects

GREY = np.full((64, 64, 3), 0.5)


def rng(seed=0):
    return np.random.default_rng(seed)


def picture(side=16):
    return rng().integers(0, 256, (side, side, 3)) / 255


def test_noises_have_their_moments():
    """Normal noise its deviation, along one direction; shot noise Poisson's variance; impulses the wanted share of black and white."""
    mild, strong = (effects.gaussian_noise(GREY, rng(), value) - GREY for value in (0.04, 0.08))
    assert mild.std() == pytest.approx(0.04, rel=0.03) and abs(mild.mean()) < 0.002
    np.testing.assert_allclose(strong, 2 * mild)
    made = effects.shot_noise(GREY, rng(), 50)
    assert made.mean() == pytest.approx(0.5, abs=0.005) and made.var() == pytest.approx(0.5 / 50, rel=0.05)
    made = effects.impulse_noise(GREY, rng(), 0.1)
    assert set(np.unique(made)) == {0.0, 0.5, 1.0} and (made != 0.5).mean() == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize("value", [0.4, 0.05])
def test_contrast_draws_each_channel_to_its_own_mean(value):
    plain, made = picture(), effects.contrast(picture(), rng(), value)
    np.testing.assert_allclose(made.mean((0, 1)), plain.mean((0, 1)))
    np.testing.assert_allclose(np.ptp(made, (0, 1)), value * np.ptp(plain, (0, 1)))


def test_pixelate_makes_blocks_of_the_mean():
    blocks = effects.pixelate(picture(), rng(), 0.25).reshape(4, 4, 4, 4, 3)
    assert (blocks == blocks[:, :1, :, :1]).all()
    np.testing.assert_allclose(blocks[:, 0, :, 0], picture().reshape(4, 4, 4, 4, 3).mean((1, 3)), atol=1 / 255)


def test_an_elastic_transform_without_reach_and_strength_is_the_picture_and_reach_moves_corners():
    np.testing.assert_allclose(effects.elastic_transform(picture(), rng(), 0, 1, 0), picture(), atol=1e-9)
    ramp, side = np.arange(60.0)[:, None, None] * np.ones((60, 60, 3)), 60
    made = effects.elastic_transform(ramp, rng(), 0, 1, 5)
    draws = rng()
    draws.uniform(-1, 1, (2, side, side))  # of the fields, which have no strength here
    corners = np.array([[50, 50], [50, 10], [10, 10]], float)
    design = np.column_stack([corners + draws.uniform(-5, 5, (3, 2)), np.ones(3)])
    down, right, start = np.linalg.solve(design, corners[:, 0])
    assert made[30, 30, 0] == pytest.approx(30 * (down + right) + start)


FLAT = np.full((24, 24, 3), 0.4)
POINT = np.zeros((31, 31, 3))
POINT[15, 15] = 1
CASES = [(effects.defocus, (3, 0.1)), (effects.glass, (0.9, 2, 2)), (effects.motion, (10, 3)), (effects.zoom, (1.16, 0.01))]


@pytest.mark.parametrize(("effect", "parameters"), CASES)
def test_a_flat_picture_stays_as_it_is_and_no_light_is_lost(effect, parameters):
    np.testing.assert_allclose(effect(FLAT, rng(), *parameters), FLAT)
    assert effect is effects.zoom or effect(POINT, rng(), *parameters)[..., 0].sum() == pytest.approx(1)


def test_blurs_of_a_point_are_those_of_a_hand():
    """A disk of 29 places within 3 of the middle, half a Gaussian along a row, and glass that exchanges pixels and loses none."""
    made = effects.defocus(POINT, rng(), 3, 0.01)[..., 0]
    assert (made > 1e-12).sum() == 29 and made.max() == pytest.approx(1 / 29)
    row = effects.smeared(POINT, 0.0, 4, 2.0)[15, :, 0]
    np.testing.assert_allclose(row[15 - np.arange(9)] / row[15], np.exp(-(np.arange(9) ** 2) / 8))
    glass = effects.glass(picture(), rng(), 1e-9, 2, 3)
    np.testing.assert_allclose(np.sort(glass.reshape(-1, 3), 0), np.sort(picture().reshape(-1, 3), 0))
    assert (glass != picture()).any()


def test_enlarging_keeps_the_middle_and_spreads_what_is_around_it():
    ramp = np.arange(21.0)[:, None, None] * np.ones((21, 21, 3))
    np.testing.assert_allclose(effects.enlarged(ramp, 2.0)[:, 0, 0], 5 + np.arange(21) / 2)


def test_brightness_adds_to_the_value_alone():
    plain = np.full((2, 2, 3), (0.2, 0.4, 0.3))
    hue, saturation, value = colorsys.rgb_to_hsv(0.2, 0.4, 0.3)
    np.testing.assert_allclose(effects.brightness(plain, rng(), 0.3)[0, 0], colorsys.hsv_to_rgb(hue, saturation, value + 0.3))
    assert effects.brightness(plain, rng(), 0.9).max() == pytest.approx(1)


def test_weather_stays_in_bounds_whitens_and_differs_from_picture_to_picture():
    """Plasma fills 0 to 1, rougher with a smaller decay; fog keeps the brightest value; frost mixes shares; flakes stand on their heads."""
    smooth, rough = (effects.plasma(64, rng(), decay) for decay in (3.0, 1.4))
    assert all(surface.shape == (64, 64) and surface.min() >= 0 and surface.max() <= 1 for surface in (smooth, rough))
    assert np.abs(np.diff(rough)).mean() > 2 * np.abs(np.diff(smooth)).mean()
    plain = 0.8 * picture(20)
    made = effects.fog(plain, rng(), 2.0, 2.0)
    assert made.max() <= plain.max() + 1e-9 and made.std() < plain.std()
    ice, other = (effects.frost(plain, rng(seed), 0.7, 0.5) - 0.7 * plain for seed in (1, 2))
    assert ice.min() >= -1e-9 and ice.max() <= 0.5 + 1e-9 and (ice != other).any()
    flakes = effects.snow(np.zeros((32, 32, 3)), rng(), 0.3, 0.3, 1.25, 0.65, 14, 12, 0.6)[..., 0] - 0.4 * 0.5  # black is whitened to 0.5
    assert flakes.min() >= -1e-9 and flakes.max() > 0.1
    np.testing.assert_allclose(flakes, np.rot90(flakes, 2))


def pictures(count=2, side=32):
    """Smooth pictures with an edge."""
    ramp = np.linspace(40, 200, side)
    drawn = ramp[None, :, None, None] * np.ones((count, side, side, 3)) * rng().uniform(0.6, 1, (count, 1, 1, 3))
    drawn[:, side // 4 : side // 2, side // 4 : side // 2] = 20
    return drawn.astype(np.uint8)


KEYS = [("bag", number) for number in range(2)]


def test_the_fifteen_are_imagenet_cs():
    table = pd.read_csv(paths.PUBLISHED / "imagenet_c.csv")
    assert len(effects.EFFECTS) == 15 and set(table["corruption"]) == set(effects.EFFECTS)
    assert {kind: len(own) for kind, own in effects.KINDS.items()} == {"noise": 3, "blur": 4, "weather": 4, "digital": 4}
    assert table.groupby(["corruption", "side"])["severity"].apply(list).map(lambda own: own == [1, 2, 3, 4, 5]).all()


@pytest.mark.parametrize(
    ("side", "name", "first", "last"),
    [
        (64, "gaussian noise", (0.04,), (0.18,)),
        (224, "gaussian noise", (0.08,), (0.38,)),
        (224, "elastic transform", (488, 170.8, 24.4), (29.28, 2.44, 4.88)),
        (64, "snow", (0.1, 0.2, 1, 0.6, 8, 3, 0.8), (0.3, 0.3, 1.25, 0.65, 14, 12, 0.6)),
    ],
)
def test_first_and_last_parameters_are_the_published_ones(side, name, first, last):
    own = effects.published(side)[name]
    assert list(own) == [1, 2, 3, 4, 5] and own[1.0] == first and own[5.0] == last


def test_contrast_has_seven_levels_in_order_and_a_side_without_parameters_is_refused():
    graded = effects.levels(corruption_settings())
    assert list(graded["contrast"]) == [1.0, 2.0, 3.0, 3.5, 4.0, 4.5, 5.0]
    assert [value for (value,) in graded["contrast"].values()] == [0.4, 0.3, 0.2, 0.15, 0.1, 0.075, 0.05]
    assert all(len(own) == 5 for name, own in graded.items() if name != "contrast")
    with pytest.raises(ValueError, match=r"128.*64, 224"):
        effects.published(128)


@pytest.mark.parametrize("name", effects.EFFECTS)
def test_draws_belong_to_the_picture_and_a_higher_severity_takes_more_of_it(name):
    plain, graded = pictures(side=64), effects.published(64)[name]
    made = [effects.corrupt(name, plain, own, keys=KEYS) for own in graded.values()]
    last = made[-1]
    assert np.array_equal(plain, pictures(side=64)) and last.dtype == np.uint8 and last.shape == plain.shape
    np.testing.assert_array_equal(effects.corrupt(name, plain[1:], graded[5.0], keys=KEYS[1:])[0], last[1])
    mild, *_, strong = (np.abs(own.astype(int) - plain).mean() for own in made)
    assert mild > 0 and (strong > 1.3 * mild or name in {"snow", "fog", "frost", "elastic transform"})


def test_the_corrupted_pictures_are_the_golden_ones():
    graded = effects.published(64)
    drawn = [effects.corrupt(name, pictures(1), graded[name][3], keys=KEYS[:1]) for name in sorted(graded)]
    assert not difference(recipes.CORRUPTED, np.concatenate(drawn))
