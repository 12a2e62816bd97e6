"""ImageNet-C's corruptions against their definitions, by hand and by known moments, and the published parameters by severity."""

import colorsys

import numpy as np
import pandas as pd
import pytest
from golden_units import difference
from tiny_settings import corruption_settings

from cnslib.core import paths, recipes
from cnslib.studies.corruptions import effects, levels


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


FLAT = np.full((24, 24, 3), 0.4)


def point(side=31):
    drawn = np.zeros((side, side, 3))
    drawn[side // 2, side // 2] = 1
    return drawn


CASES = [(effects.defocus, (3, 0.1)), (effects.glass, (0.9, 2, 2)), (effects.motion, (10, 3)), (effects.zoom, (1.16, 0.01))]


@pytest.mark.parametrize(("effect", "parameters"), CASES)
def test_a_flat_picture_stays_as_it_is(effect, parameters):
    np.testing.assert_allclose(effect(FLAT, rng(), *parameters), FLAT)


@pytest.mark.parametrize(("effect", "parameters"), [case for case in CASES if case[0] is not effects.zoom])
def test_no_light_is_lost(effect, parameters):
    assert effect(point(), rng(), *parameters)[..., 0].sum() == pytest.approx(1)


def test_a_disk_is_round_even_and_as_wide_as_its_radius():
    kernel = effects.disk(3, 0.01)
    np.testing.assert_allclose(kernel, kernel.T)
    np.testing.assert_allclose(kernel, kernel[::-1])
    assert (kernel > 0).sum() == 29 and kernel.max() == pytest.approx(1 / 29)  # whole places within 3 of the middle
    assert effects.disk(10, 0.5).sum() == pytest.approx(1, abs=1e-6)


def test_a_smear_at_angle_zero_is_a_row_of_half_a_gaussian():
    made = effects.smeared(point(), 0.0, 4, 2.0)[..., 0]
    row = made[15]
    assert made.sum() == pytest.approx(row.sum())
    np.testing.assert_allclose(row[15 - np.arange(9)] / row[15], np.exp(-(np.arange(9) ** 2) / 8))


def test_pixels_are_exchanged_and_none_is_lost():
    order = effects.exchanged(12, rng(), 2, 3)
    assert sorted(order) == list(range(144)) and order != list(range(144))


def test_enlarging_keeps_the_middle_and_spreads_what_is_around_it():
    ramp = np.arange(21.0)[:, None, None] * np.ones((21, 21, 3))
    np.testing.assert_allclose(effects.enlarged(ramp, 2.0)[:, 0, 0], 5 + np.arange(21) / 2)
    np.testing.assert_allclose(effects.enlarged(ramp, 1.0), ramp)


def test_brightness_adds_to_the_value_alone():
    plain = np.full((2, 2, 3), (0.2, 0.4, 0.3))
    hue, saturation, value = colorsys.rgb_to_hsv(0.2, 0.4, 0.3)
    np.testing.assert_allclose(effects.brightness(plain, rng(), 0.3)[0, 0], colorsys.hsv_to_rgb(hue, saturation, value + 0.3))
    assert effects.brightness(plain, rng(), 0.9).max() == pytest.approx(1)


def test_fog_keeps_the_brightest_value_as_a_bound():
    plain = 0.8 * np.random.default_rng(0).uniform(0, 1, (20, 20, 3))
    made = effects.fog(plain, rng(), 2.0, 2.0)
    assert made.max() <= plain.max() + 1e-9 and made.std() < plain.std()


def test_plasma_fills_zero_to_one_and_a_smaller_decay_is_rougher():
    smooth, rough = (effects.plasma(64, rng(), decay) for decay in (3.0, 1.4))
    assert smooth.shape == (64, 64)
    for surface in (smooth, rough):
        assert surface.min() >= 0 and surface.max() <= 1
    assert np.abs(np.diff(rough)).mean() > 2 * np.abs(np.diff(smooth)).mean()


def test_a_finer_surface_without_displacement_is_interpolated():
    coarse = np.array([[0.0, 4.0], [8.0, 4.0]])
    fine = effects.finer(coarse, 0.0, rng())
    np.testing.assert_array_equal(fine[::2, ::2], coarse)
    assert fine[1, 1] == 4 and fine[0, 1] == (0 + 4 + 4 + 4) / 4  # two corners, and the middles below and above (it repeats itself)


def test_frost_mixes_the_shares_and_differs_from_picture_to_picture():
    plain = np.random.default_rng(0).uniform(0, 1, (20, 20, 3))
    np.testing.assert_allclose(effects.frost(plain, rng(), 0.7, 0.5), 0.7 * plain + 0.5 * effects.ice(20, rng()))
    ice, other = effects.ice(64, rng(1)), effects.ice(64, rng(2))
    assert ice.min() >= 0 and ice.max() <= 1 and (ice != other).any()


def test_snow_only_whitens_and_its_flakes_stand_on_their_heads_too():
    dark = np.zeros((32, 32, 3))
    made = effects.snow(dark, rng(), 0.3, 0.3, 1.25, 0.65, 14, 12, 0.6)
    flakes = made[..., 0] - 0.4 * 0.5  # black is whitened to 0.5, of which 0.4 counts
    assert (made >= 0.2 - 1e-9).all() and flakes.max() > 0.1
    np.testing.assert_allclose(flakes, np.rot90(flakes, 2))


def pictures(count=2, side=32, seed=0):
    """Smooth pictures with an edge."""
    rng = np.random.default_rng(seed)
    ramp = np.linspace(40, 200, side)
    drawn = ramp[None, :, None, None] * np.ones((count, side, side, 3)) * rng.uniform(0.6, 1, (count, 1, 1, 3))
    drawn[:, side // 4 : side // 2, side // 4 : side // 2] = 20
    return drawn.astype(np.uint8)


KEYS = [("bag", number) for number in range(2)]


def test_the_fifteen_are_imagenet_cs():
    table = pd.read_csv(paths.PUBLISHED / "imagenet_c.csv")
    assert len(levels.EFFECTS) == 15 and set(table["corruption"]) == set(levels.EFFECTS)
    assert {kind: len(own) for kind, own in levels.KINDS.items()} == {"noise": 3, "blur": 4, "weather": 4, "digital": 4}
    assert table.groupby(["corruption", "side"])["severity"].apply(list).map(lambda own: own == [1, 2, 3, 4, 5]).all()


@pytest.mark.parametrize(
    ("side", "name", "first", "last"),
    [
        (64, "gaussian noise", (0.04,), (0.18,)),
        (224, "gaussian noise", (0.08,), (0.38,)),
        (64, "jpeg compression", (65,), (25,)),
        (224, "jpeg compression", (25,), (7,)),
        (224, "fog", (1.5, 2), (3, 1.4)),
        (224, "elastic transform", (488, 170.8, 24.4), (29.28, 2.44, 4.88)),
        (64, "snow", (0.1, 0.2, 1, 0.6, 8, 3, 0.8), (0.3, 0.3, 1.25, 0.65, 14, 12, 0.6)),
    ],
)
def test_first_and_last_parameters_are_the_published_ones(side, name, first, last):
    own = levels.published(side)[name]
    assert list(own) == [1, 2, 3, 4, 5] and own[1.0] == first and own[5.0] == last


def test_contrast_has_seven_levels_in_order():
    graded = levels.levels(corruption_settings())
    assert list(graded["contrast"]) == [1.0, 2.0, 3.0, 3.5, 4.0, 4.5, 5.0]
    assert [value for (value,) in graded["contrast"].values()] == [0.4, 0.3, 0.2, 0.15, 0.1, 0.075, 0.05]
    assert all(len(own) == 5 for name, own in graded.items() if name != "contrast")


@pytest.mark.parametrize("name", levels.EFFECTS)
def test_equal_inputs_give_equal_bytes_leave_the_original_alone_and_belong_to_the_picture(name):
    plain = pictures()
    before, parameters = plain.copy(), levels.published(64)[name][5.0]
    first, second = (levels.corrupt(name, plain, parameters, keys=KEYS) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(plain, before)
    assert first.dtype == np.uint8 and first.shape == plain.shape and (first != plain).any()
    alone = levels.corrupt(name, plain[1:], parameters, keys=KEYS[1:])
    np.testing.assert_array_equal(alone[0], first[1])


@pytest.mark.parametrize("name", sorted(set(levels.EFFECTS) - {"snow", "fog", "frost", "elastic transform"}))
def test_a_higher_severity_takes_more_of_the_picture(name):
    plain = pictures(side=64)
    apart = [np.abs(levels.corrupt(name, plain, own, keys=KEYS).astype(int) - plain).mean() for own in levels.published(64)[name].values()]
    assert apart[0] > 0 and apart[-1] > 1.3 * apart[0]


def test_unknown_names_and_sides_are_told():
    with pytest.raises(ValueError, match=r"rust.*gaussian noise"):
        levels.corrupt("rust", pictures(), (1.0,), keys=KEYS)
    with pytest.raises(ValueError, match=r"128.*64, 224"):
        levels.published(128)


def test_the_corrupted_pictures_are_the_golden_ones():
    graded = levels.published(64)
    drawn = [levels.corrupt(name, pictures(1), graded[name][3], keys=KEYS[:1]) for name in sorted(graded)]
    assert not difference(recipes.CORRUPTED, np.concatenate(drawn))
