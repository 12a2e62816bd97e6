import dataclasses

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
import torch
from golden_units import difference
from hypothesis import given, settings
from hypothesis import strategies as some
from scipy.ndimage import gaussian_filter
from tiny_garments import garments
from tiny_scenarios import CLASSES

from cnslib.core import paths, recipes
from cnslib.models import text_to_image
from cnslib.studies.scenarios import subjects

SIDE = 9
UNIT = some.floats(0, 1, width=32)
IMAGES = arrays.arrays(np.float64, (SIDE, SIDE, 3), elements=UNIT)
MASKS = arrays.arrays(np.float64, (SIDE, SIDE), elements=some.one_of(some.sampled_from([0.0, 1.0]), UNIT)).filter(np.any)


def make(name, image, mask, severity, seed=1):
    background = np.random.default_rng(7).random(image.shape)
    return subjects.scenario(name, image, mask, severity, generator=np.random.default_rng(seed), background=background)


@settings(max_examples=15)
@given(IMAGES, MASKS, UNIT, some.sampled_from(subjects.NAMES))
def test_a_scenario_is_an_image_keeps_the_other_part_bit_for_bit_and_begins_with_the_image(image, mask, severity, name):
    made = make(name, image, mask, severity)
    kept = mask == (0 if name.endswith("object") else 1)
    assert np.array_equal(made[kept], image[kept]) and np.array_equal(make(name, image, mask, 0.0), image)
    assert made.shape == image.shape and made.min() >= -1e-12 and made.max() <= 1 + 1e-12


@pytest.fixture
def picture():
    mask = np.zeros((SIDE, SIDE))
    mask[:, :3] = 1
    return np.random.default_rng(3).random((SIDE, SIDE, 3)), mask


def test_a_rough_mask_gains_or_loses_the_rim_of_an_object():
    square = np.zeros((9, 9))
    square[2:7, 2:7] = 1
    assert [subjects.rough(square, share).sum() for share in (-1 / 9, 0.0, 1 / 9)] == [3 * 3, 5 * 5, 5 * 5 + 4 * 5]


def test_scenarios_are_those_of_the_paper(picture):
    """Black, luma (Rec. 601), a 15 x 15 Gaussian, alpha compositing, and the saturating sum of the released code."""
    image, mask = picture
    background = {name: make(name, image, mask, 1.0)[:, 3:] for name in ("segmented", "grey", "blurred background")}
    assert (background["segmented"] == 0).all()
    assert np.allclose(background["grey"], (image @ [0.299, 0.587, 0.114])[:, 3:, None])
    assert np.allclose(background["blurred background"], gaussian_filter(image, (3, 3, 0), radius=(7, 7, 0))[:, 3:])
    white = np.ones_like(image)
    assert np.array_equal(subjects.scenario("random background", image, mask, 1.0, background=white)[:, :3], image[:, :3])
    assert (subjects.scenario(subjects.SUMMED, image, mask, 1.0, background=white) == 1).all()


def test_a_subject_belongs_to_its_class_and_number_and_its_random_background_holds_no_garment(found):
    (alone,) = subjects.garments(garments(), "heldout", ["ankle boot"], count=1, seed=1)
    assert (alone.label, alone.seed) == (found[2].label, found[2].seed) == ("ankle boot", 0)
    assert all(np.allclose(getattr(alone, part), getattr(found[2], part), atol=1e-6) for part in ("image", "mask", "other"))
    changed = dataclasses.replace(garments(), grey=torch.rand(20, 28, 28, generator=torch.Generator().manual_seed(1)))
    others = subjects.garments(changed, "heldout", CLASSES, count=2, seed=1)
    assert all(np.array_equal(one.other, other.other) for one, other in zip(found, others, strict=True))


def test_a_photograph_is_the_photo_sets_scene_before_empty_scenery_whichever_others_are_composed():
    every, some_of = (subjects.photographs(paths.PHOTOS, count=4, seed=1, rows=rows) for rows in (None, [3, 1]))
    for own, other in zip(some_of, (every[3], every[1]), strict=True):
        assert own.label == other.label and np.array_equal(own.image, other.image) and np.array_equal(own.other, other.other)


def test_a_drawn_scene_belongs_to_its_object_is_drawn_once_and_is_the_golden_one(experiment, found):
    drawn = experiment.garments()
    alone = subjects.draw(text_to_image.load_pipeline(experiment.pipeline, "cpu"), found[3:], settings=experiment.settings)
    assert np.abs(drawn[3].drawn * 255 - alone[0].numpy()).max() <= 1
    assert not difference(recipes.DRAWN_BACKGROUNDS, np.stack([own.drawn * 255 for own in drawn]))
    assert not difference(recipes.SUBJECTS, np.stack([subjects.shown(found[0], name, 1.0, seed=1) for name in subjects.UNDRAWN]))
