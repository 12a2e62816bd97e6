"""Scenarios of XIMAGENET-12: what they change, what they must not touch, and what they refuse."""

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from matplotlib.colors import hsv_to_rgb
from scipy.ndimage import gaussian_filter

from cnslib.studies.scenarios import scenarios

SIDE = 9
UNIT = some.floats(0, 1, width=32)
IMAGES = arrays.arrays(np.float64, (SIDE, SIDE, 3), elements=UNIT)
MASKS = arrays.arrays(np.float64, (SIDE, SIDE), elements=some.one_of(some.sampled_from([0.0, 1.0]), UNIT)).filter(np.any)
ON_OBJECT = ("bright object", "blurred object")


def make(name, image, mask, severity, seed=1):
    background = np.random.default_rng(7).random(image.shape)
    return scenarios.scenario(name, image, mask, severity, generator=np.random.default_rng(seed), background=background)


@given(IMAGES, MASKS, UNIT, some.sampled_from(scenarios.NAMES))
def test_the_protected_part_keeps_its_bits(image, mask, severity, name):
    kept = mask == (0 if name in ON_OBJECT else 1)
    assert np.array_equal(make(name, image, mask, severity)[kept], image[kept])


@given(IMAGES, MASKS, some.sampled_from(scenarios.NAMES))
def test_severity_zero_is_the_identity(image, mask, name):
    assert np.array_equal(make(name, image, mask, 0.0), image)


@given(IMAGES, MASKS, UNIT, some.sampled_from(scenarios.NAMES))
def test_every_scenario_stays_an_image(image, mask, severity, name):
    made = make(name, image, mask, severity)
    assert made.shape == image.shape and made.min() >= -1e-12 and made.max() <= 1 + 1e-12


@pytest.fixture
def picture():
    """A random image whose object is its left third."""
    mask = np.zeros((SIDE, SIDE))
    mask[:, :3] = 1
    return np.random.default_rng(3).random((SIDE, SIDE, 3)), mask


def test_segmented_is_black_behind_the_object(picture):
    assert (make("segmented", *picture, 1.0)[:, 3:] == 0).all()


def test_transparent_has_the_mask_as_alpha_and_no_colour_behind_the_object(picture):
    image, mask = picture
    made = scenarios.transparent(image, mask, 1.0)
    assert np.array_equal(made[..., 3], mask) and (made[:, 3:] == 0).all() and np.array_equal(made[:, :3, :3], image[:, :3])


def test_grey_has_the_luma_in_all_channels(picture):
    background = make("grey", *picture, 1.0)[:, 3:]
    assert np.allclose(background, (picture[0] @ [0.299, 0.587, 0.114])[:, 3:, None])


@pytest.mark.parametrize(("name", "channel"), [("red", 0), ("green", 1), ("blue", 2)])
def test_a_colour_makes_its_channel_the_strongest_for_most_seeds(picture, name, channel):
    strongest = [np.median(make(name, *picture, 1.0, seed)[:, 3:].argmax(-1)) for seed in range(20)]
    assert np.mean(np.array(strongest) == channel) > 0.5


@pytest.mark.parametrize("name", ["red", "green", "blue", "rainbow"])
def test_a_colour_is_seen_on_a_pale_ground_and_moves_no_pixel(name):
    """Grounds of the catalog have a saturation of 0.08: a hue alone changes them by 3 in 100."""
    rng, mask = np.random.default_rng(3), np.zeros((SIDE, SIDE))
    mask[:, :3] = 1
    image = hsv_to_rgb(np.stack([rng.random((SIDE, SIDE)), np.full((SIDE, SIDE), 0.08), 0.8 + 0.15 * rng.random((SIDE, SIDE))], -1))
    made = make(name, image, mask, 1.0)
    assert np.abs(made - image)[:, 3:].mean() > 0.2 and np.array_equal(made[:, :3], image[:, :3])
    assert np.allclose(made.max(-1), image.max(-1))  # light and dark stay where they are


def test_the_blurred_background_is_a_fifteen_by_fifteen_gaussian(picture):
    image, mask = picture
    expected = gaussian_filter(image, (3, 3, 0), radius=(7, 7, 0))
    assert np.allclose(make("blurred background", image, mask, 1.0)[:, 3:], expected[:, 3:])


def test_the_random_background_is_composited_and_the_released_form_adds(picture):
    image, mask = picture
    white = np.ones_like(image)
    assert np.array_equal(scenarios.replaced(image, mask, 1.0, background=white)[:, :3], image[:, :3])
    assert (scenarios.summed(image, mask, 1.0, background=white) == 1).all()


def test_a_scenario_belongs_to_its_seed(picture):
    assert np.array_equal(make("red", *picture, 1.0, seed=4), make("red", *picture, 1.0, seed=4))
    assert not np.array_equal(make("red", *picture, 1.0, seed=4), make("red", *picture, 1.0, seed=5))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "foggy"}, "scenario 'foggy'; accepted: grey, red"),
        ({"severity": 1.5}, "severity is 1.5; accepted: 0 to 1"),
        ({"image": np.zeros((SIDE, SIDE, 4))}, r"image of shape \(9, 9, 4\)"),
        ({"image": np.zeros((SIDE, SIDE))}, r"image of shape \(9, 9\)"),
        ({"image": np.full((SIDE, SIDE, 3), 70, dtype=np.uint16)}, "type uint16; accepted: height x width x 3, floats"),
        ({"mask": np.ones((SIDE, 4))}, r"mask of shape \(9, 4\) for an image of \(9, 9\)"),
        ({"mask": np.zeros((SIDE, SIDE))}, "mask is empty"),
        ({"name": "random background", "background": None}, "background is none"),
    ],
)
def test_what_no_scenario_can_be_made_from_is_refused(change, message):
    arguments = {"name": "grey", "image": np.zeros((SIDE, SIDE, 3)), "mask": np.ones((SIDE, SIDE)), "severity": 0.5} | change
    with pytest.raises(ValueError, match=message):
        scenarios.scenario(**arguments, generator=np.random.default_rng(1))
