import numpy as np
import pytest
from golden_units import difference

from cnslib.core import recipes
from cnslib.studies import corruptions

GREY = np.full((64, 64, 3), 0.5)


def rng(seed=0):
    return np.random.default_rng(seed)


def picture(side=16):
    return rng().integers(0, 256, (side, side, 3)) / 255


def test_noises_have_their_moments():
    mild, strong = (corruptions.EFFECTS["gaussian noise"](GREY, rng(), value) - GREY for value in (0.04, 0.08))
    assert mild.std() == pytest.approx(0.04, rel=0.03) and abs(mild.mean()) < 0.002
    np.testing.assert_allclose(strong, 2 * mild)
    made = corruptions.EFFECTS["shot noise"](GREY, rng(), 50)
    assert made.mean() == pytest.approx(0.5, abs=0.005) and made.var() == pytest.approx(0.5 / 50, rel=0.05)
    made = corruptions.EFFECTS["impulse noise"](GREY, rng(), 0.1)
    assert set(np.unique(made)) == {0.0, 0.5, 1.0} and (made != 0.5).mean() == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize("value", [0.4, 0.05])
def test_contrast_draws_each_channel_to_its_own_mean(value):
    plain, made = picture(), corruptions.contrast(picture(), rng(), value)
    np.testing.assert_allclose(made.mean((0, 1)), plain.mean((0, 1)))
    np.testing.assert_allclose(np.ptp(made, (0, 1)), value * np.ptp(plain, (0, 1)))


def test_pixelate_makes_blocks_of_the_mean():
    blocks = corruptions.pixelate(picture(), rng(), 0.25).reshape(4, 4, 4, 4, 3)
    assert (blocks == blocks[:, :1, :, :1]).all()
    np.testing.assert_allclose(blocks[:, 0, :, 0], picture().reshape(4, 4, 4, 4, 3).mean((1, 3)), atol=1 / 255)


POINT = np.zeros((31, 31, 3))
POINT[15, 15] = 1


def test_blurs_of_a_point_are_those_of_a_hand():
    made = corruptions.defocus(POINT, rng(), 3, 0.01)[..., 0]
    assert (made > 1e-12).sum() == 29 and made.max() == pytest.approx(1 / 29)
    row = corruptions.smeared(POINT, 0.0, 4, 2.0)[15, :, 0]
    np.testing.assert_allclose(row[15 - np.arange(9)] / row[15], np.exp(-(np.arange(9) ** 2) / 8))
    glass = corruptions.glass(picture(), rng(), 1e-9, 2, 3)
    np.testing.assert_allclose(np.sort(glass.reshape(-1, 3), 0), np.sort(picture().reshape(-1, 3), 0))
    assert (glass != picture()).any()


def pictures(count=2, side=32):
    ramp = np.linspace(40, 200, side)
    drawn = ramp[None, :, None, None] * np.ones((count, side, side, 3)) * rng().uniform(0.6, 1, (count, 1, 1, 3))
    drawn[:, side // 4 : side // 2, side // 4 : side // 2] = 20
    return drawn.astype(np.uint8)


KEYS = [("bag", number) for number in range(2)]


@pytest.mark.parametrize("name", corruptions.EFFECTS)
def test_draws_belong_to_the_picture_and_a_higher_severity_takes_more_of_it(name):
    plain, graded = pictures(side=64), corruptions.published(64)[name]
    made = [corruptions.corrupt(name, plain, own, keys=KEYS) for own in graded.values()]
    last = made[-1]
    assert np.array_equal(plain, pictures(side=64)) and last.dtype == np.uint8 and last.shape == plain.shape
    np.testing.assert_array_equal(corruptions.corrupt(name, plain[1:], graded[5.0], keys=KEYS[1:])[0], last[1])
    mild, *_, strong = (np.abs(own.astype(int) - plain).mean() for own in made)
    assert mild > 0 and (strong > 1.3 * mild or name in {"snow", "fog", "frost", "elastic transform"})


def test_the_corrupted_pictures_are_the_golden_ones():
    graded = corruptions.published(64)
    drawn = [corruptions.corrupt(name, pictures(1), graded[name][3], keys=KEYS[:1]) for name in sorted(graded)]
    assert not difference(recipes.CORRUPTED, np.concatenate(drawn))
