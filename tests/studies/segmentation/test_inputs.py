"""What segmentation and saliency are asked about: states, garments and photographs of the scenarios."""

import dataclasses

import numpy as np
import pytest
from tiny_segmentation import SETTINGS, key

from cnslib.core import paths
from cnslib.studies.scenarios import subjects
from cnslib.studies.segmentation import inputs
from cnslib.world import scenes


def test_states_begin_with_the_image_itself_and_every_scenario_changes_it(garment):
    pictures = inputs.pictures(garment, [0.0, 1.0], seed=1)
    assert inputs.keys(garment, [0.0, 1.0])[0] == key()
    assert np.array_equal(pictures[0], np.round(garment.image * 255).astype(np.uint8))
    assert all((picture != pictures[0]).any() for picture in pictures[1:])


def test_the_garments_are_those_of_the_scenarios_and_the_random_background_is_their_other_picture(garment):
    pool = scenes.garments(paths.GARMENTS, "heldout")
    (same,) = subjects.garments(pool, "heldout", ["trouser"], count=1, seed=1)
    assert np.array_equal(garment.image, same.image) and np.array_equal(garment.other, same.other)
    place = inputs.states([0.0, 1.0]).index(("random background", 1.0))
    made = inputs.pictures(garment, [0.0, 1.0], seed=1)[place]
    assert np.array_equal(made[garment.mask == 0], np.round(garment.other * 255).astype(np.uint8)[garment.mask == 0])


def test_more_photographs_than_there_are_are_refused():
    with pytest.raises(ValueError, match=r"segmentation\.photographs: 999.*at most 88"):
        inputs.photographs(paths.PHOTOS, settings=dataclasses.replace(SETTINGS, photographs=999))
